"""A front: points with their proofs, the certified floor under them, and what lies between
the two.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from optbench.model.measures import gap
from optbench.model.result import OPTIMAL_GAP, Termination
from optbench.rendering import Rendered
from optbench.shapes.protocol.shape import Decision
from optbench.units import EQUAL

Rest = Literal["idle", "asleep", "mixed"]
# The keys of the JSON document, in its order.
FRONT_KEYS = (
    *("instance", "instance_hash", "problem", "x", "y", "horizon_s", "horizon_from", "rest_energy"),
    *("solver", "seed", "threads", "time_limit_s", "termination", "infeasible", "x_bound"),
    *("constant", "proven", "undecided", "undecided_share", "wall_s"),
)
POINT_KEYS = (
    *("limit", "x", "y", "bound", "bound_source", "gap", "gap_above"),
    *("proven", "efficient", "wall_s", "termination"),
)


@dataclass(frozen=True)
class FrontPoint:
    """A verified schedule: least y found among those with x ≤ ``limit``, and a lower bound on the y
    of all of them.

    ``efficient``: proven too that no schedule has as little y with less x.
    """

    limit: float
    x: float
    y: float
    bound: float | None
    bound_source: str | None
    efficient: bool
    wall_s: float
    termination: Termination
    constant: float = 0.0
    schedule: Decision | None = field(default=None, repr=False)

    @property
    def gap(self) -> float | None:
        return gap(self.y, self.bound)

    @property
    def gap_above(self) -> float | None:
        """(UB − LB) / (UB − c): the gap of what lies above the constant c that no schedule
        avoids.
        """
        if self.bound is None:
            return None
        excess = self.y - self.bound
        return (
            0.0 if excess <= EQUAL * abs(self.y) else excess / max(self.y - self.constant, excess)
        )

    @property
    def proven(self) -> bool:
        """No schedule with x ≤ ``limit`` has less y."""
        return self.gap is not None and self.gap <= OPTIMAL_GAP


@dataclass(frozen=True)
class FrontProgress:
    """Point ``number`` of ``points``: the metric being minimised, under which limit, and how far
    that is.
    """

    number: int
    points: int
    metric: str
    limit: float | None
    objective: float | None
    bound: float | None
    finished: bool


@dataclass(frozen=True, repr=False)
class Front(Rendered, kind="front"):
    """The front of one instance.

    ``floor`` rows (x, y): with x at most this, no schedule has less y. Below ``x_bound`` there is
    no schedule at all, and none anywhere with less than ``constant``. ``undecided`` is the area
    between floor and front over the range of the points, in units of x times units of y, and
    ``undecided_share`` its part of the box that the points span.
    """

    instance: str
    instance_hash: str
    problem: str | None
    x: str
    y: str
    horizon_s: float | None
    horizon_from: str
    rest_energy: Rest
    solver: str
    seed: int
    threads: int
    time_limit_s: float
    termination: Termination
    infeasible: bool
    x_bound: float | None
    constant: float
    points: tuple[FrontPoint, ...]
    floor: tuple[tuple[float, float], ...]
    undecided: float
    undecided_share: float
    wall_s: float

    @property
    def proven(self) -> int:
        """How many of the points are proven optimal."""
        return sum(point.proven for point in self.points)

    def to_dict(self) -> dict[str, Any]:
        """What ``optbench pareto --json`` prints: docs/cli.md says what each key means."""
        return {
            "format": "optbench-front",
            "version": 1,
            **{name: getattr(self, name) for name in FRONT_KEYS},
            "points": [{name: getattr(p, name) for name in POINT_KEYS} for p in self.points],
            "floor": [{"x": x, "y": y} for x, y in self.floor],
        }
