"""What a joule and a tick of time cost in the first level of an objective."""

from __future__ import annotations

from optbench.model.instance import Instance
from optbench.units import J_PER_KWH


def joule_price(instance: Instance) -> float:
    """Return the cost of a joule in the objective, at mean tariffs."""
    weights, tariffs = dict(instance.objective.levels[0]), instance.tariffs
    price = weights.get("energy_j", 0.0)
    if tariffs is not None:
        price += weights.get("cost_usd", 0.0) * float(tariffs.price_usd_per_kwh.mean()) / J_PER_KWH
        price += weights.get("carbon_g", 0.0) * float(tariffs.carbon_g_per_kwh.mean()) / J_PER_KWH
    return price


def end_cost(instance: Instance) -> float:
    """Return what a tick of the makespan costs: its own price and, where rest is paid until
    everything has ended, the rest of all devices. Where it costs nothing, 1.
    """
    weights = dict(instance.objective.levels[0])
    cost = weights.get("makespan", 0.0) + weights.get("makespan_s", 0.0) * instance.tick_s
    if instance.horizon is None:
        rest_w = float((instance.pools.rest_w * instance.pools.count).sum())
        cost += joule_price(instance) * rest_w * instance.tick_s
    return cost if cost > 0 else 1.0
