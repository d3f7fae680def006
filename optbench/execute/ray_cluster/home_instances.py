"""Make instances on the driver's machine during a study on a cluster: what a problem's code runs
there sees nothing of Ray, and opens no connection.
"""

from __future__ import annotations

from typing import Any

from optbench.execute.base import CellPlacement, Job
from optbench.execute.cell_pool import CellPool, SlotHandle
from optbench.execute.local import LocalExecutor
from optbench.execute.ray_cluster.node_agent import cell_environment


class HomePool(CellPool):
    """Processes without Ray's variables, and without ``network`` unless it is asked for."""

    def __init__(self, of: CellPool, network: bool) -> None:
        super().__init__(
            of.solvers, of.problems, of.landlock, of.sharing, environment=cell_environment()
        )
        self.placement = CellPlacement(network=network)

    def send(self, slot: SlotHandle, job: Job, placement: CellPlacement | None = None) -> None:
        super().send(slot, job, placement or self.placement)


class HomeExecutor(LocalExecutor):
    """The local engine beside a cluster."""

    def __init__(self, *given: Any, network: bool = False, **options: Any) -> None:
        super().__init__(*given, **options)
        self.pool = HomePool(self.pool, network)
