"""The rate at which energy counts in the stream LP: 1 for energy, a price, an intensity, or a
weighted sum of them.

In slot s the rate of pool p lies between ``low[p, s]`` and ``high[p, s]``, which are equal where
slots end where tariffs change. Mode k on pool p alone costs (e_k − r_p n_k t_k) ρ per unit: at the
low rate where that is positive; on several pools its own energy at the low rate, the rest that it
replaces at the high ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.model.instance import Floats, Instance, Ints
from optbench.model.metrics import between, mode_uses
from optbench.units import J_PER_KWH

# Rounding errors of a difference or a product of a few floats stay far below this share of their
# magnitude.
ROUNDING = 1e-14
ENERGY = ("energy_j", "j_per_unit")


@dataclass(frozen=True, eq=False)
class Rates:
    """``base`` is the weight of energy itself, ``resting_low[s]`` the cost per second of all
    devices' rest, ``rest_constant`` the cost that is paid in any case, ``hidden`` how much
    rounding durations up to whole ticks can save.
    """

    instance: Instance
    base: float
    low: Floats
    high: Floats
    resting_low: Floats
    rest_constant: float
    hidden: float

    def of_modes(self, mode: Ints, slot: Ints) -> Floats:
        """Return the least cost per unit above rest."""
        data, primary = self.instance.modes, self.instance.modes.primary
        energy, time = data.energy_per_unit_j[mode], data.time_per_unit_s[mode]
        pool = np.maximum(primary[mode], 0)
        low, high = self.low[pool, slot], self.high[pool, slot]
        replaced = self.instance.mode_rest_w[mode] * time
        above = energy - replaced
        cost = np.where(above >= 0, above * low, above * high)
        several = np.flatnonzero(np.diff(data.req_ptr)[mode] != 1)
        if len(several):
            rest = (
                mode_uses(self.instance)[mode[several]]
                * self.instance.pools.rest_w
                * time[several, None]
            )
            # A mode without a pool has no tariff: its energy counts as energy alone.
            own = np.where(primary[mode[several]] >= 0, low[several], self.base)
            cost[several] = energy[several] * own - (rest * self.high.T[slot[several]]).sum(axis=1)
        return np.asarray(
            cost - ROUNDING * (energy + replaced) * self.high.max(axis=0)[slot], dtype=float
        )


def rates_of(instance: Instance, edges: Floats, fixed: bool) -> Rates:
    """Return the rates in slots between these edges."""
    pools, level = instance.pools, dict(instance.objective.levels[0])
    base = sum(level.get(name, 0.0) for name in ENERGY)
    times: Floats = np.zeros(1)
    rate = np.full((instance.num_pools, 1), base)
    tariffs = instance.tariffs
    if tariffs is not None:
        times = np.asarray(tariffs.times * instance.tick_s, dtype=float)
        priced = (
            level.get("cost_usd", 0.0) * tariffs.price_usd_per_kwh
            + level.get("carbon_g", 0.0) * tariffs.carbon_g_per_kwh
        )
        rate = base + priced / J_PER_KWH
    first = np.clip(np.searchsorted(times, edges[:-1], side="right") - 1, 0, None)
    last = np.maximum(np.searchsorted(times, edges[1:], side="left") - 1, first)
    low = np.stack(
        [rate[:, a : b + 1].min(axis=1) for a, b in zip(first, last, strict=True)], axis=1
    )
    high = np.stack(
        [rate[:, a : b + 1].max(axis=1) for a, b in zip(first, last, strict=True)], axis=1
    )
    resting = pools.rest_w * pools.count
    end = (
        float(instance.horizon)
        if fixed and instance.horizon is not None
        else float(edges[0]) / instance.tick_s
    )
    # In ticks, and over the window alone: the time before it may be a million times as long.
    opens, until = np.array([float(instance.opens)]), np.array([end])
    turns = np.zeros(1) if tariffs is None else tariffs.times
    paid = np.array([between(turns, each, opens, until)[0] for each in rate]) * instance.tick_s
    constant = float((resting * paid).sum()) * (1 - 100 * ROUNDING)
    return Rates(
        instance,
        base,
        low,
        high,
        (resting @ low) * (1 - ROUNDING),
        constant,
        _hidden(instance, rate),
    )


def _hidden(instance: Instance, rate: Floats) -> float:
    """Return how much rounding up to whole ticks can save: each task, in one mode or several,
    replaces up to a tick of rest more.
    """
    top, rest = float(rate.max(initial=0.0)), float(instance.mode_rest_w.max(initial=0.0))
    return instance.num_tasks * rest * instance.tick_s * top


def waste_may_pay(instance: Instance, rates: Rates, mode: Ints, slot: Ints) -> bool:
    """Whether a preemptive schedule could gain by running on after a task is complete, in a mode
    that draws less than rest.
    """
    units = instance.tasks.units[instance.tasks.units > 0]
    if not instance.preemptive or len(mode) == 0 or len(units) == 0:
        return False
    least_units = float(units.min())
    tick_more = (
        instance.mode_rest_w[mode] * instance.tick_s / least_units * rates.high.max(axis=0)[slot]
    )
    return bool((rates.of_modes(mode, slot) < tick_more).any())
