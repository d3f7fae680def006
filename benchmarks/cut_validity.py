"""Cuts on work between two times against brute force, and what they do to root bounds; writes
docs/results/cut_validity.md.

    python benchmarks/cut_validity.py [--instances 1000] [--first 0] [--roots 5-14] [-o FILE]

About 8 minutes of one core for 1,000 instances, and four for the root bounds. Exit code 1 when a
cut, a row of the MILP, an objective, a bound or a verdict is wrong.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from statistics import mean

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from optbench.api import solve  # noqa: E402
from optbench.compiling.kernel_table import KERNELS, prepare  # noqa: E402
from optbench.model.instance import Instance  # noqa: E402
from optbench.plugins.discovery import load_problem  # noqa: E402
from optbench.views.milp import Disjunctive, MilpArrays  # noqa: E402
from optbench.views.milp.known_end import known_end  # noqa: E402
from tests.reference.cut_agreement import SOLVERS, CutOutcome, compare_cuts  # noqa: E402

SHOWN = 40
# Tasks of the task graphs whose root bounds are shown, and seconds for their best schedules.
SIZES, BEST_S = (8, 10), 10.0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--instances", type=int, default=1000, help="instances with brute force")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--roots", default="5-14", help="seeds of the root bounds, or none")
    parser.add_argument(
        "-o", "--output", type=Path, default=ROOT / "docs" / "results" / "cut_validity.md"
    )
    options = parser.parse_args()
    prepare(KERNELS)
    began, seed, outcomes = time.process_time(), options.first, list[CutOutcome]()
    while len(outcomes) < options.instances:
        found = compare_cuts(seed)
        seed += 1
        if found is not None:
            outcomes.append(found)
            for line in found.wrong:
                print(line, file=sys.stderr, flush=True)
    spent_s = time.process_time() - began
    lines = validity_lines(outcomes, options.first, seed - 1, spent_s)
    if options.roots != "none":
        first, _, last = options.roots.partition("-")
        lines += root_lines(range(int(first), int(last or first) + 1))
    text = "\n".join([*lines, ""])
    options.output.write_text(text, encoding="utf-8")
    print(text)
    return 1 if any(outcome.wrong for outcome in outcomes) else 0


def validity_lines(outcomes: list[CutOutcome], first: int, last: int, cpu_s: float) -> list[str]:
    """The first part of the page: what was compared, and what was wrong."""
    wrong = [line for outcome in outcomes for line in outcome.wrong]
    status = Counter(outcome.status for outcome in outcomes)
    features = Counter(name for outcome in outcomes for name in outcome.features)
    solvers = Counter(name for outcome in outcomes for name in outcome.compared)
    listed = [outcome for outcome in outcomes if outcome.num_vectors]
    packages = ", ".join(f"{name} {version(name)}" for name in ("ortools", "highspy", "numpy"))
    return [
        "# Cuts on work between two times: none cuts off a schedule",
        "",
        f"`python benchmarks/cut_validity.py --instances {len(outcomes)} --first {first}`: random",
        "instances of `tests/second_verifier/generator.py` with 3 or 4 tasks and at least one cut",
        f"(seeds {first} to {last}; the others have no cut, or too many schedules for brute",
        "force): zero durations, hard deadlines, releases, power caps, limits, pools of 1 to 4",
        "devices, modes of several pools, transfers and missing links, ingress latencies, at all",
        "scales of ticks.",
        "",
        f"- **Wrong: {len(wrong)}.** {status['optimum']:,} instances with an optimum by brute",
        f"  force, {status['infeasible']:,} infeasible by it. With the cuts on, every solver must",
        "  find the optimum or prove that there is none, and no bound may exceed it.",
        *[f"- `{solver}`: {solvers[solver]:,} instances." for solver in SOLVERS],
        f"- {sum(outcome.num_unproven for outcome in outcomes):,} times a solver ended without a",
        "  proof in 10 s.",
        f"- {sum(o.num_cuts for o in outcomes):,} cuts. In {len(listed):,} instances every cut was",
        f"  compared with every vector of starts: {sum(o.num_vectors for o in listed):,} vectors;",
        f"  {sum(o.num_tight for o in listed):,} of {sum(o.num_cuts for o in listed):,} cuts are",
        "  met with equality by one of them.",
        f"- {sum(o.num_rows_checked for o in outcomes):,} rows of the disjunctive MILP at feasible",
        f"  schedules; {sum(o.is_tightened for o in outcomes):,} instances have its implied rows.",
        f"- {platform.machine()}, Python {platform.python_version()}, {packages}; {cpu_s:.0f} s of",
        "  processor time.",
        "",
        *[f"    {line}" for line in wrong[:SHOWN]],
        "| feature | instances |",
        "| --- | ---: |",
        *[f"| {name} | {n} |" for name, n in sorted(features.items(), key=lambda e: (-e[1], e[0]))],
        "",
    ]


def root_lines(seeds: range) -> list[str]:
    """The second part: mean gaps of root bounds to the best known schedule."""
    rows = []
    for tasks in SIZES:
        for transfers in ("yes", "no"):
            gaps = [root_gaps(tasks, transfers, seed) for seed in seeds]
            means = [f"{mean(column):.2f} %" for column in zip(*gaps, strict=True)]
            rows.append(f"| {tasks} | {transfers} | {' | '.join(means)} |")
            print(rows[-1], file=sys.stderr, flush=True)
    return [
        "## Root bounds with the cuts off and on",
        "",
        f"`gpu_dag`, seeds {seeds[0]} to {seeds[-1]}: mean gap of a bound to the best schedule",
        f"that cpsat finds in {BEST_S:g} s. *LP* is the linear relaxation of the disjunctive MILP",
        "with the end of time of that schedule; *root* is HiGHS's bound after one node, with its",
        "own cutting planes.",
        "",
        "| tasks | transfers | LP, off | LP, on | root, off | root, on |",
        "| ---: | --- | ---: | ---: | ---: | ---: |",
        *rows,
    ]


def root_gaps(tasks: int, transfers: str, seed: int) -> list[float]:
    """Gaps in per cent: the LP without and with the cuts, the root without and with them."""
    problem = load_problem(f"gpu_dag:tasks={tasks},transfers={transfers}")
    instance = problem.instance(seed)
    best = solve(instance, "cpsat", time_limit_s=BEST_S, threads=1, bound=False).objective
    assert isinstance(best, float)
    bounds = [lp_bound(instance, best, cuts) for cuts in (False, True)]
    for cuts in ("no", "yes"):
        run = solve(
            instance,
            f"highs:form=disjunctive,cuts={cuts}",
            time_limit_s=BEST_S,
            work_limit=1,
            threads=1,
            bound=False,
        )
        bounds.append(max(bound.value for bound in run.bounds))
    return [100 * (1 - bound / best) for bound in bounds]


def lp_bound(instance: Instance, best: float, cuts: bool) -> float:
    """The value of the linear relaxation of the disjunctive MILP."""
    import highspy

    from optbench.plugins.solvers._highs_scaling import pass_model

    arrays: MilpArrays = Disjunctive(instance, known_end(instance, best), cuts=cuts).arrays
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    pass_model(highs, arrays)
    highs.setOptionValue("solve_relaxation", True)
    highs.run()
    return float(highs.getInfo().objective_function_value) + arrays.constant


if __name__ == "__main__":
    sys.exit(main())
