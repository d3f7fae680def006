"""The time-indexed formulation once more: see milp_reference."""

from __future__ import annotations

import math
from typing import Any

from optbench.model.instance import Floats, Instance, Ints
from tests.views.milp_reference import INF, Reference, Sent, Table


def time_indexed(inst: Instance, disaggregated: bool) -> Table:
    ref = Reference(inst)
    x, ends = _starts(ref)
    carried = [
        e for e in range(len(ref.edges)) if ref.costly(e) or not (disaggregated or ref.uniform(e))
    ]
    sent = ref.transfers(
        carried,
        {
            i: [
                (name, ref.home[key[1]], ref.period(ends[key]))
                for key, name in x.items()
                if key[0] == i
            ]
            for i in range(ref.n)
        },
    )
    _precedence(ref, x, ends, sent, disaggregated)
    _per_tick(ref, x, ends)
    first, indicators = (
        int(min(ref.critical, ref.end)),
        ref.needs_makespan and ref.varying and inst.horizon is None,
    )
    _completion(ref, x, ends, first, indicators)

    def metric(name: str) -> tuple[float, list[tuple[str, float]]]:
        tasks = inst.tasks
        if name in ("makespan", "makespan_s"):
            scale = ref.step if name == "makespan_s" else 1.0
            if indicators:
                return scale * first, [
                    (f"unfinished[{t}]", scale) for t in range(first, int(ref.end))
                ]
            return 0.0, [("makespan", scale)]
        if name == "flow_time_s":
            return 0.0, _lateness(ref, x, ends, tasks.release)
        if name == "tardiness_s":
            soft = {key: x[key] for key in x if not tasks.deadline_hard[key[0]]}
            return 0.0, _lateness(ref, soft, ends, tasks.deadline)
        terms = [(x[key], ref.spent(name, *key)) for key in x]
        terms += [
            (w, ref.sent(a, b, ref.edges[e][2]) * ref.rate(name, a, ref.times[r]))
            for w, e, a, b, r in sent
        ]
        if inst.horizon is not None:
            return ref.resting(name, 0.0, inst.horizon), terms
        if indicators:
            terms += [
                (f"unfinished[{t}]", ref.resting(name, t, t + 1))
                for t in range(first, int(ref.end))
            ]
            return ref.resting(name, 0.0, first), terms
        return 0.0, terms + ([("makespan", ref.resting(name, 0.0, 1.0))] if ref.paid_rest else [])

    return ref.finish(metric)


def _starts(ref: Reference) -> tuple[dict[Any, str], dict[Any, float]]:
    """The columns (task, mode, start), each task's row, and when each choice ends."""
    x = {
        (i, k, t): f"start[{i},{k},{t}]"
        for i, k in ref.pairs
        for t in range(int(ref.head[i]), int(ref.latest[i] - ref.dur[i, k]) + 1)
    }
    ends = {key: key[2] + ref.dur[key[0], key[1]] for key in x}
    for name in x.values():
        ref.column(name, 0.0, 1.0, True)
    for i in range(ref.n):
        ref.row(f"assign[{i}]", [(name, 1.0) for key, name in x.items() if key[0] == i], 1.0, 1.0)
    return x, ends


def _completion(
    ref: Reference, x: dict[Any, str], ends: dict[Any, float], first: int, indicators: bool
) -> None:
    """Columns that say when everything has ended, and their rows over the last tasks."""
    followed = {i for i, _, _ in ref.edges}
    leaves = [i for i in range(ref.n) if i not in followed]
    if indicators:
        for t in range(first, int(ref.end)):
            ref.column(f"unfinished[{t}]", 0.0, 1.0)
            for i in leaves:
                later = [(x[key], -1.0) for key in x if key[0] == i and ends[key] > t]
                ref.row(f"outlast[{i},{t}]", [(f"unfinished[{t}]", 1.0), *later], 0.0, INF)
    elif ref.needs_makespan:
        ref.column("makespan", min(ref.critical, ref.end), ref.end)
        for i in leaves:
            ref.row(
                f"finish[{i}]",
                [("makespan", 1.0)] + [(x[key], -ends[key]) for key in x if key[0] == i],
                0.0,
                INF,
            )


def _lateness(
    ref: Reference, x: dict[Any, str], ends: dict[Any, float], since: Floats | Ints
) -> list[tuple[str, float]]:
    """Weighted seconds from a time of each task to its end, never below 0."""
    weight = ref.inst.tasks.weight
    return [
        (x[key], float(weight[key[0]]) * max(0.0, ends[key] - float(since[key[0]])) * ref.step)
        for key in x
    ]


def _precedence(
    ref: Reference, x: dict[Any, str], ends: dict[Any, float], sent: list[Sent], disaggregated: bool
) -> None:
    for e, (i, j, data) in enumerate(ref.edges):
        own, other = ([key for key in x if key[0] == task] for task in (j, i))
        if not disaggregated:
            terms = [(x[key], float(key[2])) for key in own] + [
                (x[key], -ends[key]) for key in other
            ]
            if not ref.uniform(e):
                terms += [(w, -ref.lag(a, b, data)) for w, f, a, b, _ in sent if f == e]
            ref.row(f"precede[{e}]", terms, ref.lags(e)[0] if ref.uniform(e) else 0.0, INF)
            continue
        vector = {
            k: tuple(ref.lag(ref.home[l], ref.home[k], data) for l in ref.of(i)) for k in ref.of(j)
        }
        classes = [
            ({k for k in vector if vector[k] == lags}, lags)
            for lags in sorted(set(vector.values()))
        ]
        if len(classes) > 1:
            classes.append((set(vector), tuple(map(min, zip(*vector.values(), strict=True)))))
        for c, (modes, lags) in enumerate(classes):
            starts = [key for key in own if key[1] in modes]
            arrival = {key: ends[key] + lags[ref.of(i).index(key[1])] for key in other}
            if not starts:
                continue
            last = max(key[2] for key in starts)
            if arrival and all(map(math.isfinite, arrival.values())):
                last = min(last, int(max(arrival.values())) - 1)
            for t in range(min(key[2] for key in starts), last + 1):
                ref.row(
                    f"precede[{e},{c},{t}]",
                    [(x[key], 1.0) for key in starts if key[2] <= t]
                    + [(x[key], -1.0) for key in other if arrival[key] <= t],
                    -INF,
                    0.0,
                )


def _per_tick(ref: Reference, x: dict[Any, str], ends: dict[Any, float]) -> None:
    kinds: list[tuple[str, dict[int, float], float]] = []
    for p in range(len(ref.count)):
        held = {k: float(n) for k, need in ref.needs.items() for q, n in need if q == p}
        kinds.append((f"busy[{p}", held, float(ref.count[p])))
    for q in ref.caps():
        kinds.append((f"power[{q}", {k: ref.change(q, k) for k in ref.needs}, ref.room(q)))
        if ref.room(q) < 0:
            ref.row(f"resting_{q}[{q}]", [], 1.0, INF)
    for label, demand, room in kinds:
        for t in range(int(ref.end)):
            most = 0.0
            for i in range(ref.n):
                mine = [
                    key
                    for key in x
                    if key[0] == i and demand.get(key[1], 0.0) > 0 and ref.dur[i, key[1]] > 0
                ]
                if mine and min(key[2] for key in mine) <= t < max(ends[key] for key in mine):
                    most += max(demand[key[1]] for key in mine)
            if most > room:
                ref.row(
                    f"{label},{t}]",
                    [(x[key], demand.get(key[1], 0.0)) for key in x if key[2] <= t < ends[key]],
                    -INF,
                    room,
                )
