"""What tightened the gaps of fronts with transfers and pooled GPUs: each attempt added to the ones
before, on tuning seeds.
"""

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
from optbench.bounds.auto import lower_bounds
from optbench.bounds.combinatorial.combinatorial_bound import combinatorial_bounds
from optbench.fronts.resting_power import declare
from optbench.model.instance import Instance
from optbench.model.objective import Objective

SPECS = {
    "transfers, gangs": "gpu_dag:tasks=20,gpus=6,clocks=5,deadlines=none",
    "no transfers, one GPU": (
        "gpu_dag:tasks=20,gpus=6,clocks=5,deadlines=none,transfers=false,gang=1"
    ),
}
SEEDS = (101, 102, 103)
# Limits as multiples of the fluid programme's bound on the makespan.
FACTORS = (1.25, 1.8)
TIME_LIMIT_S = 30.0
ATTEMPTS = {
    "before": "CP-SAT with the fluid programme's bound as a floor",
    "loads": (
        "rows that hold a pool's work below its devices times the limit, where no makespan "
        "is in the objective"
    ),
    "modes": "modes that another one stands in for are left out",
    "stages": (
        "two fifths of the time plain, then nothing shared at any one time (a bound), then "
        "neighbourhoods, then from below"
    ),
}


def _no_loads(_: Any) -> None:
    return None


def _itself(instance: Instance) -> Any:
    return np.arange(len(instance.pairs.task))


def variant(attempt: str, stack: ExitStack) -> None:
    """Take away everything that came after an attempt."""
    level = list(ATTEMPTS).index(attempt)
    draft = import_module("optbench.views.cpsat.draft")
    view = import_module("optbench.views.cpsat.cpsat_view")
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
    instance = declare(
        load_target(SPECS[kind], seed), {"makespan_s", "energy_j"}, None, False
    ).instance
    energy = instance.with_objective(Objective.weighted({"energy_j": 1.0}))
    constant = combinatorial_bounds(energy)[0].value
    (least, *_) = lower_bounds(
        instance.with_objective(Objective.weighted({"makespan_s": 1.0})), "fluid"
    )
    limit = math.floor(factor * least.value / instance.tick_s) * instance.tick_s
    with ExitStack() as stack:
        variant(attempt, stack)
        result = solve(energy.with_limits(makespan_s=limit), "cpsat", time_limit_s=time_limit_s)
    found, low = result.objective, result.bound
    assert not isinstance(found, tuple) and not isinstance(low, tuple), "one objective level"
    return {
        "attempt": attempt,
        "kind": kind,
        "seed": seed,
        "factor": factor,
        "limit": limit,
        "constant": constant,
        "objective": found,
        "bound": low,
        "proven": result.status == "optimal",
        "wall_s": round(result.wall_s, 1),
    }


def run_attempts(jobs: int, quick: bool) -> list[dict[str, Any]]:
    """Every attempt on every case."""
    seeds, seconds = (SEEDS[:1], 5.0) if quick else (SEEDS, TIME_LIMIT_S)
    cases = [
        (a, kind, seed, factor, seconds)
        for kind in SPECS
        for seed in seeds
        for factor in FACTORS
        for a in ATTEMPTS
    ]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as executor:
        return list(executor.map(measure, cases))


def attempt_table(rows: list[dict[str, Any]]) -> list[str]:
    """Means over the cases; each row has everything of the rows above it."""
    if not rows:
        return ["Not measured yet: `benchmarks/pareto.py --attempts`."]
    seeds = ", ".join(map(str, sorted({r["seed"] for r in rows})))
    lines = [
        (
            f"Tuning seeds {seeds}, limits of {FACTORS[0]:g} and {FACTORS[1]:g} times the bound on "
            f"the makespan, {TIME_LIMIT_S:g} s"
        ),
        (
            "each without a first schedule. Distances are from the best schedule of any attempt, "
            "as "
            "shares of what that has above"
        ),
        (
            "the constant; the first one is over the cases in which a schedule was found. Each "
            "attempt is added to those above."
        ),
        "",
        *(f"- *{attempt}*: {words}" for attempt, words in ATTEMPTS.items()),
        "",
        (
            "| instances | attempt | no schedule | schedule above best | bound below best | "
            "proven | "
            "mean seconds |"
        ),
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for kind in SPECS:
        of_kind = [r for r in rows if r["kind"] == kind]
        best: dict[tuple[int, float], float] = {}
        for r in of_kind:
            if r["objective"] is not None:
                case = (r["seed"], r["factor"])
                best[case] = min(r["objective"], best.get(case, math.inf))
        for attempt in ATTEMPTS:
            mine = [
                r for r in of_kind if r["attempt"] == attempt and (r["seed"], r["factor"]) in best
            ]
            lines.append(f"| {kind} | {attempt} | {_cells(mine, best)} |")
    return lines


def _cells(rows: list[dict[str, Any]], best: dict[tuple[int, float], float]) -> str:
    """Schedules missing, distances, proofs and seconds of one attempt."""
    up, down = [], []
    for row in rows:
        least = best[row["seed"], row["factor"]]
        room = max(least - row["constant"], 1e-9)
        up += [] if row["objective"] is None else [(row["objective"] - least) / room]
        down.append((least - (row["bound"] or row["constant"])) / room)
    far = f"{100 * sum(up) / len(up):.1f} %" if up else "-"
    proven, seconds = (
        sum(row["proven"] for row in rows),
        sum(row["wall_s"] for row in rows) / len(rows),
    )
    low = f"{100 * sum(down) / len(rows):.1f} %"
    return (
        f"{len(rows) - len(up)} of {len(rows)} | {far} | {low} | {proven} of {len(rows)} | "
        f"{seconds:.0f}"
    )
