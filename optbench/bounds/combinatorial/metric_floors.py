"""Lower bounds on energy, cost, carbon, flow time and tardiness, each a sum of unavoidable amounts
per task.

With H the fixed horizon or a lower bound on the makespan, n_kq the devices of pool q in mode k and
rest_q their resting power:

    energy_j     Σ_q rest_q count_q H + Σ_i min_k (e_ik − Σ_q rest_q n_kq d_ik)
                 + Σ_edges cheapest transfer
    cost_usd     the same, each term at the cheapest tariff of its own pool within the task's
                 window (carbon_g alike)
    flow_time_s  Σ_i weight_i (head_i + shortest_i − release_i), or per pool group the
                 mean-busy-time bound below
    tardiness_s  Σ_i weight_i max(0, head_i + shortest_i − deadline_i)

Mean busy times: with release times levelled to the smallest head r, the midpoints M_i of any
schedule of works W_i on m devices satisfy

    Σ w_i M_i ≥ r Σ w_i + (Σ_i w_i W_i / 2 + Σ_{i<j} min(w_i W_j, w_j W_i)) / m

(Goemans 1996; Smith's order attains it), and each task ends half its length after its midpoint.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from optbench.bounds.combinatorial.relaxation import PoolSet, Relaxation
from optbench.bounds.combinatorial.tariff_floor import tariff_floor
from optbench.model.instance import Floats, Instance
from optbench.model.windows import task_pools
from optbench.units import J_PER_KWH, TERM_MARGIN


def metric_floors(relaxation: Relaxation, makespan: float) -> dict[str, float]:
    """Return a lower bound on every metric an objective or a limit may name, given one on the
    makespan.
    """
    instance = relaxation.instance
    if instance.preemptive:
        return interrupted_floors(relaxation, makespan)
    wanted = instance.objective.metrics | set(instance.limits.metric_max)
    floors = {"makespan": makespan, "makespan_s": makespan * instance.tick_s}
    if "energy_j" in wanted:
        floors["energy_j"] = energy_floor(instance, makespan)
    if "flow_time_s" in wanted:
        floors["flow_time_s"] = flow_floor(relaxation)
    if "tardiness_s" in wanted:
        floors["tardiness_s"] = tardiness_floor(relaxation)
    for metric in ("cost_usd", "carbon_g"):
        if metric in wanted:
            floors[metric] = tariff_floor(relaxation, metric, makespan)
    return floors


def interrupted_floors(relaxation: Relaxation, makespan: float) -> dict[str, float]:
    """Return the same bounds where tasks may be interrupted, change modes, and run on after they
    are complete.

    The shares of task i add up to at least 1, so that it draws at least min_k e_ik and takes at
    least min_k D_ik ticks. The rest that its devices save may be more than that of one mode run
    once, unless no mode draws less than their rest.
    """
    instance, pairs = relaxation.instance, relaxation.instance.pairs
    tasks, known = instance.tasks, relaxation.windows
    replaced = instance.mode_rest_w[pairs.mode] * pairs.duration * instance.tick_s
    above = pairs.energy_j - replaced - TERM_MARGIN * (pairs.energy_j + replaced)
    energy = [
        *least_per_task(instance, pairs.energy_j).tolist(),
        *transfer_floor(instance).tolist(),
    ]
    energy_j = low_sum(energy)
    if (above >= 0).all():
        energy_j = max(energy_j, energy_floor(instance, makespan))
    flow = tasks.weight * (known.head + known.shortest - tasks.release)
    floors = {
        "makespan": makespan,
        "makespan_s": makespan * instance.tick_s,
        "energy_j": energy_j,
        "flow_time_s": low_sum(flow.tolist()) * instance.tick_s,
        "tardiness_s": tardiness_floor(relaxation),
    }
    for metric in ("cost_usd", "carbon_g"):
        floors[metric] = low_sum(_least_prices(instance, metric).tolist())
    return floors


def _least_prices(instance: Instance, metric: str) -> Floats:
    """Return, per task, the energy of its cheapest mode at the lowest rate of that mode's pool."""
    tariffs, primary = instance.tariffs, instance.modes.primary[instance.pairs.mode]
    if tariffs is None:
        return np.zeros(instance.num_tasks)
    rates = tariffs.price_usd_per_kwh if metric == "cost_usd" else tariffs.carbon_g_per_kwh
    lowest = np.where(primary >= 0, rates.min(axis=1)[np.maximum(primary, 0)], 0.0)
    return least_per_task(instance, instance.pairs.energy_j * lowest / J_PER_KWH)


def low_sum(terms: Iterable[float]) -> float:
    """Return a number no larger than the exact sum of terms that were themselves computed in
    floats.
    """
    values = list(terms)
    return math.fsum(values) - TERM_MARGIN * math.fsum(map(abs, values))


def energy_floor(instance: Instance, makespan: float) -> float:
    """Bound the energy: resting power of all devices over the horizon, plus the cheapest mode of
    each task net of the rest it replaces.
    """
    horizon = makespan if instance.horizon is None else float(instance.horizon)
    rest = (instance.pools.rest_w * instance.pools.count * horizon * instance.tick_s).tolist()
    pairs = instance.pairs
    replaced = instance.mode_rest_w[pairs.mode] * pairs.duration * instance.tick_s
    # The difference of two large numbers keeps their rounding error: the margin is taken before
    # subtracting.
    net = pairs.energy_j - replaced - TERM_MARGIN * (np.abs(pairs.energy_j) + replaced)
    return low_sum(
        [*rest, *least_per_task(instance, net).tolist(), *transfer_floor(instance).tolist()]
    )


def least_per_task(instance: Instance, value_by_pair: Floats) -> Floats:
    """Return the smallest value over each task's modes."""
    least = np.full(instance.num_tasks, np.inf)
    np.minimum.at(least, instance.pairs.task, value_by_pair)
    return least


def transfer_floor(instance: Instance) -> Floats:
    """Return the cheapest transfer energy of each edge over the linked pools its two tasks
    can use.
    """
    edges = instance.edges
    out = np.zeros(len(edges.source))
    if not instance.links.j_per_gb.any():
        return out
    pools = task_pools(instance)
    # The last column: no pool at all.
    reach = np.zeros((instance.num_tasks, instance.num_pools + 1), dtype=bool)
    reach[instance.pairs.task, instance.modes.primary[instance.pairs.mode]] = True
    # Two tasks that can share a pool, or of which one needs none, transfer without energy.
    disjoint = (
        ~(reach[edges.source] & reach[edges.target]).any(axis=1)
        & ~reach[edges.source, -1]
        & ~reach[edges.target, -1]
    )
    for e in np.flatnonzero((edges.data_gb > 0) & disjoint).tolist():
        sender = pools[int(edges.source[e])][:, None]
        receiver = pools[int(edges.target[e])][None, :]
        linked = np.isfinite(instance.lag(sender, receiver, edges.data_gb[e]))
        energy = instance.transfer_j(sender, receiver, edges.data_gb[e])
        out[e] = np.min(energy, where=linked, initial=np.inf)
    return np.where(np.isfinite(out), out, 0.0)


def flow_floor(relaxation: Relaxation) -> float:
    """Return, per group of pools, the better of heads and mean busy times; groups from the largest
    down, or from single pools up.
    """
    large_first = sorted(relaxation.sets, key=lambda pools: (-len(pools.task), len(pools.pools)))
    small_first = sorted(relaxation.sets, key=lambda pools: (len(pools.pools), -len(pools.task)))
    return max(_flow_by(relaxation, order) for order in (large_first, small_first))


def _flow_by(relaxation: Relaxation, order: list[PoolSet]) -> float:
    """Return the flow time with each task counted in the first set of the order whose tasks are all
    uncounted.
    """
    instance, w = relaxation.instance, relaxation.windows
    weight, release = instance.tasks.weight, np.asarray(instance.tasks.release, dtype=float)
    by_head = weight * (w.head + w.shortest)
    terms = (-weight * release).tolist()
    left = np.ones(instance.num_tasks, dtype=bool)
    for pools in order:
        mine = pools.task
        if left[mine].all():
            left[mine] = False
            terms.append(max(low_sum(by_head[mine].tolist()), busy_time_floor(pools, weight[mine])))
    terms += by_head[left].tolist()
    return low_sum(terms) * instance.tick_s


def busy_time_floor(pools: PoolSet, weight: Floats) -> float:
    """Bound Σ weight · end of the tasks of a pool set from below, in the time domain."""
    order = np.argsort(-weight / pools.work, kind="stable")
    work, w = pools.work[order], weight[order]
    before = np.cumsum(work) - work
    terms = w * (
        float(pools.head.min()) + (before + work / 2) / pools.capacity + pools.length[order] / 2
    )
    return low_sum(terms.tolist())


def tardiness_floor(relaxation: Relaxation) -> float:
    """Return the tardiness even when every task runs alone."""
    tasks, w = relaxation.instance.tasks, relaxation.windows
    soft = np.isfinite(tasks.deadline) & ~tasks.deadline_hard
    late = np.maximum(0.0, (w.head + w.shortest)[soft] - tasks.deadline[soft])
    return low_sum((tasks.weight[soft] * late).tolist()) * relaxation.instance.tick_s
