"""lp_guided, random_rules and the simple rules on 50 seeded GPU task graphs; writes
docs/results/rules.md.

    python benchmarks/rules.py [--seeds 5] [--time-limit 2] [-o docs/results/rules.md]

Every contender gets the same time on one thread, everything included: the linear programme,
sampling, annealing. A rule is one run of a few milliseconds; ``tuned rules`` is the best of all six
and of 90 settings of fixed_dvfs, as many as the time allows. Best known is the best of all of them
and of longer runs: lp_guided with another seed, and cpsat from the best schedule. Instances of
seeds below 100 were used for tuning, those from 1000 on are reported. Raw figures:
docs/results/raw/rules.jsonl.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import optbench as ob  # noqa: E402
from optbench.api import load_target  # noqa: E402
from optbench.bounds.auto import lower_bounds  # noqa: E402
from optbench.model.instance import Floats, Instance  # noqa: E402
from optbench.model.schedule import Schedule  # noqa: E402

COMMAND = "python benchmarks/rules.py"
SETTINGS = {
    "layered": "gpu_dag:tasks=20,gpus=6",
    "layered, tight, no transfers": "gpu_dag:tasks=50,gpus=12,transfers=false,deadlines=tight",
    "layered 200": "gpu_dag:tasks=200,gpus=40",
    "batch, flexible": "gpu_dag:tasks=60,gpus=24,shape=batch,deadlines=flexible",
    "pipelines with CPUs, cap": "gpu_dag:tasks=48,gpus=12,shape=pipeline,power_cap=0.6,cpus=4",
    "data-parallel": "gpu_dag:tasks=52,gpus=12,shape=data_parallel",
    "prices": "gpu_dag:tasks=40,gpus=8,price=true",
    "fork-join, mixed sizes, carbon": (
        "gpu_dag:tasks=60,gpus=16,shape=fork_join,sizes=mixed,carbon=true"
    ),
    "no deadlines, node caps": "gpu_dag:tasks=100,gpus=20,deadlines=none,node_cap=0.7,nodes=2",
    "random 1000": "gpu_dag:tasks=1000,gpus=120,shape=random",
}
FIRST_SEED = 1000
RULES = ("fcfs", "sjf_backfill", "edf", "heft", "min_energy", "fixed_dvfs")
TUNED, ONLINE = "tuned rules", "lp_guided, online"
TIMED = {
    "random_rules": ("random_rules", {}),
    "lp_guided": ("lp_guided", {}),
    "lp_guided, first points only": ("lp_guided", {"search": False}),
    "lp_guided, no programme": ("lp_guided", {"prices": False}),
}
CONTENDERS = (*RULES, TUNED, *TIMED)
# Longer runs for the best known value, in time limits; the bound's time limit.
LONGER, EXACT, BOUND_S = 1.5, 1.5, 3.0
RESAMPLES = 10_000


@dataclass(frozen=True)
class Row:
    """One contender on one instance; ``objective`` is verified, or missing."""

    setting: str
    seed: int
    contender: str
    objective: float | None
    wall_s: float


@dataclass(frozen=True)
class Case:
    """One instance's rows, the best value known and a certified bound."""

    setting: str
    seed: int
    rows: list[Row]
    best: float
    best_by: str
    bound: float

    def excess(self, contender: str) -> float:
        value = next(row.objective for row in self.rows if row.contender == contender)
        return np.inf if value is None else value / self.best - 1


def less(contender: str, case: Case) -> float:
    """By how much lp_guided's excess is above that of a contender."""
    return case.excess("lp_guided") - case.excess(contender)


def measure(setting: str, seed: int, time_limit_s: float) -> Case:
    instance = load_target(SETTINGS[setting], seed)
    rows: list[Row] = []
    best: tuple[float, str, Schedule | None] = (np.inf, "", None)
    for name, solver, limit, options in contenders(time_limit_s):
        began = time.perf_counter()
        if name == TUNED:
            value, schedule = tuned(instance, time_limit_s)
            wall_s = time.perf_counter() - began
        else:
            warm: dict[str, Any] = (
                {"warm_start": best[2]} if solver == "cpsat" and best[2] is not None else {}
            )
            result = ob.solve(instance, solver, time_limit_s=limit, bound=False, **warm, **options)
            assert not isinstance(result.objective, tuple)
            value, schedule, wall_s = result.objective, result.schedule, result.wall_s
        rows.append(Row(setting, seed, name, value, round(wall_s, 4)))
        if value is not None and value < best[0]:
            best = (value, name, schedule)
    bound = max(found.value for found in lower_bounds(instance, time_limit_s=BOUND_S))
    return Case(setting, seed, rows, best[0], best[1], bound)


def contenders(time_limit_s: float) -> Iterator[tuple[str, str, float, dict[str, Any]]]:
    """Name, solver, time limit and options; the reference runs come last."""
    for name in RULES:
        yield name, name, time_limit_s, {}
    yield TUNED, "", time_limit_s, {}
    for name, (solver, parameters) in TIMED.items():
        yield name, solver, time_limit_s, dict(parameters)
    yield "longer lp_guided", "lp_guided", LONGER * time_limit_s, {"seed": 1}
    yield "cpsat", "cpsat", EXACT * time_limit_s, {}


def tuned(instance: Instance, time_limit_s: float) -> tuple[float | None, Schedule | None]:
    """Best of the six rules and of the thresholds of fixed_dvfs."""
    until = time.perf_counter() + time_limit_s
    settings: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in RULES]
    for low, high, load in itertools.product(
        (0.3, 0.5, 0.6, 0.75, 0.9, 1.0), (0.6, 0.75, 1.0), (0.0, 0.25, 0.5, 0.75, 1.0)
    ):
        settings.append(("fixed_dvfs", {"low_clock": low, "high_clock": high, "load": load}))
    best: tuple[float | None, Schedule | None] = (None, None)
    for name, options in settings:
        if time.perf_counter() > until:
            break
        result = ob.solve(instance, name, time_limit_s=time_limit_s, bound=False, **options)
        if isinstance(result.objective, float) and (best[0] is None or result.objective < best[0]):
            best = (result.objective, result.schedule)
    return best


def resampled(cases: list[Case], statistic: Callable[[Case], float]) -> tuple[float, float, float]:
    """Mean over the cases, and a 95 % bootstrap interval, resampled within each setting."""
    rng = np.random.default_rng(0)
    strata = [
        np.array([statistic(case) for case in cases if case.setting == each]) for each in SETTINGS
    ]
    strata = [values for values in strata if len(values)]
    total: Floats = np.zeros(RESAMPLES)
    for values in strata:
        total += values[rng.integers(len(values), size=(RESAMPLES, len(values)))].sum(axis=1)
    total /= len(cases)
    low, high = np.percentile(total, (2.5, 97.5))
    return float(np.mean([statistic(case) for case in cases])), float(low), float(high)


def percent(values: tuple[float, float, float]) -> str:
    return f"{100 * values[0]:.1f} % [{100 * values[1]:.1f}, {100 * values[2]:.1f}]"


def table(cases: list[Case]) -> list[str]:
    lines = [
        (
            "| contender | mean excess over best known | median | worst | best known found | mean "
            "seconds | lp_guided less it |"
        ),
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name in CONTENDERS:
        excess = np.array([case.excess(name) for case in cases])
        found = int((excess < 1e-9).sum())
        seconds = np.mean(
            [row.wall_s for case in cases for row in case.rows if row.contender == name]
        )
        mean = resampled(cases, partial(Case.excess, contender=name))
        against = resampled(cases, partial(less, name))
        lines.append(
            f"| {name} | {percent(mean)} | {100 * np.median(excess):.1f} % | "
            f"{100 * excess.max():.1f} % | {found} | "
            f"{seconds:.3f} | {'' if name == 'lp_guided' else percent(against)} |"
        )
    return lines


def by_setting(cases: list[Case]) -> list[str]:
    shown = ("heft", "min_energy", TUNED, *TIMED)
    head = " | ".join(shown)
    lines = [
        f"| setting | {head} | gap of best known to the bound |",
        "| --- | " + "---: | " * (len(shown) + 1),
    ]
    for setting in SETTINGS:
        part = [case for case in cases if case.setting == setting]
        if part:
            cells = " | ".join(
                f"{100 * np.mean([case.excess(name) for case in part]):.1f} %" for name in shown
            )
            gap = np.mean([(case.best - case.bound) / case.best for case in part])
            lines.append(f"| {setting} (`{SETTINGS[setting]}`) | {cells} | {100 * gap:.1f} % |")
    return lines


def page(cases: list[Case], options: argparse.Namespace, wall_s: float) -> str:
    won = {
        name: sum(case.excess("lp_guided") < case.excess(name) - 1e-9 for case in cases)
        for name in CONTENDERS
    }
    lost = {
        name: sum(case.excess("lp_guided") > case.excess(name) + 1e-9 for case in cases)
        for name in CONTENDERS
    }
    pairs = ", ".join(
        f"{name} {won[name]} : {lost[name]}" for name in CONTENDERS if name != "lp_guided"
    )
    return "\n".join(
        [
            "# Rules, random rules and lp_guided at equal measured time",
            "",
            f"`{COMMAND} --seeds {options.seeds} --time-limit {options.time_limit:g}`",
            f"({wall_s / 60:.0f} min), one thread, {platform.machine()}, Python",
            f"{platform.python_version()}, numba {version('numba')}, highspy {version('highspy')}.",
            "",
            f"{len(cases)} instances: {len(SETTINGS)} settings of gpu_dag, seeds",
            f"{options.first_seed} to {options.first_seed + options.seeds - 1} of each; tuning",
            f"used seeds below 100. Each contender has {options.time_limit:g} s; a rule takes what",
            "it takes. Compiled code is warm. Intervals: 95 % bootstrap, resampled within",
            f"settings. Best known: best of all, of lp_guided with another seed for {LONGER:g}",
            f"times as long, and of cpsat for {EXACT:g} times as long from the best schedule so",
            "far. The last column is the difference of the two excesses, paired by instance:",
            "negative where lp_guided is better.",
            "",
            *table(cases),
            "",
            f"lp_guided better : worse, of {len(cases)}: {pairs}.",
            "",
            "Mean excess by setting:",
            "",
            *by_setting(cases),
            "",
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5, help="instances per setting")
    parser.add_argument(
        "--first-seed",
        type=int,
        default=FIRST_SEED,
        help="the first of them; tune on others than are reported",
    )
    parser.add_argument("--time-limit", type=float, default=2.0, help="seconds of each contender")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=ROOT / "docs" / "results" / "rules.md",
        help="file to write",
    )
    options = parser.parse_args()
    began = time.perf_counter()
    warm = load_target("gpu_dag", 0)
    for solver in (*RULES, "random_rules", "lp_guided"):
        ob.solve(warm, solver, work_limit=1.0, bound=False)
    cases = []
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for setting in SETTINGS:
            cases.append(measure(setting, seed, options.time_limit))
            last = cases[-1]
            print(
                f"{setting} {seed}: best {last.best:.6g} by {last.best_by}; "
                + ", ".join(f"{name} {100 * last.excess(name):.1f} %" for name in CONTENDERS),
                flush=True,
            )
    raw = options.output.parent / "raw" / "rules.jsonl"
    raw.parent.mkdir(exist_ok=True)
    raw.write_text("".join(json.dumps(asdict(case)) + "\n" for case in cases))
    options.output.write_text(page(cases, options, time.perf_counter() - began))
    print(options.output.read_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
