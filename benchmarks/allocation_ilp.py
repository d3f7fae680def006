"""The allocation ILP of one epoch: time to a proof, beside HiGHS and CP-SAT, and re-allocation
after one arrival or departure; writes docs/results/allocation_ilp.md.

    python benchmarks/allocation_ilp.py [--seeds 10]

Instances are those of problem ``epoch_allocation`` with Gavel's tables and with synthetic ones. A
gap is in W, and relative to the power of the GPUs in use at full load beyond sleep: the surrogate
itself can be near 0, and the price of waiting would hide any gap. Times are those of the processor.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cluster_runs import RESULTS, page_head  # noqa: E402

SIZES = (
    ("jobs=140,gpus=100", "slack"),
    ("jobs=140,gpus=100,migration_w=20", "slack, migration 20 W"),
    ("jobs=200,gpus=100", "no slack"),
    ("jobs=1400,gpus=1000", "slack"),
    ("jobs=1400,gpus=1000,migration_w=20", "slack, migration 20 W"),
    ("jobs=2000,gpus=1000", "no slack"),
    ("jobs=2000,gpus=1000,requirement=tight", "no slack, tight: jobs wait"),
)
TABLES = ("gavel", "synthetic")
# Relative gap that is asked for in the second run, and the most seconds of any run.
NEAR, LIMIT_S = 1e-3, 2.5
# Instances for HiGHS and CP-SAT, their seeds and the most seconds.
PEER_SIZES, PEER_SEEDS, PEER_LIMIT_S = (SIZES[0], SIZES[3], SIZES[5]), (0, 1), 20.0
# Re-allocation is from an allocation that is optimal, or was searched for this long.
BASE_S = 1.0


@dataclass(frozen=True)
class Timed:
    """One allocation: processor seconds, proven gap in W and relative, jobs that wait."""

    cpu_s: float
    gap_w: float
    gap: float
    waiting: int


def demand_of(spec: str, tables: str, seed: int) -> Any:
    from optbench.plugins.discovery import load_problem

    made: Any = load_problem(f"epoch_allocation:{spec},tables={tables}").instance(seed)
    return made


def power_w(demand: Any, rows: Any) -> float:
    """Power of the GPUs in use at full load, beyond sleep."""
    return float((demand.full_w - demand.sleep_w)[rows.gpu_type].sum())


def timed(demand: Any, call: Any) -> tuple[Timed, Any]:
    began = time.process_time()
    found = call()
    taken = time.process_time() - began
    share = found.gap_w / power_w(demand, found.rows)
    return Timed(taken, found.gap_w, share, len(found.waiting)), found


def allocations(seeds: int) -> dict[tuple[str, str, str], list[Timed]]:
    """Allocate every size from scratch, to the optimum and to within a gap."""
    from optbench.shapes.epoch_allocation.epoch_allocator import allocate

    out: dict[tuple[str, str, str], list[Timed]] = {}
    for tables in TABLES:
        for spec, _ in SIZES:
            for seed in range(seeds):
                demand = demand_of(spec, tables, seed).data
                for name, gap in (("optimum", 0.0), ("near", NEAR)):
                    one, _ = timed(demand, lambda d=demand, g=gap: allocate(d, LIMIT_S, g))
                    out.setdefault((tables, spec, name), []).append(one)
            print(tables, spec, out[tables, spec, "optimum"][-1], flush=True)
    return out


def without(demand: Any, job: int) -> Any:
    """Return the demand without one job, at the same price of waiting."""
    jobs, kept = demand.jobs, np.delete(np.arange(demand.jobs.count), job)
    names = ("job_type", "required_per_s", "is_service", "replicas", "price_j", "before")
    fewer = {name: getattr(jobs, name)[kept] for name in names}
    prices = demand.shortfall_mw[kept] / 1000.0
    return replace(demand, jobs=replace(jobs, **fewer, shortfall_w=prices))


def changes(seeds: int) -> dict[str, list[tuple[float, float, float, float, float]]]:
    """Per size: seconds from scratch, after an arrival and a departure, and the relative gaps of
    the two.
    """
    from optbench.shapes.epoch_allocation.epoch_allocator import allocate
    from optbench.shapes.epoch_allocation.reallocation import reallocate

    out: dict[str, list[tuple[float, float, float, float, float]]] = {}
    for spec, _ in SIZES[:6]:
        for seed in range(seeds):
            whole = demand_of(spec, "gavel", seed).data
            prices = whole.shortfall_mw / 1000.0
            whole = replace(whole, jobs=replace(whole.jobs, shortfall_w=prices))
            last = whole.jobs.count - 1
            fewer = without(whole, last)
            base = allocate(fewer, BASE_S)
            full = allocate(whole, BASE_S)
            assert base.state is not None and full.state is not None
            came, gone = np.append(np.arange(last), -1), np.delete(np.arange(last + 1), 3)
            left = without(whole, 3)
            runs = (
                (whole, lambda d=whole: allocate(d, LIMIT_S, NEAR)),
                (whole, lambda s=base.state, d=whole, w=came: reallocate(s, d, w, LIMIT_S, NEAR)),
                (left, lambda s=full.state, d=left, w=gone: reallocate(s, d, w, LIMIT_S, NEAR)),
            )
            scratch, arrival, departure = (timed(demand, call)[0] for demand, call in runs)
            row = (scratch.cpu_s, arrival.cpu_s, departure.cpu_s, arrival.gap, departure.gap)
            out.setdefault(spec, []).append(row)
        print(spec, out[spec][-1], flush=True)
    return out


def peers() -> list[tuple[str, str, int, float, float | None, float | None]]:
    """HiGHS and CP-SAT on the same programme: seconds, gap in W and relative."""
    import optbench as ob

    out = []
    for spec, _ in PEER_SIZES:
        for seed in PEER_SEEDS:
            instance = demand_of(spec, "gavel", seed)
            for solver in ("column_generation", "highs", "cpsat"):
                result: Any = ob.solve(instance, solver, time_limit_s=PEER_LIMIT_S, bound=False)
                gap_w = share = None
                if result.objective is not None and result.bound is not None:
                    gap_w = max(0.0, result.objective - result.bound)
                    share = gap_w / power_w(instance.data, result.schedule)
                out.append((spec, solver, seed, result.wall_s, gap_w, share))
                print(*out[-1], flush=True)
    return out


def columns_of_jobs(seed: int) -> tuple[int, float, float, float]:
    """HiGHS on one column per job or pair of jobs, 140 jobs on 100 GPUs: columns, seconds, and the
    best value and bound.
    """
    from optbench.shapes.epoch_allocation.pattern_solver import highs_of
    from optbench.shapes.epoch_allocation.row_prices import is_column, row_prices_mw

    demand = demand_of(SIZES[0][0], "gavel", seed).data
    n, num_gpus = demand.jobs.count, demand.num_gpu_types
    first, second = np.triu_indices(n, 1)
    first, second = np.append(first, np.arange(n)), np.append(second, np.full(n, -1))
    gpu = np.repeat(np.arange(num_gpus), len(first))
    first, second = np.tile(first, num_gpus), np.tile(second, num_gpus)
    kept = is_column(demand, gpu, first, second)
    gpu, first, second = gpu[kept], first[kept], second[kept]
    price = row_prices_mw(demand, gpu, first, second) / 1000.0
    highs = highs_of(time_limit=PEER_LIMIT_S, mip_rel_gap=0.0)
    for _ in range(n):
        highs.addRow(1.0, 1.0, 0, [], [])
    for g in range(num_gpus):
        highs.addRow(-np.inf, float(demand.counts[g]), 0, [], [])
    waits = demand.shortfall_mw / 1000.0
    for job in range(n):
        highs.addCol(waits[job], 0.0, 1.0, 1, [job], [1.0])
    for g, i, j, cost in zip(gpu.tolist(), first.tolist(), second.tolist(), price, strict=True):
        rows = [i, n + g] if j < 0 else [i, j, n + g]
        highs.addCol(cost, 0.0, 1.0, len(rows), rows, [1.0] * len(rows))
    count = n + len(gpu)
    highs.changeColsIntegrality(count, np.arange(count), np.ones(count, dtype=np.uint8))
    began = time.process_time()
    highs.run()
    info = highs.getInfo()
    taken = time.process_time() - began
    return count, taken, info.objective_function_value, info.mip_dual_bound


def page(
    found: dict[tuple[str, str, str], list[Timed]],
    moved: dict[str, list[tuple[float, float, float, float, float]]],
    others: list[tuple[str, str, int, float, float | None, float | None]],
    columns: list[tuple[int, float, float, float]],
    seeds: int,
) -> str:
    lines = page_head("The allocation ILP of one epoch", "python benchmarks/allocation_ilp.py")
    lines += [
        f"`epoch_allocation`, k = 1, seeds 0 to {seeds - 1}, at most {LIMIT_S:g} s on the wall. "
        "Gaps are proven, and relative to the power of the GPUs in use at full load, beyond sleep. "
        "The programme is the one over patterns of alike jobs "
        "(`optbench/shapes/epoch_allocation/pattern_program.py`).",
        "",
        "## From scratch",
        "",
        "Median and worst of the seeds; `optimum` is how many are proven optimal.",
        "",
        "| tables | jobs, GPUs | | optimum | s | worst s | worst gap | within 0.1 %: s | worst s |"
        " worst gap |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for tables in TABLES:
        for spec, words in SIZES:
            exact, near = found[tables, spec, "optimum"], found[tables, spec, "near"]
            proven = sum(each.gap_w == 0.0 for each in exact)
            lines.append(
                f"| {tables} | {size_of(spec)} | {words} | {proven} of {seeds} | "
                f"{median(each.cpu_s for each in exact):.3f} | {max(e.cpu_s for e in exact):.2f} | "
                f"{share_of(max(each.gap for each in exact))} | "
                f"{median(each.cpu_s for each in near):.3f} | {max(e.cpu_s for e in near):.2f} | "
                f"{share_of(max(each.gap for each in near))} |"
            )
    lines += ["", *moved_lines(moved), "", *peer_lines(others, columns)]
    return "\n".join(lines) + "\n"


def size_of(spec: str) -> str:
    parts = dict(part.split("=") for part in spec.split(","))
    return f"{int(parts['jobs']):,} on {int(parts['gpus']):,}"


def share_of(gap: float) -> str:
    """A relative gap; one above 1 is a job that waits, or does not."""
    return "0" if gap == 0 else "one job" if gap > 1 else f"{100 * gap:.4f} %"


def moved_lines(moved: dict[str, list[tuple[float, float, float, float, float]]]) -> list[str]:
    lines = [
        "## After one arrival or departure",
        "",
        f"Gavel's tables; from the allocation before, optimal or of {BASE_S:g} s, to within 0.1 %, "
        "repair and fallback included, against from scratch to within 0.1 %. Times are medians in "
        "ms, the factor is the median of the ratios, with the least one in brackets.",
        "",
        "| jobs, GPUs | | from scratch | arrival | factor | departure | factor | worst gap |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for spec, words in SIZES[:6]:
        scratch, arrival, departure, gap, other_gap = map(np.array, zip(*moved[spec], strict=True))
        up, down = scratch / arrival, scratch / departure
        lines.append(
            f"| {size_of(spec)} | {words} | {1e3 * np.median(scratch):.1f} | "
            f"{1e3 * np.median(arrival):.1f} | {np.median(up):.1f} ({up.min():.1f}) | "
            f"{1e3 * np.median(departure):.1f} | {np.median(down):.1f} ({down.min():.1f}) | "
            f"{share_of(max(gap.max(), other_gap.max()))} |"
        )
    return lines


def peer_lines(
    others: list[tuple[str, str, int, float, float | None, float | None]],
    columns: list[tuple[int, float, float, float]],
) -> list[str]:
    lines = [
        "## Beside HiGHS and CP-SAT",
        "",
        f"The same programme by `ob.solve`, at most {PEER_LIMIT_S:g} s, Gavel's tables, slack or "
        "no slack as above; seconds on the wall, the building of the Pyomo model included.",
        "",
        "| jobs, GPUs | seed | solver | s | gap, W | gap |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for spec, solver, seed, wall_s, gap_w, share in others:
        gaps = (
            "none | none" if gap_w is None or share is None else f"{gap_w:.3f} | {share_of(share)}"
        )
        lines.append(f"| {size_of(spec)} | {seed} | `{solver}` | {wall_s:.2f} | {gaps} |")
    lines += [
        "",
        "One column per job or pair of jobs, as the programme is usually written, for 140 jobs on "
        f"100 GPUs by HiGHS, at most {PEER_LIMIT_S:g} s:",
        "",
        "| seed | columns | s | best | bound |",
        "| --- | --- | --- | --- | --- |",
    ]
    for seed, (count, taken, best, bound) in zip(PEER_SEEDS, columns, strict=True):
        lines.append(f"| {seed} | {count:,} | {taken:.2f} | {best:.3f} | {bound:.3f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "allocation_ilp.md")
    args = parser.parse_args()
    moved = changes(args.seeds)
    found = allocations(args.seeds)
    columns = [columns_of_jobs(seed) for seed in PEER_SEEDS]
    args.output.write_text(page(found, moved, peers(), columns, args.seeds), encoding="utf-8")


if __name__ == "__main__":
    main()
