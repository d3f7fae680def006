"""Streams of arriving work: ingresses with latencies, outages, and open instances.

Task j reaches pool p at release_j + up(latency[ingress_j, p] / tick_s), and no segment of it begins
there earlier. Devices that an outage takes cannot be used until they come back.

An *open* instance is observed from ``opens`` to the fixed horizon H. Everything stops at H: running
tasks count with their progress, waiting tasks as undone. Idle power is paid over [opens, H].
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optbench.errors import ModelError

if TYPE_CHECKING:
    from optbench.model.instance import Instance

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def _no_ints() -> Ints:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Outages:
    """From ``time`` on ``pool`` has ``devices`` fewer; policies know ``announced`` ones before."""

    time: Ints = field(default_factory=_no_ints)
    pool: Ints = field(default_factory=_no_ints)
    devices: Ints = field(default_factory=_no_ints)
    announced: Bools = field(default_factory=lambda: np.zeros(0, dtype=bool))


@dataclass(frozen=True, eq=False)
class Stream:
    """Arrivals: ``latency_s[g, p]`` is the latency from ingress g to pool p, inf without a route.

    ``sent_to`` is the pool to which a record sends a task (-1: none), for policies that do not
    route. ``opens`` is None if all work has to be completed.
    """

    ingress: Ints
    latency_s: Floats
    sent_to: Ints
    outages: Outages = field(default_factory=Outages)
    opens: int | None = None
    ingress_names: tuple[str, ...] = ()


def outages_in_seconds(
    instance: Instance, time_s: Any, pool: Any, devices: Any, announced: Any = True
) -> Outages:
    """Outages with times in seconds, rounded up to ticks; a single value holds for all rows."""
    time = instance.to_ticks(np.atleast_1d(np.asarray(time_s, dtype=float)))
    n = len(time)

    def column(value: Any, dtype: Any) -> Any:
        return np.array(np.broadcast_to(value, n), dtype=dtype)

    return Outages(time, column(pool, np.int64), column(devices, np.int64), column(announced, bool))


def with_stream(
    instance: Instance,
    *,
    ingress: Any = 0,
    latency_s: Any = 0.0,
    sent_to: Any = -1,
    outages: Outages | None = None,
    opens: int | None = None,
    ingress_names: tuple[str, ...] = (),
) -> Instance:
    """The instance with a stream; a single number holds for all tasks or latencies.

    ``opens`` and outages are in ticks."""
    n = instance.num_tasks
    latency = np.asarray(latency_s, dtype=float)
    if latency.ndim < 2:
        latency = np.broadcast_to(latency, (max(1, len(ingress_names)), instance.num_pools))
    stream = Stream(
        np.array(np.broadcast_to(ingress, n), dtype=np.int64), np.array(latency, dtype=float),
        np.array(np.broadcast_to(sent_to, n), dtype=np.int64), outages or Outages(), opens,
        ingress_names or tuple(f"in{g}" for g in range(len(latency))),
    )  # fmt: skip
    made = replace(instance, stream=stream)
    check_stream(made, stream)
    return made


def without_latencies(stream: Stream, task: Ints) -> Stream:
    """The stream without latencies and outages, in which all work has to be completed."""
    latency = np.where(np.isfinite(stream.latency_s), 0.0, np.inf)
    return replace(
        stream,
        ingress=stream.ingress[task],
        latency_s=latency,
        sent_to=stream.sent_to[task],
        outages=Outages(),
        opens=None,
    )


def check_stream(instance: Instance, stream: Stream) -> None:
    """Check a stream; a ModelError names the invalid value."""
    n, pools, names = instance.num_tasks, instance.pools.names, stream.ingress_names
    if stream.latency_s.shape != (len(names), len(pools)):
        shape, expected = stream.latency_s.shape, (len(names), len(pools))
        raise ModelError(
            f"stream.latency_s has shape {shape}; it must be ingresses x pools, {expected}"
        )
    bad = ~(stream.latency_s >= 0)
    if bad.any():
        g, p = np.argwhere(bad)[0]
        way = f"latency from {names[g]!r} to pool {pools[p]!r}"
        raise ModelError(
            f"{way} is {stream.latency_s[g, p]}; it must be a non-negative number, or inf for no "
            "route"
        )
    for what, column, low, high in (
        ("ingress", stream.ingress, 0, len(names)),
        ("sent_to", stream.sent_to, -1, len(pools)),
    ):
        if len(column) != n:
            raise ModelError(f"stream.{what} has {len(column)} rows; it must have {n}")
        wrong = np.flatnonzero((column < low) | (column >= high))
        if len(wrong):
            whose = f"stream.{what} of task {instance.tasks.name(wrong[0])!r}"
            raise ModelError(f"{whose} is {column[wrong[0]]}; it must be {low} to {high - 1}")
    _check_reach(instance, stream)
    _check_window(instance, stream)
    _check_outages(instance, stream.outages)


def _check_reach(instance: Instance, stream: Stream) -> None:
    """Check that every task can reach a pool that runs it, and the pool to which it is sent."""
    modes, kinds, pools = instance.modes, len(instance.modes.kind_names), instance.pools.names
    way = np.isfinite(stream.latency_s)
    # The largest memory of a mode by kind and pool (last column: modes without a pool), and by kind
    # and ingress.
    room = np.full((kinds, len(pools) + 1), -np.inf)
    np.maximum.at(room, (modes.kind, modes.primary), instance.mode_memory_gb)
    ways = np.column_stack((way, np.ones(len(way), dtype=bool)))
    reached = np.where(ways[None], room[:, None, :], -np.inf).max(axis=2)
    kind, ingress, need, name = (
        instance.tasks.kind,
        stream.ingress,
        instance.tasks.memory_gb,
        instance.tasks.name,
    )
    lost = np.flatnonzero(need > reached[kind, ingress])
    if len(lost):
        task = int(lost[0])
        memory = f" in {need[task]:g} GB" if need[task] else ""
        raise ModelError(
            f"task {name(task)!r} arrives at {stream.ingress_names[ingress[task]]!r}, from where "
            "no pool that runs "
            f"{modes.kind_names[kind[task]]!r}{memory} can be reached; give a finite latency"
        )
    sent = np.flatnonzero(stream.sent_to >= 0)
    to = stream.sent_to[sent]
    lost = sent[~(way[ingress[sent], to] & (need[sent] <= room[kind[sent], to]))]
    if len(lost):
        task, pool = int(lost[0]), pools[stream.sent_to[lost[0]]]
        raise ModelError(
            f"task {name(task)!r} is sent to {pool!r}, which it cannot reach from "
            f"{stream.ingress_names[ingress[task]]!r} "
            f"or which does not run {modes.kind_names[kind[task]]!r}"
        )


def _check_window(instance: Instance, stream: Stream) -> None:
    if stream.opens is not None and (
        instance.horizon is None or not 0 <= stream.opens < instance.horizon
    ):
        what = f"stream.opens is {stream.opens!r}, the horizon {instance.horizon!r}"
        raise ModelError(f"{what}; an open instance has a horizon after it")
    if stream.opens is not None and len(instance.edges.source):
        raise ModelError("an open instance has no precedence")
    if stream.opens is not None and stream.opens != int(stream.opens):
        raise ModelError(f"stream.opens is {stream.opens!r}; it must be a whole number of ticks")


def _check_outages(instance: Instance, outages: Outages) -> None:
    """Check that outages are in order of time and never take more devices than a pool has."""
    columns = (outages.time, outages.pool, outages.devices, outages.announced)
    if len({len(column) for column in columns}) != 1:
        raise ModelError(
            f"stream.outages has columns of {', '.join(str(len(column)) for column in columns)} "
            "rows"
        )
    if len(outages.time) == 0:
        return
    if not instance.preemptive:
        raise ModelError(
            "outages interrupt tasks, which continue in another segment; the instance must be "
            "preemptive"
        )
    whole = np.isfinite(outages.time) & (np.floor(outages.time) == outages.time)
    if not (whole.all() and (outages.time >= 0).all() and (np.diff(outages.time) >= 0).all()):
        raise ModelError("stream.outages.time must be whole ticks, not negative, and in order")
    if ((outages.pool < 0) | (outages.pool >= instance.num_pools)).any():
        raise ModelError(f"stream.outages.pool must be 0 to {instance.num_pools - 1}")
    for pool in np.unique(outages.pool).tolist():
        gone = np.cumsum(outages.devices[outages.pool == pool])
        count = int(instance.pools.count[pool])
        if ((gone < 0) | (gone > count)).any():
            wrong = int(gone[(gone < 0) | (gone > count)][0])
            raise ModelError(
                f"outages: {wrong} of {count} devices of pool {instance.pools.names[pool]!r} "
                "would be gone"
            )
