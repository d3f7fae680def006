"""Milestones of the fluid LP against every other method on GPU task graphs; writes
docs/results/milestones.md.

    python benchmarks/milestones.py [--quick] [--seeds 0-4] [--clock processor] [-o FILE]
    python benchmarks/milestones.py --growth [-o FILE]
    python benchmarks/milestones.py --tune

Every method solves every instance in each time limit; all schedules of an instance are measured
against one certified bound, that of the LP solved to its end. Kernels are compiled before the first
clock starts. With ``--clock processor`` limits and times are those of the processor, for machines
that others use too; CP-SAT keeps its own clock, that of the wall, and HiGHS gets a longer limit on
it, so that linear programmes end by their expected time alone.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

COMMAND = "python benchmarks/milestones.py"
# Specifications, and the limits at which they are solved.
SPECS = {
    "gpu_dag:tasks=200,gpus=24,types=3": (2.0, 10.0, 25.0),
    "gpu_dag:tasks=500,gpus=48,types=3": (2.0, 5.0, 10.0, 25.0),
    "gpu_dag:tasks=1000,gpus=96,types=3": (2.0, 5.0, 10.0, 25.0),
    "gpu_dag:tasks=1000,gpus=192,types=6,nodes=4": (2.0, 10.0, 25.0),
    "gpu_dag:tasks=5000,gpus=1500,types=3": (2.0, 10.0, 20.0),
}
QUICK = {
    "gpu_dag:tasks=200,gpus=24,types=3": (2.0,),
    "gpu_dag:tasks=500,gpus=48,types=3": (5.0,),
    "gpu_dag:tasks=1000,gpus=96,types=3": (5.0,),
    "gpu_dag:tasks=5000,gpus=1500,types=3": (2.0, 20.0),
}
# Rules and the LP's own runs end by themselves: they are solved once, in the largest limit.
ONCE = ("heft", "min_energy", "tuned_rule", "tuned_rule, tuned here", "lp_guided:improve=none")
OURS = "lp_guided"
TIMED = ("lp_guided:guide=duals", OURS)
# Its runs in shorter limits are the beginnings of the one in the longest.
SAMPLED = "random_rules"
# Tuning of the prices of ``tuned_rule`` for one specification: seeds of its own, and trials.
TUNE_SEEDS, TRIALS, TUNED_HERE = (1000, 1001, 1002), 200, "tuned_rule, tuned here"
# The shipped prices come from these together.
MIXED = (
    "gpu_dag:tasks=200,gpus=24,types=3",
    "gpu_dag:tasks=500,gpus=48,types=3",
    "gpu_dag:tasks=1000,gpus=96,types=3",
    "gpu_dag:tasks=100,gpus=32,types=3",
    "gpu_dag:tasks=800,gpus=80,types=3",
)
# CP-SAT builds a model of thousands of tasks for longer than it searches.
EXACT, MOST_EXACT = "cpsat", 500
LONG_S = 300.0
LINEAR_PROGRAMME = "the linear programme"
# Tasks and GPUs of the growing instances.
SIZES = ((1_000, 300), (2_000, 600), (5_000, 1_500), (10_000, 2_500), (20_000, 5_000))


# HiGHS limits the time of the wall: by this much more where the processor's counts.
WALL_PER_PROCESSOR = 20.0


@dataclass(frozen=True)
class Row:
    """One run. ``gap`` is to the common bound, ``own_gap`` to the method's own."""

    spec: str
    seed: int
    method: str
    limit_s: float | None
    gap: float
    own_gap: float | None
    wall_s: float
    first_s: float | None
    remark: str


def rows_of(
    spec: str, seed: int, limits: tuple[float, ...], known: list[Row], left_out: list[str]
) -> Iterator[Row]:
    """Solve one instance by every method that is not ``known`` or left out."""
    import optbench as ob
    from optbench.plugins.discovery import load_problem
    from optbench.rules import find_milestones

    timed = (*TIMED, EXACT) if int(spec.split("tasks=")[1].split(",")[0]) <= MOST_EXACT else TIMED
    runs: list[tuple[str, float | None]] = [(name, None) for name in ONCE]
    runs += [(SAMPLED, max(limits)), *((name, limit) for limit in limits for name in timed)]
    done = {(row.method, row.limit_s) for row in known if (row.spec, row.seed) == (spec, seed)}
    runs = [run for run in runs if run not in done and run[0] not in left_out]
    if not runs:
        return
    instance = load_problem(spec).instance(seed)
    found = find_milestones(instance)
    if found is None:
        raise RuntimeError(f"{spec}, seed {seed}: the linear programme has no bound")
    seconds = sum(found.timings_s.values())
    if (LINEAR_PROGRAMME, None) not in done:
        yield Row(spec, seed, LINEAR_PROGRAMME, None, 0.0, None, seconds, None, "")
    for name, limit in runs:
        solver = tuned_on(spec) if name == TUNED_HERE else name
        result = ob.solve(instance, solver, time_limit_s=limit or LONG_S, seed=seed, bound=False)
        if not isinstance(result.objective, float):
            raise RuntimeError(f"{name} found nothing on {spec}, seed {seed}: {result.message}")
        own = result.gap if isinstance(result.gap, float) else None
        remark = str(result.info.get("milestones", ""))
        first_s = result.time_to_first_s
        reached = [(limit, result.objective, result.wall_s)]
        if name == SAMPLED:
            points = [
                (p.t_s, p.objective) for p in result.trajectory if isinstance(p.objective, float)
            ]
            reached = [
                (each, min(value for at, value in points if at <= each), each) for each in limits
            ]
        for each, objective, seconds in reached:
            share = (objective - found.bound.value) / objective
            yield Row(spec, seed, name, each, share, own, seconds, first_s, remark)


@cache
def tuned_on(*specs: str) -> str:
    """Return ``tuned_rule`` with the prices of the least mean gap on training instances of the
    specifications.
    """
    import numpy as np
    import optuna

    from optbench.model.verify import verify
    from optbench.plugins.discovery import load_problem
    from optbench.plugins.solvers.tuned_rule import TunedRule
    from optbench.rules import find_milestones, run_rule

    training = [load_problem(spec).instance(seed) for spec in specs for seed in TUNE_SEEDS]
    floors = [found.bound.value for each in training if (found := find_milestones(each))]
    types = max(int(spec.split("types=")[1].split(",")[0]) for spec in specs)

    def mean_gap(trial: optuna.Trial) -> float:
        prices = {"time": trial.suggest_float("time", 1e-4, 1.0, log=True)}
        for k in range(1, types + 1):
            prices[f"price_{k}"] = trial.suggest_float(f"price_{k}", 0.0, 3.0)
        rule, total = TunedRule(**prices), 0.0
        for instance, floor in zip(training, floors, strict=True):
            schedule = run_rule(instance, rule.rule(instance, np.random.default_rng(0))).schedule
            if schedule is None:
                return 1.0
            total += 1.0 - floor / verify(instance, schedule).objectives[0]
        return total / len(training)

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    search = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    search.optimize(mean_gap, n_trials=TRIALS)
    settings = ",".join(f"{name}={value:.4g}" for name, value in search.best_params.items())
    return f"tuned_rule:{settings}"


def use_processor_clock() -> None:
    """Let every clock of this process be that of the processor."""
    time.perf_counter = time.process_time
    from optbench.bounds.fluid import fluid_units
    from optbench.bounds.lp.linear_program import LinearProgram, LpSolution, solve

    def solve_longer(lp: LinearProgram, time_limit_s: float) -> LpSolution:
        return solve(lp, WALL_PER_PROCESSOR * time_limit_s)

    vars(fluid_units)["solve"] = solve_longer


def table(rows: list[Row]) -> list[str]:
    """Return one table per specification: mean gap over the seeds, and the worst."""
    lines = []
    for spec in dict.fromkeys(row.spec for row in rows):
        mine = [row for row in rows if row.spec == spec]
        seeds = sorted({row.seed for row in mine})
        lp_s = statistics.median(r.wall_s for r in mine if r.method == LINEAR_PROGRAMME)
        lines += [
            f"## `{spec}`",
            "",
            f"Seeds {seeds[0]} to {seeds[-1]}; the linear programme takes {lp_s:.1f} s (median).",
            "",
            "| method | limit | mean gap | worst | own gap | seconds |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        for method, limit in dict.fromkeys((row.method, row.limit_s) for row in mine):
            if method == LINEAR_PROGRAMME:
                continue
            each = [row for row in mine if (row.method, row.limit_s) == (method, limit)]
            own = [row.own_gap for row in each if row.own_gap is not None]
            gaps = [row.gap for row in each]
            lines.append(
                f"| `{method}` | {'–' if limit is None else f'{limit:g} s'} "
                f"| {100 * statistics.mean(gaps):.2f} % | {100 * max(gaps):.2f} % "
                f"| {f'{100 * statistics.mean(own):.2f} %' if own else '–'} "
                f"| {statistics.median(row.wall_s for row in each):.2f} |"
            )
        lines += ["", *comparisons(mine), ""]
    return lines


def comparisons(rows: list[Row]) -> list[str]:
    """Return a line per limit: lp_guided beside the best of all other methods, seed by seed."""
    from optbench.evaluate.stats import bootstrap_interval

    lines = []
    limits = sorted({row.limit_s for row in rows if row.method == OURS and row.limit_s})
    for limit in limits:
        gaps: dict[str, dict[int, float]] = {}
        for row in rows:
            in_time = row.limit_s == limit or (row.limit_s is None and row.wall_s <= limit)
            if row.method != LINEAR_PROGRAMME and in_time:
                gaps.setdefault(row.method, {})[row.seed] = row.gap
        ours = gaps.pop(OURS)
        whole = {name: each for name, each in gaps.items() if each.keys() >= ours.keys()}
        if not whole:
            continue
        best = min(whole, key=lambda name: statistics.mean(whole[name][seed] for seed in ours))
        differences = [100 * (ours[seed] - whole[best][seed]) for seed in ours]
        low, high = bootstrap_interval(differences)
        lines.append(
            f"- {limit:g} s: `{OURS}` less the best of the others, `{best}`: "
            f"{statistics.mean(differences):+.2f} points ({low:+.2f} to {high:+.2f})."
        )
    return lines


def page(rows: list[Row], words: str, clock: str) -> str:
    """Return the text of docs/results/milestones.md."""
    return "\n".join(
        [
            "# Milestones of the fluid LP",
            "",
            f"`{words}`, one thread, one run per seed, {clock} time. The gap of every schedule is "
            "to the same certified bound of its instance, that of the linear programme solved to "
            "its end; the own gap is to what the method itself proved. The fixed multipliers come "
            "from seeds 0 to 2 of other sizes, the prices of `tuned_rule` from seeds 1000 to 1002 "
            "of five sizes (`--tune`); tuned here, they come from the same seeds of the "
            f"specification itself ({TRIALS} trials each). "
            "Rules, and `lp_guided:improve=none`, stop by themselves.",
            "",
            *table(rows),
        ]
    )


def measure(tasks: int, gpus: int) -> str:
    """Solve one growing instance; return its row of the table."""
    import optbench as ob
    from optbench.plugins.discovery import load_problem

    instance = load_problem(f"gpu_dag:tasks={tasks},gpus={gpus},types=3").instance(5)
    pairs = len(instance.pairs.task)
    began = time.process_time()
    # A work limit in place of a time limit: the whole linear programme is solved.
    result = ob.solve(instance, "lp_guided:improve=none", work_limit=1, bound=False)
    seconds = time.process_time() - began
    if not isinstance(result.gap, float):
        raise RuntimeError(f"{tasks} tasks: {result.message or 'no bound'}")
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (
        f"| {tasks:,} | {gpus:,} | {pairs:,} | {seconds:.1f} | {100 * result.gap:.2f} % "
        f"| {peak_mb:,.0f} | {result.info['milestones']} |"
    )


def growth() -> str:
    """Return the table of growing instances."""
    lines = [
        "## Growth",
        "",
        f"`{COMMAND} --growth`: `lp_guided:improve=none` without a time limit, seed 5, each size "
        "in a process of its own. Seconds are of the processor, with verification; the gap is to "
        "its own certified bound; in the remark the linear programme's seconds are of the wall.",
        "",
        "| tasks | GPUs | pairs of task and mode | seconds | gap | peak MB | remark |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for tasks, gpus in SIZES:
        words = [sys.executable, __file__, "--measure", f"{tasks},{gpus}"]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        lines.append(done.stdout.strip().splitlines()[-1])
        print(lines[-1], flush=True)
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer sizes, limits and seeds")
    parser.add_argument("--seeds", help="first and last, such as 5-14")
    parser.add_argument("--clock", choices=("wall", "processor"), default="wall")
    parser.add_argument("--only", help="part of the name of a specification")
    parser.add_argument("--limits", help="limits in seconds, such as 2,10")
    parser.add_argument("--growth", action="store_true", help="larger and larger instances")
    parser.add_argument("--tune", action="store_true", help="search the shipped prices again")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--without", nargs="*", default=[], help="methods to leave out")
    parser.add_argument(
        "--raw", type=Path, nargs="*", default=[], help="files of rows: known ones, the last grows"
    )
    args = parser.parse_args()
    if args.measure:
        tasks, gpus = map(int, args.measure.split(","))
        print(measure(tasks, gpus))
        return
    if args.tune:
        print(tuned_on(*MIXED))
        return
    if args.growth:
        save(growth(), args.output)
        return
    if args.clock == "processor":
        use_processor_clock()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    first, last = map(int, (args.seeds or ("5-6" if args.quick else "5-14")).split("-"))
    specs = QUICK if args.quick else SPECS
    rows = [
        Row(**json.loads(line))
        for path in args.raw
        if path.exists()
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    for spec, limits in specs.items():
        if args.only and args.only not in spec:
            continue
        if args.limits:
            limits = tuple(map(float, args.limits.split(",")))
        for seed in range(first, last + 1):
            for row in rows_of(spec, seed, limits, list(rows), args.without):
                rows.append(row)
                line = json.dumps(asdict(row))
                print(line, flush=True)
                if args.raw:
                    with args.raw[-1].open("a", encoding="utf-8") as file:
                        file.write(line + "\n")
    words = f"{COMMAND}{' --quick' * args.quick}{f' --seeds {args.seeds}' if args.seeds else ''}"
    text = page(rows, words + (" --clock processor" * (args.clock == "processor")), args.clock)
    save(text, args.output)


def save(text: str, output: Path | None) -> None:
    """Write a page, or print it."""
    if output:
        output.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
