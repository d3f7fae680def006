"""Lower bound on the cost of energy under tariffs that vary over time.

For one mode on its primary pool p, running [s, s + d), the cost that depends on s is

    (e / (d · step) − rest_p n_p) · step · ∫_s^{s+d} rate_p
    − Σ_{other pools q} rest_q n_q · step · ∫_s^{s+d} rate_q

Each integral is piecewise linear in s, its slope changes where s or s + d meets a change of tariff:
its least and its greatest value over the task's window are found among those points and the ends of
the window.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optbench.bounds.combinatorial.relaxation import Relaxation
from optbench.model.instance import Floats
from optbench.model.metrics import cumulated, integral, mode_uses, rate_at
from optbench.model.windows import latest_ends
from optbench.units import J_PER_KWH, TERM_MARGIN

CHUNK = 20_000
# Every candidate start is priced up to this many (task, mode) pairs times tariff periods of one
# pool.
MAX_CANDIDATES = 300_000


def tariff_floor(relaxation: Relaxation, metric: str, makespan: float) -> float:
    """Return a lower bound on ``cost_usd`` or ``carbon_g``."""
    instance = relaxation.instance
    tariffs = instance.tariffs
    if tariffs is None:
        return 0.0
    rates = tariffs.price_usd_per_kwh if metric == "cost_usd" else tariffs.carbon_g_per_kwh
    times, step, pools = tariffs.times, instance.tick_s, instance.pools
    terms = []
    for p in range(instance.num_pools):
        power = float(pools.rest_w[p] * pools.count[p]) * step
        terms.append(
            power * _rest_integral(times, rates[p], instance.horizon, makespan)
            if power > 0
            else 0.0
        )
    least = np.full(instance.num_tasks, np.inf)
    np.minimum.at(least, instance.pairs.task, _net_cost(relaxation, times, rates))
    terms += least.tolist()
    return (math.fsum(terms) - TERM_MARGIN * math.fsum(map(abs, terms))) / J_PER_KWH


def _rest_integral(times: Any, rates: Floats, horizon: float | None, makespan: float) -> float:
    """Return ∫ of the rate from 0 to the horizon, or to the least makespan: rates are not
    negative.
    """
    return float(
        integral(times, rates, np.asarray([makespan if horizon is None else float(horizon)]))[0]
    )


def _net_cost(relaxation: Relaxation, times: Any, rates: Floats) -> Floats:
    """Return the least cost of each (task, mode) net of the rest it replaces, in J times the rate's
    unit.
    """
    instance, w = relaxation.instance, relaxation.windows
    pairs, step, rest = instance.pairs, instance.tick_s, instance.pools.rest_w
    uses, primary = mode_uses(instance)[pairs.mode], instance.modes.primary[pairs.mode]
    length = pairs.duration.astype(float)
    low = w.head[pairs.task]
    high = np.maximum(low, latest_ends(instance, w)[pairs.task] - length)
    total = np.zeros(len(length))
    margin = np.zeros(len(length))
    for p in range(instance.num_pools):
        here = np.flatnonzero((primary == p) | ((uses[:, p] > 0) & (rest[p] > 0)))
        price_range = _integral_range if len(here) * len(times) <= MAX_CANDIDATES else _rate_range
        for rows in np.array_split(here, max(1, len(here) // CHUNK)):
            d = length[rows]
            least, most = price_range(times, rates[p], low[rows], high[rows], d)
            energy = np.where(primary[rows] == p, pairs.energy_j[rows], 0.0)
            power = np.where(d > 0, energy / np.where(d > 0, d, 1.0), energy) - uses[
                rows, p
            ] * rest[p] * step * (d > 0)
            value = np.where(power >= 0, power * least, power * most)
            total[rows] += value
            margin[rows] += (
                np.abs(power * least) + np.abs(power * most) + energy * np.abs(rates[p]).max()
            )
    return total - TERM_MARGIN * margin


def _integral_range(
    times: Any, rates: Floats, low: Floats, high: Floats, d: Floats
) -> tuple[Floats, Floats]:
    """Return least and greatest ∫ of the rate over [s, s + d], s in [low, high]; the rate at s
    where d is 0.
    """
    change = np.broadcast_to(times, (len(d), len(times)))
    last = np.where(np.isfinite(high), high, np.maximum(low, times[-1]))
    starts = np.concatenate((low[:, None], last[:, None], change, change - d[:, None]), axis=1)
    starts = np.clip(starts, low[:, None], last[:, None])
    value, error = _within(times, rates, starts, starts + d[:, None])
    value = np.where(d[:, None] > 0, value, rate_at(times, rates, starts))
    return (value - error).min(axis=1), (value + error).max(axis=1)


def _within(times: Any, rates: Floats, start: Floats, end: Floats) -> tuple[Floats, Floats]:
    """Return ∫ of the rate over each [start, end], and its possible error beyond the rounding of a
    few products.

    Parts of periods are computed directly: a difference of two integrals from time 0 on would lose
    short ones, late in a long horizon. Only whole periods between them are such a difference.
    """
    whole = cumulated(times, rates)
    first, last = (np.searchsorted(times, t, side="right") - 1 for t in (start, end))
    after = np.minimum(first + 1, len(times) - 1)
    parts = (times[after] - start) * rates[first] + (end - times[last]) * rates[last]
    value = np.where(
        first == last, (end - start) * rates[first], parts + (whole[last] - whole[after])
    )
    return value, np.where(last > first + 1, len(times) * np.finfo(float).eps * whole[last], 0.0)


def _rate_range(
    times: Any, rates: Floats, low: Floats, high: Floats, d: Floats
) -> tuple[Floats, Floats]:
    """Return the range with the least and greatest rate from the window's beginning on, held for
    all of d: weaker, without candidates.
    """
    period = np.searchsorted(times, low, side="right") - 1
    length = np.where(d > 0, d, 1.0)
    least, most = (f.accumulate(rates[::-1])[::-1][period] for f in (np.minimum, np.maximum))
    return least * length, most * length
