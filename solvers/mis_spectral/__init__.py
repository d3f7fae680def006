"""Partitions by coarsening around maximal independent sets and spectral clustering.

The graph without its small components (``components``) is cut by many multilevel cycles
(``multilevel``), whose partitions are recombined (``population``). Small components are packed into
the room that is left. A part holds at most ``max_part`` nodes; where a step or its energy is
minimised, parts are also balanced by the speed and memory of their devices, on all of them and on
fewer (``part_loads``), and partitions settled by moves on the cost model (``device_moves``).
A work limit is a number of cycles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from optbench.plugins.protocol import Run, Solver
from optbench.shapes.gnn_training.fusion_names import fusion_numbers, wrong_fusions
from optbench.shapes.gnn_training.part_labels import kept_labels
from optbench.shapes.gnn_training.training_data import GnnTraining, Ints
from optbench.shapes.gnn_training.training_plan import TrainingPlan

from .chosen_fusions import as_executed
from .components import components_of, packed
from .device_balance import DeviceBalance
from .level_graph import LevelGraph
from .local_search import refine
from .multilevel import Multilevel
from .part_loads import PartLoads, device_choices, holds_all, ideal_step_s, part_loads
from .population import NESTED_NODES, Population

# Bytes of a search by node and part: ``refine`` keeps a pull and a place in a queue, 8 bytes each.
BYTES_PER_ENTRY = 16
MOST_GB = 4.0
# Cycles before the first report of two parts, and nodes beyond which there are more.
LEAST_CYCLES, MANY_NODES = 2, 4_000
# The budget where neither work nor time is limited.
USUAL_CYCLES = 1000


@dataclass
class MisSpectral(Solver):
    """Multilevel spectral clustering, refined and recombined, for GNN training in parts.

    A round of local search ends after ``patience`` moves without an improvement. Before the first
    partition is reported ``first_cycles`` run, where there is time: by default 2, two more beyond
    ``MANY_NODES`` and one more for each doubling of the parts beyond 2; beyond ``NESTED_NODES``
    one more, and one for more parts than 2. Plans execute ``fusions``, names with + between, and
    parts are balanced for them.
    """

    patience: int = 60
    first_cycles: int | None = None
    fusions: str = ""

    shapes: ClassVar[frozenset[str]] = frozenset({"gnn_training"})
    needs: ClassVar[frozenset[str]] = frozenset({"partitioning"})

    def __post_init__(self) -> None:
        for name in ("patience", "first_cycles"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}; it must be at least 1")

    def opening(self, nodes: int, parts: int) -> int:
        """The cycles before the first report."""
        if self.first_cycles is not None:
            return self.first_cycles
        doublings = int(np.ceil(np.log2(max(2, parts) / 2)))
        if nodes > NESTED_NODES:
            return LEAST_CYCLES + 1 + min(1, doublings)
        return LEAST_CYCLES + 2 * (nodes > MANY_NODES) + doublings

    def refuse(self, instance: Any) -> str | None:
        data: GnnTraining = instance.data
        needed_gb = BYTES_PER_ENTRY * data.graph.num_nodes * data.num_parts / 1e9
        if needed_gb > MOST_GB:
            return (
                f"{data.graph.num_nodes:,} nodes in {data.num_parts:,} parts need tables of "
                f"{needed_gb:.3g} GB, more than {MOST_GB:g} GB; use fewer parts, or metis"
            )
        return wrong_fusions(data, self.fusions)

    def warm_up(self, instance: Any) -> None:
        import scipy.linalg
        import scipy.sparse.linalg  # noqa: F401

    def solve(self, instance: Any, run: Run) -> Any:
        data: GnnTraining = instance.data
        if run.warm_start is not None:
            run.report(run.warm_start)
        fusions = fusion_numbers(data, self.fusions)
        if data.minimize == "cut":
            (loads,) = part_loads(data)
            budget = CycleBudget.share_of(run, 0, 1)
            for part in PartitionSearch(data, loads, run, self, budget).partitions():
                run.report(TrainingPlan(kept_labels(data, part), fusions=fusions))
        else:
            DeviceSearch(as_executed(data, fusions), run, self, fusions=fusions).run_all()
            if run.best is None and not holds_all(data, np.arange(data.num_devices)):
                run.report_message(
                    "the memories of all devices together do not hold what training keeps of the "
                    "graph; use devices of more memory_gb, or more of them"
                )
        if run.stop_requested.is_set():
            run.report_termination("interrupted")
        elif run.time_left() <= 0:
            run.report_termination("time_limit")
        elif run.objective:  # a cut of 0 needs no more cycles
            run.report_termination("work_limit")
        return run.best


@dataclass(frozen=True)
class CycleBudget:
    """The cycles of a search where they are limited, else its seconds."""

    cycles: float | None
    seconds: float

    @classmethod
    def share_of(cls, run: Run, cycles: int, ways: int) -> CycleBudget:
        """One of several equal shares of what is left after so many cycles."""
        if run.work_limit is None and run.time_limit_s is not None:
            return cls(None, run.time_left() / ways)
        most = USUAL_CYCLES if run.work_limit is None else run.work_limit
        return cls((most - cycles) / ways, float("inf"))

    def progress(self, cycles: int, seconds: float) -> float:
        """The share that is spent."""
        if self.cycles is None:
            return seconds / max(self.seconds, 1e-9)
        return cycles / max(1.0, self.cycles)


def no_fusions() -> Ints:
    return np.zeros(0, dtype=np.int64)


@dataclass
class DeviceSearch:
    """The search for a short step, or little energy: on all devices, then on fewer ones.

    ``cycles`` of the run's budget are spent; operators of ``data`` are the kernels that plans with
    ``fusions`` execute.
    """

    data: GnnTraining
    run: Run
    settings: MisSpectral
    cycles: int = 0
    fusions: Ints = field(default_factory=no_fusions)

    def run_all(self) -> None:
        """Report every plan."""
        for part, device in self.plans():
            self._report(part, device)

    def plans(self) -> Iterator[tuple[Ints, Ints]]:
        """Yield parts and devices: those on one device first, which need no search."""
        *several, alone = device_choices(self.data)
        part = np.arange(self.data.graph.num_nodes, dtype=np.int64) // self.data.max_part
        if holds_all(self.data, alone):
            yield part, alone
        ways = [(device, loads) for device in several for loads in part_loads(self.data, device)]
        while ways := [each for each in ways if not self._is_hopeless(each[0])]:
            (device, loads), *ways = ways
            if self.run.best is not None and self.run.time_left() <= 0:
                return
            balance = DeviceBalance(self.data, device)
            budget = CycleBudget.share_of(self.run, self.cycles, 1 + len(ways))
            search = PartitionSearch(self.data, loads, self.run, self.settings, budget)
            for part in search.partitions():
                yield balance.settled(part, self.run.seed, self.run.time_left), device
            self.cycles += search.cycles

    def _report(self, part: Ints, device: Ints) -> None:
        default = np.arange(self.data.num_parts) % self.data.num_devices
        given = np.zeros(0, dtype=np.int64) if np.array_equal(device, default) else device
        self.run.report(TrainingPlan(part, given, fusions=self.fusions))

    def _is_hopeless(self, device: Ints) -> bool:
        """Whether a step without any exchange is no shorter than the best one."""
        if self.data.minimize != "step" or self.run.objective is None:
            return False
        return ideal_step_s(self.data, device) >= self.run.objective


@dataclass
class PartitionSearch:
    """The search for one way of balancing parts."""

    data: GnnTraining
    loads: PartLoads
    run: Run
    settings: MisSpectral
    budget: CycleBudget

    def __post_init__(self) -> None:
        graph = self.data.graph
        self.whole = LevelGraph.of_edges(graph.tail, graph.head, self.loads.size)
        self.rng, self.cycles = self.run.rng, 0
        self.limit = self.loads.limit
        total = int(self.whole.size.sum())
        self.components = components_of(self.whole, total / self.data.num_parts)
        self.is_done = False
        self.began_s = self.run.elapsed_s()

    def progress(self) -> float:
        """The share of the budget that is spent."""
        return self.budget.progress(self.cycles, self.run.elapsed_s() - self.began_s)

    def expired(self) -> bool:
        """Whether a cycle has to be given up: time is over and there is an answer."""
        return self.is_done and self.run.time_left() <= 0

    def partitions(self) -> Iterator[Ints]:
        """Yield partitions of the whole graph, each with a lower cut than the one before."""
        uncut = self._uncut()
        if uncut is not None:
            yield uncut
            return
        main = self.components.main
        if len(main) == 0:
            yield self._whole_partition(main)
            return
        search = Multilevel(self.whole.induced(main), self.limit, self.expired)
        opening = self.settings.opening(len(main), len(self.limit))
        population = Population(search, self.rng, opening, self.settings.patience)
        best = None
        for member in population.improvements(self.progress):
            self.cycles += 1
            over = self.run.time_left() <= 0 or self.progress() >= 1
            ready = self.cycles >= opening or over
            if ready and (best is None or member.score < best):
                best = member.score
                yield self._whole_partition(member.part)
                self.is_done = True
            if over or (best is not None and best.excess == best.cut == 0):
                return

    def _uncut(self) -> Ints | None:
        """Whole components in the parts, where they are found to fit."""
        found, limit, whole = self.components, self.limit, self.whole
        if len(found.size) < len(limit) or found.size.max() > limit.max():
            return None
        each = replace(found, main=found.main[:0])
        nowhere, empty = np.full(whole.num_nodes, -1, dtype=np.int64), np.zeros_like(limit)
        part = packed(each, nowhere, empty, limit, np.random.default_rng(self.run.seed))
        load = np.bincount(part, whole.size, len(limit))
        return part if (load <= limit).all() else None

    def _whole_partition(self, main_part: Ints) -> Ints:
        """Place the small components; where they do not fit, refine the whole graph."""
        main, limit, whole = self.components.main, self.limit, self.whole
        part = np.full(whole.num_nodes, -1, dtype=np.int64)
        part[main] = main_part
        load = np.bincount(main_part, whole.size[main], len(limit)).astype(np.int64)
        if len(main) < whole.num_nodes:
            part = packed(self.components, part, load, limit, self.rng)
        load = np.bincount(part, whole.size, len(limit)).astype(np.int64)
        if (load > limit).any():
            slack = 2 * int(whole.size.max())
            refine(*whole, part, limit, slack, 10 * self.settings.patience, 20, self.run.seed)
        return part
