"""Measures of a result, one definition each, and the tolerance of differences by rounding.

The verifier adds terms that are not negative, so that a value is right to RELATIVE_TOLERANCE of
itself. Models and bounds subtract the idle energy of busy devices: their values are right to a few
units in the last place of the sum of absolute terms, however small the value itself is. With H the
horizon, or a time by which some optimal schedule has ended, that sum is at most

    makespan       H
    flow time      tick Σ_i w_i (H − release_i)
    tardiness      tick Σ_i w_i max(0, H − deadline_i)
    energy         Σ_i max_k e_ik + Σ_edges max_ab joule_ab + 2 tick Σ_r rest_r count_r H
    cost, carbon   the same as energy, at the highest rate of each pool

Idle energy counts twice: that of all devices, and the part that is subtracted for busy devices.
Times are whole ticks, which floats hold exactly: no difference of times is rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from optbench.errors import ContradictionError
from optbench.model.instance import Floats, Instance
from optbench.model.objective import MAKESPANS
from optbench.model.sleeping import kept_awake, wake_energy_j
from optbench.model.timegrid import RELATIVE_TOLERANCE
from optbench.model.windows import time_horizon
from optbench.units import J_PER_KWH

Value = float | tuple[float, ...]

# A verified objective within this gap of its bound is called optimal.
OPTIMAL_GAP = 1e-6
# Sums of products of floats are off by less than this share of the sum of absolute terms, amply.
CANCELLED = 2.0**-48
_PRICED = ("cost_usd", "carbon_g")
_TIMES = (*MAKESPANS, "flow_time_s", "tardiness_s")
UNIT_SUFFIXES = {"s": "s", "j": "J", "usd": "USD", "g": "g", "w": "W"}


def metric_unit(name: str) -> str:
    """The unit in a metric's name; empty for ``makespan``, which is in the instance's own time
    unit.
    """
    if name.endswith("_per_s"):
        return "1/s"
    return UNIT_SUFFIXES.get(name.rpartition("_")[2], "") if "_" in name else ""


def gap(objective: float | None, bound: float | None) -> float | None:
    """The relative distance of an objective to its bound; None where one is missing."""
    if objective is None or bound is None:
        return None
    return relative_distance(objective, bound)


def relative_distance(a: float, b: float) -> float:
    """The relative difference of two numbers, from 0 to 1, without an absolute threshold."""
    if a == b:
        return 0.0
    if (a > 0) != (b > 0):
        return 1.0
    return abs(a - b) / max(abs(a), abs(b))


def is_closed(instance: Instance, objective: float | None, bound: float | None) -> bool:
    """Whether a bound proves the first level's objective: within OPTIMAL_GAP or within rounding.

    Rounding is estimated from the data, not from the two numbers: if an objective is small compared
    with its terms, the difference may be their rounding.
    """
    reached = gap(objective, bound)
    if reached is None or objective is None or bound is None:
        return False
    return reached <= OPTIMAL_GAP or objective - bound <= level_tolerance(instance, objective)


def rpd(objective: float, best_known: float) -> float:
    """Relative percentage deviation, as a fraction. It is not a proof of quality."""
    return (objective - best_known) / best_known


def shifted_geomean(values: Sequence[float], shift: float) -> float:
    """exp(mean(log(v + shift))) − shift."""
    return math.exp(float(np.mean(np.log(np.asarray(values, dtype=float) + shift)))) - shift


def primal_integral(
    trajectory: Iterable[tuple[float, float]], best_known: float, end_s: float
) -> float:
    """∫ of the primal gap over [0, end]: 1 before the first incumbent, then |obj − best| /
    max(|obj|, |best|).
    """
    total, last_t, last_gap = 0.0, 0.0, 1.0
    for t_s, objective in trajectory:
        t_s = min(t_s, end_s)
        total += (t_s - last_t) * last_gap
        last_t, last_gap = t_s, relative_distance(objective, best_known)
    return total + (end_s - last_t) * last_gap


def contradicts(objective: float, bound: float, sense: str = "min") -> bool:
    """Whether a bound is on the wrong side of a verified objective, beyond the rounding of its
    terms: a lower one above it, or an upper one below it.
    """
    beyond = bound - objective if sense == "min" else objective - bound
    return beyond > RELATIVE_TOLERANCE * abs(objective)


def check_bound(
    objective: float, bound: float, source: str, where: str, sense: str = "min"
) -> None:
    """Raise an error if a bound exceeds a verified objective: one of the two must be wrong."""
    if contradicts(objective, bound, sense):
        exceeds = "exceeds" if sense == "min" else "is below"
        raise ContradictionError(
            f"{where}: bound {bound!r} from {source} {exceeds} the verified objective {objective!r}"
        )


def metric_scale(instance: Instance, name: str) -> float:
    """An upper bound on the sum of absolute terms of a metric, over all schedules that end by
    ``time_horizon``."""
    tick, tasks = instance.tick_s, instance.tasks
    end = float(instance.horizon) if instance.horizon is not None else time_horizon(instance)
    if name == "makespan":
        return end
    if name == "makespan_s":
        return end * tick
    if name == "flow_time_s":
        return tick * math.fsum((tasks.weight * np.maximum(0.0, end - tasks.release)).tolist())
    if name == "tardiness_s":
        soft = np.isfinite(tasks.deadline) & ~tasks.deadline_hard
        return tick * math.fsum(
            (tasks.weight[soft] * np.maximum(0.0, end - tasks.deadline[soft])).tolist()
        )
    if name == "j_per_unit":
        units = float(tasks.units.sum())
        return metric_scale(instance, "energy_j") / units if units > 0 else 0.0
    rate = _highest_rates(instance, name)
    pools = kept_awake(instance).pools
    resting = 2.0 * tick * end * math.fsum((pools.rest_w * pools.count * rate).tolist())
    # A device wakes at most once between two tasks.
    wakes = wake_energy_j(pools) * pools.count * rate
    waking = (instance.num_tasks + 1) * math.fsum(wakes.tolist())
    return resting + waking + _most_busy(instance, rate) + _most_sent(instance, rate)


def metric_tolerance(instance: Instance, name: str, value: float) -> float:
    """Values of a metric near this one that differ by at most this much count as equal."""
    cancelled = 0.0 if name in _TIMES else CANCELLED * metric_scale(instance, name)
    return RELATIVE_TOLERANCE * abs(value) + cancelled


def level_tolerance(instance: Instance, value: float) -> float:
    """The same of the first level of the objective."""
    terms = [
        weight * CANCELLED * metric_scale(instance, name)
        for name, weight in instance.objective.levels[0]
        if name not in _TIMES
    ]
    return RELATIVE_TOLERANCE * abs(value) + math.fsum(terms)


def _highest_rates(instance: Instance, name: str) -> Floats:
    """What one joule adds to the metric at most, by pool; the last entry is for tasks without a
    pool."""
    if name not in _PRICED:
        return np.ones(instance.num_pools)
    tariffs = instance.tariffs
    if tariffs is None:
        return np.zeros(instance.num_pools)
    table = tariffs.price_usd_per_kwh if name == "cost_usd" else tariffs.carbon_g_per_kwh
    return np.asarray(np.abs(table).max(axis=1) / J_PER_KWH, dtype=float)


def _most_busy(instance: Instance, rate: Floats) -> float:
    """The most expensive mode of each task, by kind, without a table of all tasks and modes."""
    modes = instance.modes
    priced = modes.energy_per_unit_j * np.where(
        modes.primary >= 0, rate[np.maximum(modes.primary, 0)], rate.max(initial=0.0)
    )
    most = np.zeros(len(modes.kind_ptr) - 1)
    np.maximum.at(most, modes.kind, np.abs(priced))
    return math.fsum((instance.tasks.units * most[instance.tasks.kind]).tolist())


def _most_sent(instance: Instance, rate: Floats) -> float:
    """Every edge over the most expensive link."""
    per_gb = (instance.links.j_per_gb * rate[:, None]).max(initial=0.0)
    return float(per_gb) * math.fsum(instance.edges.data_gb.tolist())
