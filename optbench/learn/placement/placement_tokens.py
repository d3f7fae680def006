"""A placement table as the tokens of a graph: parts, devices and operators, with relations.

Every token has a kind and features of structure; no name enters. A relation of two tokens is a
vector: rows that parts exchange, seconds of links, inputs of operators, and the two kinds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optbench.gnn.placement.allocation_process import scales_of
from optbench.gnn.placement.placement_board import costs_of
from optbench.gnn.placement.placement_table import PlacementTable
from optbench.shapes.gnn_training.operator_costs import OperatorCost

Singles = NDArray[np.float32]
PART_FEATURES, DEVICE_FEATURES, OPERATOR_FEATURES = 8, 7, 7
KINDS = 3
# Of parts: rows sent and received, and whether they meet; of devices: seconds of a row and of the
# latency; of operators: input and output; then one for each pair of kinds.
RELATIONS = 7 + KINDS * KINDS


@dataclass(frozen=True, eq=False)
class PlacementTokens:
    """Features of the tokens by kind, and relations (T, T, RELATIONS) in that order."""

    parts: Singles
    devices: Singles
    operators: Singles
    relation: Singles


def tokens_of(table: PlacementTable) -> PlacementTokens:
    """Return the tokens of a table."""
    costs = costs_of(table)
    scales = scales_of(costs)
    parts, devices, operators = table.num_parts, table.num_devices, len(table.operators)
    both = np.maximum(table.rows, table.rows.T)
    pairs = max(1, devices * (devices - 1))
    row, meeting = costs.row.sum() / pairs / scales.step, costs.meeting.sum() / pairs / scales.step
    size = parts + devices + operators
    relation = np.zeros((size, size, RELATIONS), dtype=np.float32)
    p, d, o = (slice(0, parts), slice(parts, parts + devices), slice(parts + devices, size))
    relation[p, p, 0] = np.log1p(10 * parts * row * table.rows)
    relation[p, p, 1] = np.log1p(10 * parts * row * table.rows.T)
    relation[p, p, 2] = both > 0
    relation[d, d, 3] = np.log1p(costs.row / max(row * scales.step, 1e-300))
    relation[d, d, 4] = np.log1p(10 * costs.meeting / scales.step)
    for k, each in enumerate(table.operators):
        for i in each.inputs:
            if i >= 0:
                at = parts + devices
                relation[at + k, at + i, 5] = relation[at + i, at + k, 6] = 1.0
    for a, first in enumerate((p, d, o)):
        for b, second in enumerate((p, d, o)):
            relation[first, second, 7 + KINDS * a + b] = 1.0
    return PlacementTokens(
        _part_features(table, scales.step, row, meeting, both),
        _device_features(table, scales, costs.row, costs.meeting),
        np.array([_operator_features(e.cost, table) for e in table.operators], dtype=np.float32)
        .reshape(operators, OPERATOR_FEATURES),
        relation,
    )  # fmt: skip


def _part_features(
    table: PlacementTable, step: float, row: float, meeting: float, both: NDArray[np.float64]
) -> Singles:
    parts = table.num_parts
    work = table.work_s.mean(axis=(1, 2))
    relative = work / work.mean()
    talk = both.sum(axis=1) * row
    met = (both > 0).sum(axis=1)
    largest = both.max(axis=1) * row
    columns = (
        relative,
        work / step,
        np.log1p(parts * talk),
        np.log1p(parts * largest),
        met / parts,
        np.log1p(10 * meeting * met),
        largest / np.maximum(talk, 1e-12),
        np.full(parts, np.log(parts) / 4),
    )
    return np.stack(columns, axis=1).astype(np.float32)


def _device_features(
    table: PlacementTable, scales: object, row: NDArray[np.float64], meeting: NDArray[np.float64]
) -> Singles:
    devices = table.num_devices
    total = table.work_s.sum(axis=0)
    rate = (1 / total) / (1 / total).sum(axis=0)
    apart = max(1, devices - 1)
    mean_row = max(float(row.sum()) / (devices * apart), 1e-300)
    columns = (
        devices * rate.mean(axis=1),
        devices * rate.min(axis=1),
        devices * rate.max(axis=1),
        total.std(axis=1) / total.mean(axis=1),
        row.sum(axis=1) / apart / mean_row,
        row.max(axis=1) / mean_row,
        np.full(devices, np.log(devices)),
    )
    return np.stack(columns, axis=1).astype(np.float32)


def _operator_features(cost: OperatorCost, table: PlacementTable) -> list[float]:
    """Costs as shares of the sums over all operators."""
    names = (
        *("flop_per_node", "flop_per_arc", "bytes_per_node", "bytes_per_arc"),
        *("row_bytes", "exchanges", "launches"),
    )
    sums = {name: sum(getattr(each.cost, name) for each in table.operators) for name in names}
    return [getattr(cost, name) / max(sums[name], 1e-300) for name in names]
