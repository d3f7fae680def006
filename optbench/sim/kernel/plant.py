"""An instance as flat one-dimensional arrays for compiled code.

Times are whole ticks, held as floats (exact up to 2⁵³). Adjacency, modes by kind and requirements
by mode are in compressed rows: the entries of row r are ``ptr[r]`` to ``ptr[r + 1]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from optbench.errors import ModelError
from optbench.model.caps import net_power_w, resting_power_w
from optbench.model.checks import tasks_with_data
from optbench.model.instance import Floats, Instance, Ints
from optbench.model.sleeping import kept_awake
from optbench.model.timegrid import grid_up, narrowed
from optbench.sim.kernel.cooled_places import cooled_places, starts_at_rest
from optbench.sim.kernel.pointers import table_at
from optbench.sim.kernel.set_columns import set_columns
from optbench.sim.kernel.tie_ranks import tie_ranks

# Entries of ``size`` and ``scalar``.
TASKS, POOLS, MODES, CAPS, PERIODS, FAULTS, SENDS, PREEMPTIVE, HAS_INGRESS, COOLED = range(10)
KINDS, SET_KINDS, BUSY = 10, 11, 12
TICK_S, HORIZON = range(2)


class Fault(NamedTuple):
    """From ``time`` on, ``pool`` has ``devices`` fewer (or more, where negative); work on lost
    devices is interrupted.

    Lost devices count as resting, like those that are not busy: energy is that of the schedule.
    """

    time: float
    pool: int
    devices: int


class Plant(NamedTuple):
    """The constant data of a simulation; ``ingress_ticks`` is the ingress latency from each ingress
    to each pool. ``cool_rise_c`` is what a mode adds to the
    temperature at which a cooled place settles, from ``cool_ptr`` of the mode on.

    Sets of alike modes and the lists of their pools are those of ``model.classes``; ``entry_slot``
    is where in the rows of expected devices a mode finds when enough devices are free, ``has_sets``
    marks kinds with many alike modes. ``kind_pool`` are the primary pools of each kind, the number
    of pools standing for none.

    ``keeps_pool`` marks tasks that send or receive data: once begun they stay on their pool.
    ``checkpoint`` is after how many ticks of a run each a task's work is saved, 0 for every one.
    """

    size: Ints
    scalar: Floats
    kind: Ints
    units: Floats
    release: Floats
    deadline: Floats
    soft: Ints
    weight: Floats
    memory_gb: Floats
    keeps_pool: Ints
    checkpoint: Floats
    tie: Ints
    release_order: Ints
    pred_ptr: Ints
    pred: Ints
    pred_gb: Floats
    succ_ptr: Ints
    succ: Ints
    kind_ptr: Ints
    time_s: Floats
    ticks_per_unit: Floats
    energy_j: Floats
    clock: Floats
    primary: Ints
    devices: Ints
    mode_memory_gb: Floats
    mode_rest_w: Floats
    req_ptr: Ints
    req_pool: Ints
    req_count: Ints
    pool_count: Ints
    pool_rest_w: Floats
    latency_s: Floats
    s_per_gb: Floats
    j_per_gb: Floats
    cap_room_w: Floats
    cap_net_w: Floats
    period: Floats
    price: Floats
    price_before: Floats
    carbon: Floats
    carbon_before: Floats
    fault_time: Floats
    fault_pool: Ints
    fault_devices: Ints
    device_ptr: Ints
    ingress: Ints
    ingress_ticks: Floats
    has_sets: Ints
    mode_set: Ints
    kind_set_ptr: Ints
    set_ptr: Ints
    set_mode: Ints
    set_list: Ints
    kind_list_ptr: Ints
    kind_list: Ints
    list_width: Ints
    list_ptr: Ints
    entry_pool: Ints
    entry_devices: Ints
    entry_slot: Ints
    kind_pool_ptr: Ints
    kind_pool: Ints
    cool_rest_c: Floats
    cool_limit_c: Floats
    cool_start_c: Floats
    cool_rate: Floats
    cool_ptr: Ints
    cool_row: Ints
    cool_rise_c: Floats
    busy_time: Floats
    busy_factor: Floats


plant_at = table_at(Plant)


def plant_of(instance: Instance, faults: Sequence[Fault] = ()) -> Plant:
    """Convert an instance, with the faults of one scenario, for the kernel."""
    instance = kept_awake(instance)
    tasks, edges, modes = instance.tasks, instance.edges, instance.modes
    pools, links = instance.pools, instance.links
    n, has_ingress = instance.num_tasks, "access" in instance.features
    sends = has_ingress or (bool((edges.data_gb > 0).any()) and instance.num_pools > 1)
    by_target = np.argsort(edges.target, kind="stable")
    by_source = np.argsort(edges.source, kind="stable")
    release = np.asarray(tasks.release, dtype=float)
    tie = tie_ranks(instance)
    broken = _checked(instance, (*faults, *_outages(instance)))
    horizon = np.inf if instance.horizon is None else float(instance.horizon)
    room_w, net_w = _caps(instance)
    rates, cooled = _rates(instance), cooled_places(instance)
    device_ptr = np.concatenate(([0], np.cumsum(_devices_planned(instance)))).astype(np.int64)
    sets = set_columns(instance, device_ptr)
    sizes = (n, instance.num_pools, instance.num_modes, len(room_w), len(rates["period"]))
    flags = (sends, instance.preemptive, has_ingress, len(cooled["cool_rate"]))
    kinds = (len(modes.kind_ptr) - 1, int(sets["has_sets"].sum()), len(rates["busy_time"]))
    return Plant(
        size=np.array([*sizes, len(broken), *flags, *kinds], dtype=np.int64),
        scalar=np.array([instance.tick_s, horizon]),
        kind=_ints(tasks.kind),
        units=_floats(tasks.units),
        release=release,
        deadline=_floats(tasks.deadline),
        soft=_ints(~tasks.deadline_hard & np.isfinite(tasks.deadline)),
        weight=_floats(tasks.weight),
        memory_gb=_floats(tasks.memory_gb),
        keeps_pool=_ints(tasks_with_data(instance)),
        checkpoint=np.zeros(n) if tasks.checkpoint is None else _floats(tasks.checkpoint),
        tie=tie,
        release_order=_order_of_release(release, tie),
        pred_ptr=_pointers(edges.target, n),
        pred=_ints(edges.source[by_target]),
        pred_gb=_floats(edges.data_gb[by_target]),
        succ_ptr=_pointers(edges.source, n),
        succ=_ints(edges.target[by_source]),
        kind_ptr=_ints(modes.kind_ptr),
        pool_count=_ints(pools.count),
        pool_rest_w=_floats(pools.rest_w),
        latency_s=_floats(links.latency_s.ravel()),
        s_per_gb=_floats(links.s_per_gb.ravel()),
        j_per_gb=_floats(links.j_per_gb.ravel()),
        cap_room_w=room_w,
        cap_net_w=net_w,
        device_ptr=device_ptr,
        **(
            _mode_columns(instance, starts_at_rest(instance, cooled))
            | rates
            | cooled
            | sets
            | _fault_columns(broken)
        ),
        **_ingress_columns(instance),
    )


def _mode_columns(instance: Instance, usable: Any) -> dict[str, Any]:
    """Return the columns of the modes, and of their needs."""
    modes = instance.modes
    return {
        "time_s": _floats(modes.time_per_unit_s),
        "ticks_per_unit": _floats(instance.ticks_per_unit),
        "energy_j": _floats(modes.energy_per_unit_j),
        "clock": _floats(modes.clock),
        "primary": _ints(modes.primary),
        "devices": _ints(modes.devices),
        # A mode that overheats its place by itself has no room: it is never started.
        "mode_memory_gb": np.where(usable, instance.mode_memory_gb, -1.0),
        "mode_rest_w": _floats(instance.mode_rest_w),
        "req_ptr": _ints(modes.req_ptr),
        "req_pool": _ints(modes.req_pool),
        "req_count": _ints(modes.req_count),
    }


def _fault_columns(faults: Sequence[Fault]) -> dict[str, Any]:
    return {
        "fault_time": np.array([fault.time for fault in faults], dtype=float),
        "fault_pool": np.array([fault.pool for fault in faults], dtype=np.int64),
        "fault_devices": np.array([fault.devices for fault in faults], dtype=np.int64),
    }


def _order_of_release(release: Floats, tie: Ints) -> Ints:
    """Order tasks by release, then by rank; a stream is already in this order."""
    if (release[1:] > release[:-1]).all():
        return np.arange(len(release))
    return np.lexsort((tie, release)).astype(np.int64)


def _rates(instance: Instance) -> dict[str, Floats]:
    """Return price and carbon over time: periods, rates, and their integrals up to each period; and
    the factors of busy links.
    """
    tariffs, busy = instance.tariffs, instance.congestion
    links = {
        "busy_time": np.zeros(0) if busy is None else _floats(busy.times),
        "busy_factor": np.zeros(0) if busy is None else _floats(busy.factor.ravel()),
    }
    if tariffs is None:
        names = ("period", "price", "price_before", "carbon", "carbon_before")
        return dict.fromkeys(names, np.zeros(0)) | links
    periods = np.asarray(tariffs.times, dtype=float)
    price, carbon = tariffs.price_usd_per_kwh, tariffs.carbon_g_per_kwh
    return {
        "period": periods,
        "price": _floats(price.ravel()),
        "price_before": _before(periods, price),
        "carbon": _floats(carbon.ravel()),
        "carbon_before": _before(periods, carbon),
        **links,
    }


def _outages(instance: Instance) -> list[Fault]:
    """Return the outages of an instance, which are faults like those of a scenario."""
    if instance.stream is None:
        return []
    outages = instance.stream.outages
    rows = zip(outages.time.tolist(), outages.pool.tolist(), outages.devices.tolist(), strict=True)
    return [Fault(time, pool, devices) for time, pool, devices in rows]


def _ingress_columns(instance: Instance) -> dict[str, Any]:
    """Return the ingress of each task and the ingress latency to each pool, row by row, in ticks;
    inf where a pool cannot be reached.
    """
    stream = instance.stream
    if stream is None or "access" not in instance.features:
        return {"ingress": np.zeros(0, dtype=np.int64), "ingress_ticks": np.zeros(0)}
    latency = grid_up(stream.latency_s.ravel() / instance.tick_s)
    return {"ingress": _ints(stream.ingress), "ingress_ticks": _floats(latency)}


def _caps(instance: Instance) -> tuple[Floats, Floats]:
    """Return, per cap, the watts left above rest; per (mode, cap), row by row, the watts that a
    mode adds.

    A mode that draws less than its devices at rest counts as adding nothing, because its end would
    have to take back the difference. Added watts are rounded up to a grid on which sums below the
    cap are exact, so that nothing drifts in a million events.
    """
    places, caps = instance.limits.cap_place.tolist(), instance.limits.cap_w.tolist()
    if not places:
        return np.zeros(0), np.zeros(0)
    room = np.array(
        [narrowed(cap) - resting_power_w(instance, q) for cap, q in zip(caps, places, strict=True)]
    )
    net = np.maximum(np.column_stack([net_power_w(instance, place) for place in places]), 0.0)
    grid = 2.0 ** (np.frexp(np.maximum(room, net.max(axis=0, initial=0.0)))[1] - 52)
    return room, (np.ceil(net / grid) * grid).ravel()


def _devices_planned(instance: Instance) -> Ints:
    """Return, per pool, for how many devices a plan has to know when they are free: the earliest
    ones, for every task.

    This is at least as many as a mode takes, although devices may be missing: those are never free.
    """
    modes, tasks = instance.modes, instance.tasks
    most = np.zeros(len(modes.kind_ptr) - 1, dtype=np.int64)
    taken = np.zeros(instance.num_pools, dtype=np.int64)
    np.maximum.at(
        most,
        modes.kind[np.repeat(np.arange(instance.num_modes), np.diff(modes.req_ptr))],
        modes.req_count,
    )
    np.maximum.at(taken, modes.req_pool, modes.req_count)
    return np.maximum(np.minimum(instance.pools.count, most[tasks.kind].sum()), taken)


def _checked(instance: Instance, faults: Sequence[Fault]) -> list[Fault]:
    """Return the faults in order of time; at no time may more devices be lost than a pool has."""
    broken = sorted(faults)
    gone = np.zeros(instance.num_pools, dtype=np.int64)
    names, count = instance.pools.names, instance.pools.count
    for fault in broken:
        if not 0 <= fault.pool < len(names):
            raise ModelError(
                f"fault at {fault.time:g}: pool {fault.pool} does not exist; pools are 0 to "
                f"{len(names) - 1}"
            )
        if not (np.isfinite(fault.time) and fault.time >= 0):
            raise ModelError(
                f"fault of pool {names[fault.pool]}: time is {fault.time!r}; it must be finite, "
                "at least 0"
            )
        if fault.time != int(fault.time):
            raise ModelError(
                f"fault of pool {names[fault.pool]}: time is {fault.time!r}; it must be a whole "
                "number of ticks"
            )
        gone[fault.pool] += fault.devices
        if not 0 <= gone[fault.pool] <= count[fault.pool]:
            was = f"{gone[fault.pool]} of {count[fault.pool]} devices of pool {names[fault.pool]}"
            raise ModelError(f"fault at {fault.time:g}: {was} would be lost")
    return broken


def _before(periods: Floats, rates: Floats) -> Floats:
    """Return, per pool, the integral of its rate up to the beginning of each period."""
    sums = np.cumsum(np.diff(periods) * rates[:, :-1], axis=1)
    return np.concatenate((np.zeros((len(rates), 1)), sums), axis=1).ravel()


def _pointers(row: Ints, rows: int) -> Ints:
    return np.concatenate(([0], np.cumsum(np.bincount(row, minlength=rows)))).astype(np.int64)


def _ints(values: object) -> Ints:
    return np.ascontiguousarray(values, dtype=np.int64)


def _floats(values: object) -> Floats:
    return np.ascontiguousarray(values, dtype=np.float64)
