"""Combinatorial bounds from critical paths, pool loads and cheapest choices on one level of the
objective.

A weighted sum of metrics is at least the weighted sum of their lower bounds. Times are exact, sums
of floats are lowered by more than their rounding error.
"""

from __future__ import annotations

import math
import time

import numpy as np

from optbench.bounds.combinatorial.destructive import destructive_bound, is_refuted
from optbench.bounds.combinatorial.makespan import makespan_bounds
from optbench.bounds.combinatorial.merging import merge_pools
from optbench.bounds.combinatorial.metric_floors import low_sum, metric_floors
from optbench.bounds.combinatorial.relaxation import Relaxation, relax
from optbench.bounds.lp.certificates import COMBINATORIAL, certificate_text
from optbench.model.instance import Instance
from optbench.model.objective import MAKESPANS
from optbench.model.result import Bound

DESTRUCTIVE = "destructive"


def combinatorial_bounds(
    instance: Instance, time_limit_s: float = 0.0, makespan: float = 0.0, upper: float = math.inf
) -> list[Bound]:
    """Return bounds on the first level of the objective, best first.

    The cheap bounds always run (0.1 s for 2,000 operations). The rest of ``time_limit_s`` goes to
    destructive bounds on the makespan; they start from ``makespan``, a bound on it that is already
    proved, and end at ``upper``, the makespan of a known schedule.
    """
    began = time.perf_counter()
    if instance.num_tasks == 0:
        return [_bound(0.0, "no_tasks")]
    ready = _relaxed(instance)
    if ready is None:
        return []
    relaxation, found = ready
    known = max(makespan, *(value for value, _ in found))
    if time_limit_s > 0 and set(MAKESPANS) & instance.objective.metrics:
        left = time_limit_s - (time.perf_counter() - began)
        better = destructive_bound(relaxation, known, left, upper)
        found += [(better, DESTRUCTIVE)] if better > known else []
    return _bounds(relaxation, found)


def recomputed(
    instance: Instance, source: str, makespan: int | None, time_limit_s: float
) -> Bound | None:
    """Compute the bound of this source again; ``makespan`` is what a destructive bound claims,
    refuted again one step below.

    None where there is no such bound, or the refutation takes longer than the time.
    """
    if instance.num_tasks == 0:
        return _bound(0.0, "no_tasks")
    ready = _relaxed(instance)
    if ready is None:
        return None
    relaxation, found = ready
    if makespan is not None:
        if not is_refuted(relaxation, makespan - 1, time_limit_s):
            return None
        found += [(float(makespan), DESTRUCTIVE)]
    return next((bound for bound in _bounds(relaxation, found) if bound.source == source), None)


def _relaxed(instance: Instance) -> tuple[Relaxation, list[tuple[float, str]]] | None:
    """Return the relaxation with the cheap bounds on the makespan; None where no finite bound holds
    for every schedule.
    """
    if instance.is_open:  # everything below assumes that all work is completed
        return None
    relaxation = relax(merge_pools(instance).instance)
    # An edge between tasks that no link joins makes heads infinite: no finite number bounds an
    # infeasible instance.
    found = [(value, source) for value, source in makespan_bounds(relaxation) if np.isfinite(value)]
    if not found or not np.isfinite(relaxation.windows.critical_path):
        return None
    return relaxation, found


def _bounds(relaxation: Relaxation, makespans: list[tuple[float, str]]) -> list[Bound]:
    instance = relaxation.instance
    level = instance.objective.levels[0]
    makespans = sorted(makespans, key=lambda found: -found[0])
    if len(level) == 1 and level[0][0] in MAKESPANS:
        name, weight = level[0]
        scale = instance.tick_s if name == "makespan_s" else 1.0
        return [_bound(weight * (value * scale), source, value) for value, source in makespans]
    value, source = makespans[0]
    floors = metric_floors(relaxation, value)
    total = low_sum(weight * floors[metric] for metric, weight in level)
    sources = [source if metric in MAKESPANS else f"cheapest:{metric}" for metric, _ in level]
    return [_bound(total, "+".join(sources), value)]


def _bound(value: float, source: str, makespan: float = 0.0) -> Bound:
    """Return a bound with its certificate; only a destructive one needs the makespan that it
    claims.
    """
    needs = {"makespan": int(makespan)} if DESTRUCTIVE in source.split("+") else {}
    return Bound(
        value,
        source,
        "combinatorial",
        certificate=certificate_text(COMBINATORIAL, source=source, **needs),
    )
