"""Certified bounds on published instances and on large GPU task graphs; writes
docs/results/bounds.md.

    python benchmarks/bounds.py [--time-limit 1.5] [--every] [-o docs/results/bounds.md]

The gap is that of the bound alone to the best known upper bound. With --every all 171 published
files are bounded, and only what exceeds a best known upper bound is printed. Exit code 1 when a
bound does. Data: $OPTBENCH_DATA.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import optbench as ob
from optbench.bounds.auto import lower_bounds
from optbench.bounds.combinatorial.combinatorial_bound import combinatorial_bounds
from optbench.bounds.fluid.fluid_bound import fluid_bound
from optbench.compiling.kernel_table import prepare
from optbench.model.instance import Instance
from optbench.plugins.problems.gpu_dag import GpuDag

FAMILIES = ("jobshop", "flexible-jobshop", "rcpsp")
COMMAND = "python benchmarks/bounds.py"


@dataclass(frozen=True)
class Row:
    """One instance: value and seconds of the cheap bounds, of the fluid programme, and of
    everything together.
    """

    family: str
    name: str
    lower: float
    upper: float
    cheap: float
    cheap_s: float
    fluid: float
    fluid_s: float
    best: float
    best_s: float
    source: str

    def gap(self, value: float) -> float:
        return (self.upper - value) / self.upper


def published(data: Path, every: bool) -> Iterator[tuple[str, str, float, float, Instance]]:
    """Family, name, best known bounds and instance: the 58 of the comparison, or all."""
    if every:
        for family in FAMILIES:
            for name, row in json.loads((data / family / "bounds.json").read_text()).items():
                yield (
                    family,
                    name,
                    row["lower_bound"],
                    row["upper_bound"],
                    _read(data, family, name),
                )
        return
    for row in json.loads((data / "pyjobshop-baseline.json").read_text())["rows"]:
        lower, upper = row["best_known"]
        yield (
            row["family"],
            row["instance"],
            lower,
            upper,
            _read(data, row["family"], row["instance"]),
        )


def _read(data: Path, family: str, name: str) -> Instance:
    file = f"rcpsp/{name.split('_')[0]}/{name}.rcp" if family == "rcpsp" else f"{family}/{name}.txt"
    made: Instance = ob.load(data / file)
    return made


def measure(
    family: str, name: str, lower: float, upper: float, instance: Instance, time_limit_s: float
) -> Row:
    began = time.perf_counter()
    cheap = combinatorial_bounds(instance)[0].value
    cheap_s = time.perf_counter() - began
    began = time.perf_counter()
    proof = fluid_bound(instance)
    fluid_s = time.perf_counter() - began
    began = time.perf_counter()
    best = lower_bounds(instance, "auto", time_limit_s)[0]
    best_s = time.perf_counter() - began
    fluid = proof.bound.value if proof is not None else 0.0
    return Row(
        family, name, lower, upper, cheap, cheap_s, fluid, fluid_s, best.value, best_s, best.source
    )


def table(rows: list[Row]) -> list[str]:
    lines = [
        "| instance | best known | cheap | fluid | all | source | gap |",
        "| --- | --- | ---: | ---: | ---: | --- | ---: |",
    ]
    for r in rows:
        known = f"{r.lower:g}" if r.lower == r.upper else f"{r.lower:g} to {r.upper:g}"
        gap = f"{100 * r.gap(r.best):.1f} %"
        lines.append(
            f"| {r.name} | {known} | {r.cheap:g} | {r.fluid:g} | {r.best:g} | {r.source} | {gap} |"
        )
    lines += [
        "",
        (
            "| family | instances | gap: cheap | with fluid | with all | mean seconds: cheap | "
            "fluid "
            "| all |"
        ),
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for family in (*FAMILIES, "all"):
        part = [r for r in rows if family in (r.family, "all")]
        n = max(1, len(part))
        gaps = [100 * sum(r.gap(v(r)) for r in part) / n for v in (_cheap, _fluid, _best)]
        seconds = [
            sum(s) / n for s in zip(*((r.cheap_s, r.fluid_s, r.best_s) for r in part), strict=True)
        ]
        cells = " | ".join([*(f"{gap:.2f} %" for gap in gaps), *(f"{s:.3f}" for s in seconds)])
        lines.append(f"| {family} | {len(part)} | {cells} |")
    return lines


def _cheap(row: Row) -> float:
    return row.cheap


def _fluid(row: Row) -> float:
    return max(row.cheap, row.fluid)


def _best(row: Row) -> float:
    return row.best


def large() -> list[str]:
    """Fluid programmes of 5,000 tasks: time to build, to solve and to prove."""
    lines = [
        (
            "| GPU task graph | tasks | (task, mode) pairs | cheap bound | seconds | fluid bound | "
            "build | solve | prove | source |"
        ),
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    cases = (
        ("one clock, one GPU", GpuDag(tasks=5000, clocks=1, gang=1), 60.0),
        ("two clocks", GpuDag(tasks=5000, clocks=2), 60.0),
        ("five clocks, 10 s", GpuDag(tasks=5000), 10.0),
        ("five clocks, 60 s", GpuDag(tasks=5000), 60.0),
        ("prices", GpuDag(tasks=1000, price=True), 60.0),
    )
    for text, problem, time_limit_s in cases:
        instance = problem.instance(0)
        pairs = len(instance.pairs.task)
        began = time.perf_counter()
        cheap = combinatorial_bounds(instance)[0].value
        seconds = time.perf_counter() - began
        proof = fluid_bound(instance, time_limit_s)
        if proof is not None:
            t, bound = proof.timings_s, proof.bound
            values = f"{cheap:.6g} | {seconds:.2f} | {bound.value:.6g}"
            times = f"{t['build']:.2f} | {t['solve']:.2f} | {t['prove']:.2f}"
            lines.append(
                f"| {text} | {problem.tasks:,} | {pairs:,} | {values} | {times} | {bound.source} |"
            )
    return lines


def about(time_limit_s: float) -> list[str]:
    return [
        "# Certified bounds",
        "",
        f"`{COMMAND} --time-limit {time_limit_s:g}`, one thread, {platform.machine()}, Python",
        f"{platform.python_version()}. No solution was used: the gap is (best known upper bound −",
        "bound) / best known upper bound. cheap: critical path, Jackson, pool loads. fluid: the",
        "linear programme, proved again in exact arithmetic. all: both, then destructive bounds",
        "until the time limit. Compiling the deductions once (about 10 s) is not counted.",
        "",
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--time-limit",
        type=float,
        default=1.5,
        help="seconds for all bounds of an instance together",
    )
    parser.add_argument("--every", action="store_true", help="all published files, violations only")
    parser.add_argument("-o", "--output", type=Path, help="file to write")
    options = parser.parse_args()
    if "OPTBENCH_DATA" not in os.environ:
        parser.error("OPTBENCH_DATA is not set: name the folder of the published instances")
    prepare({"deductions"})
    cases = published(Path(os.environ["OPTBENCH_DATA"]), options.every)
    rows = [measure(*case, options.time_limit) for case in cases]
    wrong = [r for r in rows if max(r.cheap, r.fluid, r.best) > r.upper]
    for r in wrong:
        print(f"{r.name}: a bound exceeds the best known upper bound: {r}", file=sys.stderr)
    if options.every:
        tight = sum(r.best == r.upper for r in rows)
        print(
            f"{len(rows)} instances, {len(wrong)} bounds above the best known upper bound, "
            f"{tight} equal to it"
        )
        return bool(wrong)
    lines = [
        *about(options.time_limit),
        *table(rows),
        "",
        "## Fluid programmes of thousands of tasks",
        "",
        *large(),
        "",
    ]
    text = "\n".join(lines)
    if options.output:
        options.output.write_text(text)
    print(text)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
