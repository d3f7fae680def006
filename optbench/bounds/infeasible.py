"""Proofs that an instance has no schedule.

Combinatorial: the earliest end of a task lies beyond its latest one, tasks that must all end by
some time have more work on their pools than fits before it, or a lower bound on a limited metric
lies above its limit. By the fluid LP, whose rows hold of some schedule wherever there is one: for A
v ≥ b (= b on some rows), lower ≤ v ≤ upper and y ≥ 0 on the inequalities, every point has 0 ≥ y·b −
yᵀA v, so that min over the box of y·b − yᵀA v > 0 leaves no point. That is the exact check of a
bound with costs 0 (``exact_check``); y are the duals of the least violation of the rows (Farkas).

An open instance may leave all work undone, and of an interrupted task neither argument holds as it
stands: both prove nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from optbench.bounds.combinatorial.makespan import makespan_bounds, set_bound
from optbench.bounds.combinatorial.merging import merge_pools
from optbench.bounds.combinatorial.metric_floors import metric_floors
from optbench.bounds.combinatorial.relaxation import Relaxation, relax
from optbench.bounds.fluid.fluid_bound import LARGE, is_bounded
from optbench.bounds.fluid.fluid_program import fluid_model
from optbench.bounds.lp.certificates import (
    FARKAS,
    REFUTATION,
    certificate_text,
    dual_fields,
    read_duals,
)
from optbench.bounds.lp.exact_check import Certificate, certificate, proven_bound
from optbench.bounds.lp.linear_program import LinearProgram, solve
from optbench.model.instance import Floats, Instance
from optbench.model.objective import MAKESPANS
from optbench.model.result import Infeasibility
from optbench.model.timegrid import widened
from optbench.model.windows import latest_ends


def certify_infeasible(instance: Instance, time_limit_s: float = 10.0) -> Infeasibility | None:
    """Return a certified proof that no schedule exists; None where none was found."""
    found = refutation(instance)
    return found if found is not None else farkas(instance, time_limit_s)


def refutation(instance: Instance) -> Infeasibility | None:
    """Return a proof by the combinatorial arguments, computed from the instance."""
    if instance.num_tasks == 0 or instance.is_open or instance.preemptive:
        return None
    relaxation = relax(merge_pools(instance).instance)
    found = next(_contradictions(relaxation), None)
    if found is None:
        return None
    source, argument = found
    return Infeasibility(source, "combinatorial", argument, certificate_text(REFUTATION))


def _contradictions(relaxation: Relaxation) -> Iterator[tuple[str, str]]:
    """Yield (source, argument) of every requirement that no schedule can meet."""
    instance, w = relaxation.instance, relaxation.windows
    unreachable = np.flatnonzero(~np.isfinite(w.head + w.shortest + w.tail))
    if len(unreachable):
        task = int(unreachable[0])
        name = instance.tasks.name(task)
        yield "windows", f"no link joins the pools of task {name} with those of its neighbours"
        return
    latest, ends = latest_ends(instance, w), w.head + w.shortest
    late = np.flatnonzero(ends > latest)
    if len(late):
        task = int(late[0])
        times = f"{ends[task]:g} at the earliest and must end by {latest[task]:g}"
        yield "windows", f"task {instance.tasks.name(task)} ends at {times}"
    yield from _overloads(relaxation, latest)
    makespan, _ = max(makespan_bounds(relaxation))
    floors = metric_floors(relaxation, makespan)
    for metric, limit in sorted(instance.limits.metric_max.items()):
        if metric not in MAKESPANS and floors.get(metric, -np.inf) > widened(limit):
            yield (
                f"cheapest:{metric}",
                f"{metric} is at least {floors[metric]:g} and limited to {limit:g}",
            )


def _overloads(relaxation: Relaxation, latest: Floats) -> Iterator[tuple[str, str]]:
    """Find pools whose tasks cannot all end by their latest ends: the makespan bounds, with the
    time from a task's latest end to the last one as its tail.
    """
    for pools in relaxation.sets:
        due = latest[pools.task]
        some = np.isfinite(due)
        if not some.any():
            continue
        last = float(due[some].max())
        part = {name: getattr(pools, name)[some] for name in ("task", "work", "head", "length")}
        tight = replace(pools, tail=last - due[some], **part)
        reached, source = set_bound(tight)
        if reached > last:
            words = (
                f"tasks that must end by {last:g} or before keep {pools.name} busy until "
                f"{reached:g}"
            )
            yield source, words


def farkas(instance: Instance, time_limit_s: float) -> Infeasibility | None:
    """Return duals that prove that the rows of the fluid LP contradict each other; None where there
    are none, or too many rows.
    """
    merged = merge_pools(instance).instance
    if not is_bounded(merged) or len(merged.pairs.task) > LARGE:
        return None
    lp = _without_costs(merged)
    answer = solve(_violations(lp), time_limit_s)
    return None if answer.dual is None else _infeasibility(lp, certificate(lp, answer.dual))


def recheck_farkas(instance: Instance, data: Mapping[str, Any]) -> Infeasibility | None:
    """Return what the duals of a certificate prove for this instance, with its LP built again."""
    merged = merge_pools(instance).instance
    if not is_bounded(merged):
        return None
    lp = _without_costs(merged)
    return _infeasibility(lp, read_duals(data, lp))


def _infeasibility(lp: LinearProgram, duals: Certificate) -> Infeasibility | None:
    proven = proven_bound(lp, duals)
    if proven is None or proven <= 0:
        return None
    used = sorted({family for family, y in zip(lp.family, duals.numerator, strict=True) if y})
    argument = f"the rows {', '.join(used)} of the fluid LP contradict each other"
    return Infeasibility(
        "fluid_lp:farkas", "exact-lp", argument, certificate_text(FARKAS, **dual_fields(lp, duals))
    )


def _without_costs(instance: Instance) -> LinearProgram:
    lp = fluid_model(instance).program()
    return replace(lp, cost=np.zeros(lp.num_columns))


def _violations(lp: LinearProgram) -> LinearProgram:
    """Return the LP of the least violation: every row may miss its right-hand side, at a price of 1
    per largest entry of the row.
    """
    rows, columns = np.arange(lp.num_rows), lp.num_columns
    largest = np.ones(lp.num_rows)
    np.maximum.at(largest, lp.row, np.abs(lp.value))
    equal = np.flatnonzero(lp.equal)
    row = np.concatenate((lp.row, rows, equal))
    column = np.concatenate(
        (lp.column, columns + rows, columns + lp.num_rows + np.arange(len(equal)))
    )
    value = np.concatenate((lp.value, np.ones(lp.num_rows), -np.ones(len(equal))))
    order = np.lexsort((column, row))
    extra = lp.num_rows + len(equal)
    return replace(
        lp,
        cost=np.concatenate((lp.cost, 1.0 / largest, 1.0 / largest[equal])),
        lower=np.concatenate((lp.lower, np.zeros(extra))),
        upper=np.concatenate((lp.upper, np.full(extra, np.inf))),
        row_ptr=np.concatenate(([0], np.cumsum(np.bincount(row, minlength=lp.num_rows)))).astype(
            np.int64
        ),
        column=column[order],
        value=value[order],
    )
