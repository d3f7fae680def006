"""Pools of several devices and power caps in the disjunctive formulation, as flows of devices and
of watts.

A resource with room R is held by task i, in mode k, at an amount a_ik while it runs. Each amount
a_ik > 0 is *acquired* at the start of i and *released* at its end; a mode that lowers the use (a_ik
< 0: a node whose secondary devices stop resting) releases −a_ik at its start and acquires it at its
end. With f_uv what event v acquires of that which event u released:

    flow_in[r,v]      Σ_u f_uv + f_source,v  =  Σ_k a_ik mode[i,k]  what v acquires comes from
                                                                    somewhere,
    flow_out[r,u]     Σ_v f_uv               <= Σ_k a_jk mode[j,k]  nothing is passed on that was
                                                                    not released,
    flow_source[r]    Σ_v f_source,v         <= R,
    flow_link[r,u,v]  f_uv                   <= F_uv before[u,v]    and only if u comes at or before
                                                                    v.

*Correct at ties.* All that is acquired by a time τ comes from the source or from events at or
before τ, so acquired(τ) <= R + released(τ), and the use at τ, which is acquired(τ) − released(τ),
is at most R: whatever starts together, and without any order among equal starts. Conversely, a
schedule within R serves its acquisitions in the order of time: what may serve a later one includes
what may serve an earlier one, so first come, first served never runs short.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.model.instance import Floats, Ints
from optbench.views.milp.arrays import BlockCollector, Entries
from optbench.views.milp.event_points import Events


@dataclass(frozen=True, eq=False)
class Resource:
    """A flow: ``number`` names it in labels (the pool, or the number of pools plus the place of a
    power cap).
    """

    number: int
    pair: Ints
    amount: Floats
    room: float

    def tasks(self, task_of: Ints) -> tuple[Ints, Floats, Floats]:
        """Return tasks that use it, with the smallest and the largest amount of each."""
        known, at = np.unique(task_of[self.pair], return_inverse=True)
        least, most = np.full(len(known), np.inf), np.full(len(known), -np.inf)
        np.minimum.at(least, at, self.amount)
        np.maximum.at(most, at, self.amount)
        return known, least, most

    def exchanged(self, task_of: Ints, acquired: bool) -> tuple[Ints, Ints, Floats]:
        """Return, per pair, the event at which it acquires (releases), the pair, and the amount."""
        at_end = (self.amount < 0) if acquired else (self.amount > 0)
        return 2 * task_of[self.pair] + at_end, self.pair, np.abs(self.amount)


@dataclass(frozen=True, eq=False)
class Flow:
    """Candidate flows: released at u (-1: the source), acquired at v, at most ``most``; one that is
    ``known`` needs no order.
    """

    resource: Resource
    u: Ints
    v: Ints
    most: Floats
    known: np.ndarray[tuple[int], np.dtype[np.bool_]]


def flow_of(resource: Resource, events: Events) -> Flow:
    task_of = events.base.instance.pairs.task
    out, given = _largest(*resource.exchanged(task_of, acquired=False)[::2])
    into, taken = _largest(*resource.exchanged(task_of, acquired=True)[::2])
    u, v = np.repeat(out, len(into)), np.tile(into, len(out))
    most = np.minimum(np.repeat(given, len(into)), np.tile(taken, len(out)))
    always, never = events.decide(u, v)
    keep = ~never & (u != v)
    u, v, most, always = u[keep], v[keep], most[keep], always[keep]
    source = np.full(len(into), -1)
    known = np.concatenate((np.ones(len(into), dtype=bool), always))
    return Flow(
        resource,
        np.concatenate((source, u)),
        np.concatenate((into, v)),
        np.concatenate((np.minimum(taken, resource.room), most)),
        known,
    )


def _largest(event: Ints, amount: Floats) -> tuple[Ints, Floats]:
    known, at = np.unique(event, return_inverse=True)
    most = np.zeros(len(known))
    np.maximum.at(most, at, amount)
    return known, most


def add_flows(
    sheet: BlockCollector,
    events: Events,
    flows: list[Flow],
    mode: int,
    before: dict[tuple[int, int], int],
) -> None:
    """Add the block ``flow`` and its rows; ``before`` has the column of each undecided pair of
    events.
    """
    if not flows:
        return
    label = np.concatenate(
        [np.stack((np.full(len(f.u), f.resource.number), f.u, f.v), axis=1) for f in flows]
    )
    most = np.concatenate([f.most for f in flows])
    first = sheet.add_columns("flow", label, 0.0, most)
    column = first + np.arange(len(label))
    task_of = events.base.instance.pairs.task
    for name, acquired, own in (("flow_in", True, label[:, 2]), ("flow_out", False, label[:, 1])):
        used = [f.resource.exchanged(task_of, acquired) for f in flows]
        number = np.concatenate(
            [np.full(len(u[0]), f.resource.number) for f, u in zip(flows, used, strict=True)]
        )
        event, pair, amount = (np.concatenate([u[part] for u in used]) for part in range(3))
        inside = own >= 0
        keys = np.concatenate(
            (np.stack((label[inside, 0], own[inside]), axis=1), np.stack((number, event), axis=1))
        )
        rows, at = np.unique(keys, axis=0, return_inverse=True)
        at, n = at.reshape(-1), int(inside.sum())
        entries: list[Entries] = [(at[:n], column[inside], 1.0), (at[n:], mode + pair, -amount)]
        sheet.add_rows(name, rows, entries, 0.0 if acquired else -np.inf, 0.0)
    numbers = np.asarray([f.resource.number for f in flows])
    source = np.flatnonzero(label[:, 1] < 0)
    row = np.searchsorted(numbers, label[source, 0])
    sheet.add_rows(
        "flow_source",
        numbers,
        [(row, column[source], 1.0)],
        -np.inf,
        np.asarray([f.resource.room for f in flows]),
    )
    linked = np.flatnonzero(~np.concatenate([f.known for f in flows]))
    order = np.asarray([before[u, v] for _, u, v in label[linked].tolist()], dtype=np.int64)
    entries = [
        (np.arange(len(linked)), column[linked], 1.0),
        (np.arange(len(linked)), order, -most[linked]),
    ]
    sheet.add_rows("flow_link", label[linked], entries, -np.inf, 0.0)


def served(flow: Flow, events: Events, pair_of: Ints, time: Floats) -> Floats:
    """Return the flows of a schedule, first come, first served. Demand that nothing can serve is
    taken from the source, beyond its room.
    """
    resource, out = flow.resource, np.zeros(len(flow.u))
    amount = dict(zip(resource.pair.tolist(), resource.amount.tolist(), strict=True))
    held = [amount.get(pair, 0.0) for pair in pair_of.tolist()]
    left = {2 * i + (a > 0): abs(a) for i, a in enumerate(held) if a}
    column = {
        (u, v): c for c, (u, v) in enumerate(zip(flow.u.tolist(), flow.v.tolist(), strict=True))
    }
    releases = sorted(left, key=lambda u: time[u])
    stock = resource.room
    for v in sorted((2 * i + (a < 0) for i, a in enumerate(held) if a), key=lambda v: time[v]):
        need = abs(held[v // 2])
        for u in [-1, *releases]:
            if need <= 0 or (u >= 0 and time[u] > time[v]):
                break
            if (u, v) not in column:
                continue
            take = min(need, stock if u < 0 else left[u])
            out[column[u, v]] = take
            need -= take
            if u < 0:
                stock -= take
            else:
                left[u] -= take
        out[column[-1, v]] += need
    return out
