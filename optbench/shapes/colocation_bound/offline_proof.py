"""The value that any multipliers prove for the offline LP: its Lagrangian dual function.

For multipliers π (goals), ω (works), η (presence), λ (lack), ρ (services) and κ (time), none of
them below 0, and with the names of ``offline_bound``, let

    y_cb = max over training jobs i of class c that can run in bin b of
           ω_i + Σ_{b' ≥ b} (π_ib' + η_cb' share_ib')
    y_cb = ρ_cb for a class of services
    θ    = max( max_ib (λ_cb + η_cb + r_i Σ_{b' ≥ b} π_ib'),  max_cb r_c ρ_cb )
    μ_gb = max(0, max over columns p of g of v_bp / gpus_p)
    v_bp = Σ_c∈p (y_cb a_pc + η_cb (credit_pc − min(1, a_pc pace_cb)) − λ_cb lack_pc − κ_cb) − w_p

These are feasible for the dual of the LP, whatever π to κ are, so that

    Σ π_ib goal_ib + Σ ω_i work_i + Σ η_cb present_ib + Σ ρ_cb needed_cb
      − Σ κ_cb limit_cb − θ budget − Σ μ_gb capacity_gb

is at most its optimum. With shortfall as the objective, w = 0, and θ budget is left out: the value
is divided by θ where θ > 1. The formulae are evaluated in floats, for the solver, and in whole
numbers, for the proof, by the same code.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from optbench.errors import OptbenchError
from optbench.shapes.colocation_bound.offline_relaxation import (
    PRICE_BITS,
    SIDE_BITS,
    TABLE_BITS,
    Numbers,
    OfflineColumns,
    OfflineRelaxation,
    as_fraction,
)


@dataclass(frozen=True)
class OfflineMultipliers:
    """At least 0 each: floats, or whole numbers that stand for v 2^-PRICE_BITS."""

    goal: Numbers
    work: Numbers
    present: Numbers
    lack: Numbers
    service: Numbers
    time: Numbers


@dataclass(frozen=True)
class OfflinePrices:
    """Prices of work per class and bin, of shortfall, and of GPU time per GPU type and bin."""

    work: Numbers
    shortfall: Any
    gpu: Numbers


def work_prices(lp: OfflineRelaxation, given: OfflineMultipliers, unit: Any) -> Numbers:
    """y: the dearest job of a class sets its price in a bin."""
    later = _from_here_on(given.goal) + given.work[:, None]
    presence = _from_here_on(given.present[lp.classes.of_job] * lp.share)
    out: Numbers = given.service * lp.classes.is_service.astype(int)[:, None] * unit
    np.maximum.at(out, lp.classes.of_job, (later * unit + presence) * lp.startable.astype(int))
    return out


def _from_here_on(values: Numbers) -> Numbers:
    """Sums over each bin and all later ones."""
    out: Numbers = np.cumsum(values[:, ::-1], axis=1)[:, ::-1]
    return out


def shortfall_price(lp: OfflineRelaxation, given: OfflineMultipliers, unit: Any) -> Any:
    """θ."""
    here = ((given.lack + given.present) * unit)[lp.classes.of_job]
    jobs = (lp.rate[:, None] * _from_here_on(given.goal) + here) * lp.startable.astype(int)
    services = lp.service_rate[:, None] * given.service
    return max(jobs.max(), services.max())


def column_values(
    columns: OfflineColumns,
    work: Numbers,
    given: OfflineMultipliers,
    pace: Numbers,
    b: int,
    unit: Any,
    energy: bool,
) -> Numbers:
    """What each column of a GPU type earns per second in a bin, less its power."""
    one, other = columns.one, np.maximum(columns.other, 0)
    paired = (columns.other >= 0).astype(int)
    time, lack, present = given.time[:, b], given.lack[:, b], given.present[:, b]
    out: Numbers = work[one, b] * columns.rate_one + work[other, b] * columns.rate_other
    credit_one = columns.credit_one - paced(columns.rate_one, pace[one, b], unit)
    credit_other = columns.credit_other - paced(columns.rate_other, pace[other, b], unit) * paired
    credit = present[one] * credit_one + present[other] * credit_other
    missed = lack[one] * columns.lack_one + lack[other] * columns.lack_other
    out = out + (credit - missed - (time[one] + time[other] * paired) * unit) * unit
    return out - columns.watts if energy else out


def paced(rate: Any, pace: Any, unit: Any) -> Any:
    """The share of a bin's presence that a second of a column stands for, rounded down.

    A rate in whole numbers is rounded up by less than 2."""
    if isinstance(unit, float):
        return np.minimum(1.0, rate * pace)
    return np.minimum(unit, np.maximum(rate - 2, 0) * pace // unit)


def gpu_prices(
    lp: OfflineRelaxation, given: OfflineMultipliers, work: Numbers, unit: Any, energy: bool
) -> Numbers:
    """μ, rounded up in whole numbers."""
    out = np.zeros((len(lp.columns), lp.demand.num_bins), dtype=work.dtype)
    whole = work.dtype == object
    for g, columns in enumerate(lp.columns):
        for b in range(lp.demand.num_bins):
            # A column without a price of work earns nothing; one without a price of its second
            # class earns no more than the first class alone.
            useful = (work[columns.one, b] > 0) & (
                (columns.other < 0) | (work[np.maximum(columns.other, 0), b] > 0)
            )
            fits = useful & (columns.gpus <= lp.demand.most_gpus[g, b])
            if not fits.any():
                continue
            mine = taken(columns, fits)
            values = column_values(mine, work, given, lp.pace, b, unit, energy)
            per_gpu = -(-values // mine.gpus) if whole else values / mine.gpus
            out[g, b] = max(per_gpu.max(), 0)
    return out


def taken(columns: OfflineColumns, which: Any) -> OfflineColumns:
    """Return some of the columns."""
    return OfflineColumns(
        *(getattr(columns, name)[which] for name in OfflineColumns.__dataclass_fields__)
    )


def prices_of(lp: OfflineRelaxation, given: OfflineMultipliers, energy: bool) -> OfflinePrices:
    """Return y, θ and μ; μ and θ carry the unit of prices times that of tables."""
    whole = given.goal.dtype == object
    unit = 1 << TABLE_BITS if whole else 1.0
    able = np.zeros(given.present.shape, dtype=np.bool_)
    np.logical_or.at(able, lp.classes.of_job, lp.startable)
    given = replace(given, present=given.present * able.astype(int))
    work = work_prices(lp, given, unit)
    theta = shortfall_price(lp, given, unit)
    return OfflinePrices(work, theta, gpu_prices(lp, given, work, unit, energy))


def _sides(lp: OfflineRelaxation, given: OfflineMultipliers, gpu: Numbers, unit: Any) -> Any:
    """The value but for the part of the held shortfall."""
    earned = (given.goal * lp.goal).sum() + (given.work * lp.work).sum()
    earned = earned + (given.service * lp.needed).sum() - (given.time * lp.limit).sum()
    earned = earned + (given.present[lp.classes.of_job] * lp.present).sum()
    return earned * unit * unit - (gpu * lp.capacity).sum()


def float_value(lp: OfflineRelaxation, given: OfflineMultipliers, energy: bool) -> float:
    """Return the value of float multipliers, not proved."""
    prices = prices_of(lp, given, energy)
    value = float(_sides(lp, given, prices.gpu, 1.0))
    if energy:
        return value - float(prices.shortfall * lp.budget_s if prices.shortfall else 0.0)
    return value / max(1.0, float(prices.shortfall))


def proven_sum(whole: OfflineRelaxation, given: OfflineMultipliers, energy: bool) -> Fraction:
    """Return the value of whole multipliers over an LP in whole numbers, exactly."""
    for name in OfflineMultipliers.__dataclass_fields__:
        if any(v < 0 for v in getattr(given, name).ravel().tolist()):
            raise OptbenchError(f"the certificate has a multiplier below 0, of {name}")
    prices = prices_of(whole, given, energy)
    unit = 1 << TABLE_BITS
    earned = int(_sides(whole, given, prices.gpu, unit))
    value = as_fraction(earned, 2 * TABLE_BITS + PRICE_BITS + SIDE_BITS)
    theta = as_fraction(int(prices.shortfall), TABLE_BITS + PRICE_BITS)
    if not energy:
        return value / max(Fraction(1), theta)
    if theta == 0:
        return value
    if whole.budget_s is None:
        raise OptbenchError("the certificate prices shortfall, and none is held")
    return value - theta * as_fraction(whole.budget_s, SIDE_BITS)
