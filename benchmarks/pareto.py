"""Fronts of energy against makespan: one proven at every point, five with transfers as far as a
minute per point goes.

    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/pareto.py   # 30 minutes on two cores
    .venv/bin/python benchmarks/pareto.py --quick             # a small version, in seconds
    .venv/bin/python benchmarks/pareto.py --attempts          # what tightened the gaps, on tuning
                                                              # seeds (12 minutes)

Every process uses one thread. Tuning seeds are 101 to 103; the seeds reported were not looked at
while tuning.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.pareto_attempts import attempt_table, run_attempts  # noqa: E402
from optbench.fronts.front_page import draw, render_front  # noqa: E402
from optbench.fronts.front_search import pareto  # noqa: E402
from optbench.fronts.points import Front  # noqa: E402

# One front study: 20 tasks, 6 GPUs of 3 types, 5 clocks. Time and energy are the metrics, so that
# no deadline takes a side.
STUDY = "gpu_dag:tasks=20,gpus=6,clocks=5,deadlines=none"
PROVEN = f"{STUDY},transfers=false,gang=1"
GANGS = f"{STUDY},transfers=false"
POOLED = STUDY
SMALL = "gpu_dag:tasks=8,gpus=6,clocks=5,deadlines=none"
SEEDS = (1, 2, 3, 4, 5)
ABOUT = (
    (
        "A point is the least energy under a limit on the makespan, verified; *gap* is to a lower "
        "bound for all schedules within the"
    ),
    (
        "limit, *above constant* the same of the energy above what no schedule avoids (rest over "
        "the "
        "horizon, every task's cheapest"
    ),
    (
        "choice). Devices idle until a fixed horizon, the end of a schedule in which every task "
        "has "
        "its cheapest mode. *undecided*"
    ),
    (
        "is the area between points and certified floor, as a share of the box that the points "
        "span; "
        "it is not zero where all points"
    ),
    "are proven, since more of them fit in between.",
)
RESULTS = ROOT / "docs" / "results"


@dataclass(frozen=True)
class Job:
    """One front: which part of the page it belongs to, and how it is asked for."""

    part: str
    spec: str
    seed: int
    points: int
    time_limit_s: float
    horizon: str | None = None


def jobs(quick: bool) -> list[Job]:
    """The longest first, so that two processes end together."""
    if quick:
        off = f"{SMALL},transfers=false,gang=1"
        return [
            Job("pooled", SMALL, 1, 4, 4.0),
            Job("gangs", f"{SMALL},transfers=false", 1, 4, 4.0),
            Job("proven", off, 1, 5, 10.0),
            Job("completion", off, 1, 5, 5.0, "completion"),
        ]
    return [
        *(Job("pooled", POOLED, seed, 6, 60.0) for seed in SEEDS),
        Job("gangs", GANGS, 1, 6, 60.0),
        *(Job("proven", PROVEN, seed, 10, 120.0) for seed in SEEDS[:3]),
        Job("completion", PROVEN, 1, 10, 20.0, "completion"),
    ]


def run(job: Job) -> tuple[Job, Front]:
    """One front in a process of its own; schedules stay there."""
    front = pareto(
        job.spec,
        points=job.points,
        time_limit_s=job.time_limit_s,
        seed=job.seed,
        threads=1,
        horizon_s=job.horizon,
    )
    return job, replace(
        front, points=tuple(replace(point, schedule=None) for point in front.points)
    )


def percent(value: float | None) -> str:
    return "-" if value is None else "0" if value <= 1e-6 else f"{100 * value:.2f} %"


def points_table(front: Front) -> list[str]:
    lines = [
        (
            "| makespan ≤ | makespan_s | energy_j | bound | gap | above constant | least makespan "
            "too | seconds |"
        ),
        "| ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: |",
    ]
    for p in front.points:
        above = "0" if p.proven else percent(p.gap_above)
        bound = "-" if p.bound is None else f"{p.bound:,.0f}"
        state = "proven" if p.proven else percent(p.gap)
        lines.append(
            f"| {p.limit:g} | {p.x:g} | {p.y:,.0f} | {bound} | {state} | {above} | "
            f"{'yes' if p.efficient else 'open'} "
            f"| {p.wall_s:.1f} |"
        )
    return lines


def fronts_table(done: list[tuple[Job, Front]]) -> list[str]:
    lines = [
        (
            "| seed | proven | makespans | none below | gap: mean, worst | above constant: mean, "
            "worst | undecided | horizon | s |"
        ),
        "| ---: | ---: | --- | ---: | --- | --- | ---: | ---: | ---: |",
    ]
    for job, f in done:
        gaps = [p.gap if p.gap is not None else 1.0 for p in f.points]
        above = [
            0.0 if p.proven else p.gap_above if p.gap_above is not None else 1.0 for p in f.points
        ]
        n = max(1, len(gaps))
        horizon = "completion" if f.horizon_s is None else f"{f.horizon_s:g} s"
        makespans = f"{f.points[0].x:g} to {f.points[-1].x:g}" if f.points else "-"
        lines.append(
            f"| {job.seed} | {f.proven} of {len(f.points)} | {makespans} | {f.x_bound or 0:g} | "
            f"{percent(sum(gaps) / n)}, "
            f"{percent(max(gaps, default=None))} | {percent(sum(above) / n)}, "
            f"{percent(max(above, default=None))} "
            f"| {100 * f.undecided_share:.1f} % | {horizon} | {f.wall_s:.0f} |"
        )
    return lines


def page(
    done: list[tuple[Job, Front]], wall_s: float, command: str, attempts: list[dict[str, Any]]
) -> str:
    by_part = {
        part: [item for item in done if item[0].part == part]
        for part in ("proven", "gangs", "pooled", "completion")
    }
    proven, pooled = by_part["proven"], by_part["pooled"]
    fixed, ends = proven[0][1], by_part["completion"][0][1]
    return "\n".join(
        [
            "# Fronts of energy against makespan",
            "",
            f"`{command}`, {wall_s / 60:.0f} minutes; {machine()}; one thread per front.",
            "",
            *ABOUT,
            "",
            f"## Without transfers, one GPU per task: `{proven[0][0].spec}`",
            "",
            *fronts_table(proven),
            "",
            f"Seed {proven[0][0].seed} ([plot](pareto_front.svg), [page](pareto_front.html)):",
            "",
            "![front](pareto_front.svg)",
            "",
            *points_table(fixed),
            "",
            "## Without transfers, up to two GPUs per task",
            "",
            f"`{by_part['gangs'][0][0].spec}`",
            "",
            *fronts_table(by_part["gangs"]),
            "",
            *points_table(by_part["gangs"][0][1]),
            "",
            "## With transfers and pooled GPUs",
            "",
            f"`{pooled[0][0].spec}`, {pooled[0][0].time_limit_s:g} s per point:",
            "",
            *fronts_table(pooled),
            "",
            f"Seed {pooled[0][0].seed}, point by point:",
            "",
            *points_table(pooled[0][1]),
            "",
            "## What tightened the gaps",
            "",
            *attempt_table(attempts),
            "",
            "## Rest until completion",
            "",
            f"Seed {by_part['completion'][0][0].seed}: with rest paid until completion",
            f"{len(ends.points)} points are left of {len(fixed.points)}, {span(ends)}; with the",
            f"fixed horizon {span(fixed)}.",
            "",
        ]
    )


def span(front: Front) -> str:
    """Ranges of both metrics."""
    if not front.points:
        return "none"
    first, last = front.points[0], front.points[-1]
    return (
        f"makespans of {first.x:g} to {last.x:g} s and energies of {first.y:,.0f} to "
        f"{last.y:,.0f} J"
    )


def machine() -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in ("ortools", "highspy", "numpy"))
    return (
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"{packages}"
    )


def standalone(front: Front) -> str:
    """The plot as an SVG file of its own: the page's rules with their colours written out."""
    folder = ROOT / "optbench" / "bench" / "page"
    style = "".join(
        (folder / name).read_text(encoding="utf-8") for name in ("page.css", "front.css")
    )
    light = style.split("}", 1)[0].removeprefix(":root{")
    rules = "".join(
        line for line in style.splitlines() if line.startswith((".chart", ".lane", ".grid"))
    )
    for pair in light.split(";"):
        name, _, value = pair.partition(":")
        rules = rules.replace(f"var({name})", value)
    chart = draw(front).replace(
        "<svg ",
        '<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="12" ',
        1,
    )
    return chart.replace(">", f"><style>{rules}</style>", 1) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="small graphs and seconds instead of minutes"
    )
    parser.add_argument(
        "--attempts",
        action="store_true",
        help="only the attempts, kept for the page of the next full run",
    )
    parser.add_argument("--jobs", type=int, default=2, help="fronts at once (2)")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        help="folder of the results (docs/results; with --quick none is written)",
    )
    options = parser.parse_args()
    folder = options.output or (None if options.quick else RESULTS)
    kept = RESULTS / "raw" / "pareto_attempts.json"
    if options.attempts:
        rows = run_attempts(options.jobs, options.quick)
        if not options.quick:
            kept.write_text(json.dumps(rows, indent=1) + "\n")
        print("\n".join(attempt_table(rows)))
        return 0
    began, done = time.perf_counter(), []
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as executor:
        for job, front in executor.map(run, jobs(options.quick)):
            so_far = f"{job.part} seed {job.seed}: {front.proven} of {len(front.points)} proven"
            print(f"{time.perf_counter() - began:7.0f} s  {so_far}", flush=True)
            done.append((job, front))
    command = " ".join(["benchmarks/pareto.py", *sys.argv[1:]])
    text = page(
        done,
        time.perf_counter() - began,
        command,
        json.loads(kept.read_text()) if kept.exists() else [],
    )
    if folder is not None:
        first = next(front for job, front in done if job.part == "proven")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pareto.md").write_text(text)
        (folder / "pareto_front.html").write_text(render_front(first))
        (folder / "pareto_front.svg").write_text(standalone(first))
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
