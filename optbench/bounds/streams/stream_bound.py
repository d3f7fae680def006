"""Certified least energy of a stream of work, by the LP of ``stream_program`` proved again in exact
arithmetic.

``path_bound`` sums time up to one slot: least energy to process so many units with a mean time in
the system of at most τ, where a task that the horizon cuts counts min(D, H − release).
``path_metrics`` puts a policy beside three such floors:

    floor_own        at the units that it has processed
    floor_offered    at all units that were offered; over all amounts of work where the devices
                     cannot process them
    floor_frontier   at its own units and its own mean time in the system (censored)

``gap_x`` = 1 − floor_x / j_per_unit. Rest is paid for all devices whatever they do, so that J/unit
falls with the work done: policies that did different amounts of it compare at the units offered, or
drained. ``slotted_bound`` follows prices, intensities, outages, deadlines and arrivals slot by
slot.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from optbench.bounds.lp.certificates import STREAM, certificate_text, dual_fields, read_duals
from optbench.bounds.lp.exact_check import Certificate, certificate, proven_bound, round_down
from optbench.bounds.lp.linear_program import LinearProgram, LpSolution
from optbench.bounds.streams.stream_duals import repaired, solve_scaled
from optbench.bounds.streams.stream_per_unit import lp_of, value_of
from optbench.bounds.streams.stream_program import Demand, StreamProgram, stream_program
from optbench.bounds.streams.stream_slots import single_slot, slots_of, usual_slot_s
from optbench.bounds.streams.stream_traffic import Traffic, traffic
from optbench.errors import ParameterError
from optbench.model.instance import Floats, Instance, task_instance
from optbench.model.measures import check_bound
from optbench.model.objective import Objective
from optbench.model.result import Bound
from optbench.units import HOUR_S

TIME_LIMIT_S = 60.0
# Seconds without which slots are not tried.
LEAST_SLOTTED_S = 1.0
# A mean time in the system of 0 is not a budget.
LEAST_SOJOURN_S = 1e-9


@dataclass(frozen=True, eq=False)
class PathBound:
    """``energy_j`` is the proven bound, ``j_per_unit`` its share of ``units``.

    Duals: ``device_value_j[pool]`` is the most by which one more device can lower the energy, its
    own rest not counted; ``watt_value_j[place]`` is the same for one watt more of a power cap;
    ``sojourn_value_j_per_s`` for one second more of mean time in the system. Of an instance where
    all work must be completed, whose end they can move, they are rates at the optimum and not
    limits. ``certificate`` proves ``program`` again; ``constant_j`` is rest that is paid in any
    case.
    """

    energy_j: float
    j_per_unit: float
    units: float
    sojourn_s: float | None
    device_value_j: Mapping[str, float] = field(default_factory=dict)
    watt_value_j: Mapping[str, float] = field(default_factory=dict)
    sojourn_value_j_per_s: float = 0.0
    certificate: Certificate | None = None
    program: LinearProgram | None = None
    constant_j: float = 0.0


def path_bound(
    instance: Instance,
    units: float | None = None,
    sojourn_s: float | None = None,
    *,
    work: Traffic | None = None,
) -> PathBound | None:
    """Return the least energy to process ``units`` (all that are offered) with a mean time in the
    system of at most ``sojourn_s``.

    None when no schedule can, for lack of devices or time, when nothing arrives, and where running
    on after the end could pay. An instance where all work must be completed processes everything.
    """
    if units is not None and not units > 0:
        raise ParameterError(f"units is {units!r}; it must be positive")
    if sojourn_s is not None and not sojourn_s > 0:
        raise ParameterError(f"sojourn_s is {sojourn_s!r}; it must be a positive number of seconds")
    instance = task_instance(instance, "a bound of arriving work")
    work = traffic(instance) if work is None else work
    offered = float(work.units.sum())
    if not offered > 0:
        return None
    wanted = offered if units is None or not instance.is_open else units
    energy = instance.with_objective(Objective.weighted({"energy_j": 1.0}))
    program = stream_program(energy, work, single_slot(instance, work), Demand(wanted, sojourn_s))
    if program.unbounded_waste:
        return None
    answer = solve_scaled(program.lp, TIME_LIMIT_S)
    if answer.dual is None or answer.status not in ("Optimal", "Time limit reached"):
        return None
    proof = certificate(program.lp, answer.dual)
    proven = proven_bound(program.lp, proof)
    if proven is None:
        return None
    value = round_down(proven + Fraction(program.constant))
    return PathBound(
        value,
        value / wanted,
        wanted,
        sojourn_s,
        _device_values(instance, program, answer),
        _watt_values(instance, program, answer),
        _sojourn_value(program, answer, int(work.here.sum())),
        proof,
        program.lp,
        program.constant,
    )


def path_metrics(instance: Instance, metrics: Mapping[str, float]) -> dict[str, float]:
    """Return floors and gaps of a verified schedule, from its metrics; empty for an instance
    without a stream.
    """
    if instance.stream is None or not metrics.get("units_done", 0.0) > 0:
        return {}
    work, reached = traffic(instance), metrics["j_per_unit"]
    own = min(metrics["units_done"], float(work.units.sum()))
    sojourn_s = max(metrics["sojourn_censored_s"], LEAST_SOJOURN_S)
    found = {
        "own": path_bound(instance, own, work=work),
        "offered": path_bound(instance, work=work),
        "frontier": path_bound(instance, own, sojourn_s, work=work),
    }
    floors = {name: floor.j_per_unit for name, floor in found.items() if floor is not None}
    if "offered" not in floors and instance.is_open:
        least = _least(
            instance,
            stream_program(instance, work, single_slot(instance, work), Demand()),
            TIME_LIMIT_S,
        )
        floors |= {"offered": least[0]} if least is not None else {}
    for name in set(floors) - {"offered"}:
        check_bound(reached, floors[name], f"the path bound ({name})", instance.name)
    named = {f"floor_{name}_j_per_unit": floor for name, floor in floors.items()}
    return named | {
        f"gap_{name}": 1.0 - floor / reached if reached > 0 else 0.0
        for name, floor in floors.items()
    }


def stream_bound(instance: Instance, time_limit_s: float = TIME_LIMIT_S) -> Bound | None:
    """Return a bound on the first level of the objective over all schedules of an instance with a
    stream, with time in one slot.
    """
    return _bound(instance, None, Demand(), time_limit_s, "stream_lp")


def stream_bounds(instance: Instance, time_limit_s: float = TIME_LIMIT_S) -> list[Bound]:
    """Return the bound with one slot, and the slotted one if something changes with time, or
    waiting counts, and time suffices.
    """
    found = [stream_bound(instance, time_limit_s)]
    if found[0] is not None and _slots_can_help(instance) and time_limit_s > LEAST_SLOTTED_S:
        slot_s = usual_slot_s(instance)
        if slot_s > 0:
            found.append(slotted_bound(instance, slot_s, time_limit_s=time_limit_s))
    return [bound for bound in found if bound is not None]


def _slots_can_help(instance: Instance) -> bool:
    """Whether slots can give a better bound than a single one."""
    wanted = instance.objective.metrics | set(instance.limits.metric_max)
    return bool(instance.features & {"tariffs", "outages", "deadlines"}) or "flow_time_s" in wanted


def slotted_bound(
    instance: Instance,
    slot_s: float = HOUR_S,
    sojourn_s: float | None = None,
    *,
    due: bool = False,
    time_limit_s: float = TIME_LIMIT_S,
) -> Bound | None:
    """Return a bound on the first level of the objective, slot by slot; a slot also ends where a
    tariff or an outage changes.

    With ``sojourn_s`` it is over schedules with at most this mean time in the system (censored);
    with ``due`` over those that meet every deadline, including soft ones. None when no such
    schedule exists, or nothing was proved in time.
    """
    for name, value in (("slot_s", slot_s), ("sojourn_s", 1.0 if sojourn_s is None else sojourn_s)):
        if not value > 0:
            raise ParameterError(f"{name} is {value!r}; it must be a positive number of seconds")
    return _bound(
        instance,
        float(slot_s),
        Demand(None, sojourn_s, due),
        time_limit_s,
        f"stream_lp:slots={slot_s:g}s",
    )


def _bound(
    instance: Instance, slot_s: float | None, demand: Demand, time_limit_s: float, source: str
) -> Bound | None:
    if instance.num_tasks == 0:
        return None
    work = traffic(instance)
    if not work.units.sum() > 0:
        return None
    slots = single_slot(instance, work) if slot_s is None else slots_of(instance, work, slot_s)
    # Deadlines make prices of units fall, and repaired errors of the duals are charged there: the
    # proved value can be lower than without deadlines. Both are bounds for all schedules that meet
    # them.
    kinds = (True, False) if slots.count > 1 and _has_due(instance, demand) else (True,)
    best: Bound | None = None
    for deadlines in kinds:
        asked = instance if deadlines else _without_deadlines(instance)
        wanted = demand if deadlines else replace(demand, due=False)
        found = _least(asked, stream_program(asked, work, slots, wanted), time_limit_s / len(kinds))
        if found is None or (best is not None and found[0] <= best.value):
            continue
        value, lp, duals = found
        # A bound for schedules that meet a demand is not a bound on the objective: it gets no
        # certificate.
        fields = {} if duals is None or demand != Demand() else dual_fields(lp, duals)
        text = (
            certificate_text(STREAM, slot_s=slot_s, deadlines=deadlines, **fields)
            if fields
            else None
        )
        best = Bound(value, source, "exact-lp", certificate=text)
    return best


def recheck_stream(instance: Instance, data: Mapping[str, Any]) -> Bound | None:
    """Return what the duals of a certificate prove for this instance, with its LP built again; None
    when they prove nothing.
    """
    slot_s, deadlines = data.get("slot_s"), data.get("deadlines", True)
    if slot_s is not None and not (type(slot_s) is float and 0 < slot_s < math.inf):
        return None
    if instance.stream is None or instance.num_tasks == 0 or type(deadlines) is not bool:
        return None
    work = traffic(instance)
    if not work.units.sum() > 0:
        return None
    slots = single_slot(instance, work) if slot_s is None else slots_of(instance, work, slot_s)
    # A bound for schedules without deadlines also holds for those that meet them.
    asked = instance if deadlines else _without_deadlines(instance)
    program = stream_program(asked, work, slots, Demand())
    lp = lp_of(asked, program)
    duals = None if lp is None else read_duals(data, lp)
    value = (
        None if lp is None or duals is None else value_of(asked, program, proven_bound(lp, duals))
    )
    if lp is None or duals is None or value is None:
        return None
    text = certificate_text(STREAM, slot_s=slot_s, deadlines=deadlines, **dual_fields(lp, duals))
    return Bound(
        value,
        "stream_lp" if slot_s is None else f"stream_lp:slots={slot_s:g}s",
        "exact-lp",
        certificate=text,
    )


def _has_due(instance: Instance, demand: Demand) -> bool:
    """Whether the LP has rows for deadlines."""
    tasks = instance.tasks
    counts = demand.due or (
        not instance.is_open and bool((tasks.deadline_hard & np.isfinite(tasks.deadline)).any())
    )
    return counts and bool(np.isfinite(tasks.deadline).any())


def _without_deadlines(instance: Instance) -> Instance:
    free = np.full(instance.num_tasks, np.inf)
    return replace(
        instance,
        tasks=replace(
            instance.tasks, deadline=free, deadline_hard=np.zeros(instance.num_tasks, dtype=bool)
        ),
    )


def _least(
    instance: Instance, program: StreamProgram, time_limit_s: float
) -> tuple[float, LinearProgram, Certificate | None] | None:
    """Return the proven least objective, with the LP and the duals that prove it."""
    lp = lp_of(instance, program)
    if lp is None:
        return None
    proven, duals = _proven(program, lp, time_limit_s)
    value = value_of(instance, program, proven)
    return None if value is None else (value, lp, duals)


def _proven(
    program: StreamProgram, lp: LinearProgram, time_limit_s: float
) -> tuple[Fraction | None, Certificate | None]:
    """Return what the duals prove, unchanged or repaired, and the better ones."""
    answer = solve_scaled(lp, time_limit_s)
    if answer.dual is None:
        return None, None
    better = repaired(lp, answer.dual, len(program.cls), program.classes, program.slots.width)
    duals = [certificate(lp, dual) for dual in (better, answer.dual)]
    found = [(value, each) for each in duals if (value := proven_bound(lp, each)) is not None]
    return max(found, key=lambda item: item[0], default=(None, None))


def _seconds(program: StreamProgram, answer: LpSolution) -> Floats:
    """Return how long one more device or watt would be available, per slot."""
    return (
        program.slots.width
        if program.used is None
        else np.maximum(answer.primal[program.used], 0.0)
    )


def _device_values(
    instance: Instance, program: StreamProgram, answer: LpSolution
) -> dict[str, float]:
    if answer.dual is None:
        return {}
    rows = np.flatnonzero(np.asarray(program.lp.family) == "devices")
    pool, slot = np.divmod(program.lp.of[rows], program.slots.count)
    value = np.bincount(
        pool,
        weights=answer.dual[rows] * _seconds(program, answer)[slot],
        minlength=instance.num_pools,
    )
    return dict(zip(instance.pools.names, value.tolist(), strict=True))


def _watt_values(
    instance: Instance, program: StreamProgram, answer: LpSolution
) -> dict[str, float]:
    if answer.dual is None:
        return {}
    rows = np.flatnonzero(np.asarray(program.lp.family) == "watts")
    place = instance.limits.cap_place[program.lp.of[rows]]
    value = answer.dual[rows] * float(_seconds(program, answer)[0])
    return {
        instance.places.names[p]: float(value[place == p].sum()) for p in np.unique(place).tolist()
    }


def _sojourn_value(program: StreamProgram, answer: LpSolution, present: int) -> float:
    rows = np.flatnonzero(np.asarray(program.lp.family) == "sojourn")
    return (
        float(answer.dual[rows].sum()) * present if answer.dual is not None and len(rows) else 0.0
    )
