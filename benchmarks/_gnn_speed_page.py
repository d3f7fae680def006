"""The page of ``gnn_training_speed.py``: ratios of one part after the other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks._cluster_runs import RESULTS, page_head

ACCURACIES = RESULTS / "raw" / "gnn_accuracy.jsonl"
EQUAL = ("one", "one_fused", "data_parallel", "partition", "fusion", "overlap")
UNEQUAL = ("unequal_data_parallel", "unequal_identity", "unequal_placement")
PAPER = (3.0, 5.0)


@dataclass(frozen=True)
class SpeedRow:
    """One way to train in one round: milliseconds of an epoch, MB sent per epoch by all processes.

    ``busy`` is the share of the time that each process computed.
    """

    graph: str
    network: str
    way: str
    turn: int
    nodes: int
    edges: int
    epoch_ms: float
    least_ms: float
    sent_mb: float
    cut_edges: int
    fusions: str
    busy: list[float]
    solo_speeds: list[float]
    load: float

    @property
    def key(self) -> tuple[Any, ...]:
        return self.graph, self.network, self.way, self.turn


@dataclass(frozen=True)
class SpeedTable:
    """Rows by cell and way."""

    rows: Sequence[SpeedRow]

    def of(self, cell: tuple[str, str], way: str) -> dict[int, SpeedRow]:
        """The rows of a way by round."""
        return {r.turn: r for r in self.rows if (r.graph, r.network) == cell and r.way == way}

    def cells(self, ways: Sequence[str]) -> list[tuple[str, str]]:
        """The cells with a row of each of these ways."""
        found = dict.fromkeys((row.graph, row.network) for row in self.rows)
        return [cell for cell in found if all(self.of(cell, way) for way in ways)]

    def ms(self, cell: tuple[str, str], way: str) -> float:
        return float(np.median([row.epoch_ms for row in self.of(cell, way).values()]))

    def gain(self, cell: tuple[str, str], slow: str, fast: str) -> float:
        """The median over rounds of one way's time over another's."""
        one, other = self.of(cell, slow), self.of(cell, fast)
        shared = sorted(one.keys() & other.keys())
        return float(np.median([one[k].epoch_ms / other[k].epoch_ms for k in shared]))

    def sent(self, cell: tuple[str, str], way: str) -> float:
        return next(iter(self.of(cell, way).values())).sent_mb


def geometric(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def mean_accuracies() -> dict[tuple[str, str], str]:
    """The means of both sides of ``gnn_accuracy.py``, by data and network."""
    if not ACCURACIES.exists():
        return {}
    sides: dict[tuple[str, str], dict[str, list[float]]] = {}
    for line in ACCURACIES.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        by_side = sides.setdefault((row["data"], row["network"]), {})
        by_side.setdefault(row["side"], []).append(100 * row["test"])
    return {
        cell: " / ".join(f"{np.mean(found):.1f}" for _, found in sorted(by_side.items()))
        for cell, by_side in sides.items()
    }


def page(rows: Sequence[SpeedRow]) -> list[str]:
    """The page of these rows."""
    head = page_head("Speed of distributed GNN training", "python benchmarks/gnn_training_speed.py")
    lines = [
        each.replace(
            "Times are those of the processor",
            "Times are wall time, each process on a core of its own",
        )
        for each in head
    ]
    loads = [row.load for row in rows]
    turns = len({row.turn for row in rows})
    lines += [
        "Full-graph training, an epoch being a step: forward, backward, reduction of gradients, "
        "Adam. Two layers, hidden width 16 (GAT: 8 heads of 8), dropout 0.5; Cora and CiteSeer "
        "with their features stored densely, the other graphs with 128. `data-parallel` is the "
        "ordinary way on two processes: our own runtime, a random balanced partition, the plain "
        "CSR kernels of `one process` (a GAT without fusions), halo exchange, no overlap. Then one "
        "part is added at a time: the partition of `mis_spectral` (3 % imbalance), the best fusion "
        "plan with factors measured on the graph, overlap of exchange and computing. "
        f"Medians of epochs in each of {turns} rounds, in which all ways take turns; medians of "
        f"rounds, ratios within rounds. Load while it ran: {min(loads):.1f} to {max(loads):.1f}.",
        "",
        "What to know when reading: plain CSR sends rows of features in every epoch where a layer "
        "sums before it multiplies (SAGE); `aggregated_before` of a plan ends that. Processes talk "
        "by gloo over the loopback device, whose work runs on the cores that compute: overlap "
        "hides waiting, not copying. Placement has nothing to decide between two equal devices, "
        "and is in a table of its own.",
        "",
    ]
    table = SpeedTable(rows)
    lines += equal_section(table)
    if table.cells(UNEQUAL):
        lines += unequal_section(table)
    return lines


def equal_section(table: SpeedTable) -> list[str]:
    """Two processes of the same speed."""
    cells = table.cells(EQUAL)
    if not cells:
        return []
    total = [table.gain(cell, "data_parallel", "overlap") for cell in cells]
    against_one = [table.gain(cell, "one", "overlap") for cell in cells]
    fused_one = [table.gain(cell, "one_fused", "overlap") for cell in cells]
    inside = sum(each >= PAPER[0] for each in total)
    steps = [("data_parallel", "partition"), ("partition", "fusion"), ("fusion", "overlap")]
    parts = ", ".join(
        f"{fast} {geometric([table.gain(cell, slow, fast) for cell in cells]):.2f}"
        for slow, fast in steps
    )
    less = [
        table.sent(cell, "data_parallel") / max(table.sent(cell, "overlap"), 1e-9)
        for cell in cells
        if table.sent(cell, "overlap") > 0
    ]
    lines = [
        "## Two devices of the same speed",
        "",
        f"Everything against the ordinary data-parallel way: **{geometric(total):.2f} times** in "
        f"the geometric mean of {len(cells)} cells ({min(total):.2f} to {max(total):.2f}); at "
        f"least {PAPER[0]:g} times, as the paper claims ({PAPER[0]:g} to {PAPER[1]:g}), in "
        f"{inside} of {len(cells)}. Factor of each part in the mean: {parts}. Against one process "
        f"with plain CSR {geometric(against_one):.2f} (two win in "
        f"{sum(each > 1 for each in against_one)} of {len(cells)}), against one process with the "
        f"same fusions {geometric(fused_one):.2f} (two win in "
        f"{sum(each > 1 for each in fused_one)}). Bytes sent: {geometric(less):.0f} times less in "
        "the mean.",
        "",
    ]
    return [*lines, *time_rows(table), *plan_rows(table), ""]


def time_rows(table: SpeedTable) -> list[str]:
    """The table of times, bytes and accuracies."""
    accuracy = mean_accuracies()
    lines = [
        "| graph | edges | network | one ms | one, fused ms | data-parallel ms | + partition ms "
        "| + fusion ms | + overlap ms | all / data-parallel | all / one | all / one, fused "
        "| MB sent: data-parallel | partition | all | accuracy: one / all |",
        "|---|---:|---|" + "---:|" * 12 + "---|",
    ]
    for cell in table.cells(EQUAL):
        gains = [table.gain(cell, way, "overlap") for way in ("data_parallel", "one", "one_fused")]
        row = next(iter(table.of(cell, "overlap").values()))
        sent = [table.sent(cell, way) for way in ("data_parallel", "partition", "overlap")]
        columns = [
            cell[0],
            f"{row.edges:,}",
            cell[1],
            *(f"{table.ms(cell, way):.1f}" for way in EQUAL),
            f"**{gains[0]:.2f}**",
            *(f"{each:.2f}" for each in gains[1:]),
            *(f"{each:.3g}" for each in sent),
            accuracy.get(cell, "–"),
        ]
        lines.append(f"| {' | '.join(columns)} |")
    return lines


def plan_rows(table: SpeedTable) -> list[str]:
    """Cut edges, busy shares and plans."""
    lines = [
        "",
        "Accuracies (test, in points, means of ten seeds) are those of `gnn_accuracy.md`, whose "
        "molecules and community graphs are smaller ones with labels; ratios are times of others "
        "over the time of everything.",
        "",
        "| graph | network | cut edges: random | mis_spectral | busy: data-parallel | all | plan |",
        "|---|---|---:|---:|---|---|---|",
    ]
    for cell in table.cells(EQUAL):
        first = {way: next(iter(table.of(cell, way).values())) for way in EQUAL}
        columns = [
            *cell,
            f"{first['data_parallel'].cut_edges:,}",
            f"{first['overlap'].cut_edges:,}",
            *(
                " ".join(f"{each:.0%}" for each in first[way].busy)
                for way in ("data_parallel", "overlap")
            ),
            first["overlap"].fusions,
        ]
        lines.append(f"| {' | '.join(columns)} |")
    return lines


def unequal_section(table: SpeedTable) -> list[str]:
    """Two processes of speeds 1 and 1/2."""
    lines = [
        "## Devices of speeds 1 and 1/2",
        "",
        "Six parts of `mis_spectral`; a throttled process sleeps after each section of computing. "
        "*identity*: part p on device p modulo 2; *placement*: the one of all 64 with the least "
        "modelled step. Both have the same partition, fusions and overlap.",
        "",
        "| graph | network | data-parallel ms | identity ms | placement ms | placement's factor "
        "| all / data-parallel | measured speeds |",
        "|---|---|" + "---:|" * 5 + "---|",
    ]
    for cell in table.cells(UNEQUAL):
        row = next(iter(table.of(cell, "unequal_placement").values()))
        columns = [
            *cell,
            *(f"{table.ms(cell, way):.1f}" for way in UNEQUAL),
            f"{table.gain(cell, 'unequal_identity', 'unequal_placement'):.2f}",
            f"**{table.gain(cell, 'unequal_data_parallel', 'unequal_placement'):.2f}**",
            " ".join(f"{each:.2f}" for each in row.solo_speeds),
        ]
        lines.append(f"| {' | '.join(columns)} |")
    return [*lines, ""]
