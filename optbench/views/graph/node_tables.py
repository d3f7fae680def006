"""The graph as numpy tables: nodes, edges and pairs of task and mode, in the order of the instance.

Task i is row i and pool p is device row p. Place 0 is the one cluster row, place q > 0 is node row
q - 1. There is an edge (task, runs_on, device) for each pair of ``instance.pairs`` and each pool
that its mode needs, in the order of the pairs; so a mode of several pools has several edges, one
without pools none, and the pairs are the table of all that can be chosen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optbench.model.instance import Floats, Instance, Ints
from optbench.model.metrics import requirements
from optbench.model.windows import windows
from optbench.units import J_PER_KWH
from optbench.views.graph.feature_columns import (
    AIMS,
    COLUMNS,
    EDGES,
    INSIDE,
    LINKED,
    NEED,
    PAIR,
    PRECEDES,
    RUNS_ON,
    EdgeType,
)
from optbench.views.graph.scales import Scales, scales_of


@dataclass(frozen=True, eq=False)
class GraphTables:
    """``nodes`` by kind; per edge type the ``ends`` (2 x edges) and the features; per pair task,
    mode and features.

    ``edge_pair`` is the pair behind each edge (task, runs_on, device).
    """

    scales: Scales
    nodes: dict[str, Floats]
    ends: dict[EdgeType, Ints]
    edges: dict[EdgeType, Floats]
    pair_task: Ints
    pair_mode: Ints
    pairs: Floats
    edge_pair: Ints


@dataclass(frozen=True, eq=False)
class Extremes:
    """Shortest and longest duration in s, least and most energy in J, of each task over its
    modes.
    """

    shortest_s: Floats
    longest_s: Floats
    least_j: Floats
    most_j: Floats


def tables_of(instance: Instance, *, links: bool = True) -> GraphTables:
    extremes = extremes_of(instance)
    scales = scales_of(instance, extremes.shortest_s, extremes.least_j)
    pairs = pair_features(instance, scales)
    edge_pair, pool, count = requirements(instance, instance.pairs.mode)
    primary = np.ones(len(edge_pair))
    primary[1:] = edge_pair[1:] != edge_pair[:-1]
    own = scales.table(NEED, len(pool), count, count / instance.pools.count[pool], primary)
    ends = {
        PRECEDES: np.stack((instance.edges.source, instance.edges.target)),
        RUNS_ON: np.stack((instance.pairs.task[edge_pair], pool)),
        **place_ends(instance),
    }
    edges = {
        PRECEDES: scales.table(EDGES[PRECEDES], len(instance.edges.source), instance.edges.data_gb),
        RUNS_ON: np.column_stack((pairs[edge_pair], own)),
    }
    ends[LINKED], edges[LINKED] = link_edges(instance, scales, links)
    nodes = {
        "task": task_features(instance, scales, extremes),
        "device": device_features(instance, scales),
        "node": node_features(instance, scales),
        "cluster": cluster_features(instance, scales),
    }
    return GraphTables(
        scales, nodes, ends, edges, instance.pairs.task, instance.pairs.mode, pairs, edge_pair
    )


def extremes_of(instance: Instance) -> Extremes:
    pairs = instance.pairs
    # Every task of a valid instance has a mode.
    begin, time = pairs.ptr[:-1], pairs.duration * instance.tick_s
    return Extremes(
        np.minimum.reduceat(time, begin),
        np.maximum.reduceat(time, begin),
        np.minimum.reduceat(pairs.energy_j, begin),
        np.maximum.reduceat(pairs.energy_j, begin),
    )


def pair_features(instance: Instance, scales: Scales) -> Floats:
    pairs, modes = instance.pairs, instance.modes
    clock = modes.clock[pairs.mode]
    return scales.table(
        PAIR,
        len(pairs.task),
        pairs.duration * instance.tick_s,
        pairs.energy_j,
        modes.power_w[pairs.mode],
        instance.mode_rest_w[pairs.mode],
        ~np.isnan(clock),
        np.where(np.isnan(clock), 1.0, clock),
        (pairs.ready - instance.tasks.release[pairs.task]) * instance.tick_s,
    )


def task_features(instance: Instance, scales: Scales, extremes: Extremes) -> Floats:
    tasks, n, step = instance.tasks, instance.num_tasks, instance.tick_s
    due = np.isfinite(tasks.deadline)
    before = np.bincount(instance.edges.target, minlength=n)
    after = np.bincount(instance.edges.source, minlength=n)
    paths = windows(instance)
    length = paths.critical_path or 1.0
    return scales.table(
        COLUMNS["task"],
        n,
        extremes.shortest_s,
        extremes.longest_s,
        extremes.least_j,
        extremes.most_j,
        tasks.release * step,
        due,
        np.where(due, tasks.deadline, 0.0) * step,
        tasks.deadline_hard & due,
        tasks.weight,
        tasks.memory_gb,
        np.diff(instance.pairs.ptr),
        before,
        after,
        paths.head / length,
        paths.tail / length,
        *(1.0, (before == 0) & (tasks.release <= 0), 0.0, 0.0),
    )


def device_features(instance: Instance, scales: Scales) -> Floats:
    pools, tariffs = instance.pools, instance.tariffs
    limited = np.isfinite(pools.memory_gb)
    price = tariffs.price_usd_per_kwh[:, 0] if tariffs is not None else 0.0
    carbon = tariffs.carbon_g_per_kwh[:, 0] if tariffs is not None else 0.0
    return scales.table(
        COLUMNS["device"],
        instance.num_pools,
        pools.count,
        pools.count / pools.count.sum(),
        pools.idle_w,
        pools.sleep_w,
        pools.gated,
        np.where(limited, pools.memory_gb, scales.memory),
        limited,
        *(1.0, 0.0, price, carbon),
    )


def place_values(instance: Instance) -> tuple[tuple[Floats, ...], tuple[Floats, ...]]:
    """Return the common columns of nodes and the cluster, a row per place: the static columns, then
    power and headroom at rest.
    """
    under, limits = instance.under, instance.limits
    rest = under @ (instance.pools.rest_w * instance.pools.count)
    cap = np.full(len(under), np.inf)
    np.minimum.at(cap, limits.cap_place, limits.cap_w)
    capped = np.isfinite(cap)
    cap = np.where(capped, cap, 0.0)
    return ((under @ instance.pools.count).astype(float), rest, capped.astype(float), cap), (
        rest,
        np.maximum(0.0, cap - rest),
    )


def node_features(instance: Instance, scales: Scales) -> Floats:
    static, state = place_values(instance)
    return scales.table(
        COLUMNS["node"],
        len(instance.places.names) - 1,
        *(values[1:] for values in (*static, *state)),
    )


def cluster_features(instance: Instance, scales: Scales) -> Floats:
    static, state = place_values(instance)
    return scales.table(
        COLUMNS["cluster"],
        1,
        *(values[:1] for values in static),
        instance.num_tasks,
        instance.horizon is not None,
        (instance.horizon or 0.0) * instance.tick_s,
        instance.preemptive,
        *(math.log(size) for size in (scales.time, scales.energy, scales.power, scales.data)),
        *aims_of(instance, scales),
        *(values[:1] for values in state),
        *(0.0, 0.0),
    )


def aims_of(instance: Instance, scales: Scales) -> list[float]:
    """Return shares of the first level's weights, each times the size of its metric, in the order
    of AIMS.

    The sizes are those of all tasks one after the other, at the scales of time and energy and the
    mean price and carbon.
    """
    span, energy = instance.num_tasks * scales.time, instance.num_tasks * scales.energy
    weighted = span * scales.weight
    sizes = (
        span,
        energy,
        weighted,
        weighted,
        energy * scales.price / J_PER_KWH,
        energy * scales.carbon / J_PER_KWH,
    )
    weights = dict.fromkeys(AIMS, 0.0)
    for name, weight in instance.objective.levels[0]:
        weights["makespan_s" if name == "makespan" else name] += weight / (
            instance.tick_s if name == "makespan" else 1.0
        )
    parts = [weights[name] * size for name, size in zip(AIMS, sizes, strict=True)]
    total = math.fsum(parts)
    return [part / total for part in parts]


def link_edges(instance: Instance, scales: Scales, wanted: bool) -> tuple[Ints, Floats]:
    """Return an edge for each pair of different pools that a link joins."""
    links = instance.links
    joined = np.isfinite(links.latency_s) & wanted
    np.fill_diagonal(joined, False)
    a, b = np.nonzero(joined)
    time, energy = links.s_per_gb[a, b] * scales.data, links.j_per_gb[a, b] * scales.data
    return np.stack((a, b)), scales.table(
        EDGES[LINKED], len(a), links.latency_s[a, b], time, energy
    )


def place_ends(instance: Instance) -> dict[EdgeType, Ints]:
    """Return the edges from each pool and each place to the place around it."""
    around = {"device": instance.pools.place, "node": instance.places.parent[1:]}
    out = {}
    for edge in INSIDE:
        child, _, parent = edge
        rows = np.flatnonzero((around[child] == 0) == (parent == "cluster"))
        out[edge] = np.stack((rows, np.maximum(around[child][rows] - 1, 0)))
    return out
