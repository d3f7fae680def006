"""The whole: fused operators, parts of the graph, devices and clocks for them, in one plan.

Fusions are chosen first (``fusion_choice``): they change what a node and an arc weigh, by which the
search for partitions balances (``partition_sources``). Each partition that the search finds is
placed (``placing``), and where energy is minimised devices and clocks are searched together
(``energy_search``). What comes out is a plan of all of these, which the cost model judges; every
better one is reported. Each step can be left out or done another way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from optbench.plugins.protocol import Run, Solver
from optbench.shapes.gnn_training.part_labels import kept_labels
from optbench.shapes.gnn_training.training_data import GnnTraining, Ints
from optbench.shapes.gnn_training.training_plan import TrainingPlan

from .. import mis_spectral
from .energy_search import least_energy
from .fusion_choice import after_fusion, best_plan, fusion_plans
from .partition_sources import PlacedPartition, Source, placed_partitions
from .placing import Placement, is_within_memory, placed, warm_up

# Placements that also keep the devices that parts are made for, where these are better.
SEARCHES = ("agent", "annealing", "local_search", "milp", "policy_gradient")


@dataclass
class HyperScale(Solver):
    """Partition, fusion plan, placement and clocks of a training step.

    Each can be switched: ``partition``, ``fusion=off``, the method of ``placement``, and
    ``overlap=off`` for devices that exchange rows before they compute. ``placement=identity`` keeps
    the devices that mis_spectral made the parts for, and otherwise part p on device p modulo their
    number; ``agent``, ``policy_gradient``, ``annealing``, ``local_search`` and ``milp`` keep them
    where their own placement is no better, and all others place without looking at them. No device
    changes a cut: where the cut counts, parts are placed only if they may exceed a memory.
    """

    partition: Source = "mis_spectral"
    fusion: bool = True
    placement: Placement = "annealing"
    overlap: bool = True

    shapes: ClassVar[frozenset[str]] = frozenset({"gnn_training"})
    needs: ClassVar[frozenset[str]] = frozenset({"partitioning"})

    def kernels(self, instance: Any) -> frozenset[str]:
        return self.needs if self.partition == "mis_spectral" else frozenset()

    def refuse(self, instance: Any) -> str | None:
        if self.partition == "mis_spectral":
            return mis_spectral.MisSpectral().refuse(instance)
        return None

    def warm_up(self, instance: Any) -> None:
        import scipy.linalg
        import scipy.optimize
        import scipy.sparse.linalg  # noqa: F401

        if self.partition == "metis":
            import pymetis  # noqa: F401
        if _may_place(instance.data):
            warm_up(self.placement, instance.data)

    def solve(self, instance: Any, run: Run) -> Any:
        if run.warm_start is not None:
            run.report(run.warm_start)
        maker = _PlanMaker(instance.data, self, run)
        for part, device in maker.partitions():
            for plan in maker.plans_of(part, device):
                run.report(plan)
        if run.stop_requested.is_set():
            run.report_termination("interrupted")
        elif run.time_left() <= 0:
            run.report_termination("time_limit")
        elif self.partition != "random" and run.objective:
            run.report_termination("work_limit")
        return run.best


def _may_place(data: GnnTraining) -> bool:
    """Whether parts are placed: not for their cut, unless a memory may be too small for them."""
    return data.minimize != "cut" or any(each.memory_gb is not None for each in data.devices)


class _PlanMaker:
    """Plans from partitions of one instance."""

    def __init__(self, data: GnnTraining, settings: HyperScale, run: Run) -> None:
        self.data, self.settings, self.run = data, settings, run
        none = np.zeros(0, dtype=np.int64)
        self.fusions = fusion_plans(data) if settings.fusion else [none]
        self.rng = run.rng

    def partitions(self) -> Iterator[PlacedPartition]:
        """The partitions that the source finds for the operators as they are run."""
        weighed = after_fusion(self.data, self.fusions[0])
        if not self.settings.overlap:
            weighed = replace(weighed, links=replace(weighed.links, overlap=0.0))
        is_placed = self.settings.placement != "identity"
        return placed_partitions(self.settings.partition, weighed, self.run, is_placed)

    def plans_of(self, part: Ints, device: Ints | None) -> Iterator[TrainingPlan]:
        """The whole plans of a partition: as it is made, and placed."""
        data, settings = self.data, self.settings
        plan = TrainingPlan(kept_labels(data, part), overlap=settings.overlap)
        if device is not None:
            plan = replace(plan, device=device)
        plan = replace(plan, fusions=best_plan(data, plan, self.fusions))
        if data.minimize == "cut" and is_within_memory(data, plan):
            yield replace(plan, device=plan.device_of(data))
            return
        if settings.placement == "identity" or (
            settings.placement in SEARCHES and device is not None
        ):
            yield self._with_clocks(plan)
        is_late = self.run.time_left() <= 0 and self.run.best is not None
        if settings.placement != "identity" and not is_late:
            found = placed(settings.placement, data, plan, self.rng, self.run)
            yield self._with_clocks(replace(plan, device=found))

    def _with_clocks(self, plan: TrainingPlan) -> TrainingPlan:
        """The plan with the clocks, and parts on the devices, that need least energy."""
        if self.data.minimize != "energy":
            return plan
        may_move = self.settings.placement != "identity"
        found = least_energy(self.data, plan, may_move, self.run.time_left)
        return replace(plan, device=found.device, clock=found.clock)
