"""Cells of a worker on a node: in processes of that node, each on cores that nobody else holds."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from optbench.execute.base import CellPlacement, Job, JobOutcome
from optbench.execute.cell_pool import CellPool, SlotHandle
from optbench.execute.local import LocalExecutor
from optbench.execute.ray_cluster.core_pins import AGAIN_S, CorePins
from optbench.execute.ray_cluster.node_agent import RAY_VARIABLES, with_memory
from optbench.execute.ray_cluster.node_facts import usable_cores
from optbench.execute.ray_cluster.travelling_files import ContentCache


class PlacedPool(CellPool):
    """Processes whose cells run where ``placement`` says, without Ray's variables."""

    def __init__(self, of: CellPool) -> None:
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(RAY_VARIABLES) and name != "LD_PRELOAD"
        }
        compiled = ContentCache().compiled
        super().__init__(
            of.solvers, of.problems, of.landlock, of.sharing, compiled, environment=inherited
        )
        self.placement = CellPlacement()

    def send(self, slot: SlotHandle, job: Job, placement: CellPlacement | None = None) -> None:
        super().send(slot, job, placement or self.placement)


class PlacedExecutor(LocalExecutor):
    """Runs one cell at a time, with ``memory_mb`` where the study sets no limit; ``params`` are
    those of the cell, with the paths of this node.
    """

    def __init__(self, *given: Any, memory_mb: float, **options: Any) -> None:
        super().__init__(*given, **options)
        self.memory_mb = memory_mb
        self.placed = self.pool = PlacedPool(self.pool)
        self.params: Mapping[str, Any] = {}

    def run(
        self, jobs: Iterable[Job], stop: Callable[[], bool] = lambda: False
    ) -> Iterator[JobOutcome]:
        for job in jobs:
            here = replace(job, payload={**job.payload, "params": dict(self.params)})
            with CorePins() as pins:
                while not pins.take(job.budget.threads, usable_cores()):
                    if stop():
                        return
                    time.sleep(AGAIN_S)
                self.placed.placement = CellPlacement(
                    pins.cores, gpus_of_this_process(), network=False
                )
                yield from super().run([with_memory(here, self.memory_mb)], stop)


def gpus_of_this_process() -> tuple[str, ...]:
    """The GPUs that Ray has given to this process."""
    import ray

    return tuple(map(str, ray.get_gpu_ids()))
