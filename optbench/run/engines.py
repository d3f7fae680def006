"""The engines that run a study's jobs: this machine, or a Ray cluster."""

from __future__ import annotations

from typing import Any

from optbench.errors import OptbenchError
from optbench.execute.backends import Backend
from optbench.execute.base import Executor
from optbench.execute.local import LocalExecutor
from optbench.study.declared import Study


def engine_for(
    study: Study,
    backend: Backend = "local",
    jobs: int | None = None,
    address: str | None = None,
    **options: Any,
) -> Executor:
    """Return the executor of a study. Without ``jobs`` it runs one cell at a time on this machine,
    or as many as the cluster has CPUs; ``address`` is that of the cluster.
    """
    if backend == "local":
        if address is not None:
            raise OptbenchError(
                f"--address {address} is for --backend ray; leave it out, or add it"
            )
        return LocalExecutor.for_study(study, jobs or 1, **options)
    from optbench.execute.ray_cluster.ray_executor import RayExecutor

    return RayExecutor.for_study(study, jobs, address=address, **options)
