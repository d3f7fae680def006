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

from optbench.model.instance import Instance
from optbench.model.measures import Value, check_bound, gap, is_closed
from optbench.model.result import Bound
from optbench.model.verify import Verdict


@dataclass(frozen=True, eq=False)
class Outcome:
    """What is known of a decision: a value per level of the objective, None where there is none.

    ``objectives`` is empty without a feasible decision; ``metrics`` are those of the verifier with
    the floors of arriving work.
    """

    instance: Instance
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
        levels = [level_of(self.instance, k, self.objectives) for k in range(len(self.objectives))]
        rows = zip(levels, self.objectives, self.lows, strict=True) if self.objectives else ()
        return bool(levels) and all(
            level is not None and is_closed(level, value, low) for level, value, low in rows
        )


def outcome_of(
    instance: Instance, verdict: Verdict | None, bounds: Sequence[Bound], *, floors: bool = True
) -> Outcome:
    """The outcome of a decision with this verdict; None where there is no decision."""
    best = best_by_level(bounds, instance.objective.num_levels)
    objectives = () if verdict is None else verdict.objectives
    for value, bound in zip(objectives, best, strict=bool(objectives)):
        if bound is not None:
            check_bound(value, bound.value, bound.source, instance.name)
    lows = tuple(None if bound is None else bound.value for bound in best)
    gaps = (
        tuple(gap(value, low) for value, low in zip(objectives, lows, strict=True))
        if objectives
        else ()
    )
    metrics = {} if verdict is None else verdict.metrics
    if floors and instance.stream is not None and verdict is not None and verdict.feasible:
        from optbench.bounds.streams.stream_bound import path_metrics

        metrics = metrics | path_metrics(instance, metrics)
    return Outcome(instance, objectives, lows, gaps, metrics)


def best_by_level(bounds: Sequence[Bound], levels: int) -> tuple[Bound | None, ...]:
    """The highest bound of each level, the first of equal ones."""
    return tuple(
        max((b for b in bounds if b.level == k), key=lambda b: b.value, default=None)
        for k in range(levels)
    )


def level_of(instance: Instance, k: int, objectives: tuple[float, ...]) -> Instance | None:
    """The instance of one level, with the levels before it held at these objectives; None where one
    of them has none.
    """
    if k > len(objectives):
        return None
    out = instance
    for j in range(k):
        out = out.with_limits(**instance.objective.held(j, objectives[j]))
    return out.with_objective(instance.objective.level(k))


def value_of(values: Sequence[float | None]) -> Value | None:
    """A number for one level, a tuple for several, None when any is missing."""
    known = tuple(value for value in values if value is not None)
    if not known or len(known) != len(values):
        return None
    return known[0] if len(known) == 1 else known
