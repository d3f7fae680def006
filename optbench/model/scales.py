"""How large the terms of a metric can be: what a tolerance of its floats is a share of.

A metric is a sum of terms, each the product of a few data, and its float is off by no more than a small multiple of 2^-53 of
the sum of absolute terms. With H the horizon, or a time by which some optimal schedule has ended, that sum is at most

    makespan     H                                          flow time    step Σ_i w_i (H − release_i)
    energy       Σ_i max_k e_ik + Σ_edges max_ab joule_ab + 2 step Σ_r rest_r count_r H
    tardiness    step Σ_i w_i max(0, H − deadline_i)        cost, carbon the same as energy, at the highest rate of each pool

Resting energy counts twice: what all devices would draw, and what those that are busy are spared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from optbench.model.instance import Floats, Instance
from optbench.model.windows import time_horizon

# Floats of one metric that differ by less than this share of the sum of absolute terms are the same number.
RELATIVE_TOLERANCE = 2.0**-40
J_PER_KWH = 3.6e6
_PRICED = ("cost_usd", "carbon_g")


def metric_scale(instance: Instance, name: str) -> float:
    """An upper bound on the sum of absolute terms of a metric, over all schedules that end by ``time_horizon``."""
    step, tasks = instance.step_s, instance.tasks
    end = float(instance.horizon) if instance.horizon is not None else time_horizon(instance)
    if name == "makespan":
        return end
    if name == "makespan_s":
        return end * step
    if name == "flow_time_s":
        return step * math.fsum((tasks.weight * np.maximum(0.0, end - tasks.release)).tolist())
    if name == "tardiness_s":
        soft = np.isfinite(tasks.deadline) & ~tasks.deadline_hard
        return step * math.fsum((tasks.weight[soft] * np.maximum(0.0, end - tasks.deadline[soft])).tolist())
    if name == "j_per_unit":
        units = float(tasks.units.sum())
        return metric_scale(instance, "energy_j") / units if units > 0 else 0.0
    rate = _highest_rates(instance, name)
    pools = instance.pools
    resting = 2.0 * step * end * math.fsum((pools.rest_w * pools.count * rate).tolist())
    return resting + _most_busy(instance, rate) + _most_sent(instance, rate)


def level_scale(instance: Instance, level: int = 0) -> float:
    """The same of a level of the objective."""
    return math.fsum(weight * metric_scale(instance, name) for name, weight in instance.objective.levels[level])


def level_tolerance(instance: Instance, level: int = 0) -> float:
    """Values of a level of the objective that differ by no more than this are the same."""
    return RELATIVE_TOLERANCE * level_scale(instance, level)


def tolerances(instance: Instance, names: Mapping[str, float] | tuple[str, ...]) -> dict[str, float]:
    """The same of metrics, by name."""
    return {name: RELATIVE_TOLERANCE * metric_scale(instance, name) for name in names}


def _highest_rates(instance: Instance, name: str) -> Floats:
    """What one joule adds to the metric at most, by pool; the last entry is for tasks without a pool."""
    if name not in _PRICED:
        return np.ones(instance.num_pools)
    tariffs = instance.tariffs
    if tariffs is None:
        return np.zeros(instance.num_pools)
    table = tariffs.price_usd_per_kwh if name == "cost_usd" else tariffs.carbon_g_per_kwh
    return np.asarray(np.abs(table).max(axis=1) / J_PER_KWH, dtype=float)


def _most_busy(instance: Instance, rate: Floats) -> float:
    """The dearest mode of each task, by kind: without a table of all tasks and modes."""
    modes = instance.modes
    priced = modes.energy_per_unit_j * np.where(modes.primary >= 0, rate[np.maximum(modes.primary, 0)], rate.max(initial=0.0))
    most = np.zeros(len(modes.kind_ptr) - 1)
    np.maximum.at(most, modes.kind, np.abs(priced))
    return math.fsum((instance.tasks.units * most[instance.tasks.kind]).tolist())


def _most_sent(instance: Instance, rate: Floats) -> float:
    """Every edge over the dearest link."""
    per_gb = (instance.links.j_per_gb * rate[:, None]).max(initial=0.0)
    return float(per_gb) * math.fsum(instance.edges.data_gb.tolist())
