"""Partitions by mis_spectral against METIS and streaming: cuts, the curve over time, the first
answer; writes docs/results/partitioning.md and docs/results/raw/partitioning.jsonl.

    python benchmarks/partitioning.py [--sets public,held_out,large] [--parts 2,5,8] [--seeds 5]
                                      [--seconds 10] [--most-seconds 60] [--balance metis,3%]
                                      [--first-answers] [--again] [--page-only]

Every method is held to the same largest part: that of METIS's default on the graph (``metis``), or
3 % above the fair share. A cell has ``--seconds`` of wall time, and ``PER_EDGE_S`` for each edge
where that is more, at most ``--most-seconds``, the same for mis_spectral and for METIS with many
seeds. Cells whose row is there are not run again, except by ``--again`` where mis_spectral has
changed since. The seed is that of the graph, where it is random, and of the method.
``--first-answers`` measures these alone: runs of both methods that end with their first answer, in
turn, of which the quickest count.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._partition_page import PAGE, page  # noqa: E402
from benchmarks._partition_rows import (  # noqa: E402
    BALANCES,
    DEFAULT,
    FIRST_RAW,
    METHODS,
    OURS,
    RAW,
    Answer,
    FirstAnswerRow,
    PartitionRow,
    append_line,
    first_answers_so_far,
    rows_so_far,
    solver_commit,
)

SETS = {
    "public": ("graph=cora", "graph=citeseer"),
    "held_out": (
        "graph=power,nodes=25000",
        "graph=mesh,nodes=25600",
        "graph=community,nodes=20000",
    ),
    "large": (
        "graph=power,nodes=250000",
        "graph=mesh,nodes=333400",
        "graph=community,nodes=200000",
    ),
}
PER_EDGE_S = 6e-5
# Timed runs of METIS's default, and of first answers; the latter also on graphs of more edges.
TIMINGS, LARGE_TIMINGS, LARGE_EDGES = 5, 3, 300_000


def run_cells(args: argparse.Namespace) -> None:
    """Run what is missing, and append its rows."""
    commit = solver_commit()
    known = {
        row.key
        for row in rows_so_far()
        if row.method != OURS or not args.again or row.commit == commit
    }
    for graph, parts, balance, seed in cells(args):
        instance = load_cell(graph, parts, balance, seed)
        seconds = max(args.seconds, PER_EDGE_S * instance.data.graph.num_edges)
        seconds = min(seconds, args.most_seconds)
        for method in METHODS:
            if (graph, parts, balance, seed, method, seconds) in known:
                continue
            row = run_one(instance, graph, balance, seed, seconds, method)
            append_line(RAW, asdict(row) | {"commit": commit})
            print(instance.name, balance, seed, method, row.cut, f"{row.points[-1:]}", flush=True)


def run_first_answers(args: argparse.Namespace) -> None:
    """Measure the first answers of cells that have none of the current mis_spectral."""
    commit = solver_commit()
    known = {cell for cell, row in first_answers_so_far().items() if row.commit == commit}
    for cell in cells(args):
        if cell in known:
            continue
        instance, seed = load_cell(*cell), cell[-1]
        times = LARGE_TIMINGS if instance.data.graph.num_edges > LARGE_EDGES else TIMINGS
        found = [
            (first_answer(instance, OURS, seed), first_answer(instance, DEFAULT, seed))
            for _ in range(times)
        ]
        ours, metis = ([pair[i] for pair in found] for i in (0, 1))
        row = FirstAnswerRow(*cell, commit, ours, metis)
        append_line(FIRST_RAW, asdict(row))
        one, other = row.quickest
        print(*cell, f"{one[0] / other[0]:.2f} {one[1] / other[1]:.3f}", flush=True)


def first_answer(instance: Any, method: str, seed: int) -> Answer:
    """Run a method up to its first answer."""
    import optbench as ob

    stop = threading.Event()
    found = ob.solve(
        instance, method, seed=seed, bound=False, stop=stop, on_progress=lambda _: stop.set()
    )
    return min((p.t_s, p.objective) for p in found.trajectory if p.objective is not None)


def load_cell(graph: str, parts: int, balance: str, seed: int) -> Any:
    from optbench.plugins.discovery import load_problem

    return load_problem(f"gnn_training:{graph},parts={parts}{BALANCES[balance]}").instance(seed)


def cells(args: argparse.Namespace) -> Iterator[tuple[str, int, str, int]]:
    for seed in range(args.first_seed, args.seeds):
        for name in args.sets.split(","):
            for graph in SETS[name]:
                for parts in map(int, args.parts.split(",")):
                    for balance in args.balance.split(","):
                        yield graph, parts, balance, seed


def run_one(
    instance: Any, graph: str, balance: str, seed: int, seconds: float, method: str
) -> PartitionRow:
    """Run a method; METIS's default several times, of which the quickest counts."""
    import optbench as ob

    data = instance.data
    times = TIMINGS if method == DEFAULT else 1
    found = [
        ob.solve(instance, method, seed=seed, time_limit_s=seconds, bound=False)
        for _ in range(times)
    ]
    result = min(found, key=lambda each: min((p.t_s for p in each.trajectory), default=np.inf))
    points = [(p.t_s, p.objective) for p in result.trajectory if p.objective is not None]
    return PartitionRow(
        graph,
        data.num_parts,
        balance,
        seed,
        seconds,
        method,
        data.graph.num_nodes,
        data.graph.num_edges,
        data.max_part,
        result.objective if isinstance(result.objective, float) else None,
        result.metrics.get("imbalance") if result.verified else None,
        points,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--parts", default="2,5,8")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--most-seconds", type=float, default=60.0)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--first-answers", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--balance", default=",".join(BALANCES))
    parser.add_argument("--page-only", action="store_true")
    args = parser.parse_args()
    if args.first_answers:
        run_first_answers(args)
    elif not args.page_only:
        run_cells(args)
    lines = page(rows_so_far(), first_answers_so_far())
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
