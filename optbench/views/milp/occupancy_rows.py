"""Rows of the time-indexed formulation that hold at every tick: devices of each pool and power at
each capped place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optbench.model.caps import net_power_w, resting_power_w
from optbench.model.instance import Floats, Ints
from optbench.model.ragged import ragged
from optbench.model.timegrid import widened
from optbench.views.milp.arrays import BlockCollector
from optbench.views.milp.frame import Frame

if TYPE_CHECKING:
    from optbench.views.milp.time_indexed import Starts


def pool_demand(base: Frame) -> tuple[Ints, Ints, Floats]:
    """Return what pairs of positive length occupy: pair, pool, devices."""
    instance = base.instance
    pairs, modes = instance.pairs, instance.modes
    pair, req = ragged(modes.req_ptr[pairs.mode], np.diff(modes.req_ptr)[pairs.mode])
    keep = pairs.duration[pair] > 0
    return pair[keep], modes.req_pool[req[keep]], modes.req_count[req[keep]].astype(float)


def power_demand(base: Frame, place: int) -> tuple[Ints, Floats, float]:
    """Return, for a place, the pairs that change its power while they run, by how much, and what
    all pools at rest leave of the cap.
    """
    instance = base.instance
    pairs, change = instance.pairs, net_power_w(instance, place)[instance.pairs.mode]
    pair: Ints = np.flatnonzero((change != 0) & (pairs.duration > 0)).astype(np.int64)
    return pair, np.asarray(change[pair], dtype=float), resting_power_w(instance, place)


def power_limits(base: Frame) -> list[tuple[int, Ints, Floats, float]]:
    """Return, per capped place (the smallest cap of each): place, pairs, change of power, limit on
    the sum.
    """
    limits, out = base.instance.limits, []
    for place in np.unique(limits.cap_place).tolist():
        cap = float(limits.cap_w[limits.cap_place == place].min())
        pair, change, resting = power_demand(base, place)
        out.append((place, pair, change, widened(cap) - resting))
    return out


def add_occupancy(sheet: BlockCollector, base: Frame, x: Starts) -> None:
    pair, pool, count = pool_demand(base)
    room = base.instance.pools.count.astype(float)
    _per_tick(sheet, "busy", base, x, pair, pool, count, room, np.arange(len(room)))
    caps = power_limits(base)
    for place, _, _, left in caps:
        if left < 0:
            sheet.impossible(f"resting_{place}", [[place]])
    if caps:
        pair = np.concatenate([pairs for _, pairs, _, _ in caps])
        which = np.repeat(np.arange(len(caps)), [len(pairs) for _, pairs, _, _ in caps])
        change = np.concatenate([change for _, _, change, _ in caps])
        room_w = np.asarray([room for _, _, _, room in caps])
        _per_tick(
            sheet,
            "power",
            base,
            x,
            pair,
            which,
            change,
            room_w,
            np.asarray([place for place, _, _, _ in caps]),
        )


def _per_tick(
    sheet: BlockCollector,
    name: str,
    base: Frame,
    x: Starts,
    pair: Ints,
    what: Ints,
    demand: Floats,
    room: Floats,
    label: Ints,
) -> None:
    """Add Σ of the demands of the pairs running at t <= room, for each kind of demand and each tick
    at which it can be exceeded.

    The starts of a pair that runs at t are consecutive columns, so a row is a few runs of columns,
    found one per pair and tick.
    """
    size = np.diff(x.ptr)[pair]
    length = np.where(size > 0, size + x.duration[pair] - 1, 0)
    begin, ticks = busy_ticks(x.begin[pair], length)
    tight = _most(base, x, pair, what, demand, len(room), begin, len(ticks)) > room[:, None]
    row_of = np.cumsum(tight.ravel()) - 1
    use, tick = ragged(begin, length)
    cell = what[use] * len(ticks) + tick
    if not tight.all():
        keep = tight.ravel()[cell]
        use, tick, cell = use[keep], tick[keep], cell[keep]
    since = tick - begin[use]
    first = np.maximum(0, since - x.duration[pair[use]] + 1)
    runs = np.minimum(size[use] - 1, since) - first + 1
    which, at = np.nonzero(tight)
    sheet.add_runs(
        name,
        np.stack((label[which], ticks[at]), axis=1),
        row_of[cell],
        x.ptr[pair[use]] + first,
        runs,
        demand[use],
        -np.inf,
        room[which],
    )


def busy_ticks(begin: Ints, length: Ints) -> tuple[Ints, Ints]:
    """Return the ticks of the union of the ranges [begin, begin + length), in order, and the
    position of each range among them.

    Ticks at which nothing can run are not examined, even if there are a billion of them.
    """
    some = np.flatnonzero(length > 0)
    order = some[np.argsort(begin[some], kind="stable")]
    if len(order) == 0:
        return np.zeros_like(begin), np.zeros(0, dtype=np.int64)
    reach = np.maximum.accumulate(begin[order] + length[order])
    opens = np.concatenate(([True], begin[order][1:] > reach[:-1]))
    first = begin[order][opens]
    last = reach[np.concatenate((np.flatnonzero(opens)[1:] - 1, [len(order) - 1]))]
    before = np.concatenate(([0], np.cumsum(last - first)))[:-1]
    out = np.zeros_like(begin)
    span = np.cumsum(opens) - 1
    out[order] = before[span] + begin[order] - first[span]
    return out, ragged(first, last - first)[1]


def _most(
    base: Frame,
    x: Starts,
    pair: Ints,
    what: Ints,
    demand: Floats,
    kinds: int,
    first: Ints,
    ticks: int,
) -> Floats:
    """Return an upper bound at each tick: every task at its largest demand from its first start to
    its last end.
    """
    task = base.instance.pairs.task[pair]
    size = np.diff(x.ptr)[pair]
    some = np.flatnonzero((size > 0) & (demand > 0) & (x.duration[pair] > 0))
    key = task[some] * kinds + what[some]
    known, at = np.unique(key, return_inverse=True)
    begin, end = np.full(len(known), ticks), np.zeros(len(known), dtype=np.int64)
    most = np.zeros(len(known))
    np.minimum.at(begin, at, first[some])
    np.maximum.at(end, at, (first + size - 1 + x.duration[pair])[some])
    np.maximum.at(most, at, demand[some])
    change = np.zeros((kinds, ticks + 1))
    np.add.at(change, (known % kinds, begin), most)
    np.add.at(change, (known % kinds, end), -most)
    return np.cumsum(change, axis=1)[:, :-1]
