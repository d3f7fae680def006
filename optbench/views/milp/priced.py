"""Metrics as linear functions of the columns: constant and coefficients.

A pair (task i, mode k) that runs from s to e adds, to a metric with rate ρ_p(τ) per joule at pool p
(1 for energy),

    energy_ik · mean of ρ_primary over [s, e)  −  Σ_p n_kp rest_p step ∫_s^e ρ_p

and resting power adds Σ_p count_p rest_p step ∫_0^H ρ_p, with H the fixed horizon or the makespan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from optbench.model.instance import Floats, reduce_by_mode
from optbench.model.metrics import integral, mean_rate
from optbench.views.milp.frame import Frame, Transfers

if TYPE_CHECKING:
    from optbench.views.milp.time_indexed import Starts


def rest_power(base: Frame) -> Floats:
    """Return, per pool, joules per unit of the time domain with all devices at rest."""
    pools = base.instance.pools
    return np.asarray(pools.rest_w * pools.count * base.instance.tick_s, dtype=float)


def pair_amounts(base: Frame, metric: str) -> Floats:
    """Return what each pair adds at a rate that does not vary, resting devices deducted."""
    instance = base.instance
    pairs, modes = instance.pairs, instance.modes
    rate = base.rates(metric)[:, 0]
    freed = reduce_by_mode(
        np.add,
        modes,
        instance.pools.rest_w[modes.req_pool] * modes.req_count * rate[modes.req_pool],
        0.0,
    )
    own = np.where(modes.primary >= 0, rate[np.maximum(modes.primary, 0)], 0.0)
    return np.asarray(
        pairs.energy_j * own[pairs.mode] - freed[pairs.mode] * pairs.duration * instance.tick_s,
        dtype=float,
    )


def start_amounts(base: Frame, x: Starts, metric: str) -> Floats:
    """Return what each start adds under tariffs that vary."""
    instance = base.instance
    pairs, modes, pools = instance.pairs, instance.modes, instance.pools
    begin, end = x.tick.astype(float), x.end.astype(float)
    mode, rates, out = pairs.mode[x.pair], base.rates(metric), np.zeros(len(x.tick))
    devices = np.zeros((instance.num_modes, instance.num_pools))
    devices[np.repeat(np.arange(instance.num_modes), np.diff(modes.req_ptr)), modes.req_pool] = (
        modes.req_count
    )
    for p in range(instance.num_pools):
        home = modes.primary[mode] == p
        out[home] += pairs.energy_j[x.pair[home]] * mean_rate(
            base.times, rates[p], begin[home], end[home]
        )
        used = devices[mode, p] * float(pools.rest_w[p]) * instance.tick_s
        at = np.flatnonzero(used)
        out[at] -= used[at] * (
            integral(base.times, rates[p], end[at]) - integral(base.times, rates[p], begin[at])
        )
    return out


def rest_until(base: Frame, metric: str, t: Floats) -> Floats:
    """Return what all devices at rest have added by times t."""
    rates, out = base.rates(metric), np.zeros(len(t))
    for p, power in enumerate(rest_power(base).tolist()):
        out += power * integral(base.times, rates[p], t)
    return out


@dataclass(frozen=True, eq=False)
class PricedTerms:
    """Metrics of the time-indexed form. ``ended`` is the column ``makespan``, or with
    ``first_tick`` the first ``unfinished``.
    """

    base: Frame
    x: Starts
    sent: Transfers
    ended: int | None
    first_tick: int | None

    def of(self, metric: str, num_columns: int) -> tuple[float, Floats]:
        """Constant and coefficients of a metric."""
        out = np.zeros(num_columns)
        if metric == "makespan":
            return self._makespan(out, 1.0)
        if metric == "makespan_s":
            return self._makespan(out, self.base.instance.tick_s)
        if metric in ("flow_time_s", "tardiness_s"):
            out[: len(self.x.tick)] = self._service(metric)
            return 0.0, out
        return self._energetic(metric, out)

    def _makespan(self, out: Floats, scale: float) -> tuple[float, Floats]:
        assert self.ended is not None  # Frame.needs_makespan
        if self.first_tick is None:
            out[self.ended] = scale
            return 0.0, out
        out[self.ended : self.ended + max(0, int(self.base.end) - self.first_tick)] = scale
        return self.first_tick * scale, out

    def _service(self, metric: str) -> Floats:
        tasks, task = self.base.instance.tasks, self.base.instance.pairs.task[self.x.pair]
        if metric == "flow_time_s":
            return np.asarray(
                tasks.weight[task] * (self.x.end - tasks.release[task]) * self.base.instance.tick_s,
                dtype=float,
            )
        due = np.where(tasks.deadline_hard, np.inf, tasks.deadline)[task]
        return np.asarray(
            tasks.weight[task] * np.maximum(0.0, self.x.end - due) * self.base.instance.tick_s,
            dtype=float,
        )

    def _energetic(self, metric: str, out: Floats) -> tuple[float, Floats]:
        base, x, horizon = self.base, self.x, self.base.instance.horizon
        starts = slice(0, len(x.tick))
        out[starts] = (
            start_amounts(base, x, metric) if base.varying else pair_amounts(base, metric)[x.pair]
        )
        out[self.sent.first : self.sent.first + len(self.sent.edge)] = self.sent.cost(base, metric)
        if horizon is not None:
            return float(rest_until(base, metric, np.asarray([horizon]))[0]), out
        if self.ended is None:
            return 0.0, out
        if self.first_tick is None:
            out[self.ended] = float(rest_until(base, metric, np.ones(1))[0])
            return 0.0, out
        begun = rest_until(
            base, metric, np.arange(self.first_tick, int(base.end) + 1).astype(float)
        )
        out[self.ended : self.ended + len(begun) - 1] = np.diff(begun)
        return float(begun[0]), out
