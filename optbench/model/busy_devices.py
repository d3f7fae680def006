"""How many devices of each pool are busy or gone at a time."""

from __future__ import annotations

import numpy as np

from optbench.model.instance import Floats, Instance, Ints

# Pool, start, end and number of devices.
Spans = tuple[Ints, Floats, Floats, Ints]


def missing_devices(instance: Instance) -> Spans:
    """Outages as intervals: pool, from, to (inf if devices do not return) and number of devices."""
    assert instance.stream is not None
    outages = instance.stream.outages
    spans: list[tuple[int, float, float, int]] = []
    for pool in np.unique(outages.pool).tolist():
        rows = outages.pool == pool
        times, gone = outages.time[rows], np.cumsum(outages.devices[rows])
        for since, until, devices in zip(times, [*times[1:], np.inf], gone, strict=True):
            if devices > 0 and until > since:
                spans.append((pool, float(since), float(until), int(devices)))
    table = np.array(spans, dtype=float).reshape(-1, 4)
    return table[:, 0].astype(np.int64), table[:, 1], table[:, 2], table[:, 3].astype(np.int64)


def joined(one: Spans, other: Spans) -> Spans:
    """The spans of both."""
    pool, start, end, count = (np.concatenate(columns) for columns in zip(one, other, strict=True))
    return pool, start, end, count


def peaks_by_pool(
    pool: Ints, start: Floats, end: Floats, count: Ints, num_pools: int
) -> tuple[Floats, Floats]:
    """The largest number of busy devices of each pool, and its first time, by one sweep."""
    t, change = np.concatenate((end, start)), np.concatenate((-count, count))
    order = np.argsort(t, kind="stable")  # An end is sorted before a start at the same time.
    which = np.concatenate((pool, pool))[order].astype(np.int16 if num_pools < 2**15 else np.int64)
    by_pool = np.argsort(which, kind="stable")
    level = np.cumsum(change[order][by_pool])  # The sum is 0 again at the end of each pool.
    top, at = np.zeros(num_pools), np.zeros(num_pools)
    sizes = np.bincount(which, minlength=num_pools)
    for p, (size, last) in enumerate(zip(sizes.tolist(), np.cumsum(sizes).tolist(), strict=True)):
        if size:
            row = int(np.argmax(level[last - size : last])) + last - size
            top[p], at[p] = level[row], t[order[by_pool[row]]]
    return top, at
