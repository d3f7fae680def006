"""From an instance, a verified decision and bounds to objective, gaps and floors: the only place
where these are put together.

Level k of a lexicographic objective is bounded with the levels before it held at what the decision
reaches:

    low_k = max {b : b bounds level k}
    gap_k = |objective_k − low_k| / max(|objective_k|, |low_k|)

A bound above a verified objective contradicts it, which raises a ``ContradictionError``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from optbench.model.measures import Value, check_bound, gap
from optbench.model.result import Bound
from optbench.model.verify import Verdict
from optbench.plugins.schedule_shape import shape_of


@dataclass(frozen=True, eq=False)
class Outcome:
    """What is known of a decision: a value per level of the objective, None where there is none.

    ``objectives`` is empty without a feasible decision; ``metrics`` are those of the verifier with
    the floors of arriving work.
    """

    instance: Any
    objectives: tuple[float, ...]
    lows: tuple[float | None, ...]
    gaps: tuple[float | None, ...]
    metrics: dict[str, float]

    @property
    def objective(self) -> Value | None:
        return value_of(self.objectives)

    @property
    def bound(self) -> Value | None:
        return value_of(self.lows)

    @property
    def gap(self) -> Value | None:
        return value_of(self.gaps)

    @cached_property
    def is_optimal(self) -> bool:
        """Whether the bounds prove every level of the objective."""
        shape = shape_of(self.instance)
        rows = enumerate(zip(self.objectives, self.lows, strict=True)) if self.objectives else ()
        return bool(self.objectives) and all(
            shape.is_closed(shape.at_level(self.instance, k, self.objectives), value, low)
            for k, (value, low) in rows
        )


def outcome_of(
    instance: Any, verdict: Verdict | None, bounds: Sequence[Bound], *, floors: bool = True
) -> Outcome:
    """The outcome of a decision with this verdict; None where there is no decision."""
    shape = shape_of(instance)
    sense = shape.sense(instance)
    best = best_by_level(bounds, shape.num_levels(instance), sense)
    objectives = () if verdict is None else verdict.objectives
    for value, bound in zip(objectives, best, strict=bool(objectives)):
        if bound is not None:
            check_bound(value, bound.value, bound.source, instance.name, sense)
    lows = tuple(None if bound is None else bound.value for bound in best)
    gaps = (
        tuple(gap(value, low) for value, low in zip(objectives, lows, strict=True))
        if objectives
        else ()
    )
    metrics = {} if verdict is None else verdict.metrics
    if floors and verdict is not None and verdict.feasible:
        metrics = metrics | shape.more_metrics(instance, metrics)
    return Outcome(instance, objectives, lows, gaps, metrics)


def best_by_level(
    bounds: Sequence[Bound], levels: int, sense: str = "min"
) -> tuple[Bound | None, ...]:
    """The best bound of each level, the first of equal ones: the highest of lower bounds."""
    sign = 1 if sense == "min" else -1
    return tuple(
        max((b for b in bounds if b.level == k), key=lambda b: sign * b.value, default=None)
        for k in range(levels)
    )


def level_of(instance: Any, k: int, objectives: tuple[float, ...]) -> Any | None:
    """The instance of one level, with the levels before it held at these objectives; None where one
    of them has none.
    """
    return None if k > len(objectives) else shape_of(instance).at_level(instance, k, objectives)


def value_of(values: Sequence[float | None]) -> Value | None:
    """A number for one level, a tuple for several, None when any is missing."""
    known = tuple(value for value in values if value is not None)
    if not known or len(known) != len(values):
        return None
    return known[0] if len(known) == 1 else known
