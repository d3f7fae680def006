"""The frozen, validated data of one scheduling problem.

Times are whole ticks of ``tick_s`` seconds (``model.timegrid``). A task of u units lasts, in mode
k, and takes

    D = up(u · (time_per_unit_s[k] / tick_s)) ticks        e = u · energy_per_unit_j[k] joules,

whatever D was rounded to. Both are defined here and nowhere else.

A mode occupies ``req_count`` devices of each pool it lists for its whole length; the first pool
listed is its *primary* pool, which places its power, its tariff and its transfers. A device that is
not busy draws its pool's resting power.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optbench.errors import ParameterError, UnsupportedError, with_article
from optbench.model.congestion import Congestion
from optbench.model.content_hash import physics_digest
from optbench.model.cooling import Cooling
from optbench.model.objective import Objective
from optbench.model.streams import Stream
from optbench.model.timegrid import HORIZON_TICKS, grid_up, to_ints
from optbench.rendering import RenderedInstance

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Tasks:
    """One row per task. Deadlines are whole, inf where there is none; ``user`` says whose it is.
    ``checkpoint`` is after how many ticks of a segment each the work is saved, inf for never.
    """

    kind: Ints
    units: Floats
    release: Ints
    deadline: Floats
    deadline_hard: Bools
    weight: Floats
    memory_gb: Floats
    names: tuple[str, ...] | None = None
    user: Ints | None = None
    user_names: tuple[str, ...] | None = None
    checkpoint: Floats | None = None

    def name(self, task: Any) -> str:
        return self.names[int(task)] if self.names is not None else f"t{task}"


@dataclass(frozen=True, eq=False)
class Edges:
    """Precedence: ``target`` starts after ``source`` ends and its data has arrived."""

    source: Ints
    target: Ints
    data_gb: Floats


@dataclass(frozen=True, eq=False)
class Places:
    """The hierarchy: place 0 is the cluster, and every parent precedes its children."""

    names: tuple[str, ...]
    parent: Ints


@dataclass(frozen=True, eq=False)
class Pools:
    """``count`` devices at a place; ``gated`` ones sleep when they are not busy, others idle.
    ``failures_per_s`` is how often one device fails. Gated devices that take ``wake_s`` or
    ``wake_j`` to wake sleep only where a schedule says so (``model.sleeping``).
    """

    names: tuple[str, ...]
    place: Ints
    count: Ints
    idle_w: Floats
    sleep_w: Floats
    gated: Bools
    memory_gb: Floats
    failures_per_s: Floats | None = None
    wake_s: Floats | None = None
    wake_j: Floats | None = None

    @property
    def rest_w(self) -> Floats:
        """The least power of one device that is not busy."""
        return np.where(self.gated, self.sleep_w, self.idle_w)


@dataclass(frozen=True, eq=False)
class Modes:
    """Ways to run a kind of task; the modes of kind q are rows ``kind_ptr[q]`` to ``kind_ptr[q +
    1]``.

    ``power_w`` is the highest power drawn while running, which counts for caps; ``clock`` is a
    fraction of the top clock, NaN where it has no meaning.
    """

    kind_names: tuple[str, ...]
    kind_ptr: Ints
    time_per_unit_s: Floats
    energy_per_unit_j: Floats
    power_w: Floats
    clock: Floats
    req_ptr: Ints
    req_pool: Ints
    req_count: Ints

    @cached_property
    def kind(self) -> Ints:
        """Kind of each mode."""
        return np.repeat(np.arange(len(self.kind_ptr) - 1), np.diff(self.kind_ptr))

    @cached_property
    def primary(self) -> Ints:
        """Primary pool of each mode, -1 where it needs none."""
        out = np.full(len(self.clock), -1, dtype=np.int64)
        some = np.diff(self.req_ptr) > 0
        out[some] = self.req_pool[self.req_ptr[:-1][some]]
        return out

    @cached_property
    def devices(self) -> Ints:
        """Number of devices of the primary pool."""
        out = np.zeros(len(self.clock), dtype=np.int64)
        some = np.diff(self.req_ptr) > 0
        out[some] = self.req_count[self.req_ptr[:-1][some]]
        return out


@dataclass(frozen=True, eq=False)
class Links:
    """Transfers by sender and receiver; ``latency_s`` is inf where there is no link."""

    latency_s: Floats
    s_per_gb: Floats
    j_per_gb: Floats


@dataclass(frozen=True, eq=False)
class Tariffs:
    """Price and carbon per pool: column p holds from ``times[p]`` to the next time."""

    times: Ints
    price_usd_per_kwh: Floats
    carbon_g_per_kwh: Floats


@dataclass(frozen=True, eq=False)
class Limits:
    """Power caps of all pools below a place, and upper limits on metrics by name."""

    cap_place: Ints
    cap_w: Floats
    metric_max: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Pairs:
    """All (task, mode) pairs that fit; the rows of task i are ``ptr[i]`` to ``ptr[i + 1]``.

    Times are in ticks. ``ready`` is the earliest start of the task in the mode: its release plus
    the ingress latency to the primary pool.
    """

    ptr: Ints
    task: Ints
    mode: Ints
    duration: Ints
    energy_j: Floats
    ready: Ints


@dataclass(frozen=True, eq=False, repr=False)
class Instance(RenderedInstance, kind="instance"):
    """One problem. Without a ``horizon``, idle power is paid until completion."""

    name: str
    tick_s: float
    horizon: int | None
    tasks: Tasks
    edges: Edges
    places: Places
    pools: Pools
    modes: Modes
    links: Links
    limits: Limits
    objective: Objective
    tariffs: Tariffs | None = None
    preemptive: bool = False
    problem: str | None = None
    stream: Stream | None = None
    cooling: Cooling | None = None
    congestion: Congestion | None = None

    @property
    def num_tasks(self) -> int:
        return len(self.tasks.kind)

    @property
    def num_pools(self) -> int:
        return len(self.pools.names)

    @property
    def num_modes(self) -> int:
        return len(self.modes.clock)

    @property
    def is_open(self) -> bool:
        """Whether work may be left undone at the horizon."""
        return self.stream is not None and self.stream.opens is not None

    @property
    def opens(self) -> int:
        """The time from which on idle power is paid."""
        return 0 if self.stream is None or self.stream.opens is None else self.stream.opens

    @property
    def end_of_time(self) -> int:
        """The fixed horizon, or the horizon of every instance; no segment ends later."""
        return HORIZON_TICKS if self.horizon is None else min(self.horizon, HORIZON_TICKS)

    def to_ticks(self, seconds: Any) -> Ints:
        """Finite seconds as ticks, rounded up."""
        return to_ints(grid_up(np.asarray(seconds, dtype=float) / self.tick_s))

    @cached_property
    def ticks_per_unit(self) -> Floats:
        """Ticks that one unit takes in each mode, before anything is rounded to whole ticks."""
        return self.modes.time_per_unit_s / self.tick_s

    def duration(self, mode: Any, units: Any) -> Ints:
        """D: the ticks that a task of ``units`` takes in a mode."""
        return to_ints(grid_up(np.asarray(units, dtype=float) * self.ticks_per_unit[mode]))

    def energy_j(self, mode: Any, units: Any) -> Any:
        """Energy of ``units`` of work in ``mode``."""
        return np.asarray(units, dtype=float) * self.modes.energy_per_unit_j[mode]

    def lag(self, sender: Any, receiver: Any, data_gb: Any, at: Any = None) -> Any:
        """Time to send ``data_gb`` from pool to pool, from time ``at`` on or over free links.

        It is 0 without data, within a pool or without a pool, and inf without a link."""
        links, free, data_gb = self.links, *_free(sender, receiver, data_gb)
        sending = data_gb * links.s_per_gb[sender, receiver]
        if self.congestion is not None and at is not None:
            sending = sending * self.congestion.between(sender, receiver, at)
        seconds = links.latency_s[sender, receiver] + sending
        return grid_up(np.where(free, 0.0, seconds) / self.tick_s)

    def transfer_j(self, sender: Any, receiver: Any, data_gb: Any) -> Any:
        """Energy for ``data_gb`` from pool to pool, drawn at the sender when the producer ends."""
        free, data_gb = _free(sender, receiver, data_gb)
        return np.where(free, 0.0, data_gb * self.links.j_per_gb[sender, receiver])

    def access(self, task: Any, pool: Any) -> Any:
        """Latency from a task's ingress to a pool: 0 without a pool, inf without a route."""
        if self.stream is None:
            return np.zeros(np.shape(task))
        way = np.where(
            np.asarray(pool) >= 0, self.stream.latency_s[self.stream.ingress[task], pool], 0.0
        )
        return grid_up(way / self.tick_s)

    def fits(self, task: Any, mode: Any) -> Any:
        """Whether the task may use the mode: kind, memory, route to the primary pool."""
        suits = (self.modes.kind[mode] == self.tasks.kind[task]) & (
            self.tasks.memory_gb[task] <= self.mode_memory_gb[mode]
        )
        return suits & np.isfinite(self.access(task, self.modes.primary[mode]))

    @cached_property
    def mode_memory_gb(self) -> Floats:
        """Least memory of a device among the pools of each mode (inf where it uses none)."""
        return reduce_by_mode(
            np.minimum, self.modes, self.pools.memory_gb[self.modes.req_pool], np.inf
        )

    @cached_property
    def mode_rest_w(self) -> Floats:
        """Resting power that the devices of each mode would draw if they were not busy."""
        rest = self.pools.rest_w[self.modes.req_pool] * self.modes.req_count
        return reduce_by_mode(np.add, self.modes, rest, 0.0)

    @cached_property
    def pairs(self) -> Pairs:
        """All tasks with the modes that fit them."""
        kind_size = np.diff(self.modes.kind_ptr)
        size = kind_size[self.tasks.kind]
        task = np.repeat(np.arange(self.num_tasks), size)
        offset = np.arange(len(task)) - np.repeat(np.cumsum(size) - size, size)
        mode = self.modes.kind_ptr[self.tasks.kind[task]] + offset
        way = np.asarray(self.access(task, self.modes.primary[mode]), dtype=float)
        keep = (self.tasks.memory_gb[task] <= self.mode_memory_gb[mode]) & np.isfinite(way)
        task, mode, ready = task[keep], mode[keep], to_ints((self.tasks.release[task] + way)[keep])
        ptr = np.concatenate(([0], np.cumsum(np.bincount(task, minlength=self.num_tasks)))).astype(
            np.int64
        )
        units = self.tasks.units[task]
        return Pairs(ptr, task, mode, self.duration(mode, units), self.energy_j(mode, units), ready)

    @cached_property
    def order(self) -> Ints:
        """Tasks in a topological order."""
        return topological_order(self.num_tasks, self.edges)

    @cached_property
    def under(self) -> Bools:
        """``under[place, pool]``: the pool stands at the place or below it."""
        parent, out = (
            self.places.parent,
            np.zeros((len(self.places.names), self.num_pools), dtype=bool),
        )
        out[self.pools.place, np.arange(self.num_pools)] = True
        for place in range(len(parent) - 1, 0, -1):
            out[parent[place]] |= out[place]
        return out

    @cached_property
    def hash(self) -> str:
        """Content hash of everything but the names."""
        return f"{self.physics_hash[:32]}{self.objective.hash[:32]}"

    @cached_property
    def physics_hash(self) -> str:
        """Content hash of everything but the names and the objective."""
        return physics_digest(self)

    def with_objective(self, objective: Objective) -> Instance:
        return replace(self, objective=objective)

    def with_limits(self, **metric_max: float) -> Instance:
        """The same instance with further limits on metrics; of two the smaller holds."""
        merged = dict(self.limits.metric_max)
        for name, value in metric_max.items():
            merged[name] = min(value, merged.get(name, value))
        return replace(self, limits=replace(self.limits, metric_max=merged))

    @cached_property
    def features(self) -> frozenset[str]:
        """The features that a solver must support to run this instance."""
        from optbench.model.features import features_of

        return features_of(self)


def _free(sender: Any, receiver: Any, data_gb: Any) -> tuple[Any, Floats]:
    """Where nothing has to be sent between pools, and the data as an array."""
    sender, receiver = np.asarray(sender), np.asarray(receiver)
    data_gb = np.asarray(data_gb, dtype=float)
    return (sender == receiver) | (sender < 0) | (receiver < 0) | (data_gb <= 0), data_gb


def task_instance(given: Any, what: str) -> Instance:
    """Return an instance of tasks; ``what`` serves no other shape and names itself."""
    if isinstance(given, Instance):
        return given
    if not hasattr(given, "shape"):
        kind = type(given).__name__
        raise ParameterError(f"{what}: the instance is a {kind}; it must be an ob.Instance")
    raise UnsupportedError(
        f"{what} needs tasks on pools, and {given.name!r} is {with_article(given.shape.name)}"
    )


def reduce_by_mode(ufunc: np.ufunc, modes: Modes, values: Floats, empty: float) -> Floats:
    """Reduce values of requirements to one per mode; ``empty`` where there are none."""
    out = np.full(len(modes.clock), empty)
    some = np.diff(modes.req_ptr) > 0
    if some.any():
        out[some] = ufunc.reduceat(values, modes.req_ptr[:-1][some])
    return out


def topological_order(num_tasks: int, edges: Edges) -> Ints:
    """Kahn's order; tasks on or behind a cycle are missing."""
    order = np.argsort(edges.source, kind="stable")
    target = edges.target[order].tolist()
    ptr = np.concatenate(([0], np.cumsum(np.bincount(edges.source, minlength=num_tasks)))).tolist()
    waiting = np.bincount(edges.target, minlength=num_tasks).tolist()
    ready = [task for task in range(num_tasks) if waiting[task] == 0]
    for task in ready:  # The list grows during the iteration.
        for successor in target[ptr[task] : ptr[task + 1]]:
            waiting[successor] -= 1
            if waiting[successor] == 0:
                ready.append(successor)
    return np.asarray(ready, dtype=np.int64)
