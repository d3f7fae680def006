"""lp_guided on arriving work: prices of the fluid LP of the traffic so far, and an index router
that uses them.

With λ_k units of kind k and N jobs a second, x_m units a second in mode m (n devices, T seconds, e
joules above rest each):

    min   Σ e r x
    s.t.  Σ_{m of k} x_m ≥ λ_k
          Σ_{m of p} n T x ≤ devices of p
          Σ T x ≤ N (budget − ingress latency)

The dual of a pool is what a device-second there is worth, in watts, and that of the budget what a
second in the system is. The router charges both; what the estimate of the second misses, its
virtual queue makes up for. Solved again as time goes on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.model.instance import Floats, Instance
from optbench.sim.kernel.sites.routes import CARBON, ENERGY, USD, Routes
from optbench.sim.kernel.state import State
from optbench.sim.sites.routes import Update
from optbench.units import J_PER_KWH

# The cost of not serving a unit, as a multiple of the dearest mode: a unit is left out only where
# capacity or the budget forces it.
LEFT_OUT = 20.0


@dataclass(frozen=True, eq=False)
class Prices:
    """The price of a device by pool, and of a second in the system, in watts."""

    device_w: Floats
    time_w: float


def prices(
    instance: Instance,
    units_per_s: Floats,
    jobs_per_s: float,
    devices: Floats,
    rate: Floats,
    budget_s: float | None,
) -> Prices:
    """Solve the LP for this traffic; ``rate`` weighs joules by pool."""
    from scipy.optimize import linprog

    modes, n = instance.modes, instance.num_modes
    kinds, pools = len(units_per_s), instance.num_pools
    net = (modes.energy_per_unit_j - instance.mode_rest_w * modes.time_per_unit_s) * rate[
        modes.primary
    ]
    uses = np.zeros((pools + 1, n + kinds))
    uses[modes.primary, np.arange(n)] = modes.devices * modes.time_per_unit_s
    uses[pools, :n] = modes.time_per_unit_s
    way = (
        0.0
        if instance.stream is None
        else float(instance.stream.latency_s[np.isfinite(instance.stream.latency_s)].mean())
    )
    room = np.append(devices, np.inf if budget_s is None else max(0.0, budget_s - way) * jobs_per_s)
    serves = np.zeros((kinds, n + kinds))
    serves[modes.kind, np.arange(n)] = -1.0
    serves[np.arange(kinds), n + np.arange(kinds)] = -1.0
    kept = np.isfinite(room)
    cost = np.concatenate((net, np.full(kinds, LEFT_OUT * max(float(net.max(initial=0.0)), 1e-9))))
    found = linprog(
        cost,
        A_ub=np.vstack((uses[kept], serves)),
        b_ub=np.concatenate((room[kept], -units_per_s)),
        method="highs",
    )
    if found.status != 0:
        return Prices(np.zeros(pools), 0.0)
    dual = -found.ineqlin.marginals
    return Prices(
        np.maximum(dual[:pools], 0.0), float(max(dual[pools], 0.0)) if budget_s is not None else 0.0
    )


def follow(instance: Instance, price_share: float, budget_s: float | None) -> Update:
    """Return a callback that solves for the traffic so far and charges a share of the price of
    devices.

    At the full price the sites of the LP's mixture cost the same, and the choice among them is
    arbitrary; slightly less prefers the better one while it has room.
    """

    def update(now: float, state: State, routes: Routes) -> None:
        elapsed = now * instance.tick_s
        if elapsed <= 0 or not routes.num_seen.any():
            return
        devices = np.maximum(instance.pools.count - state.gone, 0).astype(float)
        offered = routes.num_seen * routes.mean_units / elapsed
        found = prices(
            instance,
            offered,
            float(routes.num_seen.sum()) / elapsed,
            devices,
            mean_rates(instance, routes),
            budget_s,
        )
        routes.device_w[:] = np.tile(
            price_share * found.device_w, len(routes.device_w) // instance.num_pools
        )
        if budget_s is not None:
            routes.time_w[:] = found.time_w

    return update


def mean_rates(instance: Instance, routes: Routes) -> Floats:
    """Return the mean cost of a joule at each pool over time."""
    weight, tariffs = routes.weight, instance.tariffs
    if tariffs is None:
        return np.full(instance.num_pools, weight[ENERGY])
    varying = weight[USD] * tariffs.price_usd_per_kwh.mean(axis=1) + weight[
        CARBON
    ] * tariffs.carbon_g_per_kwh.mean(axis=1)
    return np.asarray(weight[ENERGY] + varying / J_PER_KWH, dtype=float)
