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
# How the rows in the raw file were measured.
REMARKS = (
    "Rows were measured at commit 5f763ea8; those of METIS with many seeds at 3 % again at "
    "26f35d54, after its `ufactor` was computed in whole numbers. The process had one of the two "
    "cores to itself by priority while others worked on "
    "the other one. Large graphs have one seed, at 3 % only five parts; at 3 % a run has 5 s "
    "instead of 10 s."
)


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


def ratio(one: float, other: float) -> float:
    """The ratio of two cuts, 1 where both are 0; infinity where only the other one is."""
    if other == 0:
        return 1.0 if one == 0 else np.inf
    return one / other


@dataclass(frozen=True)
class Ratios:
    """Ratios of cuts by cell: infinity is a loss against 0, None a cell without both answers."""

    by_cell: dict[Any, float | None]

    @property
    def finite(self) -> list[float]:
        return [each for each in self.by_cell.values() if each is not None and np.isfinite(each)]

    @property
    def lost(self) -> int:
        """Cells where the other one cuts nothing and mis_spectral does."""
        return sum(each == np.inf for each in self.by_cell.values())

    @property
    def answered(self) -> list[Any]:
        """Cells that have answers of both."""
        return [cell for cell, each in self.by_cell.items() if each is not None]

    def words(self, goal: float | None = None) -> str:
        """The mean with the number of cells that it covers, what it leaves out, and the goal."""
        out = f"{mean(self.finite)} over {len(self.finite)} of {len(self.by_cell)} cells"
        if self.lost:
            out += f", {self.lost} lost against a cut of 0"
        missing = len(self.by_cell) - len(self.answered)
        if missing:
            out += f", {missing} without an answer of both"
        if goal is None:
            return out
        is_met = len(self.finite) == len(self.by_cell) and np.mean(self.finite) <= goal
        return f"{out}: {judged(bool(is_met))}"


def judged(is_met: bool) -> str:
    return "**met**" if is_met else "**missed**"


class PartitionTable:
    """The rows by cell and method, and the figures of a page."""

    def __init__(self, rows: Sequence[PartitionRow]) -> None:
        self.rows = {(row.cell, row.method): row for row in rows}
        self.cells = list(dict.fromkeys(row.cell for row in rows if row.method == OURS))

    def ratios(self, cells: Sequence[Any], method: str, share: float = 1.0) -> Ratios:
        """Cuts of mis_spectral over those of a method, after a share of the wall time."""
        cuts = {
            cell: (self.cut(cell, OURS, share), self.cut(cell, method, share)) for cell in cells
        }
        return Ratios(
            {
                cell: None if one is None or other is None else ratio(one, other)
                for cell, (one, other) in cuts.items()
            }
        )

    def cut(self, cell: Any, method: str, share: float = 1.0) -> float | None:
        """The cut of a method after a share of the wall time; the default's has all of it."""
        row = self.rows.get((cell, method))
        if row is None:
            return None
        if method not in TIMED:
            return row.cut
        return row.cut_by(row.seconds * share if share < 1 else np.inf)

    def first_answers(self, cells: Sequence[Any]) -> list[tuple[float, float]]:
        """(seconds over METIS's, cut over METIS's) of the first answer."""
        out = []
        for cell in cells:
            ours, metis = self.rows.get((cell, OURS)), self.rows.get((cell, DEFAULT))
            if ours is None or metis is None or not ours.points or not metis.points:
                continue
            if metis.cut is not None:
                quality = ratio(ours.points[0][1], metis.cut)
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
        f"first answer within {GOAL_FIRST:g} times METIS's time and no worse than it. A goal is "
        "met only where the mean covers all cells. " + REMARKS,
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
    cells = table.cells
    return [
        f"## {words[balance]}",
        "",
        f"- Mean ratio to the default: {table.ratios(cells, DEFAULT).words(GOAL_DEFAULT)} (goal "
        f"{GOAL_DEFAULT:.2f}).",
        "- Mean ratio to the best of many seeds: "
        f"{table.ratios(cells, BEST).words(GOAL_BEST)} (goal {GOAL_BEST:.2f}).",
        *first_answer_lines(table),
        "",
        *curve_lines(table),
        "",
        "| graph | parts | seeds | s | default | best | ldg | random | mis_spectral | to default "
        "| to best | first: × METIS's time | first: to default |",
        "|---|" + "---:|" * 12,
        *table_rows(table),
        "",
    ]


def first_answer_lines(table: PartitionTable) -> Iterator[str]:
    """First answers against METIS's: of all cells, and how many are in time and no worse."""
    first, of = table.first_answers(table.cells), len(table.cells)
    times, found = [each[0] for each in first], [each[1] for each in first]
    worse = of - sum(each <= 1 for each in found)
    late = of - sum(each <= GOAL_FIRST for each in times)
    yield (
        f"- First answers, of both in {len(first)} of {of} cells: after {mean(times, 1)} times "
        f"METIS's time in the mean, within {GOAL_FIRST:g} times in {of - late}: "
        f"{judged(late == 0)} in all cells, {judged(bool(np.mean(times) <= GOAL_FIRST))} in the "
        "mean."
    )
    known = [each for each in found if np.isfinite(each)]
    yield (
        f"- Their cut over METIS's: {mean(known)} in the mean of {len(known)} cells, no worse in "
        f"{of - worse}: {judged(worse == 0)} in all cells, {judged(bool(np.mean(known) <= 1))} in "
        "the mean."
    )


def curve_lines(table: PartitionTable) -> list[str]:
    """The ratio over time, on the cells that have answers of both at the first share."""
    common = table.ratios(table.cells, BEST, SHARES[0]).answered
    curve = [table.ratios(common, BEST, share) for share in SHARES]
    ours, best = (
        [sum(table.cut(cell, name, share) is not None for cell in table.cells) for share in SHARES]
        for name in (OURS, BEST)
    )
    return [
        f"Over time, the {len(common)} of {len(table.cells)} cells where both have an answer at "
        f"the first share ({SHARES[0]:.3g}); how many cells have one is below.",
        "",
        "| share of the wall time | " + " | ".join(f"{share:.3g}" for share in SHARES) + " |",
        "|---|" + "---:|" * len(SHARES),
        "| mean ratio to the best of many seeds at that time | "
        + " | ".join(mean(each.finite) for each in curve)
        + " |",
        f"| cells with an answer of {OURS} | " + " | ".join(map(str, ours)) + " |",
        f"| cells with an answer of {BEST} | " + " | ".join(map(str, best)) + " |",
        "| lost against a cut of 0 | " + " | ".join(str(each.lost) for each in curve) + " |",
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
            mean(table.ratios(cells_here, DEFAULT).finite),
            mean(table.ratios(cells_here, BEST).finite),
            mean([each[0] for each in first], 1),
            mean([each[1] for each in first if np.isfinite(each[1])]),
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
