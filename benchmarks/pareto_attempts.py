"""What tightened the gaps of fronts with transfers and pooled GPUs: each attempt added to the ones before, on tuning seeds."""

from __future__ import annotations

import math
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from importlib import import_module
from multiprocessing import get_context
from typing import Any
from unittest.mock import patch

import numpy as np

from optbench.api import load_target, solve
from optbench.bench.front.declared import declare
from optbench.bounds.auto import lower_bounds
from optbench.bounds.combinatorial import combinatorial_bounds
from optbench.model.instance import Instance
from optbench.model.objective import Objective

SPECS = {
    "transfers, gangs": "gpu_dag:tasks=20,gpus=6,clocks=5,deadlines=none",
    "no transfers, one GPU": "gpu_dag:tasks=20,gpus=6,clocks=5,deadlines=none,transfers=false,gang=1",
}
SEEDS = (101, 102, 103)
# Limits as multiples of the fluid programme's bound on the makespan.
FACTORS = (1.25, 1.8)
TIME_LIMIT_S = 30.0
ATTEMPTS = {
    "before": "CP-SAT with the fluid programme's bound as a floor",
    "loads": "rows that hold a pool's work below its devices times the limit, where no makespan is in the objective",
    "modes": "modes that another one stands in for are left out",
    "stages": "a third of the time plain, then nothing shared at any one time (a bound), then neighbourhoods, then from below",
}


def _no_loads(_: Any) -> None:
    return None


def _itself(instance: Instance) -> Any:
    return np.arange(len(instance.pairs.task))


def variant(attempt: str, stack: ExitStack) -> None:
    """Take away everything that came after an attempt."""
    level = list(ATTEMPTS).index(attempt)
    draft, view = import_module("optbench.views.cpsat.draft"), import_module("optbench.views.cpsat.view")
    search = import_module("optbench.plugins.solvers._cpsat_search")
    if level < 1:
        stack.enter_context(patch.object(view, "add_loads", _no_loads))
    if level < 2:
        stack.enter_context(patch.object(draft, "stand_ins", _itself))
    if level < 3:
        stack.enter_context(patch.object(search, "STAGED_S", math.inf))


def measure(case: tuple[str, str, int, float, float]) -> dict[str, Any]:
    """One limit on one seed with one attempt."""
    attempt, kind, seed, factor, time_limit_s = case
    import_module("optbench.plugins.solvers.cpsat")
    instance = declare(load_target(SPECS[kind], seed), {"makespan_s", "energy_j"}, None, False).instance
    energy = instance.with_objective(Objective.weighted({"energy_j": 1.0}))
    constant = combinatorial_bounds(energy)[0].value
    (least, *_) = lower_bounds(instance.with_objective(Objective.weighted({"makespan_s": 1.0})), "fluid")
    limit = math.floor(factor * least.value / instance.step_s) * instance.step_s
    with ExitStack() as stack:
        variant(attempt, stack)
        result = solve(energy.with_limits(makespan_s=limit), "cpsat", time_limit_s=time_limit_s)
    found, low = result.objective, result.bound
    assert not isinstance(found, tuple) and not isinstance(low, tuple), "one objective level"
    return {
        "attempt": attempt, "kind": kind, "seed": seed, "factor": factor, "limit": limit, "constant": constant,
        "objective": found, "bound": low, "proven": result.status == "optimal", "wall_s": round(result.wall_s, 1),
    }


def run_attempts(jobs: int, quick: bool) -> list[dict[str, Any]]:
    """Every attempt on every case."""
    seeds, seconds = (SEEDS[:1], 5.0) if quick else (SEEDS, TIME_LIMIT_S)
    cases = [(a, kind, seed, factor, seconds) for kind in SPECS for seed in seeds for factor in FACTORS for a in ATTEMPTS]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as executor:
        return list(executor.map(measure, cases))


def above(row: dict[str, Any], best: float) -> tuple[float, float]:
    """Distances of schedule and bound from the best schedule of any attempt, as shares of what that has above the constant."""
    room = max(best - row["constant"], 1e-9)
    objective = row["objective"] if row["objective"] is not None else math.inf
    return (objective - best) / room, (best - (row["bound"] or row["constant"])) / room


def attempt_table(rows: list[dict[str, Any]]) -> list[str]:
    """Means over the cases; each row has everything of the rows above it."""
    if not rows:
        return ["Not measured yet: `benchmarks/pareto.py --attempts`."]
    seeds = ", ".join(map(str, sorted({r["seed"] for r in rows})))
    lines = [
        f"Tuning seeds {seeds}, limits of {FACTORS[0]:g} and {FACTORS[1]:g} times the bound on the makespan, {TIME_LIMIT_S:g} s",
        "each without a first schedule; distances from the best schedule of any attempt, as shares of what that has above the",
        "constant.", "",
        "| attempt (added to those above) | instances | schedule above best | bound below best | sum | proven | mean seconds |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for kind in SPECS:
        of_kind = [r for r in rows if r["kind"] == kind]
        best = {key: min(r["objective"] for r in of_kind if (r["seed"], r["factor"]) == key and r["objective"] is not None)
                for key in {(r["seed"], r["factor"]) for r in of_kind}}
        for attempt, words in ATTEMPTS.items():
            mine = [r for r in of_kind if r["attempt"] == attempt]
            up, down = zip(*(above(r, best[r["seed"], r["factor"]]) for r in mine), strict=True)
            n = len(mine)
            cells = f"{100 * sum(up) / n:.1f} % | {100 * sum(down) / n:.1f} % | {100 * (sum(up) + sum(down)) / n:.1f} %"
            proven, seconds = sum(r["proven"] for r in mine), sum(r["wall_s"] for r in mine) / n
            lines.append(f"| {attempt}: {words} | {kind} | {cells} | {proven} of {n} | {seconds:.0f} |")
    return lines
