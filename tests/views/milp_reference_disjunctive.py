"""The disjunctive formulation once more: see milp_reference."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable

from optbench.model.instance import Instance
from optbench.model.time_cuts import time_cuts

from .milp_reference import INF, Reference, Sent, Table

Pairs = set[tuple[int, int]]
# Its number, what a task takes or gives back in a mode, and how much there is.
Resource = tuple[int, dict[tuple[int, int], float], float]
When = Callable[[int, float], list[tuple[str, float]]]


class Events:
    """Starts (2 i) and ends (2 i + 1) of the tasks i: when they may be, and in which order."""

    def __init__(self, ref: Reference) -> None:
        n = ref.n
        self.ref = ref
        self.low = [v for i in range(n) for v in (ref.head[i], ref.head[i] + ref.fast(i))]
        self.high = [v for i in range(n) for v in (ref.latest[i] - ref.fast(i), ref.latest[i])]
        after = {(i, j) for i, j, _ in ref.edges}
        for b in range(n):
            after |= {
                (a, c) for a in range(n) for c in range(n) if (a, b) in after and (b, c) in after
            }
        self.after = after

    def when(self, u: int, sign: float) -> list[tuple[str, float]]:
        modes = self.ref.of(u // 2) if u % 2 else []
        return [(f"start[{u // 2}]", sign)] + [
            (f"mode[{u // 2},{k}]", sign * self.ref.dur[u // 2, k]) for k in modes
        ]

    def never(self, u: int, v: int) -> bool:
        i, j = u // 2, v // 2
        return self.low[u] > self.high[v] or (
            u % 2 == 1 and v % 2 == 0 and (i == j or (j, i) in self.after)
        )

    def always(self, u: int, v: int) -> bool:
        i, j = u // 2, v // 2
        return not self.never(u, v) and (
            (i, j) in self.after or i == j or self.high[u] <= self.low[v]
        )


def disjunctive(inst: Instance) -> Table:
    ref = Reference(inst)
    n, tasks = ref.n, inst.tasks
    events = Events(ref)
    low, high, when = events.low, events.high, events.when
    for i in range(n):
        ref.column(f"start[{i}]", low[2 * i], max(low[2 * i], high[2 * i]))
        for k in ref.of(i):
            ref.column(f"mode[{i},{k}]", 0.0, 1.0, True)
        ref.row(f"assign[{i}]", [(f"mode[{i},{k}]", 1.0) for k in ref.of(i)], 1.0, 1.0)
        if len({ref.dur[i, k] for k in ref.of(i)}) > 1:
            ref.row(f"window[{i}]", when(2 * i + 1, 1.0), -INF, ref.latest[i])
    tight = [i for i in range(n) if high[2 * i] < low[2 * i]]
    if tight:
        ref.row(f"no_time[{tight[0]}]", [], 1.0, INF)
    carried = [e for e in range(len(ref.edges)) if ref.costly(e) or not ref.uniform(e)]
    sent = ref.transfers(
        carried, {i: [(f"mode[{i},{k}]", ref.home[k], 0) for k in ref.of(i)] for i in range(n)}
    )
    _precedence(ref, when, sent)
    _makespan(ref, when)
    late = [i for i in range(n) if math.isfinite(tasks.deadline[i]) and not tasks.deadline_hard[i]]
    if "tardiness_s" in ref.wanted:
        for i in late:
            ref.column(f"tardy[{i}]", 0.0, max(0.0, ref.latest[i] - float(tasks.deadline[i])))
            ref.row(
                f"late[{i}]",
                [(f"tardy[{i}]", 1.0), *when(2 * i + 1, -1.0)],
                -float(tasks.deadline[i]),
                INF,
            )
    _implied(ref, events)

    def metric(name: str) -> tuple[float, list[tuple[str, float]]]:
        if name in ("makespan", "makespan_s"):
            return 0.0, [("makespan", ref.tick if name == "makespan_s" else 1.0)]
        if name == "flow_time_s":
            terms = [
                (c, float(tasks.weight[i]) * ref.tick * v)
                for i in range(n)
                for c, v in when(2 * i + 1, 1.0)
            ]
            return -sum(
                float(tasks.weight[i]) * float(tasks.release[i]) * ref.tick for i in range(n)
            ), terms
        if name == "tardiness_s":
            return 0.0, [(f"tardy[{i}]", float(tasks.weight[i]) * ref.tick) for i in late]
        terms = [(f"mode[{i},{k}]", ref.spent(name, i, k, 0.0)) for i, k in ref.pairs]
        terms += [
            (w, ref.sent(a, b, ref.edges[e][2]) * ref.rate(name, a, 0.0)) for w, e, a, b, _ in sent
        ]
        if inst.horizon is not None:
            return ref.resting(name, 0.0, inst.horizon), terms
        return 0.0, terms + (
            [("makespan", ref.resting(name, 0.0, 1.0))] if ref.needs_makespan else []
        )

    return ref.finish(metric)


def _precedence(ref: Reference, when: When, sent: list[Sent]) -> None:
    for e, (i, j, data) in enumerate(ref.edges):
        lags = (
            []
            if ref.uniform(e)
            else [(w, -ref.lag(a, b, data)) for w, f, a, b, _ in sent if f == e]
        )
        ref.row(
            f"precede[{e}]",
            when(2 * j, 1.0) + when(2 * i + 1, -1.0) + lags,
            ref.lags(e)[0] if ref.uniform(e) else 0.0,
            INF,
        )


def _implied(ref: Reference, events: Events) -> None:
    orders: Pairs = set()
    shared = _orders(ref, events, orders)
    if ref.n > 1 and any(len({ref.dur[i, k] for k in ref.of(i)}) > 1 for i in range(ref.n)):
        _cuts(ref, events.when)
        _exclusions(ref, events, shared, orders)
        _holds(ref)


def _orders(ref: Reference, events: Events, orders: Pairs) -> list[Resource]:
    when, low, high = events.when, events.low, events.high
    shared = _resources(ref, events, orders)
    _flows(ref, events, shared, orders)
    for u, v in orders:
        ref.column(f"before[{u},{v}]", 0.0, 1.0, True)
        most = high[u] - low[v]
        ref.row(
            f"sequence[{u},{v}]",
            when(u, 1.0) + when(v, -1.0) + [(f"before[{u},{v}]", most)],
            -INF,
            most,
        )
    return shared


def _cuts(ref: Reference, when: When) -> None:
    """Rows of the cuts, which have a test of their own, except the area cut of all time."""
    cuts = time_cuts(ref.inst)
    if ref.needs_makespan:
        cuts = [c for c in cuts if c.chain or c.before is not None or c.after is not None]
    for at, cut in enumerate(cuts):
        terms = [
            (f"mode[{i},{k}]", weight * ref.dur[i, k])
            for row, weight in zip(cut.rows, cut.weights, strict=True)
            for i, k in [(int(ref.inst.pairs.task[row]), int(ref.inst.pairs.mode[row]))]
        ]
        top = -float(cut.room * cut.wait)
        if cut.after is not None:
            terms += when(2 * cut.after + 1, float(cut.room))
        if cut.before is not None:
            terms += when(2 * cut.before, -float(cut.room))
        elif ref.needs_makespan:
            terms.append(("makespan", -float(cut.room)))
        else:
            top += cut.room * ref.end
        ref.row(f"between[{at}]", terms, -INF, top)


def _exclusions(ref: Reference, events: Events, shared: list[Resource], orders: Pairs) -> None:
    ways = {(i, j): ((2 * i + 1, 2 * j), (2 * j + 1, 2 * i)) for i, j in _couples(ref.n)}
    for r, use, room in shared:
        if r >= len(ref.count):
            continue
        seen: set[frozenset[tuple[int, int]]] = set()
        for i in range(ref.n):
            for level in sorted({amount for (a, _), amount in use.items() if a == i}):
                for j in range(ref.n):
                    mine = {p for p, amount in use.items() if p[0] == i and amount >= level}
                    other = {p for p, amount in use.items() if p[0] == j and amount + level > room}
                    both = frozenset(mine | other)
                    if i == j or not other or both in seen:
                        continue
                    seen.add(both)
                    if any(events.always(*way) for way in ways[i, j]):
                        continue
                    terms = [(f"mode[{a},{k}]", 1.0) for a, k in both]
                    terms += [(f"before[{u},{v}]", -1.0) for u, v in ways[i, j] if (u, v) in orders]
                    ref.row(f"exclude[{r},{int(level)},{i},{j}]", terms, -INF, 1.0)
    for i, j in _couples(ref.n):
        if i < j and orders >= set(ways[i, j]) and ref.fast(i) + ref.fast(j) > 0:
            terms = [(f"before[{u},{v}]", 1.0) for u, v in ways[i, j]]
            ref.row(f"one_way[{i},{j}]", terms, -INF, 1.0)


def _couples(n: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(n) for j in range(n) if i != j]


def _holds(ref: Reference) -> None:
    """A column for several modes of a task on the same devices, if it also has others."""
    for i in range(ref.n):
        groups: dict[tuple[int, tuple[tuple[int, int], ...]], list[int]] = defaultdict(list)
        for k in ref.of(i):
            groups[ref.home[k], tuple(sorted(ref.needs[k]))].append(k)
        for modes in groups.values():
            if len(groups) > 1 and len(modes) > 1:
                name = f"hold[{i},{min(modes)}]"
                ref.column(name, 0.0, 1.0, True)
                ref.row(name, [(name, -1.0), *((f"mode[{i},{k}]", 1.0) for k in modes)], 0.0, 0.0)


def _makespan(ref: Reference, when: When) -> None:
    if ref.needs_makespan:
        ref.column("makespan", min(ref.critical, ref.end), max(ref.end, *ref.latest))
        for i in sorted(set(range(ref.n)) - {i for i, _, _ in ref.edges}):
            ref.row(f"finish[{i}]", [("makespan", 1.0), *when(2 * i + 1, -1.0)], 0.0, INF)
        for p in range(len(ref.count)):
            held = [
                (i, k, c)
                for i, k in ref.pairs
                for q, c in ref.needs[k]
                if q == p and ref.dur[i, k] > 0
            ]
            if held:
                free = min(ref.head[i] for i, _, _ in held) + min(ref.tail[i] for i, _, _ in held)
                done = [(f"mode[{i},{k}]", -c * ref.dur[i, k]) for i, k, c in held]
                ref.row(
                    f"work[{p}]",
                    [("makespan", float(ref.count[p])), *done],
                    ref.count[p] * free,
                    INF,
                )


def _resources(ref: Reference, events: Events, orders: Pairs) -> list[Resource]:
    """Rows of unary pools, whose undecided pairs of events go into the orders; what the others and
    the caps share.
    """
    never, always = events.never, events.always
    shared: list[Resource] = []
    for p in range(len(ref.count)):
        use = {
            (i, k): float(c)
            for i, k in ref.pairs
            for q, c in ref.needs[k]
            if q == p and ref.dur[i, k] > 0
        }
        users = sorted({i for i, _ in use})
        amounts = [[v for (j, _), v in use.items() if j == i] for i in users]
        least = [min(mine) for mine in amounts]
        if len(users) < 2 or sum(max(mine) for mine in amounts) <= ref.count[p]:
            continue
        if sum(sorted(least)[:2]) <= ref.count[p]:
            shared.append((p, use, float(ref.count[p])))
            continue
        for i in users:
            for j in users:
                ij, ji = (2 * i + 1, 2 * j), (2 * j + 1, 2 * i)
                if i >= j or always(*ij) or always(*ji):
                    continue
                ways = [pair for pair in (ij, ji) if not never(*pair)]
                orders.update(ways)
                ref.row(
                    f"order[{p},{i},{j}]",
                    [(f"before[{u},{v}]", 1.0) for u, v in ways]
                    + [(f"mode[{a},{k}]", -1.0) for a, k in use if a in (i, j)],
                    -1.0,
                    INF,
                )
    for q in ref.caps():
        change = {
            (i, k): ref.change(q, k)
            for i, k in ref.pairs
            if ref.dur[i, k] > 0 and ref.change(q, k) != 0
        }
        if ref.room(q) < 0:
            ref.row(f"resting_{q}[{q}]", [], 1.0, INF)
        users = sorted({i for i, _ in change})
        if sum(
            max(0.0, max(v for (j, _), v in change.items() if j == i)) for i in users
        ) > ref.room(q):
            shared.append((len(ref.count) + q, change, max(0.0, ref.room(q))))
    return shared


def _flows(ref: Reference, events: Events, shared: list[Resource], orders: Pairs) -> None:
    """Flows of what is shared from event to event; their undecided pairs go into the orders."""
    never, always = events.never, events.always
    for r, use, room in shared:
        into: dict[int, list[tuple[str, float]]] = defaultdict(list)
        out: dict[int, list[tuple[str, float]]] = defaultdict(list)
        for (i, k), amount in use.items():
            into[2 * i + (amount < 0)].append((f"mode[{i},{k}]", abs(amount)))
            out[2 * i + (amount > 0)].append((f"mode[{i},{k}]", abs(amount)))
        top = {v: max(size for _, size in terms) for v, terms in into.items()}
        given = {u: max(size for _, size in terms) for u, terms in out.items()}
        flows = [(-1, v) for v in into] + [
            (u, v) for u in out for v in into if u != v and not never(u, v)
        ]
        for u, v in flows:
            most = min(top[v], room if u < 0 else given[u])
            ref.column(f"flow[{r},{u},{v}]", 0.0, most)
            if u >= 0 and not always(u, v):
                orders.add((u, v))
                ref.row(
                    f"flow_link[{r},{u},{v}]",
                    [(f"flow[{r},{u},{v}]", 1.0), (f"before[{u},{v}]", -most)],
                    -INF,
                    0.0,
                )
        for v in into:
            ref.row(
                f"flow_in[{r},{v}]",
                [(f"flow[{r},{a},{b}]", 1.0) for a, b in flows if b == v]
                + [(c, -a) for c, a in into[v]],
                0.0,
                0.0,
            )
        for u in out:
            ref.row(
                f"flow_out[{r},{u}]",
                [(f"flow[{r},{a},{b}]", 1.0) for a, b in flows if a == u]
                + [(c, -a) for c, a in out[u]],
                -INF,
                0.0,
            )
        ref.row(
            f"flow_source[{r}]",
            [(f"flow[{r},{a},{b}]", 1.0) for a, b in flows if a < 0],
            -INF,
            room,
        )
