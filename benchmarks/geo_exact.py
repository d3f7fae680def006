"""Drained jobs at three sites, exactly: CP-SAT and HiGHS on what is left of a week when it is
small, beside bounds and policies.

    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/geo_exact.py [--time-limit 30] [--quick] [-o FILE]

Limits on the mean sojourn are this multiple of the least that CP-SAT finds. Exit code 1 when two
solvers contradict each other, when a bound exceeds a verified objective, or when no instance of at
least 20 jobs is proven optimal.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from optbench.api import solve  # noqa: E402
from optbench.bounds.auto import lower_bounds  # noqa: E402
from optbench.model.instance import Instance  # noqa: E402
from optbench.model.objective import Objective  # noqa: E402
from optbench.model.result import Result  # noqa: E402
from optbench.plugins.discovery import load_problem  # noqa: E402

COMMAND = "OMP_NUM_THREADS=1 .venv/bin/python benchmarks/geo_exact.py"
SITES = "only=[us-west,us-east,eu-central],drain=yes"
# Jobs, and the rest of the spec. shrink=0.06 leaves 1, 2 and 1 GPUs, 0.12 leaves 2, 4 and 2.
SPECS = (
    (6, "days=0.02,shrink=0.06,max_gpus=2,tick_s=120"),
    (12, "days=0.02,shrink=0.06,max_gpus=2,tick_s=300"),
    (20, "days=0.05,shrink=0.12,max_gpus=2,tick_s=300"),
    (30, "days=0.05,shrink=0.12,max_gpus=4,tick_s=300"),
)
LIMITS = (None, 1.3, 1.1)
EXACT = ("cpsat", "highs")
POLICIES = ("default_policy", "ucb1", "joint_nf", "greedy", "fcfs", "lp_guided")
# Two solvers contradict each other when the bound of one exceeds the objective of the other by more
# than rounding.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Trial:
    """One instance, what exact solvers say of it, its certified bound, and the best policy."""

    jobs: int
    limit: float | None
    results: dict[str, Result]
    bound: float
    source: str
    policy: str
    policy_value: float

    @property
    def best(self) -> float:
        exact = [r.objective for r in self.results.values() if isinstance(r.objective, float)]
        return min(
            [*exact, *([self.policy_value] if self.policy_value == self.policy_value else [])],
            default=float("nan"),
        )

    @property
    def lowest(self) -> float:
        """The highest bound that anybody proved."""
        return max(
            [self.bound, *(r.bound for r in self.results.values() if isinstance(r.bound, float))]
        )

    @property
    def wrong(self) -> bool:
        found = [self.best, self.policy_value]
        return any(self.lowest > value * (1 + ROUNDING) for value in found if value == value)

    @property
    def row(self) -> str:
        cells = []
        for name in EXACT:
            result = self.results[name]
            gap = "no schedule"
            if isinstance(result.objective, float) and isinstance(result.bound, float):
                over = 100 * (result.objective / self.best - 1)
                under = 100 * (1 - result.bound / self.best)
                gap = "0" if result.status == "optimal" else f"{under:.2f} %, its own +{over:.2f} %"
            cells.append(f"{gap} ({result.wall_s:.0f} s)")
        limit = "none" if self.limit is None else f"{self.limit:.0f} s"
        over = 100 * (self.policy_value / self.best - 1)
        policy = f"{self.policy} +{over:.2f} %" if over == over else "none keeps the limit"
        under = 100 * (1 - self.bound / self.best)
        return (
            f"| {self.jobs} | {limit} | {self.best:,.0f} | {' | '.join(cells)} | "
            f"{self.source} −{under:.2f} % | {policy} |"
        )


def trial(instance: Instance, limit: float | None, time_limit_s: float) -> Trial:
    """All solvers on one instance."""
    if limit is not None:
        instance = instance.with_limits(flow_time_s=limit * instance.num_tasks)
    results = {
        name: solve(instance, name, time_limit_s=time_limit_s, bound=False) for name in EXACT
    }
    bound = max(lower_bounds(instance, time_limit_s=10), key=lambda found: found.value)
    values = {}
    for name in POLICIES:
        result = solve(instance, name, time_limit_s=10, bound=False)
        if isinstance(result.objective, float):
            values[name] = result.objective
    best = min(values, key=lambda name: values[name], default="none")
    return Trial(
        instance.num_tasks,
        limit,
        results,
        bound.value,
        bound.source,
        best,
        values.get(best, float("nan")),
    )


def least_sojourn_s(instance: Instance, time_limit_s: float) -> float:
    """The least mean sojourn that CP-SAT finds."""
    hasty = instance.with_objective(Objective.weighted({"flow_time_s": 1.0}))
    quick = solve(hasty, "cpsat", time_limit_s=time_limit_s, bound=False)
    return float(quick.metrics["sojourn_mean_s"])


def about(time_limit_s: float) -> list[str]:
    versions = ", ".join(f"{name} {version(name)}" for name in ("ortools", "highspy", "numpy"))
    machine = f"{platform.processor() or platform.machine()}, Python {platform.python_version()}"
    return [
        "# Small streams, exactly",
        "",
        f"`{COMMAND}`: one thread, {time_limit_s:g} s per exact solver, {machine}, {versions}.",
        "",
        "Jobs of geo_dc, seed 0, at three sites, all to be done (`drain`), least energy, with",
        "limits on the mean sojourn (1.3 and 1.1 times the least that CP-SAT finds). 0 is a proof,",
        "else the best schedule of all is above the solver's bound by the gap, and below its own",
        "by the other figure. The bound is the best that `optbench bound` proves,",
        "below the best schedule; the policy is the best of "
        + ", ".join(POLICIES)
        + " that keeps the limit.",
        "",
        (
            "| jobs | sojourn at most | best energy (J) | CP-SAT: gap | HiGHS: gap | bound | best "
            "policy |"
        ),
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--time-limit",
        type=float,
        default=30.0,
        help="seconds per exact solver and instance (default 30)",
    )
    parser.add_argument("--quick", action="store_true", help="the first two sizes; for a look")
    parser.add_argument(
        "-o", "--output", type=Path, default=ROOT / "docs" / "results" / "geo_exact.md"
    )
    options = parser.parse_args()
    began, lines, trials = time.perf_counter(), about(options.time_limit), []
    for jobs, rest in SPECS[: 2 if options.quick else None]:
        instance = replace(
            load_problem(f"geo_dc:jobs={jobs},{rest},{SITES}").instance(0), problem=None
        )
        least = least_sojourn_s(instance, options.time_limit / 3)
        for limit in LIMITS:
            trials.append(
                trial(instance, None if limit is None else limit * least, options.time_limit)
            )
            lines.append(trials[-1].row)
            print(lines[-1], flush=True)
    proven = [t.jobs for t in trials if any(r.status == "optimal" for r in t.results.values())]
    wrong = [t.row for t in trials if t.wrong]
    said = (
        f"{len(proven)} of {len(trials)} are proven optimal, the largest with "
        f"{max(proven, default=0)} jobs"
    )
    lines += [
        "",
        f"{said}; contradictions: {len(wrong)}. {time.perf_counter() - began:.0f} s in all.",
    ]
    options.output.write_text("\n".join(lines) + "\n")
    print(lines[-1])
    return 0 if not wrong and (options.quick or max(proven, default=0) >= 20) else 1


if __name__ == "__main__":
    sys.exit(main())
