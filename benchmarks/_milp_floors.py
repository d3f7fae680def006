"""The model of ``milp_build.py`` written by hand: in Pyomo, and straight into CSR arrays."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr.numeric_expr import LinearExpression

from optbench.model.instance import Instance
from optbench.model.timegrid import widened

HORIZON = 170


def data_of(inst: Instance) -> SimpleNamespace:
    """What both floors read from the instance: windows of the pairs, and limits."""
    n, pairs, edges = inst.num_tasks, inst.pairs, inst.edges
    shortest = np.minimum.reduceat(pairs.duration, pairs.ptr[:-1])
    head, tail = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    # Sources in topological order.
    arcs = list(zip(edges.source.tolist(), edges.target.tolist(), strict=True))
    for i, j in arcs:
        head[j] = max(head[j], head[i] + shortest[i])
    for i, j in reversed(arcs):
        tail[i] = max(tail[i], tail[j] + shortest[j])
    rest = inst.pools.rest_w
    pool = inst.modes.primary[pairs.mode]
    return SimpleNamespace(
        n=n,
        task=pairs.task,
        mode=pairs.mode,
        duration=pairs.duration,
        pool=pool,
        first=head[pairs.task],
        last=(HORIZON - tail)[pairs.task] - pairs.duration,
        arcs=arcs,
        tasks_after=np.setdiff1d(np.arange(n), edges.source),
        energy=pairs.energy_j - rest[pool] * pairs.duration,
        change=inst.modes.power_w[pairs.mode] - rest[pool],
        resting=float(rest @ inst.pools.count),
        cap=float(inst.limits.cap_w[0]),
        count=inst.pools.count,
        low=int((head + shortest + tail).max()),
    )


def by_sum(terms: list[tuple[float, Any]]) -> Any:
    return sum(value * variable for value, variable in terms)


def by_linear_expression(terms: list[tuple[float, Any]]) -> Any:
    return LinearExpression(
        linear_coefs=[value for value, _ in terms], linear_vars=[variable for _, variable in terms]
    )


def pyomo_floor(inst: Instance, total: Callable[[list[tuple[float, Any]]], Any] = by_sum) -> Any:
    """The model as one writes it by hand in Pyomo; ``total`` makes an expression of coefficients
    and variables.
    """
    d = data_of(inst)
    facts = (d.task, d.mode, d.first, d.last, d.duration)
    spans = {(i, k): (a, b, p) for i, k, a, b, p in zip(*(v.tolist() for v in facts), strict=True)}
    modes: dict[int, list[int]] = {}
    for i, k in spans:
        modes.setdefault(i, []).append(k)
    pool, change, energy = (
        dict(zip(spans, v.tolist(), strict=True)) for v in (d.pool, d.change, d.energy)
    )
    keys = [(i, k, t) for (i, k), (a, b, _) in spans.items() for t in range(a, b + 1)]
    m: Any = pyo.ConcreteModel()
    m.start = pyo.Var(keys, domain=pyo.Binary)
    m.makespan = pyo.Var(bounds=(d.low, HORIZON))

    def ticks(i: int, k: int) -> range:
        return range(spans[i, k][0], spans[i, k][1] + 1)

    def running(i: int, k: int, t: int) -> range:
        a, b, p = spans[i, k]
        return range(max(a, t - p + 1), min(b, t) + 1)

    def ends(m: Any, i: int) -> list[tuple[float, Any]]:
        return [(-(t + spans[i, k][2]), m.start[i, k, t]) for k in modes[i] for t in ticks(i, k)]

    def assign(m: Any, i: int) -> Any:
        return total([(1.0, m.start[i, k, t]) for k in modes[i] for t in ticks(i, k)]) == 1

    def precede(m: Any, e: int) -> Any:
        i, j = d.arcs[e]
        return (
            total([(t, m.start[j, k, t]) for k in modes[j] for t in ticks(j, k) if t] + ends(m, i))
            >= 0
        )

    def busy(m: Any, p: int, t: int) -> Any:
        return total(
            [(1.0, m.start[i, k, s]) for i, k in spans if pool[i, k] == p for s in running(i, k, t)]
        ) <= int(d.count[p])

    def power(m: Any, t: int) -> Any:
        drawn = total(
            [(change[i, k], m.start[i, k, s]) for i, k in spans for s in running(i, k, t)]
        )
        return drawn <= widened(d.cap) - d.resting

    m.assign = pyo.Constraint(range(d.n), rule=assign)
    m.precede = pyo.Constraint(range(len(d.arcs)), rule=precede)
    m.busy = pyo.Constraint([0, 1], range(HORIZON), rule=busy)
    m.power = pyo.Constraint(range(HORIZON), rule=power)
    m.finish = pyo.Constraint(
        d.tasks_after.tolist(), rule=lambda m, i: total([(1.0, m.makespan), *ends(m, i)]) >= 0
    )
    spent = [(energy[i, k], m.start[i, k, t]) for i, k, t in keys]
    m.cost = pyo.Objective(expr=total([(50.0, m.makespan), *spent]) + d.resting * HORIZON)
    return m


def running_blocks(d: SimpleNamespace, ptr: Any) -> list[tuple[Any, ...]]:
    """Rows of what runs at each tick: on both pools, and below the power cap."""
    t = np.arange(HORIZON)[:, None]
    low, high = np.maximum(d.first, t - d.duration + 1), np.minimum(d.last, t)
    width, begin = np.maximum(0, high - low + 1), ptr[:-1] + low - d.first
    blocks = []
    for which, amount, top in (
        (np.flatnonzero(d.pool == 0), None, d.count[0]),
        (np.flatnonzero(d.pool == 1), None, d.count[1]),
        (np.arange(len(ptr) - 1), d.change, widened(d.cap) - d.resting),
    ):
        w, b = width[:, which].ravel(), begin[:, which].ravel()
        at = np.cumsum(w)
        col = np.arange(at[-1]) + np.repeat(b - at + w, w)
        value = np.ones(at[-1]) if amount is None else np.repeat(np.tile(amount[which], HORIZON), w)
        rows = np.concatenate(([0], at[len(which) - 1 :: len(which)]))
        blocks.append((rows, col, value, np.full(HORIZON, -np.inf), np.full(HORIZON, top)))
    return blocks


def array_floor(inst: Instance) -> Any:
    """The same model written straight into CSR, in the order of its rows."""
    d = data_of(inst)
    size = d.last - d.first + 1
    ptr = np.concatenate(([0], np.cumsum(size)))
    nx, pairs_of = int(ptr[-1]), 4
    tick = np.arange(nx) - np.repeat(ptr[:-1] - d.first, size)
    end = tick + np.repeat(d.duration, size)
    task = ptr[::pairs_of]
    blocks = [(task, np.arange(nx), np.ones(nx), np.ones(d.n), np.ones(d.n))]
    cols, values, sizes = [], [], []
    for i, j in d.arcs:
        own, other = np.arange(task[j], task[j + 1]), np.arange(task[i], task[i + 1])
        if tick[own[0]] == 0:
            own = own[tick[own] > 0]
        cols += [own, other]
        values += [tick[own].astype(float), -end[other].astype(float)]
        sizes.append(len(own) + len(other))
    e = len(d.arcs)
    rows = np.concatenate(([0], np.cumsum(sizes)))
    blocks.append(
        (rows, np.concatenate(cols), np.concatenate(values), np.zeros(e), np.full(e, np.inf))
    )
    blocks += running_blocks(d, ptr)
    cols, values = [], []
    for i in d.tasks_after.tolist():
        own = np.arange(task[i], task[i + 1])
        cols += [np.asarray([nx]), own]
        values += [np.ones(1), -end[own].astype(float)]
    rows = np.concatenate(
        ([0], np.cumsum([1 + task[i + 1] - task[i] for i in d.tasks_after.tolist()]))
    )
    last = len(d.tasks_after)
    blocks.append(
        (rows, np.concatenate(cols), np.concatenate(values), np.zeros(last), np.full(last, np.inf))
    )
    shift = np.cumsum([0] + [len(block[1]) for block in blocks])
    joined = np.concatenate(
        [block[0][:-1] + at for block, at in zip(blocks, shift, strict=False)] + [shift[-1:]]
    )
    col, value, lower, upper = (
        np.concatenate([block[part] for block in blocks]) for part in range(1, 5)
    )
    return SimpleNamespace(
        cost=np.append(np.repeat(d.energy, size), 50.0),
        lower=np.append(np.zeros(nx), d.low),
        upper=np.append(np.ones(nx), HORIZON),
        integer=np.append(np.ones(nx, dtype=bool), False),
        row_lower=lower,
        row_upper=upper,
        matrix=(joined.astype(np.int32), col.astype(np.int32), value),
    )
