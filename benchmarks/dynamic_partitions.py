"""Partitions of graphs that change, carried over and made anew: cut edges, moved nodes, processor
seconds; writes docs/results/dynamic_partitions.md and docs/results/raw/dynamic_partitions.jsonl.

    python benchmarks/dynamic_partitions.py [--graphs ...] [--shares 1,5,20] [--changes 3]
                                            [--seeds 2] [--parts 8] [--page-only]

A series begins with METIS's default on the first graph, which all methods have as their first
partition. Then the graph changes ``--changes`` times by a share of its nodes and edges
(``problems/_graph_changes.py``), and each method goes on from its own partition, within the largest
part of METIS's default on the changed graph. Methods that partition anew number their parts by
assignment, so that most nodes keep theirs. Verification is not counted in seconds. Cells whose row
is there are not run again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cluster_runs import RESULTS, page_head  # noqa: E402
from optbench.compiling.kernel_table import prepare  # noqa: E402
from optbench.plugins.discovery import load_problem, load_solver  # noqa: E402
from optbench.plugins.problems._graph_changes import changed_graph  # noqa: E402
from optbench.plugins.problems._metis_limits import (  # noqa: E402
    default_largest_part,
    default_partition,
)
from optbench.plugins.protocol import Run  # noqa: E402
from optbench.shapes.gnn_training.gnn_training_shape import GnnTrainingShape  # noqa: E402

PAGE, RAW = RESULTS / "dynamic_partitions.md", RESULTS / "raw" / "dynamic_partitions.jsonl"
GRAPHS = "cora;mesh,nodes=10000;power,nodes=10000;community,nodes=10000"
# Cycles of mis_spectral: about its first answer.
CYCLES = 6
ANEW = "metis"
PRICED, FREE = "repartition:move_price=0.5", "repartition:move_price=0"
METHODS = (ANEW, "mis_spectral", PRICED, "repartition", FREE)
WORDS = {
    "metis": "METIS anew",
    "mis_spectral": f"mis_spectral anew, {CYCLES} cycles",
    PRICED: "repartition, price 0.5",
    "repartition": "repartition, price 0.1",
    FREE: "repartition, price 0",
}


@dataclass(frozen=True)
class ChangeRow:
    """One method after one change of a series."""

    graph: str
    parts: int
    share: float
    seed: int
    change: int
    method: str
    nodes: int
    edges: int
    cut: float
    moved: float
    seconds: float

    @property
    def series(self) -> tuple[Any, ...]:
        return self.graph, self.parts, self.share, self.seed


@dataclass
class TimedRun(Run):
    """A run that notes the processor seconds of verifying."""

    verifying_s: float = field(default=0.0)

    def report(self, schedule: Any) -> Any:
        began = time.process_time()
        verdict = super().report(schedule)
        self.verifying_s += time.process_time() - began
        return verdict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", default=GRAPHS)
    parser.add_argument("--shares", default="1,5,20")
    parser.add_argument("--changes", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--parts", type=int, default=8)
    parser.add_argument("--page-only", action="store_true")
    args = parser.parse_args()
    if not args.page_only:
        prepare(["partitioning"])
        for graph in args.graphs.split(";"):
            for share in args.shares.split(","):
                for seed in range(args.seeds):
                    run_series(graph, args.parts, float(share) / 100, seed, args.changes)
    lines = page(rows_so_far())
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


def rows_so_far() -> list[ChangeRow]:
    if not RAW.exists():
        return []
    return [ChangeRow(**json.loads(line)) for line in RAW.read_text().splitlines()]


def run_series(graph: str, parts: int, share: float, seed: int, changes: int) -> None:
    """Run every method on the graphs of one series, unless it is there."""
    if (graph, parts, share, seed) in {row.series for row in rows_so_far()}:
        return
    problem = f"gnn_training:graph={graph},parts={parts}"
    data = load_problem(problem).instance(seed).data
    first = default_partition(data.graph, parts)
    held = dict.fromkeys(METHODS, first)
    rng, current, rows = np.random.default_rng((seed, 2)), data.graph, list[ChangeRow]()
    for change in range(1, changes + 1):
        after = changed_graph(current, share, rng)
        current = after.graph
        most = default_largest_part(current, parts)
        for method in METHODS:
            now = replace(data, graph=current, max_part=most, previous=after.carried(held[method]))
            part, found = solved(now, method, seed)
            held[method] = part
            about = (graph, parts, share, seed, change, method)
            rows.append(ChangeRow(*about, current.num_nodes, current.num_edges, *found))
    RAW.parent.mkdir(exist_ok=True)
    with RAW.open("a", encoding="utf-8") as out:
        out.writelines(json.dumps(asdict(row)) + "\n" for row in rows)
    print(graph, share, seed, [(row.method, row.cut, row.moved) for row in rows[-5:]], flush=True)


def solved(data: Any, method: str, seed: int) -> tuple[Any, tuple[float, float, float]]:
    """The parts of a method, with their cut edges, moved nodes and its processor seconds."""
    instance = GnnTrainingShape().instance("changed", data)
    _, solver = load_solver(method)
    solver.warm_up(instance)
    work = CYCLES if method == "mis_spectral" else None
    run = TimedRun(instance, seed=seed, time_limit_s=None, work_limit=work)
    began = time.process_time()
    solver.solve(instance, run)
    seconds = time.process_time() - began - run.verifying_s
    best = run.best
    if run.verdict is None or best is None:
        raise SystemExit(f"{method}: no parts within {data.max_part} nodes")
    metrics = run.verdict.metrics
    return best.part, (metrics["cut_edges"], metrics["moved_nodes"], seconds)


def page(rows: Sequence[ChangeRow]) -> list[str]:
    lines = page_head("Partitions of graphs that change", "python benchmarks/dynamic_partitions.py")
    changes = max((row.change for row in rows), default=0)
    seeds = len({row.seed for row in rows})
    lines += [
        f"Series of {changes} changes, {seeds} seeds, parts as below. A change by the share c "
        "deletes c/2 of the nodes and then c/2 of the edges, and inserts as many: new nodes beside "
        "old ones, new edges between the ends of walks of two steps, so that long edges become "
        "rarer and cuts fall. All methods begin with METIS's default on the first graph and go on "
        "from their own parts, within the largest part of METIS's default on the changed graph. "
        "Parts made anew are numbered by assignment, so that most nodes keep theirs. *moved* is "
        "the share of the nodes that had a part and got another one, in the mean over changes; "
        "*cut* is over that of METIS anew; *last* is the cut after the last change alone; *s* are "
        "processor seconds, without verification.",
        "",
        *overall(rows),
        "## By graph",
        "",
        "| graph | nodes | edges | parts | change | method | cut | last | moved | s |",
        "|---|---:|---:|---:|---:|---|---:|---:|---:|---:|",
        *table(rows),
        "",
    ]
    return lines


def overall(rows: Sequence[ChangeRow]) -> Iterator[str]:
    """Means over all graphs, by share and method."""
    yield from ("## All graphs", "", "| change | method | cut | last | moved | s over METIS's |")
    yield "|---:|---|---:|---:|---:|---:|"
    for share in sorted({row.share for row in rows}):
        for method in METHODS:
            chosen = [row for row in rows if row.share == share]
            times = [row.seconds / rival(chosen, row).seconds for row in of(chosen, method)]
            found = f"{figures(chosen, method)} | {np.mean(times):.2g}"
            yield f"| {share:.0%} | {WORDS[method]} | {found} |"
    yield ""


def table(rows: Sequence[ChangeRow]) -> Iterator[str]:
    """One line per graph, share and method."""
    for graph, parts, share in dict.fromkeys((row.graph, row.parts, row.share) for row in rows):
        chosen = [row for row in rows if (row.graph, row.parts, row.share) == (graph, parts, share)]
        nodes, edges = (np.mean([getattr(row, n) for row in chosen]) for n in ("nodes", "edges"))
        for method in METHODS:
            seconds = np.mean([row.seconds for row in of(chosen, method)])
            yield (
                f"| {graph.partition(',')[0]} | {nodes:,.0f} | {edges:,.0f} | {parts} | "
                f"{share:.0%} | {WORDS[method]} | {figures(chosen, method)} | {seconds:.2g} |"
            )


def of(rows: Iterable[ChangeRow], method: str) -> list[ChangeRow]:
    return [row for row in rows if row.method == method]


def rival(rows: Iterable[ChangeRow], row: ChangeRow) -> ChangeRow:
    """METIS anew after the same change."""
    place = (*row.series, row.change)
    return next(each for each in of(rows, ANEW) if (*each.series, each.change) == place)


def figures(rows: Sequence[ChangeRow], method: str) -> str:
    """Cut over that of METIS anew, the same after the last change, and the share moved."""
    own = of(rows, method)
    last = [row for row in own if row.change == max(each.change for each in rows)]
    cuts = [np.mean([row.cut / rival(rows, row).cut for row in some]) for some in (own, last)]
    moved = np.mean([row.moved / row.nodes for row in own])
    return f"{cuts[0]:.3f} | {cuts[1]:.3f} | {moved:.1%}"


if __name__ == "__main__":
    main()
