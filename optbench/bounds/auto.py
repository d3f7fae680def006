"""Lower bounds by method name: the entry point of ``optbench bound``, ``ob.bound`` and solvers."""

from __future__ import annotations

import math
import time

from optbench.bounds.combinatorial.combinatorial_bound import DESTRUCTIVE, combinatorial_bounds
from optbench.bounds.combinatorial.destructive import LEAST_S, is_deducible
from optbench.bounds.fluid.fluid_bound import MAX_PAIRS, fluid_bound
from optbench.bounds.proving import num_pairs, remember
from optbench.compiling.kernel_table import BOUNDING
from optbench.errors import UnknownNameError
from optbench.model.instance import Instance
from optbench.model.objective import MAKESPANS
from optbench.model.result import Bound
from optbench.model.timegrid import grid_up

METHODS = {
    "cheap": "the combinatorial bounds that need no search",
    "auto": "combinatorial bounds, the fluid LP, and destructive bounds in the remaining time",
    "combinatorial": "critical paths, pool loads, cheapest choices, destructive bounds",
    "fluid": "the precedence-fluid linear programme, proved again in exact arithmetic",
    "stream": (
        "the linear programme over arriving work, as a whole and slot by slot, proved "
        "again in exact arithmetic"
    ),
}


def lower_bounds(
    instance: Instance, method: str = "auto", time_limit_s: float = 10.0, upper: float = math.inf
) -> list[Bound]:
    """Return certified bounds on the first level of the objective, best first; empty where no
    finite bound is known.

    ``upper`` is the makespan of a known feasible schedule, in ticks; no makespan from it on is
    tried.
    """
    if method not in METHODS:
        raise UnknownNameError("bounding method", method, METHODS)
    found = _found(instance, method, time_limit_s, upper)
    remember(instance, found)
    return sorted(found, key=lambda bound: -bound.value)


def _found(instance: Instance, method: str, time_limit_s: float, upper: float) -> list[Bound]:
    """Return the bounds of a method, in any order."""
    if method == "cheap":
        return combinatorial_bounds(instance)
    began = time.perf_counter()
    if _is_alone(instance, method):
        return _stream_bounds(instance, time_limit_s) if method in ("auto", "stream") else []
    found = combinatorial_bounds(instance) if method != "fluid" else []
    if method in ("auto", "fluid"):
        proof = fluid_bound(instance, time_limit_s)
        found += [proof.bound] if proof is not None else []
        if instance.stream is not None:
            found += _stream_bounds(instance, time_limit_s - (time.perf_counter() - began))
    left = time_limit_s - (time.perf_counter() - began)
    if left > LEAST_S and _deduces(instance, method):
        known = max((makespan_of(instance, bound.value) for bound in found), default=0.0)
        found += [
            b for b in combinatorial_bounds(instance, left, known, upper) if DESTRUCTIVE in b.source
        ]
    return found


def _stream_bounds(instance: Instance, time_limit_s: float) -> list[Bound]:
    """Return the bounds of arriving work; most instances have none and never import them."""
    from optbench.bounds.streams.stream_bound import stream_bounds

    return stream_bounds(instance, time_limit_s)


def bound_kernels(instance: Instance, method: str = "auto") -> frozenset[str]:
    """Return the kernels for bounding this instance, on any level of its objective."""
    if _is_alone(instance, method):
        return frozenset()
    levels = range(instance.objective.num_levels)
    each = (instance.with_objective(instance.objective.level(k)) for k in levels)
    deduces = any(_deduces(level, method) for level in each) and is_deducible(instance)
    return BOUNDING if deduces else frozenset()


def _is_alone(instance: Instance, method: str) -> bool:
    """Whether the stream LP is the only available bound."""
    large = instance.stream is not None and (
        instance.is_open or num_pairs(instance) > MAX_PAIRS or instance.preemptive
    )
    return large or method == "stream"


def _deduces(instance: Instance, method: str) -> bool:
    """Whether destructive bounds are worth their time.

    In a mixed objective the fluid LP, which trades metrics against each other, is stronger than a
    longer makespan.
    """
    only_makespan = {metric for metric, _ in instance.objective.levels[0]} <= set(MAKESPANS)
    return method == "combinatorial" or (method == "auto" and only_makespan)


def makespan_of(instance: Instance, value: float) -> float:
    """Return the makespan that a bound on the objective implies, if the objective is the makespan
    alone; otherwise 0.
    """
    level = instance.objective.levels[0]
    if len(level) != 1 or level[0][0] not in MAKESPANS:
        return 0.0
    scale = instance.tick_s if level[0][0] == "makespan_s" else 1.0
    makespan = value / (level[0][1] * scale)
    return float(grid_up(makespan))
