"""The tables of ``device_moves`` for an instance, and partitions settled by them.

A part on one of several devices that it might be on is the same to a step: nothing is exchanged
between parts of one device. So nodes move between devices; one that has moved joins a part of its
new device that has room.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optbench.shapes.gnn_training.adjacency import adjacency_of
from optbench.shapes.gnn_training.operator_costs import OperatorCost, costs_of_plan
from optbench.shapes.gnn_training.step_costs import GIGA, step_costs
from optbench.shapes.gnn_training.training_data import Floats, GnnTraining, Ints
from optbench.shapes.gnn_training.training_plan import TrainingPlan

from .device_moves import settle_round

ROUNDS = 30
# The weight of the devices that are not the slowest, in the first search; the second has none.
SMOOTH = 0.02
UNLIMITED = 1e300


@dataclass(frozen=True)
class DeviceBalance:
    """Search on the cost model, for parts on given devices (all at their top clocks)."""

    data: GnnTraining
    device: Ints

    @cached_property
    def used(self) -> Ints:
        """The devices that hold parts, ascending."""
        return np.unique(self.device)

    @cached_property
    def reduce_s(self) -> float:
        """Seconds of adding up gradients, which are the same for all partitions."""
        part = np.zeros(self.data.graph.num_nodes, dtype=np.int64)
        return step_costs(self.data, TrainingPlan(part, self.device)).reduce_s

    @cached_property
    def _graph(self) -> tuple[Ints, Ints]:
        return adjacency_of(self.data.graph)

    def settled(
        self, part: Ints, seed: int, time_left: Callable[[], float] = lambda: np.inf
    ) -> Ints:
        """Return a partition of no longer step (or less energy), by moves between devices, in
        rounds as long as there is time.
        """
        if len(self.used) < 2:
            return part
        number = np.searchsorted(self.used, self.device)
        where = number[part]
        sizes = self.data.graph.sizes.astype(np.int64)
        for smooth in (SMOOTH, 0.0):
            tables = (self._costs, self._devices, self._pairs, self._windows, self._price(smooth))
            order, draws = np.arange(len(part)), np.array([seed, 0])
            for _ in range(ROUNDS):
                if time_left() <= 0 or not settle_round(
                    *self._graph, sizes, where, *tables, order, draws
                ):
                    break
        return self._joined(part, number, where)

    def _joined(self, part: Ints, number: Ints, where: Ints) -> Ints:
        """Give nodes that have moved to another device a part there, the emptiest first."""
        out = part.copy()
        moved = number[part] != where
        for d in range(len(self.used)):
            coming = np.flatnonzero(moved & (where == d))
            own = np.flatnonzero(number == d)
            kept = np.bincount(part[~moved], minlength=self.data.num_parts)[own]
            own, kept = own[np.argsort(kept, kind="stable")], np.sort(kept, kind="stable")
            places = np.repeat(own, np.maximum(self.data.max_part - kept, 0))
            out[coming] = places[: len(coming)]
        return out

    @cached_property
    def _kernels(self) -> list[OperatorCost]:
        return costs_of_plan(self.data.operators, self.data.fusions, ())

    @cached_property
    def _costs(self) -> Floats:
        rows = [
            (each.flop_per_node, each.flop_per_arc, each.bytes_per_node, each.bytes_per_arc)
            for each in self._kernels
        ]
        return np.array(rows, dtype=np.float64).reshape(-1, 4)

    @cached_property
    def _windows(self) -> Floats:
        return np.ascontiguousarray(self.data.windows[:, self.used])

    @cached_property
    def _devices(self) -> Floats:
        """A row of ``device`` for each device in use."""
        launches = sum(each.launches for each in self._kernels)
        rows = list[tuple[float, ...]]()
        for d in self.used.tolist():
            device, parts = self.data.devices[d], int((self.device == d).sum())
            memory = UNLIMITED if device.memory_gb is None else device.memory_gb * GIGA
            top = device.clocks[-1]
            above_w = device.power_w(top) - device.idle_w
            rows.append(
                (
                    1 / (top * device.gflops * GIGA),
                    1 / (device.gb_per_s * GIGA),
                    parts * launches * device.launch_s,
                    above_w if self.data.minimize == "energy" else 0.0,
                    float(parts * self.data.max_part),
                    memory,
                )
            )
        return np.array(rows)

    @cached_property
    def _pairs(self) -> Floats:
        """Exposed seconds of a meeting, and of each row, of every two devices."""
        links, pair = self.data.links, np.ix_(self.used, self.used)
        sending = [each for each in self._kernels if each.row_bytes > 0]
        exchanges = sum(each.exchanges for each in sending)
        moved = sum(each.row_bytes for each in sending)
        meeting = exchanges * links.latency_s[pair]
        row = moved / (links.gb_per_s[pair] * GIGA)
        out: Floats = (1 - links.overlap) * np.stack([meeting, row])
        return np.ascontiguousarray(out)

    def _price(self, smooth: float) -> Floats:
        """The entries of ``price``: of the step in seconds, or of the energy in joules."""
        data = self.data
        moved = sum(each.row_bytes for each in self._kernels)
        step, row = 1.0, 0.0
        if data.minimize == "energy":
            step = sum(each.idle_w for each in data.devices)
            row = data.links.joule_per_gb * moved / GIGA
        limit = UNLIMITED if data.step_limit_s is None else data.step_limit_s - self.reduce_s
        node = sum(each.kept_bytes_per_node for each in self._kernels)
        arc = sum(each.kept_bytes_per_arc for each in self._kernels)
        return np.array(
            [
                step,
                row,
                smooth * step / len(self.used),
                max(limit, 1e-12),
                node,
                arc,
                moved / 2,
                data.parameter_bytes,
            ]
        )
