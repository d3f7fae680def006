"""Certified marginal values: lower bounds with one more GPU, one more watt of cap, one more second.

A change of a count, a cap, a limit or a date changes numbers of the fluid LP and none of its rows.
Any duals whose signs are right prove a bound of any LP of these rows, so those of the instance are
evaluated on the changed one, compiled afresh and in exact arithmetic. For a right-hand side or a
column's limit that is y·b': an affine function of the change, whose slope is the dual price. A
count or a cap multiplies the makespan C: N_p C ≥ Σ n d x + .... There y is scaled by N_p / N'_p,
which leaves the reduced cost of C as it was, and the choices are re-priced (``repriced``).

So ``floor`` is a certified bound of the changed instance: no schedule of it costs less. ``price``
is the bound less the floor, both before rounding: one more unit lowers the certified bound by no
more than that (a negative price means that the unit costs, as a device does that draws power at
rest). What a schedule can gain from the unit is at most its objective less the floor. Where time is
left the changed LP is solved again, and the better of the two floors counts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np

from optbench.bounds.fluid.fluid_bound import FluidProof, choices, solve_fluid, value_of
from optbench.bounds.fluid.fluid_program import Fluid, fluid_model
from optbench.bounds.lp.exact_check import certificate, proven_bound, repriced
from optbench.bounds.lp.linear_program import LinearProgram
from optbench.model.instance import Floats, Instance

# The number of pools, those with the greatest duals, that get a row; an instance may have
# thousands.
MAX_POOLS = 12
# One more unit of what a limit counts; of time a second, or the least whole number of ticks that
# makes one.
LIMIT_STEPS = {
    "energy_j": (1.0, "J"),
    "cost_usd": (0.01, "USD"),
    "carbon_g": (1.0, "g"),
    "makespan": (1.0, ""),
    "makespan_s": (1.0, "s"),
    "flow_time_s": (1.0, "s"),
    "tardiness_s": (1.0, "s"),
}


@dataclass(frozen=True, eq=False)
class ResourceChange:
    """One unit more of a resource: its name, the amount, and the changed instance."""

    resource: str
    amount: float
    unit: str
    instance: Instance


@dataclass(frozen=True)
class MarginalValue:
    """A certified floor with one unit more, and how much lower than the bound it is."""

    resource: str
    amount: float
    unit: str
    floor: float
    price: float
    how: Literal["same duals", "solved again"]


def marginal_values(
    instance: Instance, proof: FluidProof, time_limit_s: float = 10.0
) -> list[MarginalValue]:
    """Return floors with one more of every resource, those of greatest price first."""
    began = time.perf_counter()
    program = fluid_model(instance, proof.keep_edges).program()
    found: list[tuple[MarginalValue, ResourceChange]] = []
    for change in changes(instance, pool_duals(program, proof, instance.num_pools)):
        if found and time.perf_counter() - began > time_limit_s:
            break
        value = floor_by_duals(change, program, proof)
        if value is not None:
            found.append((value, change))
    found.sort(key=lambda item: -item[0].price)
    again = [
        _solved_again(value, change, proof, time_limit_s - (time.perf_counter() - began))
        for value, change in found
    ]
    return sorted(again, key=lambda value: -value.price)


def changes(instance: Instance, weight: Floats) -> Iterator[ResourceChange]:
    """Yield one more of each resource; pools in the order of their weights."""
    pools, limits, tasks = instance.pools, instance.limits, instance.tasks
    for p in np.argsort(-weight, kind="stable")[:MAX_POOLS].tolist():
        count = pools.count.copy()
        count[p] += 1
        yield ResourceChange(
            f"devices of {pools.names[p]}",
            1,
            "",
            replace(instance, pools=replace(pools, count=count)),
        )
    for k, place in enumerate(limits.cap_place.tolist()):
        cap_w = limits.cap_w.copy()
        cap_w[k] += 1
        name = f"power cap of {instance.places.names[place]}"
        yield ResourceChange(name, 1, "W", replace(instance, limits=replace(limits, cap_w=cap_w)))
    step = int(instance.to_ticks(1.0))
    for metric, limit in sorted(limits.metric_max.items()):
        amount, unit = LIMIT_STEPS[metric]
        amount = step * instance.tick_s if metric == "makespan_s" else amount
        more = {**limits.metric_max, metric: limit + amount}
        yield ResourceChange(
            f"limit on {metric}",
            amount,
            unit,
            replace(instance, limits=replace(limits, metric_max=more)),
        )
    if instance.horizon is not None:
        yield ResourceChange(
            "horizon",
            step * instance.tick_s,
            "s",
            replace(instance, horizon=instance.horizon + step),
        )
    dated = np.isfinite(tasks.deadline)
    for name, which in (
        ("hard deadlines", dated & tasks.deadline_hard),
        ("due dates", dated & ~tasks.deadline_hard),
    ):
        if which.any():
            later = replace(tasks, deadline=np.where(which, tasks.deadline + step, tasks.deadline))
            yield ResourceChange(name, step * instance.tick_s, "s", replace(instance, tasks=later))


def floor_by_duals(
    change: ResourceChange, program: LinearProgram, proof: FluidProof
) -> MarginalValue | None:
    """Return the floor that the instance's own duals prove for the changed one; None where its rows
    differ.
    """
    fluid = fluid_model(change.instance, proof.keep_edges)
    changed = fluid.program()
    if changed.family != program.family or changed.num_columns != program.num_columns:
        return None
    dual = np.asarray(
        [math.ldexp(float(n), -proof.certificate.shift) for n in proof.certificate.numerator]
    )
    before, after = (column_of(lp, fluid) for lp in (program, changed))
    scaled = (before > 0) & (after > 0) & (before != after)
    dual[scaled] *= before[scaled] / after[scaled]
    again = repriced(changed, certificate(changed, dual), choices(changed))
    proven = proven_bound(changed, again)
    return (
        None
        if proven is None
        else _value(change, proof, value_of(fluid, changed, proven), proven, "same duals")
    )


def column_of(program: LinearProgram, fluid: Fluid) -> Floats:
    """Return the coefficient of the makespan in every row."""
    out = np.zeros(program.num_rows)
    here = program.column == fluid.makespan
    out[program.row[here]] = program.value[here]
    return out


def pool_duals(program: LinearProgram, proof: FluidProof, num_pools: int) -> Floats:
    """Return the sum of the duals of each pool's capacity rows."""
    here = np.flatnonzero(np.asarray(program.family) == "capacity")
    dual = [
        math.ldexp(float(proof.certificate.numerator[r]), -proof.certificate.shift)
        for r in here.tolist()
    ]
    return np.bincount(program.of[here], weights=dual, minlength=num_pools).astype(float)


def _solved_again(
    value: MarginalValue, change: ResourceChange, proof: FluidProof, time_left_s: float
) -> MarginalValue:
    if time_left_s < 1.5 * sum(proof.timings_s.values()):
        return value
    again = solve_fluid(change.instance, time_left_s, proof.keep_edges)
    if again is None or again.bound.value <= value.floor:
        return value
    return _value(change, proof, again.bound.value, again.proven, "solved again")


def _value(
    change: ResourceChange,
    proof: FluidProof,
    floor: float,
    proven: Fraction,
    how: Literal["same duals", "solved again"],
) -> MarginalValue:
    return MarginalValue(
        change.resource, change.amount, change.unit, floor, float(proof.proven - proven), how
    )
