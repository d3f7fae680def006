"""Thousands of individual devices as a few pools: a relaxation by which they are bounded.

Each class of alike pools (``model.classes``) becomes one pool with their counts added; modes that
are then equal become one; between two classes latency, time and energy per GB are each the least of
any linked pair, within a class data need no transfer; the ingress latency of a class is that of its
nearest pool, and an outage takes its devices from the class.

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

from optbench.model.classes import alike_pools, equal_rows, mode_physics, numbered_by_first
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
    mode, need, devices, order = _needs_by_class(modes, classes)
    size = np.bincount(mode, minlength=len(modes.clock))
    ptr = np.concatenate(([0], np.cumsum(size)))
    some = size > 0
    primary = np.full(len(size), -1, dtype=np.int64)
    primary[some] = need[order[ptr[:-1][some]]]
    key = equal_rows(mode_physics(modes), primary)
    for k in range(int(size.max(initial=0))):
        has = np.flatnonzero(size > k)
        columns = np.zeros((2, len(size)), dtype=np.int64)
        columns[:, has] = need[ptr[has] + k] + 1, devices[ptr[has] + k]
        key = equal_rows(key, *columns)
    number = numbered_by_first(key)
    keep = np.unique(number, return_index=True)[1]
    rows = order[np.isin(mode[order], keep)]
    new = Modes(
        modes.kind_names,
        np.searchsorted(modes.kind[keep], np.arange(len(modes.kind_ptr))).astype(np.int64),
        modes.time_per_unit_s[keep],
        modes.energy_per_unit_j[keep],
        modes.power_w[keep],
        modes.clock[keep],
        np.concatenate(([0], np.cumsum(size[keep]))).astype(np.int64),
        need[rows],
        devices[rows],
    )
    return new, number


def _needs_by_class(modes: Modes, classes: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Return modes, classes and devices of what modes need of classes, by mode and class, and the
    order of these rows by mode and the first pool of a class.
    """
    width = int(classes.max(initial=0)) + 1
    row = np.repeat(np.arange(len(modes.clock)), np.diff(modes.req_ptr))
    key, first, which = np.unique(
        row * width + classes[modes.req_pool], return_index=True, return_inverse=True
    )
    devices = np.bincount(which.reshape(-1), weights=modes.req_count, minlength=len(key))
    return key // width, key % width, devices.astype(np.int64), np.argsort(first)


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
