"""Partitions by mis_spectral against METIS and streaming: cuts, the curve over time, the first
answer; writes docs/results/partitioning.md and docs/results/raw/partitioning.jsonl.

    python benchmarks/partitioning.py [--sets public,held_out,large] [--parts 2,5,8] [--seeds 5]
                                      [--seconds 10] [--balance metis,3%] [--page-only]

Every method is held to the same largest part: that of METIS's default on the graph (``metis``), or
3 % above the fair share. A cell has ``--seconds`` of wall time, and ``PER_EDGE_S`` for each edge
where that is more, the same for mis_spectral and for METIS with many seeds. Cells whose row is
there are not run again. The seed is that of the graph, where it is random, and of the method.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cluster_runs import RESULTS, page_head  # noqa: E402

PAGE, RAW = RESULTS / "partitioning.md", RESULTS / "raw" / "partitioning.jsonl"
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
BALANCES = {"metis": "", "3%": ",imbalance=0.03"}
OURS, BEST, DEFAULT = "mis_spectral", "metis_best", "metis"
METHODS = (OURS, BEST, DEFAULT, "ldg", "random_parts")
TIMED = (OURS, BEST)
PER_EDGE_S = 6e-5
# Shares of the wall time at which the curve is read, and runs of METIS that are timed.
SHARES = (1 / 64, 1 / 16, 1 / 4, 1 / 2, 1.0)
TIMINGS = 5
GOAL_DEFAULT, GOAL_BEST, GOAL_FIRST = 0.90, 0.98, 5.0


@dataclass(frozen=True)
class PartitionRow:
    """One run; ``points`` are its improvements as (seconds, cut)."""

    graph: str
    parts: int
    balance: str
    seed: int
    seconds: float
    method: str
    nodes: int
    edges: int
    max_part: int
    cut: float | None
    imbalance: float | None
    points: list[tuple[float, float]]

    @property
    def cell(self) -> tuple[str, int, str, int]:
        return self.graph, self.parts, self.balance, self.seed

    @property
    def key(self) -> tuple[Any, ...]:
        return *self.cell, self.method, self.seconds

    def cut_by(self, seconds: float) -> float | None:
        """The cut that was reached after so many seconds."""
        return min((cut for at, cut in self.points if at <= seconds), default=None)


def rows_so_far() -> list[PartitionRow]:
    if not RAW.exists():
        return []
    lines = RAW.read_text(encoding="utf-8").splitlines()
    rows = [PartitionRow(**json.loads(line)) for line in lines]
    return list({row.key: row for row in rows}.values())


def run_cells(args: argparse.Namespace) -> None:
    """Run what is missing, and append its rows."""
    from optbench.plugins.discovery import load_problem

    known = {row.key for row in rows_so_far()}
    RAW.parent.mkdir(parents=True, exist_ok=True)
    for graph, parts, balance, seed in cells(args):
        spec = f"gnn_training:{graph},parts={parts}{BALANCES[balance]}"
        instance: Any = load_problem(spec).instance(seed)
        seconds = max(args.seconds, PER_EDGE_S * instance.data.graph.num_edges)
        for method in METHODS:
            if (graph, parts, balance, seed, method, seconds) in known:
                continue
            row = run_one(instance, graph, balance, seed, seconds, method)
            with RAW.open("a", encoding="utf-8") as out:
                out.write(json.dumps(asdict(row)) + "\n")
            print(spec, seed, method, row.cut, f"{row.points[-1:]}", flush=True)


def cells(args: argparse.Namespace) -> Iterator[tuple[str, int, str, int]]:
    for seed in range(args.seeds):
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


def ratio(one: float | None, other: float | None) -> float | None:
    """The ratio of two cuts, 1 where both are 0; None where one is missing or only one is 0."""
    if one is None or other is None:
        return None
    if other == 0:
        return 1.0 if one == 0 else None
    return one / other


class PartitionTable:
    """The rows by cell and method, and the figures of a page."""

    def __init__(self, rows: Sequence[PartitionRow]) -> None:
        self.rows = {(row.cell, row.method): row for row in rows}
        self.cells = list(dict.fromkeys(row.cell for row in rows if row.method == OURS))

    def ratios(self, cells: Sequence[Any], method: str, share: float = 1.0) -> list[float]:
        """Cuts of mis_spectral over those of a method, after a share of the wall time."""
        out = []
        for cell in cells:
            ours, other = self.rows.get((cell, OURS)), self.rows.get((cell, method))
            if ours is None or other is None:
                continue
            until = ours.seconds * share * (1 if share < 1 else np.inf)
            theirs = other.cut_by(until) if method in TIMED else other.cut
            found = ratio(ours.cut_by(until), theirs)
            if found is not None:
                out.append(found)
        return out

    def first_answers(self, cells: Sequence[Any]) -> list[tuple[float, float]]:
        """(seconds over METIS's, cut over METIS's) of the first answer."""
        out = []
        for cell in cells:
            ours, metis = self.rows.get((cell, OURS)), self.rows.get((cell, DEFAULT))
            if ours is None or metis is None or not ours.points or not metis.points:
                continue
            quality = ratio(ours.points[0][1], metis.cut)
            if quality is not None:
                out.append((ours.points[0][0] / metis.points[0][0], quality))
        return out

    def mean_cut(self, cells: Sequence[Any], method: str) -> float:
        found = [self.rows[cell, method].cut for cell in cells if (cell, method) in self.rows]
        known = [cut for cut in found if cut is not None]
        return float(np.mean(known)) if known else np.nan


def page(rows: Sequence[PartitionRow]) -> list[str]:
    """The page of these rows, one section per balance."""
    head = page_head("Partitions of graphs", "python benchmarks/partitioning.py")
    lines = [
        line.replace("Times are those of the processor", "Times are wall time") for line in head
    ]
    lines += [
        "Cuts of `mis_spectral`, held with all others to one largest part, over those of METIS. "
        "*default* is METIS as pymetis calls it, once; *best* is the best of many seeds, "
        "recursive and k-way with `ufactor` set to the limit, in the same wall time. Goals: a mean "
        f"ratio of at most {GOAL_DEFAULT:.2f} to the default and {GOAL_BEST:.2f} to the best; the "
        f"first answer within {GOAL_FIRST:g} times METIS's time and no worse than it.",
        "",
    ]
    for balance in BALANCES:
        chosen = [row for row in rows if row.balance == balance]
        if chosen:
            lines += section(balance, PartitionTable(chosen))
    return lines


def section(balance: str, table: PartitionTable) -> list[str]:
    """The means, the curve and the table of one balance."""
    words = {"metis": "The largest part of METIS's default", "3%": "3 % above the fair share"}
    first = table.first_answers(table.cells)
    curve = [(share, table.ratios(table.cells, BEST, share)) for share in SHARES]
    return [
        f"## {words[balance]}",
        "",
        f"{len(table.cells)} cells: mean ratio {mean(table.ratios(table.cells, DEFAULT))} to the "
        f"default, {mean(table.ratios(table.cells, BEST))} to the best of many seeds. First "
        f"answers: after {mean([each[0] for each in first], 1)} times METIS's time in the mean, "
        f"mean ratio {mean([each[1] for each in first])}, no worse in "
        f"{sum(each[1] <= 1 for each in first)} of {len(first)}, within {GOAL_FIRST:g} times in "
        f"{sum(each[0] <= GOAL_FIRST for each in first)}.",
        "",
        "| share of the wall time | " + " | ".join(f"{share:.3g}" for share, _ in curve) + " |",
        "|---|" + "---:|" * len(curve),
        "| mean ratio to the best of many seeds at that time | "
        + " | ".join(mean(found) for _, found in curve)
        + " |",
        "",
        "| graph | parts | seeds | s | default | best | ldg | random | mis_spectral | to default "
        "| to best | first: × METIS's time | first: to default |",
        "|---|" + "---:|" * 12,
        *table_rows(table),
        "",
    ]


def table_rows(table: PartitionTable) -> Iterator[str]:
    """One line per graph and number of parts: means over seeds."""
    for graph, parts in dict.fromkeys(cell[:2] for cell in table.cells):
        cells_here = [cell for cell in table.cells if cell[:2] == (graph, parts)]
        first = table.first_answers(cells_here)
        columns = [
            graph.removeprefix("graph="),
            str(parts),
            str(len(cells_here)),
            f"{table.rows[cells_here[0], OURS].seconds:.0f}",
            *(f"{table.mean_cut(cells_here, name):,.1f}" for name in (DEFAULT, BEST)),
            *(f"{table.mean_cut(cells_here, name):,.0f}" for name in ("ldg", "random_parts")),
            f"{table.mean_cut(cells_here, OURS):,.1f}",
            mean(table.ratios(cells_here, DEFAULT)),
            mean(table.ratios(cells_here, BEST)),
            mean([each[0] for each in first], 1),
            mean([each[1] for each in first]),
        ]
        yield f"| {' | '.join(columns)} |"


def mean(values: Sequence[float], digits: int = 3) -> str:
    return f"{np.mean(values):.{digits}f}" if len(values) else "–"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--parts", default="2,5,8")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--balance", default=",".join(BALANCES))
    parser.add_argument("--page-only", action="store_true")
    args = parser.parse_args()
    if not args.page_only:
        run_cells(args)
    lines = page(rows_so_far())
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
