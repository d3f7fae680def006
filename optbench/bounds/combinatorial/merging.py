"""Thousands of individual devices as a few pools: a relaxation by which they are bounded.

Pools are alike when they have the same memory, resting power and tariffs, lie below the same capped
places, and are used alike: the same kinds, times, energies, powers and clocks, by modes of as many
devices. Each class of them becomes one pool with their counts added; modes that are then equal
become one; between two classes latency, time and energy per GB are each the least of any linked
pair, within a class data need no transfer; the ingress latency of a class is that of its nearest
pool, and an outage takes its devices from the class.

A schedule of the instance is one of the merged instance, at the same times: durations and energies
are unchanged; a class is never busier than its pools together; no transfer takes longer or more
energy than before; resting devices, tariffs and the power at every capped place are the same. So it
is feasible there and costs no more, and a bound of the merged instance is one of this. Limits on
temperatures are left out, as in every bound. Validity
does not need the equal use of pools; it only keeps the loss small.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from optbench.model.instance import Floats, Instance, Ints, Links, Modes, Pools
from optbench.model.schedule import Schedule
from optbench.model.streams import Stream

# Instances with up to this many pairs of task and mode are not merged.
SMALL = 20_000


@dataclass(frozen=True, eq=False)
class MergedInstance:
    """The instance to bound, and the number there of each mode and of each pool; the original
    instance where merging gains nothing.
    """

    instance: Instance
    mode: Ints
    pool: Ints

    def image(self, schedule: Schedule) -> Schedule:
        """Return the schedule in the merged instance."""
        return replace(schedule, mode=self.mode[schedule.mode])


def merge_pools(instance: Instance) -> MergedInstance:
    """Merge alike pools where the instance is large and that at least halves their number.

    Merged pools may be alike in turn, so that merging is repeated until nothing changes.
    """
    found = MergedInstance(instance, np.arange(instance.num_modes), np.arange(instance.num_pools))
    while int(np.diff(found.instance.modes.kind_ptr)[instance.tasks.kind].sum()) > SMALL:
        classes = alike_pools(found.instance)
        if 2 * (int(classes.max(initial=0)) + 1) > found.instance.num_pools:
            break
        again = merge_classes(found.instance, classes)
        found = MergedInstance(again.instance, again.mode[found.mode], again.pool[found.pool])
    return found


def alike_pools(instance: Instance) -> Ints:
    """Return the class of each pool, numbered by their first pools."""
    pools, modes, tariffs = instance.pools, instance.modes, instance.tariffs
    capped = instance.under[instance.limits.cap_place]
    asked = _usage_by_pool(modes, instance.num_pools)
    number: dict[tuple[object, ...], int] = {}
    out = []
    for p in range(instance.num_pools):
        rates = (
            b""
            if tariffs is None
            else tariffs.price_usd_per_kwh[p].tobytes() + tariffs.carbon_g_per_kwh[p].tobytes()
        )
        key = (
            float(pools.memory_gb[p]),
            float(pools.rest_w[p]),
            rates,
            capped[:, p].tobytes(),
            asked[p],
        )
        out.append(number.setdefault(key, len(number)))
    return np.asarray(out, dtype=np.int64)


def _usage_by_pool(modes: Modes, num_pools: int) -> list[bytes]:
    """Return how modes use each pool, as bytes to compare: a set of (physics of the mode, devices
    of this pool).
    """
    size = np.diff(modes.req_ptr)
    devices = np.bincount(
        np.repeat(np.arange(len(size)), size), weights=modes.req_count, minlength=len(size)
    )
    clock = np.where(np.isnan(modes.clock), -1.0, modes.clock)
    physics = (
        modes.kind,
        modes.time_per_unit_s,
        modes.energy_per_unit_j,
        modes.power_w,
        clock,
        devices,
    )
    _, number = np.unique(
        np.column_stack([np.asarray(part, dtype=float) for part in physics]),
        axis=0,
        return_inverse=True,
    )
    row = np.repeat(np.arange(len(size)), size)
    table = np.unique(
        np.column_stack((modes.req_pool, number.reshape(-1)[row], modes.req_count)), axis=0
    )
    cut = np.searchsorted(table[:, 0], np.arange(num_pools + 1))
    return [table[cut[p] : cut[p + 1], 1:].tobytes() for p in range(num_pools)]


def merge_classes(instance: Instance, classes: Ints) -> MergedInstance:
    """Return the instance with the pools of each class as one pool."""
    pools = instance.pools
    _, first, size = np.unique(classes, return_index=True, return_counts=True)
    names = tuple(
        pools.names[p] if n == 1 else f"{pools.names[p]} and {n - 1:,} alike"
        for p, n in zip(first, size, strict=True)
    )
    count = np.bincount(classes, weights=pools.count).astype(np.int64)
    table = Pools(
        names,
        pools.place[first],
        count,
        pools.idle_w[first],
        pools.sleep_w[first],
        pools.gated[first],
        pools.memory_gb[first],
    )
    modes, number = _merged_modes(instance.modes, classes)
    tariffs = instance.tariffs
    if tariffs is not None:
        price, carbon = tariffs.price_usd_per_kwh[first], tariffs.carbon_g_per_kwh[first]
        tariffs = replace(tariffs, price_usd_per_kwh=price, carbon_g_per_kwh=carbon)
    links = _merged_links(instance.links, classes)
    stream = None if instance.stream is None else _merged_stream(instance.stream, classes)
    return MergedInstance(
        replace(
            instance,
            pools=table,
            modes=modes,
            links=links,
            tariffs=tariffs,
            stream=stream,
            cooling=None,
        ),
        number,
        np.searchsorted(np.unique(classes), classes),
    )


def _merged_stream(stream: Stream, classes: Ints) -> Stream:
    """Return the least latency to any pool of a class, without recorded destinations."""
    latency = np.full((len(stream.latency_s), int(classes.max()) + 1), np.inf)
    np.minimum.at(latency.T, classes, stream.latency_s.T)
    outages = replace(stream.outages, pool=classes[stream.outages.pool])
    return replace(
        stream, latency_s=latency, sent_to=np.full_like(stream.sent_to, -1), outages=outages
    )


def _merged_modes(modes: Modes, classes: Ints) -> tuple[Modes, Ints]:
    """Return modes over classes, each once, and the number of each old mode among them."""
    seen: dict[tuple[object, ...], int] = {}
    number: list[int] = []
    kept: list[int] = []
    needs: list[dict[int, int]] = []
    for k, (kind, clock) in enumerate(zip(modes.kind.tolist(), modes.clock.tolist(), strict=True)):
        need: dict[int, int] = {}
        for r in range(int(modes.req_ptr[k]), int(modes.req_ptr[k + 1])):
            pool = int(classes[modes.req_pool[r]])
            need[pool] = need.get(pool, 0) + int(modes.req_count[r])
        physics = (
            modes.time_per_unit_s[k],
            modes.energy_per_unit_j[k],
            modes.power_w[k],
            clock if clock == clock else None,
        )
        key = (kind, *physics, next(iter(need), -1), tuple(sorted(need.items())))
        if key not in seen:
            seen[key] = len(kept)
            kept.append(k)
            needs.append(need)
        number.append(seen[key])
    keep = np.asarray(kept, dtype=np.int64)
    sizes = [len(need) for need in needs]
    new = Modes(
        modes.kind_names,
        np.searchsorted(modes.kind[keep], np.arange(len(modes.kind_ptr))).astype(np.int64),
        modes.time_per_unit_s[keep],
        modes.energy_per_unit_j[keep],
        modes.power_w[keep],
        modes.clock[keep],
        np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        np.asarray([pool for need in needs for pool in need], dtype=np.int64),
        np.asarray([devices for need in needs for devices in need.values()], dtype=np.int64),
    )
    return new, np.asarray(number, dtype=np.int64)


def _merged_links(links: Links, classes: Ints) -> Links:
    """Return least latency, time and energy per GB over the linked pairs of two classes."""
    linked = np.isfinite(links.latency_s)
    order = np.argsort(classes, kind="stable")
    begins = np.concatenate(([0], np.flatnonzero(np.diff(classes[order])) + 1))

    def least(values: Floats, none: float) -> Floats:
        table = np.where(linked, values, np.inf)[np.ix_(order, order)]
        table = np.minimum.reduceat(np.minimum.reduceat(table, begins, axis=0), begins, axis=1)
        np.fill_diagonal(table, 0.0)
        return np.where(np.isfinite(table), table, none)

    return Links(
        least(links.latency_s, np.inf), least(links.s_per_gb, 0.0), least(links.j_per_gb, 0.0)
    )
