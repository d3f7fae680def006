"""What placing the parts of a graph costs, as a table; the parts themselves are given.

With parts p on devices d, R_pq the rows that part p sends to part q, windows w of recorded speeds,
and x_pd = 1 where part p is on device d:

    rows_de = Σ_p,q R_pq x_pd x_qe                                    for d ≠ e
    load_wd = Σ_p work_pdw x_pd
              + Σ_e≠d [rows_de + rows_ed > 0] latency_de + row_s_de max(rows_de, rows_ed)
    step    = mean_w max_d load_wd + reduce_U

``latency_s`` and ``row_s`` are those of all exchanges of a step, less the share that computing
hides. U are the devices in use; with u of them the gradients are added up in a ring, in

    reduce_U = 2 (u - 1) (parameter_bytes / (u min_U gb_per_s) + max_U latency)

as in ``step_costs``, which is never less than for a subset of U. ``rows_de`` counts a row once for
each part that needs it, where ``step_costs`` counts it once for each device, so that the table's
step is never below the step of the cost model, and is equal to it where each part is alone on its
device. ``verified_step_s`` is the cost model's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import fsum

import numpy as np

from optbench.errors import ModelError
from optbench.shapes.gnn_training.cut_graph import CutGraph
from optbench.shapes.gnn_training.operator_costs import Operator, OperatorCost, costs_of_plan
from optbench.shapes.gnn_training.step_costs import GIGA, part_seconds, step_costs
from optbench.shapes.gnn_training.training_data import Floats, GnnTraining, Ints
from optbench.shapes.gnn_training.training_plan import TrainingPlan


@dataclass(frozen=True, eq=False)
class PlacementTable:
    """Seconds and bytes of P parts on D devices in W windows.

    ``work_s`` is (P, D, W); ``rows`` (P, P) rows that a part sends to another; ``row_bytes`` and
    ``exchanges`` those of a step; links are (D, D); ``kept_bytes`` (P) and ``memory_bytes`` (D, inf
    where there is no limit) are of the memory, besides ``received_bytes`` for each row received and
    ``parameter_bytes`` on each device in use. ``operators`` are those of the model.
    """

    work_s: Floats
    rows: Floats
    row_bytes: float
    exchanges: float
    gb_per_s: Floats
    latency_s: Floats
    overlap: float
    kept_bytes: Floats
    memory_bytes: Floats
    parameter_bytes: float = 0.0
    operators: tuple[Operator, ...] = field(default=())

    def __post_init__(self) -> None:
        parts, devices = self.work_s.shape[:2]
        shapes = {
            "rows": (parts, parts),
            "gb_per_s": (devices, devices),
            "latency_s": (devices, devices),
            "kept_bytes": (parts,),
            "memory_bytes": (devices,),
        }
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                given = getattr(self, name).shape
                raise ModelError(f"placement table: {name} has shape {given}; it must be {shape}")

    @property
    def num_parts(self) -> int:
        return int(self.work_s.shape[0])

    @property
    def num_devices(self) -> int:
        return int(self.work_s.shape[1])

    @property
    def num_windows(self) -> int:
        return int(self.work_s.shape[2])

    @property
    def row_s(self) -> Floats:
        """Seconds of a row between two devices that computing does not hide; 0 within one."""
        found: Floats = (1 - self.overlap) * self.row_bytes / (self.gb_per_s * GIGA)
        return np.where(np.eye(self.num_devices, dtype=bool), 0.0, found)

    @property
    def meeting_s(self) -> Floats:
        """Seconds of the latency of two devices that exchange anything; 0 within one."""
        found: Floats = (1 - self.overlap) * self.exchanges * self.latency_s
        return np.where(np.eye(self.num_devices, dtype=bool), 0.0, found)

    @property
    def reduce_s(self) -> float:
        """Seconds of adding up the gradients of as many devices as can be in use, over the slowest
        links of all.
        """
        return self.reduce_of(np.arange(self.num_devices))

    def reduce_of(self, devices: Ints) -> float:
        """Return the seconds of adding up gradients where these devices are in use, each of them if
        there are parts enough.
        """
        if len(devices) < 2:
            return 0.0
        apart, chosen = ~np.eye(len(devices), dtype=bool), np.ix_(devices, devices)
        slowest = float(self.gb_per_s[chosen][apart].min())
        longest = float(self.latency_s[chosen][apart].max())
        return self.ring_s(min(len(devices), self.num_parts), slowest, longest)

    def ring_s(self, count: int, gb_per_s: float, latency_s: float) -> float:
        """Return the seconds of adding up the gradients of so many devices over equal links."""
        if count < 2 or self.parameter_bytes == 0:
            return 0.0
        share_s = self.parameter_bytes / count / (gb_per_s * GIGA)
        return 2 * (count - 1) * (share_s + latency_s)

    @property
    def received_bytes(self) -> float:
        """Bytes that a device keeps of a row that it receives."""
        return self.row_bytes / 2


def smallest_table() -> PlacementTable:
    """Return two parts on two devices, the second half as fast: enough to load what places."""
    work = np.array([[[1.0], [2.0]]] * 2)
    rows, flat = 1.0 - np.eye(2), np.ones((2, 2))
    return PlacementTable(
        work, rows, 1.0, 2.0, flat, flat, 0.0, np.ones(2), np.full(2, np.inf), 1.0
    )


def placement_table(data: GnnTraining, plan: TrainingPlan) -> PlacementTable:
    """Return the table of the parts of a plan, with its fusions, at the devices' top clocks."""
    costs = costs_of_plan(data.operators, data.fusions, plan.fusions.tolist())
    cut = CutGraph(data.graph, plan.part, data.num_parts)
    alone = np.array(
        [
            [
                part_seconds(costs, float(nodes), float(arcs), each, each.clocks[-1])
                for each in data.devices
            ]
            for nodes, arcs in zip(cut.sizes.tolist(), cut.arcs.tolist(), strict=True)
        ]
    )
    exchanging = [each for each in costs if each.row_bytes > 0]
    limits = [np.inf if d.memory_gb is None else d.memory_gb * GIGA for d in data.devices]
    return PlacementTable(
        alone[:, :, None] / data.windows.T[None],
        cut.rows.astype(np.float64),
        fsum(each.row_bytes for each in exchanging),
        float(sum(each.exchanges for each in exchanging)),
        data.links.gb_per_s,
        data.links.latency_s,
        data.links.overlap,
        _kept_bytes(costs, cut),
        np.array(limits),
        data.parameter_bytes,
        data.operators,
    )


def _kept_bytes(costs: Sequence[OperatorCost], cut: CutGraph) -> Floats:
    """Bytes of each part that are kept for the backward pass."""
    kept: Floats = fsum(each.kept_bytes_per_node for each in costs) * cut.sizes.astype(float)
    return kept + fsum(each.kept_bytes_per_arc for each in costs) * cut.arcs


def table_loads(table: PlacementTable, device: Ints) -> Floats:
    """Return load_wd, as windows by devices."""
    on = np.zeros((table.num_parts, table.num_devices))
    on[np.arange(table.num_parts), device] = 1.0
    rows = on.T @ table.rows @ on
    np.fill_diagonal(rows, 0.0)
    both = np.maximum(rows, rows.T)
    talk = np.where(both > 0, table.meeting_s + table.row_s * both, 0.0).sum(axis=1)
    work = np.einsum("pdw,pd->wd", table.work_s, on)
    loads: Floats = work + talk
    return loads


def mean_load_s(table: PlacementTable, device: Ints) -> float:
    """Return the step without adding up gradients: the mean over windows of the longest load."""
    return float(table_loads(table, device).max(axis=1).mean())


def table_step_s(table: PlacementTable, device: Ints) -> float:
    """Return the step of the table, with the gradients of the devices in use."""
    return mean_load_s(table, device) + table.reduce_of(np.unique(device))


def memory_excess_bytes(table: PlacementTable, device: Ints) -> Floats:
    """Return the bytes by which each device exceeds its memory; 0 where it fits."""
    on = np.zeros((table.num_parts, table.num_devices))
    on[np.arange(table.num_parts), device] = 1.0
    rows = on.T @ table.rows @ on
    np.fill_diagonal(rows, 0.0)
    kept = on.T @ table.kept_bytes + table.received_bytes * rows.sum(axis=0)
    kept += table.parameter_bytes * (on.sum(axis=0) > 0)
    over: Floats = np.maximum(0.0, kept - table.memory_bytes)
    return over


def verified_step_s(data: GnnTraining, plan: TrainingPlan, device: Ints) -> float:
    """Return the step by the cost model of a plan whose parts are placed so, at top clocks."""
    top = np.array([len(each.clocks) - 1 for each in data.devices], dtype=np.int64)
    return step_costs(data, replace(plan, device=device, clock=top[device])).step_s
