"""Constraints of the CP model.

    pool r           Σ_{i running} n_ikr ≤ count_r
                     cumulative; NoOverlap where any two tasks collide
    precedence       s_j ≥ e_i + Σ_ab lag_ab y_ab,   Σ_b y_ab = z_ia,  Σ_a y_ab = z_jb
                     (y only between linked pools)
    power at q       Σ_{i running} δ_ik ≤ cap_q − Σ_{r under q} rest_r count_r
                     δ_ik = power_ik − Σ_{r under q} rest_r n_ikr
    equal tasks      s_a ≤ s_b for a < b, where two tasks without edges are equal
    load of pool r   Σ_{i ∈ I} p_ik n_ikr x_ik ≤ count_r (M − min_I head_i − min_I tail_i)
                     (redundant, nested sets I; M is the end of time where the model has no makespan
                     and the set could exceed it)

z_ia says that i runs with primary pool a. A negative δ (a mode that draws less than the devices it
keeps from resting) is a demand |δ| at all times except while it runs: [0, s_i) and [e_i, T), or all
of [0, T) in another mode, under a cap raised by |δ|.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

from ortools.sat.python import cp_model

from optbench.model.caps import net_power_w, resting_power_w
from optbench.model.timegrid import allowance
from optbench.views.cpsat.draft import Draft, Expression, Literal
from optbench.views.cpsat.scaling import MAX_SUM, NEAR, guard, scale_for, to_int

# The joules of a transfer, the literal under which they are drawn, the producer and the sender
# pool.
Drawn = tuple[float, Literal, int, int]


def add_pools(draft: Draft) -> None:
    """Add the capacity of every pool."""
    for pool, count in enumerate(draft.instance.pools.count.tolist()):
        used: list[tuple[cp_model.IntervalVar, int]] = []
        most = 0
        for task, demand in pool_demand(draft, pool):
            used += draft.occupations(task, demand)
            most += max(demand.values())
        if most > count:
            _cumulative(draft, used, count)


def pool_demand(draft: Draft, pool: int) -> Iterator[tuple[int, dict[int, int]]]:
    """Yield tasks that can use a pool, with the devices each of their rows takes."""
    for task in range(draft.instance.num_tasks):
        demand = {row: draft.needs[draft.mode[row]].get(pool, 0) for row in draft.rows(task)}
        demand = {row: n for row, n in demand.items() if n and draft.duration[row] > 0}
        if demand:
            yield task, demand


def _cumulative(draft: Draft, used: list[tuple[cp_model.IntervalVar, int]], capacity: int) -> None:
    if len(used) > 1 and all(2 * amount > capacity for _, amount in used):
        draft.model.add_no_overlap([interval for interval, _ in used])
        if all(amount <= capacity for _, amount in used):
            return
    draft.model.add_cumulative(
        [interval for interval, _ in used], [amount for _, amount in used], capacity
    )


def add_edges(draft: Draft) -> list[Drawn]:
    """Add precedence with transfers; return what the transfers draw."""
    edges, drawn = draft.instance.edges, []
    columns = (edges.source.tolist(), edges.target.tolist(), edges.data_gb.tolist())
    for e, (source, target, data_gb) in enumerate(zip(*columns, strict=True)):
        if data_gb > 0:
            drawn += _transfer(draft, e, source, target, data_gb)
        else:
            draft.model.add(draft.start[target] >= draft.end[source])
    return drawn


def _by_pool(draft: Draft, task: int) -> dict[int, list[int]]:
    out: dict[int, list[int]] = {}
    for row in draft.rows(task):
        out.setdefault(draft.primary[row], []).append(row)
    return out


def _transfer(draft: Draft, e: int, source: int, target: int, data_gb: float) -> list[Drawn]:
    """Add one edge with data: y_ab for every linked pair of pools its two tasks may use."""
    instance, model = draft.instance, draft.model
    senders, receivers = _by_pool(draft, source), _by_pool(draft, target)
    lag = {(a, b): float(instance.lag(a, b, data_gb)) for a in senders for b in receivers}
    joule = {(a, b): float(instance.transfer_j(a, b, data_gb)) for a in senders for b in receivers}
    linked = [pair for pair, time in lag.items() if math.isfinite(time)]
    if (
        len(linked) == len(lag)
        and len(set(lag.values())) == 1
        and len(set(joule.values())) == 1
        and joule[linked[0]] == 0
    ):
        model.add(draft.start[target] >= draft.end[source] + int(lag[linked[0]] // draft.coarse))
        return []
    flow: dict[tuple[int, int], Literal] = {}
    for a, b in linked:
        from_rows, to_rows = frozenset(senders[a]), frozenset(receivers[b])
        if len(senders) == 1:
            flow[a, b] = draft.any_of(target, receivers[b])
        elif len(receivers) == 1:
            flow[a, b] = draft.any_of(source, senders[a])
        else:
            flow[a, b] = draft.literal(
                f"y{e}_{a}_{b}",
                lambda d, f=from_rows, t=to_rows: int(d.row[source] in f and d.row[target] in t),  # type: ignore[misc]
            )
    for a, rows in senders.items():
        model.add(
            sum(_number(flow[p]) for p in linked if p[0] == a)
            == _number(draft.any_of(source, rows))
        )
    for b, rows in receivers.items():
        model.add(
            sum(_number(flow[p]) for p in linked if p[1] == b)
            == _number(draft.any_of(target, rows))
        )
    guard(max((lag[p] for p in linked), default=0.0), "transfer times")
    model.add(
        draft.start[target]
        >= draft.end[source] + sum(int(lag[p] // draft.coarse) * _number(flow[p]) for p in linked)
    )
    return [(joule[p], flow[p], source, p[0]) for p in linked if joule[p] > 0]


def _number(literal: Literal) -> Expression:
    return 1 if literal is None else literal


def add_caps(draft: Draft) -> None:
    """Add power caps: see the module."""
    instance = draft.instance
    for place, cap in zip(
        instance.limits.cap_place.tolist(), instance.limits.cap_w.tolist(), strict=True
    ):
        base = resting_power_w(instance, place)
        if base > cap + allowance(cap):
            draft.model.add_bool_or([])  # the resting devices alone exceed it
            continue
        delta = net_power_w(instance, place).tolist()
        _cap(draft, place, delta, cap - base, 0.0 if draft.inner else allowance(cap))


def _cap(draft: Draft, place: int, delta: list[float], room: float, tolerance: float) -> None:
    """Add one cap, in the finest integers that fit."""
    scale = scale_for([(value, 1) for value in set(delta)])
    largest = max(map(abs, delta), default=0.0)
    amount = [to_int(value, scale, draft.inner, largest) for value in delta]
    # The excess of the nearest integers over the true demands must not cut off a schedule.
    spare = Fraction(NEAR) * draft.instance.num_tasks * (Fraction(largest) * scale + 1)
    capacity = math.floor(Fraction(room + tolerance) * scale + (0 if draft.inner else spare))
    if tolerance == 0.0:
        capacity = min(capacity, to_int(room, scale)) if capacity >= 0 else capacity
    used: list[tuple[cp_model.IntervalVar, int]] = []
    most = 0
    for task in range(draft.instance.num_tasks):
        demand = {
            row: amount[draft.mode[row]] for row in draft.rows(task) if draft.duration[row] > 0
        }
        used += draft.occupations(task, demand)
        most += max(0, *demand.values()) if demand else 0
        # Modes that draw less than rest may have run beside tasks that share a coarse tick.
        if draft.coarse > 1:
            capacity += max(0, -min(demand.values(), default=0))
            continue
        for row, value in demand.items():
            if value < 0:
                capacity += -value
                used += [(interval, -value) for interval in _complement(draft, place, task, row)]
                most += -value
    guard(float(most), "power demands")
    if most > capacity:
        _cumulative(draft, used, capacity)


def _complement(draft: Draft, place: int, task: int, row: int) -> list[cp_model.IntervalVar]:
    """Return intervals that together cover all the time in which a task does not run in
    this row.
    """
    literal, start = draft.present[row], draft.start[task]
    end, name = start + draft.duration[row], f"{place}_{task}_{draft.mode[row]}"
    if start.domain.min() + draft.duration[row] > draft.last:  # CP-SAT rejects negative lengths
        draft.model.add_bool_or([] if literal is None else [literal.negated()])
        return [draft.spanning(0, draft.last, None, f"without{name}")]
    out = [
        draft.spanning(0, start, literal, f"before{name}"),
        draft.spanning(end, draft.last, literal, f"after{name}"),
    ]
    if literal is not None:
        out.append(draft.spanning(0, draft.last, literal.negated(), f"without{name}"))
    return out


def alike_groups(draft: Draft) -> tuple[tuple[int, ...], ...]:
    """Return groups of equal tasks without edges."""
    tasks, edges = draft.instance.tasks, draft.instance.edges
    tied = set(edges.source.tolist()) | set(edges.target.tolist())
    columns = [
        tasks.kind,
        tasks.units,
        tasks.release,
        tasks.deadline,
        tasks.deadline_hard,
        tasks.weight,
        tasks.memory_gb,
    ]
    if draft.instance.stream is not None:
        columns.append(draft.instance.stream.ingress)
    groups: dict[tuple[float, ...], list[int]] = {}
    for task, key in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        if task not in tied:
            groups.setdefault(key, []).append(task)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def add_symmetry(draft: Draft, groups: tuple[tuple[int, ...], ...]) -> None:
    """Order the starts of equal tasks."""
    for group in groups:
        for first, second in pairwise(group):
            draft.model.add(draft.start[first] <= draft.start[second])


def add_loads(draft: Draft) -> None:
    """Add work over devices, for all users of a pool and for those with late heads or long
    tails.
    """
    head, tail = draft.window.head.tolist(), draft.window.tail.tolist()
    for pool, count in enumerate(draft.instance.pools.count.tolist()):
        users = dict(pool_demand(draft, pool))
        for chosen in nested_sets([(head[i], tail[i], i) for i in users]):
            work = sum(
                n * draft.duration[row] * draft.at(row)
                for i in chosen
                for row, n in users[i].items()
            )
            # The makespan in coarse ticks is rounded down: the load may extend into the next tick.
            spare = int(min(head[i] for i in chosen) + min(tail[i] for i in chosen)) - int(
                draft.coarse > 1
            )
            most = sum(max(n * draft.duration[row] for row, n in users[i].items()) for i in chosen)
            if float(count) * draft.last * 4 >= MAX_SUM or float(most) >= MAX_SUM:
                continue  # implied by the pool; its numbers would exceed 64 bits
            if draft.has_makespan:
                draft.model.add(work <= count * (draft.makespan - spare))
            elif most > count * (draft.last - spare):
                draft.model.add(work <= count * (draft.last - spare))


def nested_sets(users: list[tuple[float, float, int]], steps: int = 3) -> list[list[int]]:
    """Return all users, and those beyond quantiles of the heads and of the tails."""
    if not users:
        return []
    heads, tails = sorted({h for h, _, _ in users}), sorted({t for _, t, _ in users})
    cuts = [(heads[len(heads) * q // (steps + 1)], tails[0]) for q in range(steps + 1)]
    cuts += [(heads[0], tails[len(tails) * q // (steps + 1)]) for q in range(1, steps + 1)]
    seen: dict[tuple[int, ...], None] = {}
    for least_head, least_tail in cuts:
        chosen = tuple(i for h, t, i in users if h >= least_head and t >= least_tail)
        if chosen:
            seen[chosen] = None
    return [list(chosen) for chosen in seen]
