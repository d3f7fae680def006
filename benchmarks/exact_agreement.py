"""Brute force against CP-SAT, HiGHS and every bound on random tiny instances; writes
docs/results/exact_agreement.md.

    python benchmarks/exact_agreement.py [--seeds 300] [--first 0] [-o FILE]

Exit code 1 when anything disagrees.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections import Counter
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

# The tests are no installed package.
from tests.reference.agreement import EXACT, PROVEN, SAME, Outcome, compare  # noqa: E402

SOLVERS = ("cpsat", "highs")
VARIANTS = (
    "highs:form=time_indexed,first=no",
    "highs:form=disjunctive,first=no",
    "highs:route=pyomo,first=no",
)
CONTINUOUS = ("highs",)
COMMAND = "python benchmarks/exact_agreement.py"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=300, help="number of instances")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument(
        "-o", "--output", type=Path, default=ROOT / "docs" / "results" / "exact_agreement.md"
    )
    options = parser.parse_args()
    began = time.perf_counter()
    outcomes = []
    for seed in range(options.first, options.first + options.seeds):
        outcomes.append(compare(seed, SOLVERS, VARIANTS, CONTINUOUS))
        for line in outcomes[-1].wrong:
            print(line, file=sys.stderr)
    text = report(outcomes, time.perf_counter() - began)
    options.output.write_text(text, encoding="utf-8")
    print(text)
    return 1 if any(outcome.wrong for outcome in outcomes) else 0


def report(outcomes: list[Outcome], wall_s: float) -> str:
    """The page: what was compared, what disagreed, features, times."""
    infeasible = sum(outcome.optimum is None for outcome in outcomes)
    wrong = [line for outcome in outcomes for line in outcome.wrong]
    seeds = f"{outcomes[0].seed} to {outcomes[-1].seed}"
    decisions = sum(outcome.num_feasible for outcome in outcomes)
    packages = ", ".join(
        f"{name} {version(name)}" for name in ("ortools", "highspy", "pyomo", "numpy")
    )
    lines = [
        "# Brute force = CP-SAT = HiGHS, and no bound above the optimum",
        "",
        f"`{COMMAND} --first {outcomes[0].seed} --seeds {len(outcomes)}`: {len(outcomes)} random",
        f"instances of 2 to 4 tasks (seeds {seeds}), of which {infeasible} are infeasible. Brute",
        "force (`tests/reference/brute_force.py`) restates feasibility and metrics without any",
        "code of optbench and evaluates every choice of modes with every vector of integer starts,",
        f"not only left-shifted ones ({decisions:,} feasible decisions in all). Objectives are the",
        "verifier's.",
        "",
        f"- **Disagreements: {len(wrong)}.** An objective must agree within a relative {SAME:g}",
        f"  and be bounded to {PROVEN:g}; an infeasible instance must be proven so; no bound may",
        f"  exceed the optimum by more than a relative {EXACT:g}.",
        f"- Bounds came from {len({s for o in outcomes for s in o.sources})} sources (solvers,",
        "  combinatorial, fluid programme).",
        "- In nanoseconds: the same instance with whole seconds, whose optimum is that of its",
        "  version in coarse ticks.",
        "- A formulation that cannot express an instance refuses it: the disjunctive one varying",
        "  tariffs, for example.",
        "- Wider runs (seeds 300 to 3,999) found HiGHS 1.14.0 wrong on seeds 383 and 812 (its",
        "  presolve, off since) and 755 (its bounds at a feasibility tolerance of 1e-9, looser",
        "  since); see `docs/decisions.md`. All three are in the test suite.",
        f"- One thread per solver, {wall_s:.0f} s for everything, Python",
        f"  {platform.python_version()}, {packages}.",
        "",
        *[f"    {line}" for line in wrong],
        *([""] if wrong else []),
        "| source | instances | seconds in all |",
        "| --- | ---: | ---: |",
        *times(outcomes),
        "",
        "| feature | instances | of them infeasible |",
        "| --- | ---: | ---: |",
        *features(outcomes),
        "",
    ]
    return "\n".join(lines)


def times(outcomes: list[Outcome]) -> list[str]:
    """One row per source: how many instances it took, and for how long."""
    count: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    for outcome in outcomes:
        count.update(outcome.seconds.keys())
        seconds.update(outcome.seconds)
    return [f"| {source} | {count[source]} | {seconds[source]:.1f} |" for source in count]


def features(outcomes: list[Outcome]) -> list[str]:
    """One row per feature, the most frequent first."""
    count = Counter(name for outcome in outcomes for name in outcome.features)
    hopeless = Counter(
        name for outcome in outcomes if outcome.optimum is None for name in outcome.features
    )
    return [f"| {name} | {number} | {hopeless[name]} |" for name, number in count.most_common()]


if __name__ == "__main__":
    sys.exit(main())
