"""Time from an instance to HiGHS for a time-indexed MILP of 50,000 binaries, beside its floor, on
both routes.

Run: ``python benchmarks/milp_build.py [--reps 7]``; overwrites docs/results/milp_build.md. The
matrices of all five ways of building are compared coefficient by coefficient before anything is
timed.

The model: N tasks on two pools, four modes each (pool x clock), precedence, a power cap, a fixed
horizon; minimise makespan and energy. The floors are written for exactly this model and know
nothing of instances with other features:

- *Pyomo floor*: what a Pyomo user writes by hand (rules with ``sum`` over indexed variables), and
LinearStandardFormCompiler;
- *lean Pyomo floor*: the same rules with ``LinearExpression`` in place of ``sum``, the fastest way
Pyomo offers;
- *array floor*: numpy writes pointers, columns and coefficients of each row block directly into
CSR, and ``passModel``.

Both floors and both routes begin with the Instance and end when HiGHS holds the model.
"""

from __future__ import annotations

import argparse
import gc
import platform
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import highspy
import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr.numeric_expr import LinearExpression
from scipy.sparse import csr_array

import optbench as ob
from optbench.model.instance import Instance
from optbench.model.timegrid import widened
from optbench.plugins.solvers.highs import pass_model
from optbench.views.milp import TimeIndexed, standard_form, to_pyomo

LAYERS, WIDTH, HORIZON = 10, 10, 170
# Repetitions of the quick ways within one round.
ARRAY_REPS = 5
TARGETS = {
    ("Pyomo route", "Pyomo floor"): 1.3,
    ("Pyomo route", "lean Pyomo floor"): 1.3,
    ("array route", "array floor"): 2.0,
}
OUT = Path(__file__).parents[1] / "docs" / "results" / "milp_build.md"


def instance() -> Instance:
    """Ten layers of ten tasks, each after one or two of the layer before; times of 2 to 12
    ticks.
    """
    rng = np.random.default_rng(0)
    m = ob.Model("milp_build", tick_s=1.0, horizon_s=float(HORIZON))
    pools = [m.pool("fast", count=4, idle_w=50.0), m.pool("small", count=6, idle_w=20.0)]
    above: list[Any] = []
    for _ in range(LAYERS):
        layer = []
        for _ in range(WIDTH):
            work = float(rng.integers(2, 7))
            modes = [
                m.mode(pool, time_s=work * slow, energy_j=work * watt * slow, power_w=watt)
                for pool, slow, watt in (
                    (pools[0], 1, 300.0),
                    (pools[0], 1.5, 180.0),
                    (pools[1], 1.5, 120.0),
                    (pools[1], 2, 70.0),
                )
            ]
            count = int(rng.integers(1, 3)) if above else 0
            after = (
                [above[i] for i in rng.choice(len(above), count, replace=False).tolist()]
                if above
                else []
            )
            layer.append(m.task(modes=modes, after=after))
        above = layer
    m.limit(power_w=1400.0)
    m.minimize(makespan=50.0, energy_j=1.0)
    return m.build()


def data_of(inst: Instance) -> SimpleNamespace:
    """What both floors read from the instance: windows of the pairs, and limits."""
    n, pairs, edges = inst.num_tasks, inst.pairs, inst.edges
    shortest = np.minimum.reduceat(pairs.duration, pairs.ptr[:-1])
    head, tail = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    arcs = list(
        zip(edges.source.tolist(), edges.target.tolist(), strict=True)
    )  # sources in topological order
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

    m.assign = pyo.Constraint(
        range(d.n),
        rule=lambda m, i: (
            total([(1.0, m.start[i, k, t]) for k in modes[i] for t in ticks(i, k)]) == 1
        ),
    )
    m.precede = pyo.Constraint(range(len(d.arcs)), rule=precede)
    m.busy = pyo.Constraint([0, 1], range(HORIZON), rule=busy)
    m.power = pyo.Constraint(range(HORIZON), rule=power)
    m.finish = pyo.Constraint(
        d.tasks_after.tolist(), rule=lambda m, i: total([(1.0, m.makespan), *ends(m, i)]) >= 0
    )
    spent = [(energy[i, k], m.start[i, k, t]) for i, k, t in keys]
    m.cost = pyo.Objective(expr=total([(50.0, m.makespan), *spent]) + d.resting * HORIZON)
    return m


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
    t = np.arange(HORIZON)[:, None]
    low, high = np.maximum(d.first, t - d.duration + 1), np.minimum(d.last, t)
    width, begin = np.maximum(0, high - low + 1), ptr[:-1] + low - d.first
    for which, amount, top in (
        (np.flatnonzero(d.pool == 0), None, d.count[0]),
        (np.flatnonzero(d.pool == 1), None, d.count[1]),
        (np.arange(len(size)), d.change, widened(d.cap) - d.resting),
    ):
        w, b = width[:, which].ravel(), begin[:, which].ravel()
        at = np.cumsum(w)
        col = np.arange(at[-1]) + np.repeat(b - at + w, w)
        value = np.ones(at[-1]) if amount is None else np.repeat(np.tile(amount[which], HORIZON), w)
        rows = np.concatenate(([0], at[len(which) - 1 :: len(which)]))
        blocks.append((rows, col, value, np.full(HORIZON, -np.inf), np.full(HORIZON, top)))
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


def hand_over(model: Any) -> Any:
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    pass_model(highs, model)
    return highs


def canonical(model: Any, names: list[str]) -> tuple[Any, ...]:
    """Columns sorted by name, a x <= b written as -a x >= -b, rows sorted: equal for equal
    models.
    """
    ptr, col, value = model.matrix
    order = np.argsort(np.asarray(names))
    table = csr_array((value, col, ptr), shape=(len(ptr) - 1, len(model.cost)))[:, order]
    table.sort_indices()
    flip = np.isinf(model.row_lower)
    low, high = (
        np.where(flip, -model.row_upper, model.row_lower) + 0.0,
        np.where(flip, -model.row_lower, model.row_upper),
    )
    data = table.data * np.repeat(np.where(flip, -1.0, 1.0), np.diff(table.indptr))
    rows = sorted(
        (low[r], high[r], table.indices[a:b].tobytes(), data[a:b].tobytes())
        for r, (a, b) in enumerate(zip(table.indptr[:-1], table.indptr[1:], strict=True))
    )
    columns = np.stack((model.cost, model.lower, model.upper, model.integer.astype(float)))[
        :, order
    ]
    return rows, columns.tobytes()


def check_same(inst: Instance) -> dict[str, int]:
    """All ways of building make the same model; its size."""
    arrays = TimeIndexed(inst).arrays
    names = arrays.column_names()
    ours = canonical(arrays, names)
    route, by_hand, lean = (
        standard_form(model)
        for model in (to_pyomo(arrays), pyomo_floor(inst), pyomo_floor(inst, by_linear_expression))
    )
    for what, other in (
        ("Pyomo route", canonical(route, route.column_names)),
        ("Pyomo floor", canonical(by_hand, by_hand.column_names)),
        ("lean Pyomo floor", canonical(lean, lean.column_names)),
        ("array floor", canonical(array_floor(inst), names)),
    ):
        if other != ours:
            raise SystemExit(f"{what}: another matrix than the array route")
    return {
        "binaries": arrays.num_binaries,
        "rows": arrays.num_rows,
        "coefficients": arrays.num_nonzeros,
    }


def timed(act: Callable[[], Any]) -> float:
    gc.collect()
    began = time.perf_counter()
    kept = act()
    spent = time.perf_counter() - began
    del kept
    return spent


def measure(inst: Instance, reps: int) -> dict[str, list[float]]:
    """Seconds of each way, interleaved so that a busy moment of the machine hits all of them."""

    def fresh() -> Instance:
        return inst.with_objective(
            inst.objective
        )  # nothing cached: pairs and windows are computed anew

    ways: dict[str, Callable[[], Any]] = {
        "array route": lambda: hand_over(TimeIndexed(fresh()).arrays),
        "array floor": lambda: hand_over(array_floor(fresh())),
        "Pyomo route": lambda: hand_over(standard_form(to_pyomo(TimeIndexed(fresh()).arrays))),
        "Pyomo floor": lambda: hand_over(standard_form(pyomo_floor(fresh()))),
        "lean Pyomo floor": lambda: hand_over(
            standard_form(pyomo_floor(fresh(), by_linear_expression))
        ),
    }
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(reps):
        for name in (
            "Pyomo route",
            "Pyomo floor",
            "lean Pyomo floor",
            *("array route", "array floor") * ARRAY_REPS,
        ):
            spent[name].append(timed(ways[name]))
    model = TimeIndexed(inst).arrays
    spent["passModel alone"] = [timed(lambda: hand_over(model)) for _ in range(reps * ARRAY_REPS)]
    return spent


def report(size: dict[str, int], spent: dict[str, list[float]], reps: int) -> str:
    median = {name: statistics.median(values) for name, values in spent.items()}
    lines = [
        "# From an instance to HiGHS",
        "",
        f"A time-indexed MILP of {size['binaries']:,} binaries, {size['rows']:,} rows, "
        f"{size['coefficients']:,} coefficients; "
        f"from the Instance until HiGHS holds the model. {reps} interleaved rounds, of "
        f"{ARRAY_REPS} times each",
        "for arrays and once for Pyomo; seconds of wall clock on a shared machine.",
        "",
        "| way | median | least | largest |",
        "| --- | --- | --- | --- |",
        *(
            f"| {name} | {median[name]:.4f} | {min(values):.4f} | {max(values):.4f} |"
            for name, values in spent.items()
        ),
        "",
        "| ratio of medians | measured | target |",
        "| --- | --- | --- |",
    ]
    for (route, floor), limit in TARGETS.items():
        ratio = median[route] / median[floor]
        lines.append(
            f"| {route} / {floor} | {ratio:.2f} | at most {limit} "
            f"({'met' if ratio <= limit else 'MISSED'}) |"
        )
    packages = ", ".join(
        f"{name} {version(name)}" for name in ("pyomo", "highspy", "numpy", "scipy")
    )
    lines += [
        "",
        (
            "The Pyomo floor is the model by hand (rules with `sum`) plus "
            "LinearStandardFormCompiler, the lean one has"
        ),
        (
            "LinearExpression in place of `sum` (the fastest way Pyomo offers); the array floor is "
            "numpy"
        ),
        (
            "writing the CSR arrays of this very model plus `passModel`. All five hand over the "
            "same "
            "matrix: the script compares"
        ),
        "bounds, costs and every coefficient before it times anything.",
        "",
        f"Python {platform.python_version()}, {packages}; {platform.machine()}, {processor()}. "
        "Reproduce: `python benchmarks/milp_build.py`.",
        "",
    ]
    return "\n".join(lines)


def processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    found = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{len(found)} x {found[0]}" if found else platform.processor()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reps", type=int, default=7)
    reps = parser.parse_args().reps
    inst = instance()
    size = check_same(inst)
    text = report(size, measure(inst, reps), reps)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
