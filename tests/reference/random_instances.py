"""Tiny random instances that between them use every feature: small enough for brute force, awkward
on purpose.

Seeds are independent draws: each switches features on or off by itself, so that every combination
turns up. Energies are in kilojoules to megajoules and, with tariffs, ticks are hours, so that no
metric is so small that a tolerance hides a mistake.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from optbench.model.features import features_of
from optbench.model.instance import (
    Edges,
    Instance,
    Limits,
    Links,
    Modes,
    Places,
    Pools,
    Tariffs,
    Tasks,
)
from optbench.model.objective import METRICS, Objective
from optbench.model.streams import with_stream
from optbench.model.validate import validate
from tests.reference.plain_facts import duration, end_of_time, task_modes

Rng = np.random.Generator
# Rows of starts times mode choices that brute force may have to look at.
MAX_DECISIONS = 3_000_000


def tiny_instance(seed: int) -> Instance:
    """The instance of this seed: 2 to 4 tasks, ticks domain, one-level objective; feasible
    or not.
    """
    rng = np.random.default_rng([seed, 20261118])
    while True:
        instance = _draw(rng, seed)
        if decisions(instance) <= MAX_DECISIONS:
            return validate(instance)


def tiny_with_ways(seed: int) -> Instance:
    """The instance of this seed with one to three ways in, some pools farther than others and some
    out of reach.
    """
    rng = np.random.default_rng([seed, 5])
    instance = tiny_instance(seed)
    n, pools, primary = instance.num_tasks, instance.num_pools, instance.modes.primary
    while True:
        ingress = rng.integers(0, rng.integers(1, 4), n)
        ways = (
            rng.choice([0.0, 0.5, 1.0, 2.0, np.inf], (3, pools), p=[0.2, 0.2, 0.2, 0.2, 0.2])
            * instance.tick_s
        )
        for task in range(n):
            mode = int(rng.choice(task_modes(instance, task)))
            if primary[mode] >= 0 and np.isinf(ways[ingress[task], primary[mode]]):
                ways[ingress[task], primary[mode]] = instance.tick_s
        made = with_stream(
            instance, ingress=ingress, latency_s=ways, ingress_names=("north", "east", "west")
        )
        if decisions(made) <= MAX_DECISIONS:
            return validate(made)


def decisions(instance: Instance) -> int:
    """Upper limit on the number of (modes, starts) of an instance."""
    top = end_of_time(instance)
    per_task = [
        sum(
            max(0, top - int(instance.tasks.release[i]) - duration(instance, i, k) + 1)
            for k in task_modes(instance, i)
        )
        for i in range(instance.num_tasks)
    ]
    return math.prod(per_task)


def in_fine_ticks(instance: Instance, factor: float = 1e9) -> tuple[Instance, Instance] | None:
    """The instance with every time a whole number of ticks, and the same in ticks finer by a
    factor; None where makespan is in ticks.

    Both have the same optimum: with modes and the order of events fixed, and cut at the tariffs'
    changes, starts are bounded by differences of whole coarse ticks and every metric is linear in
    them, so that some optimal start is a whole coarse tick. A limit on a metric that depends on
    several starts may cut between two: such instances are left out.
    """
    limited = set(instance.limits.metric_max)
    if (
        limited & {"flow_time_s", "tardiness_s", "cost_usd", "carbon_g"}
        and "tariffs" in instance.features
    ):
        return None
    if "makespan" in instance.objective.metrics | limited:
        return None
    tick: Any = instance.tick_s
    tasks, modes, links, edges = instance.tasks, instance.modes, instance.links, instance.edges

    def up(seconds: Any) -> Any:
        return np.ceil(seconds / tick) * tick

    whole = replace(
        instance,
        tasks=replace(tasks, units=np.ceil(tasks.units)),
        modes=replace(modes, time_per_unit_s=up(modes.time_per_unit_s)),
        links=replace(links, latency_s=up(links.latency_s), s_per_gb=up(links.s_per_gb)),
        edges=replace(edges, data_gb=np.ceil(edges.data_gb)),
        stream=None
        if instance.stream is None
        else replace(instance.stream, latency_s=up(instance.stream.latency_s)),
    )
    tariffs = instance.tariffs
    fine = replace(
        whole,
        tick_s=tick / factor,
        horizon=None if whole.horizon is None else int(whole.horizon * factor),
        tasks=replace(
            whole.tasks,
            release=(tasks.release * factor).astype(np.int64),
            deadline=tasks.deadline * factor,
        ),
        tariffs=None
        if tariffs is None
        else replace(tariffs, times=(tariffs.times * factor).astype(np.int64)),
    )
    return validate(whole), validate(fine)


def feature_names(instance: Instance) -> frozenset[str]:
    """What an instance exercises, finer than the framework's own vocabulary; for tables of
    coverage.
    """
    names = set(features_of(instance))
    tasks, pools, limits, links = instance.tasks, instance.pools, instance.limits, instance.links
    heavy = instance.edges.data_gb > 0
    tests = {
        "soft deadlines": bool((np.isfinite(tasks.deadline) & ~tasks.deadline_hard).any()),
        "missing links": bool(heavy.any() and np.isinf(links.latency_s).any()),
        "transfer energy": bool(heavy.any() and (links.j_per_gb > 0).any()),
        "memory": bool((tasks.memory_gb > 0).any()),
        "node cap": bool((limits.cap_place > 0).any()),
        "cluster cap": bool((limits.cap_place == 0).any()),
        "energy budget": "energy_j" in limits.metric_max,
        "other metric limit": bool(set(limits.metric_max) - {"energy_j"}),
        "gated pools": bool(pools.gated.any()),
        "idle pools": bool((~pools.gated & (pools.idle_w > 0)).any()),
        "completion horizon": instance.horizon is None,
        "decimal numbers": bool((np.mod(instance.modes.power_w * 8, 1) != 0).any()),
        "mixed objective": len(instance.objective.levels[0]) > 1,
    }
    names |= {name for name, present in tests.items() if present}
    return frozenset(names | {f"objective {metric}" for metric in instance.objective.metrics})


def _draw(rng: Rng, seed: int) -> Instance:
    n = int(rng.choice([2, 3, 4], p=[0.2, 0.4, 0.4]))
    tariffed = bool(rng.random() < 0.35)
    tick_s = 3600.0 if tariffed else float(rng.choice([1.0, 0.5, 60.0]))
    decimals = bool(rng.random() < 0.3)
    places, pools = _pools(rng, decimals)
    modes, kind = _modes(rng, n, pools, tick_s, decimals)
    tasks = _tasks(rng, n, kind, modes, pools)
    instance = Instance(
        name=f"tiny-{seed}",
        tick_s=tick_s,
        horizon=None,
        tasks=tasks,
        edges=_edges(rng, n),
        places=places,
        pools=pools,
        modes=modes,
        links=_links(rng, len(pools.names), tick_s),
        limits=Limits(np.zeros(0, dtype=np.int64), np.zeros(0)),
        objective=Objective.weighted({"makespan": 1.0}),
        tariffs=_tariffs(rng, len(pools.names)) if tariffed else None,
    )
    instance = _link_every_edge(instance)
    if rng.random() < 0.4:
        instance = replace(instance, horizon=int(rng.integers(4, 15)))
    return _objective(rng, _limits(rng, _objective(rng, instance)))


def _pools(rng: Rng, decimals: bool) -> tuple[Places, Pools]:
    num = int(rng.integers(1, 4))
    nodes = int(rng.integers(0, 3))
    names = ("cluster", *(f"node{q}" for q in range(nodes)))
    # A second node may stand under the first one: a hierarchy of three floors.
    parent = np.array([-1, 0, int(rng.integers(0, 2))][: nodes + 1])
    idle: Any = rng.integers(0, 9, num) * 12.5 * (rng.random(num) < 0.6) + (
        0.3 if decimals else 0.0
    )
    pools = Pools(
        names=tuple(f"pool{p}" for p in range(num)),
        place=rng.integers(0, nodes + 1, num),
        count=rng.choice([1, 1, 2, 3], num),
        idle_w=idle,
        sleep_w=np.floor(idle / 25) * 12.5,
        gated=rng.random(num) < 0.4,
        memory_gb=rng.choice([8.0, 16.0, 40.0, np.inf], num),
    )
    return Places(names, parent), pools


def _modes(rng: Rng, n: int, pools: Pools, tick_s: float, decimals: bool) -> tuple[Modes, Any]:
    kinds = int(rng.integers(1, n + 1))
    kind = np.concatenate((np.arange(kinds), rng.integers(0, kinds, n - kinds)))
    most = 2 if n == 4 else 3
    sizes = rng.integers(1, most + 1, kinds)
    total = int(sizes.sum())
    time = rng.choice([0.5, 1.0, 1.0, 1.5, 2.0, 0.7 if decimals else 1.0], total) * tick_s
    power: Any = rng.integers(2, 40, total) * 25.0 + (
        rng.integers(0, 10, total) / 10 if decimals else 0.0
    )
    req_ptr, req_pool, req_count = [0], [], []
    for _ in range(total):
        used = rng.permutation(len(pools.names))[: 2 if rng.random() < 0.25 else 1]
        if rng.random() < 0.04:
            used = used[:0]
            power[len(req_ptr) - 1] = 0.0  # a mode without a pool draws nothing
        for p in used:
            req_pool.append(int(p))
            req_count.append(int(rng.integers(1, pools.count[p] + 1)))
        req_ptr.append(len(req_pool))
    modes = Modes(
        kind_names=tuple(f"kind{q}" for q in range(kinds)),
        kind_ptr=np.concatenate(([0], np.cumsum(sizes))),
        time_per_unit_s=time,
        # Energy is data: below peak power times time, and not in proportion to the rounded
        # duration.
        energy_per_unit_j=power * time * rng.choice([0.5, 0.75, 1.0], total),
        power_w=power,
        clock=np.where(rng.random(total) < 0.5, np.nan, 1.0),
        req_ptr=np.array(req_ptr),
        req_pool=np.array(req_pool, dtype=np.int64),
        req_count=np.array(req_count, dtype=np.int64),
    )
    return modes, rng.permutation(kind)


def _tasks(rng: Rng, n: int, kind: Any, modes: Modes, pools: Pools) -> Tasks:
    release = rng.integers(0, 4, n) * (rng.random(n) < 0.3)
    due = np.where(rng.random(n) < 0.45, rng.integers(2, 11, n), np.inf)
    memory = rng.choice([8.0, 12.0, 30.0], n) * (rng.random(n) < 0.3)
    room = np.zeros(len(modes.kind_names))
    for k, q in enumerate(modes.kind):
        needs = modes.req_pool[modes.req_ptr[k] : modes.req_ptr[k + 1]]
        room[q] = max(room[q], pools.memory_gb[needs].min(initial=np.inf))
    return Tasks(
        kind=kind,
        units=rng.choice([1.0, 1.0, 2.0, 2.0, 1.5], n),
        release=release,
        deadline=due,
        deadline_hard=rng.random(n) < 0.4,
        weight=rng.choice([1.0, 1.0, 2.0, 0.5], n),
        memory_gb=np.where(memory <= room[kind], memory, 0.0),
    )


def _edges(rng: Rng, n: int) -> Edges:
    # Sources after targets too, so that task order is no topological order.
    order = rng.permutation(n)
    pairs = [
        (int(order[a]), int(order[b]))
        for a in range(n)
        for b in range(a + 1, n)
        if rng.random() < 0.35
    ]
    source, target = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    data = rng.choice([0.0, 1.0, 2.0, 0.5], len(pairs))
    return Edges(source, target, data)


def _links(rng: Rng, num: int, tick_s: float) -> Links:
    latency = np.where(
        rng.random((num, num)) < 0.25, np.inf, rng.choice([0.0, 0.5], (num, num)) * tick_s
    )
    np.fill_diagonal(latency, 0.0)
    energy: Any = rng.integers(0, 5, (num, num)) * 50.0 * tick_s
    return Links(latency, rng.choice([0.0, 0.5, 1.0], (num, num)) * tick_s, energy)


def _link_every_edge(instance: Instance) -> Instance:
    """Open all links where validation would find an edge that no link can serve."""
    primary = instance.modes.primary
    for a, b, data in zip(
        instance.edges.source, instance.edges.target, instance.edges.data_gb, strict=True
    ):
        senders, receivers = (
            primary[task_modes(instance, int(a))],
            primary[task_modes(instance, int(b))],
        )
        if not np.isfinite(instance.lag(senders[:, None], receivers[None, :], data)).any():
            latency = np.where(np.isfinite(instance.links.latency_s), instance.links.latency_s, 0.0)
            return replace(instance, links=replace(instance.links, latency_s=latency))
    return instance


def _tariffs(rng: Rng, num: int) -> Tariffs:
    periods = int(rng.integers(1, 4))
    times = np.concatenate(([0], np.sort(rng.permutation(np.arange(1, 7))[: periods - 1]))).astype(
        np.int64
    )
    shape = (num, periods)
    return Tariffs(
        times,
        rng.choice([0.0, 0.125, 0.25, 0.5, 1.0], shape),
        rng.choice([0.0, 50.0, 200.0, 400.0], shape),
    )


def _objective(rng: Rng, instance: Instance) -> Instance:
    metrics = [
        m for m in METRICS if instance.tariffs is not None or m not in ("cost_usd", "carbon_g")
    ]
    if instance.tariffs is not None and rng.random() < 0.6:
        metrics = ["cost_usd", "carbon_g"]
    chosen = rng.permutation(metrics)[: int(rng.choice([1, 1, 2]))].tolist()
    if len(chosen) == 1:
        return instance.with_objective(Objective.weighted({chosen[0]: 1.0}))
    # Weights that bring the metrics to a like size: a tick, hundreds of watts for a tick, cents and
    # grams.
    size = {
        "makespan": 1.0,
        "energy_j": 400.0 * instance.tick_s,
        "cost_usd": 0.1,
        "carbon_g": 100.0,
    }
    weight = {m: float(2.0 ** round(math.log2(1.0 / size.get(m, instance.tick_s)))) for m in chosen}
    return instance.with_objective(Objective.weighted(weight))


def _limits(rng: Rng, instance: Instance) -> Instance:
    limits, pools, modes = instance.limits, instance.pools, instance.modes
    place, cap = [], []
    for q in range(len(instance.places.names)):
        if rng.random() < 0.25:
            inside = instance.under[q]
            rest = float((pools.rest_w * pools.count)[inside].sum())
            place.append(q)
            cap.append(math.floor(rest + float(rng.uniform(0.5, 1.8)) * float(modes.power_w.max())))
    metric_max: dict[str, float] = {}
    if rng.random() < 0.3:
        low, high = _energy_range(instance)
        metric_max["energy_j"] = float(round(low + float(rng.uniform(0.1, 1.0)) * (high - low)))
    if rng.random() < 0.2:
        name = str(rng.choice(["makespan", "makespan_s", "flow_time_s", "tardiness_s"]))
        scale = 1.0 if name == "makespan" else instance.tick_s
        metric_max[name] = float(rng.integers(0 if name == "tardiness_s" else 4, 12)) * scale
    if instance.tariffs is not None and rng.random() < 0.25:
        name, typical = ("cost_usd", 0.3) if rng.random() < 0.5 else ("carbon_g", 300.0)
        metric_max[name] = float(rng.uniform(0.2, 3.0)) * typical
    limits = Limits(np.array(place, dtype=np.int64), np.array(cap, dtype=float), metric_max)
    return replace(instance, limits=limits)


def _energy_range(instance: Instance) -> tuple[float, float]:
    """Least and most busy energy, with some resting energy on top of the most."""
    low = high = 0.0
    for i in range(instance.num_tasks):
        energies = [
            float(instance.tasks.units[i] * instance.modes.energy_per_unit_j[k])
            for k in task_modes(instance, i)
        ]
        low, high = low + min(energies), high + max(energies)
    rest = (
        float((instance.pools.rest_w * instance.pools.count).sum())
        * instance.tick_s
        * end_of_time(instance)
    )
    return low, high + rest
