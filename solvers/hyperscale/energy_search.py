"""Device and clock of every part for the least energy of a step, within its limits.

A choice is judged by the cost model with rows of parts that are added up: a row that two parts of
one device need counts twice, so that step, energy and memory are at least those of the plan. It is
better with less memory over the devices', then with less time over ``step_limit_s``, then with less
energy.

First clocks: one for each device, all combinations where these are few and otherwise one device
after the other, from the top clocks on. Then parts are moved, one at a time, to the device and
clock that are best for it, until no move helps. ``subsets`` are starts on some devices only: what
idles draws less than what works.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, product
from math import prod

import numpy as np

from optbench.shapes.gnn_training.cut_graph import CutGraph
from optbench.shapes.gnn_training.operator_costs import OperatorCost, costs_of_plan
from optbench.shapes.gnn_training.step_costs import (
    DeviceLoads,
    costs_of_loads,
    part_seconds,
)
from optbench.shapes.gnn_training.training_data import Floats, GnnTraining, Ints
from optbench.shapes.gnn_training.training_plan import TrainingPlan

# Combinations of clocks that are all tried, devices whose subsets are all tried, and rounds of
# moves.
MOST_COMBINATIONS, MOST_DEVICES, MOST_ROUNDS = 1_300, 6, 20
Score = tuple[float, float, float]


@dataclass(frozen=True)
class PlacedParts:
    """Device and clock of every part, and how good that is."""

    device: Ints
    clock: Ints
    score: Score


class EnergySearch:
    """The search for one partition and fusion plan."""

    def __init__(
        self, data: GnnTraining, plan: TrainingPlan, time_left: Callable[[], float]
    ) -> None:
        self.data, self.overlap, self.time_left = data, plan.overlap, time_left
        self.costs: list[OperatorCost] = costs_of_plan(
            data.operators, data.fusions, plan.fusions.tolist()
        )
        self.cut = CutGraph(data.graph, plan.part, data.num_parts)
        self.rows = self.cut.rows.astype(float)
        self.clocks = [len(each.clocks) for each in data.devices]
        self.seconds, self.joules = self._tables()
        have = [np.inf if each.memory_gb is None else each.memory_gb * 1e9 for each in data.devices]
        self.memory = np.array(have)

    def _tables(self) -> tuple[Floats, Floats]:
        """Seconds and joules of each part by device and clock."""
        shape = (self.data.num_parts, self.data.num_devices, max(self.clocks))
        seconds, joules = np.full(shape, np.inf), np.full(shape, np.inf)
        sizes, arcs = self.cut.sizes.tolist(), self.cut.arcs.tolist()
        for d, on in enumerate(self.data.devices):
            for c, share in enumerate(on.clocks):
                for p in range(self.data.num_parts):
                    taken = part_seconds(self.costs, sizes[p], arcs[p], on, share)
                    seconds[p, d, c], joules[p, d, c] = taken, taken * on.power_w(share)
        return seconds, joules

    def score(self, device: Ints, clock: Ints) -> Score:
        """The memory and the time over their limits, and the energy of a step."""
        data, parts = self.data, np.arange(self.data.num_parts)

        def by_device(values: Floats) -> Floats:
            total: Floats = np.bincount(device, values, data.num_devices).astype(np.float64)
            return total

        on = np.zeros((data.num_devices, data.num_parts))
        on[device, parts] = 1.0
        rows = on @ self.rows @ on.T
        np.fill_diagonal(rows, 0.0)
        loads = DeviceLoads(
            by_device(self.seconds[parts, device, clock]),
            by_device(self.joules[parts, device, clock]),
            by_device(self.cut.sizes.astype(float)).astype(np.int64),
            by_device(self.cut.arcs.astype(float)).astype(np.int64),
            rows,
            np.unique(device),
        )
        costs = costs_of_loads(data, self.costs, loads, self.overlap)
        over = float(np.maximum(costs.memory_bytes - self.memory, 0.0).sum())
        limit = np.inf if data.step_limit_s is None else data.step_limit_s
        return over, max(0.0, costs.step_s - limit), costs.energy_j

    def with_clocks(self, device: Ints) -> PlacedParts:
        """The best clock of each device, which all of its parts have."""
        used = np.unique(device).tolist()
        choices = [range(self.clocks[d]) for d in used]
        top = np.array(self.clocks, dtype=np.int64) - 1
        best = PlacedParts(device, top[device], self.score(device, top[device]))
        if prod(map(len, choices)) <= MOST_COMBINATIONS:
            changes: Iterable[tuple[list[int], tuple[int, ...]]]
            changes = ((used, given) for given in product(*choices))
            return self._best_clocks(best, top, changes)
        while True:
            before = best.score
            for d, values in zip(used, choices, strict=True):
                now = top.copy()
                now[best.device] = best.clock
                best = self._best_clocks(best, now, (([d], (c,)) for c in values))
            if not best.score < before or self.time_left() <= 0:
                return best

    def _best_clocks(
        self, best: PlacedParts, clocks: Ints, changes: Iterable[tuple[list[int], tuple[int, ...]]]
    ) -> PlacedParts:
        """The best of several settings of the clocks of some devices."""
        for devices, values in changes:
            of_device = clocks.copy()
            of_device[devices] = values
            clock = of_device[best.device]
            score = self.score(best.device, clock)
            if score < best.score:
                best = PlacedParts(best.device, clock, score)
            if self.time_left() <= 0:
                break
        return best

    def descended(self, start: PlacedParts, may_move: bool) -> PlacedParts:
        """Change device and clock, or the clock alone, of one part at a time while that helps."""
        best = start
        for _ in range(MOST_ROUNDS):
            before = best.score
            for p in range(self.data.num_parts):
                best = self._best_for_part(best, p, may_move)
                if self.time_left() <= 0:
                    return best
            if not best.score < before:
                return best
        return best

    def _best_for_part(self, best: PlacedParts, p: int, may_move: bool) -> PlacedParts:
        devices = range(self.data.num_devices) if may_move else [int(best.device[p])]
        for d in devices:
            for c in range(self.clocks[d]):
                device, clock = best.device.copy(), best.clock.copy()
                device[p], clock[p] = d, c
                score = self.score(device, clock)
                if score < best.score:
                    best = PlacedParts(device, clock, score)
        return best

    def subsets(self) -> Iterator[Ints]:
        """Placements on some of the devices: the largest part first, each to the device that is
        done first with it.
        """
        every, fast = range(self.data.num_devices), self.seconds.min(axis=2)
        counts = every if len(every) <= MOST_DEVICES else (0, len(every) - 1)
        for count in counts:
            for chosen in combinations(every, count + 1):
                done, device = np.zeros(len(chosen)), np.zeros(self.data.num_parts, dtype=np.int64)
                for p in np.argsort(-fast[:, chosen[0]], kind="stable"):
                    after = done + fast[p, list(chosen)]
                    k = int(after.argmin())
                    done[k] = after[k]
                    device[p] = chosen[k]
                yield device


def least_energy(
    data: GnnTraining, plan: TrainingPlan, may_move: bool, time_left: Callable[[], float]
) -> PlacedParts:
    """The best devices and clocks found from those of a plan; without ``may_move`` clocks alone."""
    search = EnergySearch(data, plan, time_left)
    found = [search.with_clocks(plan.device_of(data))]
    for device in search.subsets() if may_move else ():
        if time_left() <= 0:
            break
        found.append(search.with_clocks(device))
    return search.descended(min(found, key=lambda each: each.score), may_move)
