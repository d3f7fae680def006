"""random_rules and the plain rules on published shops; writes docs/results/random_rules.md. About
two minutes.

    python benchmarks/random_rules.py [--seeds 2] [-o docs/results/random_rules.md]

One core: 2 s per Taillard instance, 1.5 s per Hurink instance, code loaded before. rpd is the
excess over the best known upper bound. Exit code 1 where a mean exceeds its target. Data:
$OPTBENCH_DATA.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

import optbench as ob  # noqa: E402
from optbench.model.instance import Instance  # noqa: E402

RULES = ("fcfs", "sjf_backfill", "edf", "heft", "min_energy", "fixed_dvfs")
COMMAND = "python benchmarks/random_rules.py"


@dataclass(frozen=True)
class Group:
    """Instances with one budget and the mean rpd that was asked for."""

    title: str
    folder: str
    beginning: str
    ending: str
    seconds: float
    target: float


GROUPS = (
    Group("Taillard (job shop)", "jobshop", "ta", "", 2.0, 0.14),
    Group("Hurink edata (flexible job shop)", "flexible-jobshop", "la", "_edata", 1.5, 0.065),
    Group("Hurink rdata", "flexible-jobshop", "la", "_rdata", 1.5, 0.045),
    Group("Hurink vdata", "flexible-jobshop", "la", "_vdata", 1.5, 0.005),
)


@dataclass(frozen=True)
class Row:
    """One instance: rpd per seed, samples and seconds per seed, and the rpd of each plain rule."""

    name: str
    tasks: int
    upper: float
    rpd: tuple[float, ...]
    samples: float
    seconds: float
    plain: tuple[float, ...]

    @property
    def mean(self) -> float:
        return float(np.mean(self.rpd))


def instances(data: Path, group: Group) -> Iterator[tuple[str, float, Instance]]:
    """Name, best known upper bound, instance."""
    for name, row in sorted(json.loads((data / group.folder / "bounds.json").read_text()).items()):
        if name.startswith(group.beginning) and name.endswith(group.ending):
            yield name, row["upper_bound"], ob.load(data / group.folder / f"{name}.txt")


def measure(name: str, upper: float, instance: Instance, seconds: float, seeds: int) -> Row:
    runs = [
        ob.solve(instance, "random_rules", time_limit_s=seconds, seed=seed, bound=False)
        for seed in range(seeds)
    ]
    plain = [ob.solve(instance, rule, time_limit_s=seconds, bound=False) for rule in RULES]
    return Row(
        name, instance.num_tasks, upper,
        tuple(excess(run, upper) for run in runs),
        float(np.mean([run.info["samples"] for run in runs])),
        float(np.mean([run.wall_s for run in runs])),
        tuple(excess(run, upper) for run in plain),
    )  # fmt: skip


def excess(result: ob.Result, upper: float) -> float:
    assert result.verified and isinstance(result.objective, (int, float)), result.message
    return float(result.objective) / upper - 1.0


def table(group: Group, rows: list[Row]) -> list[str]:
    """One group as a table, means last."""
    out = [
        f"## {group.title}: {group.seconds:g} s, at most {100 * group.target:g} % asked for",
        "",
        (
            "| instance | tasks | best known | random_rules | per seed | samples | s | "
            f"{' | '.join(RULES)} |"
        ),
        "|---" * (7 + len(RULES)) + "|",
    ]
    for row in rows:
        seeds = ", ".join(f"{100 * rpd:.1f}" for rpd in row.rpd)
        out.append(
            f"| {row.name} | {row.tasks} | {row.upper:g} | {100 * row.mean:.1f} % | {seeds} | "
            f"{row.samples:,.0f} | "
            f"{row.seconds:.2f} | " + " | ".join(f"{100 * rpd:.1f} %" for rpd in row.plain) + " |"
        )
    means = [float(np.mean([row.plain[k] for row in rows])) for k in range(len(RULES))]
    cells = " | ".join(f"{100 * rpd:.1f} %" for rpd in means)
    mean = float(np.mean([row.mean for row in rows]))
    return [*out, f"| **mean** | | | **{100 * mean:.2f} %** | | | | {cells} |", ""]


def page(tables: list[str], seeds: int) -> str:
    versions = (
        f"Python {platform.python_version()}, numpy {np.__version__}, numba {version('numba')}"
    )
    return "\n".join(
        [
            "# random_rules on published shops",
            "",
            f"`{COMMAND} --seeds {seeds}`, one core of {platform.machine()} ({os.cpu_count()}",
            f"cores), {versions}.",
            "",
            "Excess of the makespan over the best known upper bound (`bounds.json`), mean over the",
            "seeds. Every schedule is verified; seconds are those of the result (making the tables",
            "included, compilation not). The sampler was tuned on other instances: ft, la, orb,",
            "abz and swv job shops, mk, dpp, mt10 and setb4 flexible ones, and generated ones.",
            "Hurink's files reuse the times of la job shops, seven of which were among them. The",
            "plain rules take one pass each; without deadlines and energy `edf` and `min_energy`",
            "go by the longest remaining path, and `fixed_dvfs` is first come first served with",
            "passing.",
            "",
            *tables,
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs/results/random_rules.md")
    options = parser.parse_args()
    data = Path(os.environ.get("OPTBENCH_DATA", ROOT / "data"))
    warm = ob.load(data / "jobshop" / "ft06.txt")
    for solver in ("random_rules", *RULES):
        ob.solve(warm, solver, time_limit_s=0.1, bound=False)
    tables: list[str] = []
    missed = 0
    for group in GROUPS:
        rows = [
            measure(name, upper, instance, group.seconds, options.seeds)
            for name, upper, instance in instances(data, group)
        ]
        mean = float(np.mean([row.mean for row in rows]))
        missed += mean > group.target
        tables += table(group, rows)
        print(
            (
                f"{group.title}: {len(rows)} instances, mean rpd {100 * mean:.2f} % (at most "
                f"{100 * group.target:g} %)"
            ),
            flush=True,
        )
    options.output.write_text(page(tables, options.seeds) + "\n")
    print(f"written: {options.output}")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
