"""Workers of a pool that are actors on the nodes of a Ray cluster, with one core each."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, ClassVar

from optbench.execute.ray_cluster.connection import first_line
from optbench.execute.ray_cluster.like_nodes import LikeNodes
from optbench.execute.worker_pools.pool_worker import PoolAnswer, PoolCalls, PoolWorker
from optbench.execute.worker_pools.worker_pool import WorkerLostError


@dataclass(frozen=True)
class RayStaff:
    """Hires actors wherever a core is free; they load ``kernels`` first."""

    elsewhere: ClassVar[bool] = True

    nodes: LikeNodes
    kernels: tuple[str, ...] = ()

    def hire(self) -> RayMember:
        return RayMember(self.nodes, self.kernels)


class NodeWorker(PoolWorker):
    """A worker that says on which node it is. It has reserved no GPU and sees none: nobody measures
    those of its node.
    """

    def prepare(self, kernels: tuple[str, ...]) -> None:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        super().prepare(kernels)

    def node_id(self) -> str:
        import ray

        return str(ray.get_runtime_context().get_node_id())


class RayMember:
    """An actor that makes calls; it ends with the connection, and with the driver."""

    def __init__(self, nodes: LikeNodes, kernels: tuple[str, ...]) -> None:
        import ray

        self.nodes, self.kernels, self.node = nodes, kernels, "a node"
        made = ray.remote(NodeWorker).options(
            num_cpus=1,
            max_restarts=0,
            max_task_retries=0,
            label_selector=nodes.selector(),
            scheduling_strategy="SPREAD",
        )
        self.actor: Any = made.remote()

    def start(self) -> None:
        """Wait for a free core."""
        self.node = self.nodes.name_of(self._ask(self.actor.node_id.remote()))
        self._ask(self.actor.prepare.remote(self.kernels))

    def answer(self, calls: PoolCalls) -> PoolAnswer:
        found: PoolAnswer = self._ask(self.actor.answer.remote(calls))
        return found

    def _ask(self, reply: Any) -> Any:
        import ray

        try:
            return ray.get(reply)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except ray.exceptions.RayError as error:
            raise WorkerLostError(f"the worker on {self.node} was lost ({cause(error)})") from None

    def end(self) -> None:
        import ray

        if ray.is_initialized():
            ray.kill(self.actor)


def cause(error: Exception) -> str:
    """Return why Ray gave up an actor, in a line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:200] if lines else first_line(error)
