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
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import highspy
import numpy as np
from scipy.sparse import csr_array

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import optbench as ob  # noqa: E402
from benchmarks._milp_floors import (  # noqa: E402
    HORIZON,
    array_floor,
    by_linear_expression,
    pyomo_floor,
)
from optbench.model.instance import Instance  # noqa: E402
from optbench.plugins.solvers._highs_scaling import pass_model  # noqa: E402
from optbench.views.milp import TimeIndexed, standard_form, to_pyomo  # noqa: E402

LAYERS, WIDTH = 10, 10
# Repetitions of the quick ways within one round.
ARRAY_REPS = 5
TARGETS = {
    ("Pyomo route", "Pyomo floor"): 1.3,
    ("Pyomo route", "lean Pyomo floor"): 1.3,
    ("array route", "array floor"): 2.0,
}
OUT = ROOT / "docs" / "results" / "milp_build.md"


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
    low = np.where(flip, -model.row_upper, model.row_lower) + 0.0
    high = np.where(flip, -model.row_lower, model.row_upper)
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
        # Nothing cached: pairs and windows are computed anew.
        return inst.with_objective(inst.objective)

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
        f"A time-indexed MILP of {size['binaries']:,} binaries, {size['rows']:,} rows,",
        f"{size['coefficients']:,} coefficients; from the Instance until HiGHS holds the model.",
        f"{reps} interleaved rounds, of {ARRAY_REPS} times each for arrays and once for Pyomo;",
        "seconds of wall clock on a shared machine.",
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
        "The Pyomo floor is the model by hand (rules with `sum`) plus LinearStandardFormCompiler,",
        "the lean one has LinearExpression in place of `sum` (the fastest way Pyomo offers); the",
        "array floor is numpy writing the CSR arrays of this very model plus `passModel`. All five",
        "hand over the same matrix: the script compares bounds, costs and every coefficient before",
        "it times anything.",
        "",
        f"Python {platform.python_version()}, {packages}; {platform.machine()}, {processor()}.",
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
