"""Who chooses best what large neighbourhood search frees on GPU clusters; prints tables, or adds
them to docs/results/neighbourhood_oracle.md.

    python benchmarks/neighbourhood_choice.py [--checkpoint FILE] [--seeds 10-14] [--seconds 5]
        [--raw FILE] [-o FILE]

Every ``select`` of ``hgnn_lns`` has the same start, sub-solver and seconds of the processor;
``lp_guided`` has the same seconds in all, its linear programme included. Kernels are compiled
before the first clock starts.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

COMMAND = "python benchmarks/neighbourhood_choice.py"
SPECS = ("gpu_cluster:nodes=32,tasks=500", "gpu_cluster:nodes=64,tasks=1000")
OURS, OTHERS = "hgnn_lns:select=hgnn", ("random", "window", "critical", "mixed")
WHOLE, START, LP = "hgnn_lns:select=random,freed=1000000", "hgnn:samples=8", "lp_guided"
METHODS = (START, OURS, *(f"hgnn_lns:select={name}" for name in OTHERS), WHOLE, LP)
LONG_S = 300.0
# Solved first, so that no library is imported while a clock runs.
WARM_UP = "gpu_cluster:nodes=4,tasks=40"
# HiGHS limits the time of the wall: by this much more where the processor's counts.
WALL_PER_PROCESSOR = 20.0


@dataclass(frozen=True)
class ChoiceRow:
    """One run: the verified objective and what was said of it."""

    spec: str
    seed: int
    method: str
    seconds: float
    objective: float
    remark: str


def row_of(spec: str, seed: int, method: str, seconds: float, checkpoint: str | None) -> ChoiceRow:
    """Solve one instance by one method."""
    import optbench as ob
    from optbench.plugins.discovery import load_problem

    instance = load_problem(spec).instance(seed)
    solver = method
    if checkpoint and method.startswith("hgnn"):
        solver = f"{method},checkpoint={checkpoint}"
    result = ob.solve(instance, solver, time_limit_s=seconds, seed=seed, bound=False)
    if not isinstance(result.objective, float):
        raise RuntimeError(f"{method} found nothing on {spec}, seed {seed}: {result.message}")
    remark = result.info.get("neighbourhoods") or result.info.get("milestones") or ""
    return ChoiceRow(spec, seed, method, seconds, result.objective, str(remark))


def use_processor_clock() -> None:
    """Let every clock of this process be that of the processor. HiGHS keeps that of the wall: it
    gets a longer limit.
    """
    time.perf_counter = time.process_time
    from optbench.bounds.fluid import fluid_units
    from optbench.bounds.lp.linear_program import LinearProgram, LpSolution, solve

    def solve_longer(lp: LinearProgram, time_limit_s: float) -> LpSolution:
        return solve(lp, WALL_PER_PROCESSOR * time_limit_s)

    vars(fluid_units)["solve"] = solve_longer


def table(rows: list[ChoiceRow]) -> list[str]:
    """Return a table per specification and one of all: paired differences in per cent."""
    from optbench.evaluate.stats import bootstrap_interval

    lines = []
    ends = {(row.spec, row.seed, row.method): row.objective for row in rows}
    specs = list(dict.fromkeys(row.spec for row in rows))
    for title, chosen in [*((f"`{spec}`", (spec,)) for spec in specs), ("All", tuple(specs))]:
        cells = list(dict.fromkeys((r.spec, r.seed) for r in rows if r.spec in chosen))
        lines += [
            f"### {title}",
            "",
            f"| method | instances | below the start | `{OURS}` is lower by | interval |",
            "| --- | ---: | ---: | ---: | --- |",
        ]
        for method in dict.fromkeys(row.method for row in rows):
            run = [cell for cell in cells if (*cell, method) in ends]
            if not run:
                continue
            below = [100 * (1 - ends[*cell, method] / ends[*cell, START]) for cell in run]
            less = [100 * (1 - ends[*cell, OURS] / ends[*cell, method]) for cell in run]
            low, high = bootstrap_interval(less)
            lines.append(
                f"| `{method}` | {len(run)} | {np.mean(below):.2f} % | {np.mean(less):+.2f} % "
                f"| {low:+.2f} to {high:+.2f} |"
            )
        lines.append("")
    return lines


def page(rows: list[ChoiceRow], words: str) -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "highspy"))
    return "\n".join(
        [
            "## Who chooses",
            "",
            f"`{words}`; {platform.machine()}, {os.cpu_count()} cores, Python "
            f"{platform.python_version()}, {versions}; seconds are of the processor, one thread. "
            "Means of paired differences, 95 % bootstrap intervals over instances.",
            "",
            *table(rows),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", help="network of hgnn; the shipped one without it")
    parser.add_argument("--seeds", default="10-14", help="first and last")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--only", default="", help="part of the name of a specification")
    parser.add_argument("--methods", default=";".join(METHODS), help="solvers, separated by ;")
    parser.add_argument("--raw", type=Path, help="file of rows: known ones are kept")
    parser.add_argument("-o", "--output", type=Path, help="page to which the tables are added")
    args = parser.parse_args()
    use_processor_clock()
    lines = (
        args.raw.read_text(encoding="utf-8").splitlines() if args.raw and args.raw.exists() else []
    )
    rows = [ChoiceRow(**json.loads(line)) for line in lines]
    known = {(row.spec, row.seed, row.method) for row in rows}
    for method in (LP, START):
        row_of(WARM_UP, 0, method, LONG_S / 100, args.checkpoint)
    first, last = map(int, args.seeds.split("-"))
    for seed in range(first, last + 1):
        for spec in SPECS:
            for method in args.methods.split(";"):
                if args.only not in spec or (spec, seed, method) in known:
                    continue
                limit = LONG_S if method == START else args.seconds
                rows.append(row_of(spec, seed, method, limit, args.checkpoint))
                print(
                    f"{spec} {seed} {method} {rows[-1].objective:.0f} {rows[-1].remark}", flush=True
                )
                if args.raw:
                    with args.raw.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(asdict(rows[-1])) + "\n")
    text = page(rows, f"{COMMAND} --seeds {args.seeds} --seconds {args.seconds:g}")
    if args.output:
        before = args.output.read_text(encoding="utf-8") if args.output.exists() else ""
        args.output.write_text(f"{before}\n{text}", encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
