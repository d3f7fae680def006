"""Bounds and results."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol

from optbench.model.instance import Instance
from optbench.model.measures import OPTIMAL_GAP, Value
from optbench.model.schedule import Schedule
from optbench.rendering import Rendered

Proof = Literal["combinatorial", "exact-lp", "verified-sdp", "solver"]
Status = Literal["optimal", "feasible", "infeasible", "unbounded", "unknown", "error"]
Termination = Literal[
    "finished", "time_limit", "work_limit", "memory_limit", "interrupted", "crashed"
]

__all__ = ["OPTIMAL_GAP", "Bound", "Proof", "Result", "Status", "Termination", "TrajectoryPoint"]


@dataclass(frozen=True)
class Bound:
    """A lower bound on one level of the objective, where it comes from and how it is proved.

    ``combinatorial`` is a short argument in exact numbers, ``exact-lp`` duals of a linear programme
    summed in exact numbers, and ``verified-sdp`` those of a semidefinite programme, whose matrix is
    factorised in floats with a margin for every rounding. The core gives these labels; ``solver``
    is a claim.
    The core proves it again from ``certificate`` (``bounds.proving``); a ``solver`` bound has none.
    """

    value: float
    source: str
    proof: Proof
    level: int = 0
    certificate: str | None = field(default=None, compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON without the certificate, which may be long."""
        return {key: value for key, value in asdict(self).items() if key != "certificate"}


@dataclass(frozen=True)
class Infeasibility:
    """The source and proof of infeasibility; ``argument`` is its explanation in words."""

    source: str
    proof: Proof
    argument: str = ""
    certificate: str | None = field(default=None, compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON without the certificate."""
        return {key: value for key, value in asdict(self).items() if key != "certificate"}


class Measured(Protocol):
    """Readings with repeats and provenance (``shapes.protocol.measurements``)."""

    def to_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class TrajectoryPoint:
    """Best verified objective and bound of the current level, ``t_s`` seconds into the run."""

    t_s: float
    objective: float | None
    bound: float | None
    level: int = 0


@dataclass(frozen=True, repr=False)
class Result(Rendered, kind="result"):
    """One solved instance. For a lexicographic objective, ``objective``, ``bound`` and ``gap`` are
    tuples.

    ``repaired`` states how many segments of the solver's schedule were moved before it was
    verified, and the largest move. ``instance_data`` is the instance itself, from which pictures
    are drawn; it is no part of comparisons and of the JSON document.
    """

    instance: str
    instance_hash: str
    problem: str | None
    solver: str
    seed: int
    threads: int
    status: Status
    termination: Termination
    objective: Value | None
    bound: Value | None
    gap: Value | None
    verified: bool
    violations: tuple[str, ...]
    metrics: dict[str, float]
    bounds: tuple[Bound, ...]
    wall_s: float
    # Seconds of compiling before the clock started: no part of ``wall_s``.
    compile_s: float = field(default=0.0, kw_only=True)
    time_to_first_s: float | None
    peak_memory_mb: float
    trajectory: tuple[TrajectoryPoint, ...]
    schedule: Schedule | None = None
    schedule_file: str | None = None
    message: str | None = None
    info: dict[str, Any] = field(default_factory=dict)
    infeasibility: Infeasibility | None = None
    repaired: dict[str, float] | None = None
    # Paths of files that come with the decision, by name: no part of comparisons.
    files: dict[str, str] = field(default_factory=dict, compare=False, kw_only=True)
    # Readings of a shape's measured metrics: no part of objective, bound and gap.
    measured: Measured | None = field(default=None, compare=False, kw_only=True)
    # What the run itself drew (``hardware.run_energy``), if it was measured: no part of metrics,
    # objective and gap.
    energy: dict[str, Any] | None = field(default=None, compare=False, kw_only=True)
    instance_data: Instance | None = field(default=None, compare=False, kw_only=True)
