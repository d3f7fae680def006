"""The instances behind an audit: the record on its nodes, and the cluster in which a scheduler
could have chosen.

In ``cluster`` a pool stands for all GPUs of a type. A run of u units may have n GPUs of any type at
any clock, in

    u T(n, f) seconds, n P(f) watts            n up to the most that a run of the log held

unless its type, its count or the clocks are kept as they were. GPUs that are not busy sleep, unless
they are kept awake: the record itself is always paid with idle ones (``awake``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from optbench.audit.log import MAX_GPUS, Log
from optbench.model.instance import (
    Bools,
    Edges,
    Floats,
    Instance,
    Ints,
    Limits,
    Modes,
    Places,
    Pools,
    Tasks,
)
from optbench.model.objective import Objective
from optbench.model.plain_instance import longest_by_kind, unlinked
from optbench.model.schedule import Schedule
from optbench.model.streams import with_stream
from optbench.model.timegrid import automatic_tick_s, grid_up, to_ints


@dataclass(frozen=True, eq=False)
class Ways:
    """All ways to run: (type, GPUs, clock), with seconds per unit and watts."""

    kind: Ints
    gpus: Ints
    clock: Floats
    time_s: Floats
    power_w: Floats
    recorded_clock: Bools


@dataclass(frozen=True, eq=False)
class LoggedCluster:
    """``schedule`` is the record on ``instance``; ``awake`` the same instance with idle
    GPUs awake.
    """

    log: Log
    ways: Ways
    units: Floats
    instance: Instance
    awake: Instance
    schedule: Schedule


def ways_of(log: Log) -> Ways:
    """In order of types, then GPUs, then clocks."""
    most = int(log.gpus.max())
    rows = [
        (t, n, f, p.time_per_unit_s(log.work, n, f), p.power_w(log.work, n, f), f == log.clock[t])
        for t, p in enumerate(log.profiles)
        for n in range(1, min(most, int(log.counts[t])) + 1)
        for f in p.clocks
    ]
    kind, gpus, clock, time_s, power_w, recorded = (
        np.asarray(column) for column in zip(*rows, strict=True)
    )
    return Ways(kind, gpus, clock, time_s, power_w, recorded.astype(bool))


def cluster_of(log: Log, keep: frozenset[str]) -> LoggedCluster:
    ways = ways_of(log)
    at = {key: w for w, key in enumerate(keys_of(ways.kind, ways.gpus, ways.clock))}
    held = keys_of(log.kind, log.gpus, log.clock[log.kind])
    mine = np.asarray([at[key] for key in held], dtype=np.int64)
    units = (log.end - log.start) / ways.time_s[mine]
    label = log.kind * ("placement" in keep) * (MAX_GPUS + 1) + log.gpus * ("count" in keep)
    labels, kind = np.unique(label, return_inverse=True)
    keys = np.column_stack(np.divmod(labels, MAX_GPUS + 1))
    rows, ptr = [], [0]
    for t, n in keys.tolist():
        allowed = np.ones(len(ways.kind), dtype=bool)
        if "placement" in keep:
            allowed &= ways.kind == t
        if "count" in keep:
            allowed &= ways.gpus == n
        if "clock" in keep:
            allowed &= ways.recorded_clock
        rows.append(np.flatnonzero(allowed))
        ptr.append(ptr[-1] + len(rows[-1]))
    way = np.concatenate(rows)
    modes = modes_of(
        ways, way, np.asarray(ptr), tuple(kind_name(log, keep, t, n) for t, n in keys.tolist())
    )
    place = np.full((len(keys), len(ways.kind)), -1, dtype=np.int64)
    place[np.repeat(np.arange(len(keys)), np.diff(ptr)), way] = np.arange(len(way))
    mode = place[kind, mine]
    sleepy = cluster_instance(log, kind, units, modes, gated="idle" not in keep)
    awake = replace(sleepy, pools=replace(sleepy.pools, gated=np.zeros(len(log.types), dtype=bool)))
    return LoggedCluster(log, ways, units, sleepy, awake, recorded(sleepy, mode, log.start))


def keys_of(kind: Ints, gpus: Ints, clock: Floats) -> Iterator[tuple[int, int, float]]:
    return zip(kind.tolist(), gpus.tolist(), clock.tolist(), strict=True)


def kind_name(log: Log, keep: frozenset[str], t: int, n: int) -> str:
    parts = [f"{n} GPUs"] * ("count" in keep) + [log.types[t]] * ("placement" in keep)
    return " of ".join(parts) or log.work


def modes_of(ways: Ways, way: Ints, ptr: Ints, names: tuple[str, ...]) -> Modes:
    return Modes(
        kind_names=names, kind_ptr=ptr.astype(np.int64),
        time_per_unit_s=ways.time_s[way], energy_per_unit_j=(ways.power_w * ways.time_s)[way],
        power_w=ways.power_w[way], clock=ways.clock[way],
        req_ptr=np.arange(len(way) + 1), req_pool=ways.kind[way], req_count=ways.gpus[way],
    )  # fmt: skip


def cluster_instance(log: Log, kind: Ints, units: Floats, modes: Modes, gated: bool) -> Instance:
    """A pool for all GPUs of a type; ``gated`` ones sleep when they are not busy."""
    types = np.arange(len(log.types))
    pools = pools_of(log, types, log.types, np.zeros_like(types), log.counts)
    memory_gb = np.asarray([p.memory_gb for p in log.profiles])
    pools = replace(pools, gated=np.full(len(types), gated), memory_gb=memory_gb)
    places = Places(("cluster",), np.asarray([-1]))
    made = instance_of(log, log.name, kind, units, places, pools, modes)
    return with_stream(made, sent_to=log.kind, ingress_names=("cluster",))


def pools_of(log: Log, types: Ints, names: tuple[str, ...], place: Ints, count: Ints) -> Pools:
    """Pools of GPUs of these types, which stay awake and have room for every run."""
    profiles = [log.profiles[t] for t in types.tolist()]
    idle_w, sleep_w = ([p.idle_w for p in profiles], [p.sleep_w for p in profiles])
    awake, roomy = np.zeros(len(types), dtype=bool), np.full(len(types), np.inf)
    return Pools(names, place, count, np.asarray(idle_w), np.asarray(sleep_w), awake, roomy)


def instance_of(
    log: Log, name: str, kind: Ints, units: Floats, places: Places, pools: Pools, modes: Modes
) -> Instance:
    """The runs of a log as tasks of which the energy counts, on the automatic tick."""
    n, tick_s = log.num_runs, tick_of(log, kind, units, modes)
    none = np.zeros(0, dtype=np.int64)
    tasks = Tasks(
        kind=kind,
        units=units,
        release=to_ints(grid_up(log.release / tick_s)),
        deadline=np.full(n, np.inf),
        deadline_hard=np.zeros(n, dtype=bool),
        weight=np.ones(n),
        memory_gb=np.zeros(n),
        names=tuple(log.jobs),
    )
    return Instance(
        name=name,
        tick_s=tick_s,
        horizon=None,
        tasks=tasks,
        edges=Edges(none, none, np.zeros(0)),
        places=places,
        pools=pools,
        modes=modes,
        links=unlinked(len(pools.names)),
        limits=Limits(none, np.zeros(0)),
        objective=Objective.weighted({"energy_j": 1.0}),
        problem="audit",
    )


def tick_of(log: Log, kind: Ints, units: Floats, modes: Modes) -> float:
    """The automatic tick: the last release, and the longest run in its slowest mode."""
    lasts_s = units * longest_by_kind(modes)[kind]
    return automatic_tick_s(float(log.release.max(initial=0.0)) + float(lasts_s.max(initial=0.0)))


def recorded(instance: Instance, mode: Ints, start_s: Floats) -> Schedule:
    """What the log says happened, on the grid: a run begins when it did, and takes what its mode
    says.
    """
    return Schedule.of(instance, mode, np.rint(start_s / instance.tick_s))


def on_nodes(log: Log) -> tuple[Instance, Schedule] | None:
    """The runs whose nodes the log names, each in the one way it ran: a pool per node and type,
    units in seconds.
    """
    run, node, count = log.share
    if len(run) == 0:
        return None
    pools = np.argwhere(log.on_node > 0)
    index = np.full(log.on_node.shape, -1, dtype=np.int64)
    index[pools[:, 0], pools[:, 1]] = np.arange(len(pools))
    pool = index[log.kind[run], node]
    first = np.flatnonzero(np.diff(run, prepend=-1))
    rows = run[first]
    ends = [*first[1:].tolist(), len(run)]
    flat_pool, flat_count = pool.tolist(), count.tolist()
    placements: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    kinds = []
    for a, b in zip(first.tolist(), ends, strict=True):
        placement = tuple(flat_pool[a:b]), tuple(flat_count[a:b])
        kinds.append(placements.setdefault(placement, len(placements)))
    kind = np.asarray(kinds, dtype=np.int64)
    types, power, size = [], [], len(placements)
    for where, held in placements:
        types.append(int(pools[where[0], 0]))
        clock = float(log.clock[types[-1]])
        power.append(log.profiles[types[-1]].power_w(log.work, sum(held), clock))
    modes = Modes(
        kind_names=tuple(f"placement {k}" for k in range(size)),
        kind_ptr=np.arange(size + 1),
        time_per_unit_s=np.ones(size),
        energy_per_unit_j=np.asarray(power),
        power_w=np.asarray(power),
        clock=log.clock[types],
        req_ptr=np.cumsum([0, *(len(where) for where, _ in placements)]),
        req_pool=np.asarray([p for where, _ in placements for p in where], dtype=np.int64),
        req_count=np.asarray([c for _, held in placements for c in held], dtype=np.int64),
    )
    part = part_of(log, rows)
    names = tuple(f"{log.nodes[n]}/{log.types[t]}" for t, n in pools.tolist())
    on_each = log.on_node[pools[:, 0], pools[:, 1]]
    named = pools_of(log, pools[:, 0], names, pools[:, 1] + 1, on_each)
    places = Places(("cluster", *log.nodes), np.asarray([-1] + [0] * len(log.nodes)))
    title, length = f"{log.name} on its nodes", part.end - part.start
    instance = instance_of(part, title, kind, length, places, named, modes)
    instance = replace(instance, horizon=int(np.rint(log.end.max() / instance.tick_s)))
    return instance, recorded(instance, kind, part.start)


def part_of(log: Log, rows: Ints, origin: float = 0.0) -> Log:
    """The log of these runs alone, with times from ``origin`` on."""
    return replace(
        log,
        jobs=[log.jobs[k] for k in rows.tolist()],
        release=log.release[rows] - origin,
        start=log.start[rows] - origin,
        end=log.end[rows] - origin,
        kind=log.kind[rows],
        gpus=log.gpus[rows],
        measured_j=log.measured_j[rows],
    )
