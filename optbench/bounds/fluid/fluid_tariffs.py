"""Cost and carbon in the fluid LP: time spent in each mode during each tariff period.

Period t is [τ_t, τ_{t+1}), cut off at the last possible makespan. V_kt is the total time that tasks
run in mode k within t.

    worked  Σ_t V_kt = Σ_g d_gk x_gk
    early   Σ_{t ≤ u} V_kt ≤ Σ_g [h_g < τ_{u+1}] d_gk x_gk  what has no head before τ_{u+1} cannot
                                                            have run
    late    Σ_{t ≥ u} V_kt ≤ Σ_g [L_g > τ_u] d_gk x_gk      what must have ended by τ_u cannot run
                                                            after it
    room    Σ_k n_kp V_kt ≤ N_p (τ_{t+1} − τ_t)
    cost    F_m ≥ R_m + Σ_kt (P_k rate_{p(k)t} − Σ_q rest_q n_kq rate_qt) V_kt + Σ_gk left_gk x_gk

Where there are many periods, neighbours are merged: V_kt is then priced at the least of their
prices, which is a relaxation.

P_k is the least mean power of mode k over the groups; what a group draws beyond it is priced at the
lowest rate, as is a task of no length. R_m is the rest of all devices over the fixed horizon; until
completion it is ∫_0^C of a piecewise-constant rate, of which the lower convex hull gives rows R_m ≥
slope · C + offset.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from optbench.model.instance import Floats, Instance, Ints
from optbench.model.metrics import integral, mode_uses
from optbench.units import J_PER_KWH

if TYPE_CHECKING:
    from optbench.bounds.fluid.fluid_program import Fluid

# Limit on the total entries of window rows (early, late); beyond it they are left out.
WINDOW_ENTRIES = 400_000
# Limit on modes times periods; beyond it neighbouring periods are merged, each mode at its lowest
# price among them.
MAX_SLOTS = 6_000
MARGIN = 1e-13


def add_tariffs(fluid: Fluid) -> None:
    """Add slot columns and the rows of cost and carbon if the objective or a limit names one of
    them.
    """
    instance = fluid.instance
    wanted = [name for name in ("cost_usd", "carbon_g") if name in fluid.metric]
    tariffs = instance.tariffs
    if tariffs is None or not wanted:
        return
    top = float(np.concatenate(fluid.columns.upper)[fluid.makespan])
    periods = max(1, int((tariffs.times < top).sum()))
    merged = np.arange(0, periods, -(-periods * instance.num_modes // MAX_SLOTS))
    begins = fluid.slot_begins = tariffs.times[merged].astype(float)
    ends = np.minimum(np.append(begins[1:], np.inf), max(top, float(begins[-1])))
    _slots(fluid, begins, ends)
    for name in wanted:
        rates = tariffs.price_usd_per_kwh if name == "cost_usd" else tariffs.carbon_g_per_kwh
        _rest(fluid, name, rates, top)
        # A task of no length may run at the very end, where the next period begins.
        _cost(
            fluid,
            name,
            rates[:, :periods],
            merged,
            rates[:, : int((tariffs.times <= top).sum())].min(axis=1),
        )


def _slots(fluid: Fluid, begins: Floats, ends: Floats) -> None:
    instance, groups = fluid.instance, fluid.groups
    num_modes, num_slots = instance.num_modes, len(begins)
    uses = mode_uses(instance)
    longest = np.bincount(
        groups.mode, weights=groups.size[groups.of] * groups.duration, minlength=num_modes
    ) * (1 + MARGIN)
    fluid.slot = fluid.columns.add(num_modes * num_slots, 0.0, np.repeat(longest, num_slots))
    slot = fluid.slot.reshape(num_modes, num_slots)
    mode = np.arange(num_modes)
    fluid.rows.add(
        "worked",
        np.zeros(num_modes),
        (np.repeat(mode, num_slots), fluid.slot, 1.0),
        (groups.mode, fluid.share, -groups.duration),
        equal=True,
    )
    for p in range(instance.num_pools):
        here = np.flatnonzero(uses[:, p] > 0)
        if len(here):
            room = instance.pools.count[p] * (ends - begins)
            terms = ((np.arange(num_slots), slot[k], -float(uses[k, p])) for k in here)
            fluid.rows.add("room", -room * (1 + MARGIN), *terms, of=p)
    if num_slots * (len(fluid.share) + num_modes * num_slots) > WINDOW_ENTRIES:
        return
    for u in range(num_slots - 1):
        can = groups.head[groups.of] < ends[u]
        fluid.rows.add(
            "early",
            np.zeros(num_modes),
            (np.repeat(mode, u + 1), slot[:, : u + 1].ravel(), -1.0),
            (groups.mode[can], fluid.share[can], groups.duration[can]),
        )
        can = groups.latest[groups.of] > begins[u + 1]
        fluid.rows.add(
            "late",
            np.zeros(num_modes),
            (np.repeat(mode, num_slots - u - 1), slot[:, u + 1 :].ravel(), -1.0),
            (groups.mode[can], fluid.share[can], groups.duration[can]),
        )


def _rest(fluid: Fluid, name: str, rates: Floats, top: float) -> None:
    """Add column and rows of the rest of all devices, in J times the rate."""
    instance = fluid.instance
    assert instance.tariffs is not None
    times = instance.tariffs.times
    watts = instance.pools.rest_w * instance.pools.count * instance.tick_s
    low = float(np.concatenate(fluid.columns.lower)[fluid.makespan])
    if instance.horizon is not None:
        low = top = float(instance.horizon)
    at = np.unique(np.concatenate(([low, top], times[(times > low) & (times < top)])))
    whole = np.zeros(len(at))
    for p in range(instance.num_pools):
        whole += watts[p] * integral(times, rates[p], at)
    size = max(1.0, float(np.abs(whole).max()) + float((watts @ np.abs(rates)).max()) * top)
    whole = whole - MARGIN * 10 * size
    column = int(
        fluid.columns.add(
            1, float(whole.min()) - MARGIN * size, float(whole.max()) + MARGIN * 100 * size
        )[0]
    )
    fluid.rest[name] = column
    if instance.horizon is not None or len(at) == 1:
        fluid.rows.add("rest", float(whole.min()), (0, column, 1.0))
        return
    hull = _lower_hull(at, whole)
    for i, j in pairwise(hull):
        slope = float((whole[j] - whole[i]) / (at[j] - at[i]))
        # The offset is lowered until the line lies below every corner, despite the rounding of the
        # slope.
        offset = float((whole - slope * at).min()) - MARGIN * size
        fluid.rows.add("rest", offset, (0, column, 1.0), (0, fluid.makespan, -slope))


def _lower_hull(x: Floats, y: Floats) -> list[int]:
    """Return indices of the lower convex hull of points sorted by x."""
    hull: list[int] = []
    for i in range(len(x)):
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            if (y[b] - y[a]) * (x[i] - x[a]) < (y[i] - y[a]) * (x[b] - x[a]):
                break
            hull.pop()
        hull.append(i)
    return hull


def _cost(fluid: Fluid, name: str, rates: Floats, merged: Ints, lowest: Floats) -> None:
    """Add the rows of a metric; ``lowest`` is the lowest rate of each pool up to the last possible
    makespan.
    """
    instance, groups = fluid.instance, fluid.groups
    power = mean_power(instance, groups.mode, groups.duration, groups.energy_j)
    primary = instance.modes.primary
    placed = primary >= 0
    own = np.where(placed[:, None], rates[np.maximum(primary, 0)], 0.0)
    rest = mode_uses(instance) * (instance.pools.rest_w * instance.tick_s)
    price = power[:, None] * own - rest @ rates
    price = price - MARGIN * (power[:, None] * np.abs(own) + rest @ np.abs(rates))
    price = np.minimum.reduceat(price, merged, axis=1)
    left = groups.energy_j - power[groups.mode] * groups.duration
    left = np.maximum(0.0, left - MARGIN * groups.energy_j)
    beyond = np.where(placed, lowest[np.maximum(primary, 0)], 0.0)[groups.mode] * left
    beyond = (
        beyond
        - MARGIN * np.abs(beyond)
        - MARGIN * groups.energy_j * np.abs(own).max(axis=1)[groups.mode]
    )
    fluid.rows.add(
        name,
        0.0,
        (0, fluid.metric[name], J_PER_KWH),
        (0, fluid.rest[name], -1.0),
        (0, fluid.slot, -price.ravel()),
        (0, fluid.share, -beyond),
    )


def mean_power(instance: Instance, mode: object, duration: Floats, energy_j: Floats) -> Floats:
    """Return the least energy per time of each mode over the given rows, slightly lowered; 0 where
    no row has a length.
    """
    power = np.full(instance.num_modes, np.inf)
    long = duration > 0
    np.minimum.at(power, np.asarray(mode)[long], energy_j[long] / duration[long])
    return np.where(np.isfinite(power), power * (1 - MARGIN), 0.0)
