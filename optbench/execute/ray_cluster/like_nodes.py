"""The nodes of a cluster that are alike: the same versions as the driver's, room for the cells, and
one model of CPU and of GPUs, so that what runs on them may be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from optbench.compiling.compile_meter import announce
from optbench.execute.ray_cluster.connection import (
    ClusterConnection,
    ClusterError,
    ClusterNode,
    on_nodes,
)
from optbench.store.records import machine
from optbench.study.declared import CellBudget
from optbench.units import BYTES_PER_MB

Hardware = tuple[str, tuple[str, ...]]
# Seconds that a node may take to describe itself.
ANSWER_S = 120.0


@dataclass
class LikeNodes:
    """Of several models the one with room for the most cells of this budget at a time is taken;
    nodes that are left out are named, once. Nodes that join later are checked before they are used.
    """

    cluster: ClusterConnection
    budget: CellBudget = field(default_factory=CellBudget)
    tell: Callable[[str], None] = announce
    hardware: dict[str, Hardware] = field(default_factory=dict)
    chosen: Hardware | None = None
    refused: set[str] = field(default_factory=set)

    def alive(self) -> tuple[ClusterNode, ...]:
        """Return the nodes that may be used now; raise ClusterError where there is none."""
        found = self.found()
        if not found:
            raise ClusterError(
                "no node of the cluster is left that can be used; what is finished is kept, and "
                "the same command continues"
            )
        return found

    def found(self) -> tuple[ClusterNode, ...]:
        """Return the nodes that may be used now, if there are any."""
        if self.chosen is None:
            self._require_room(self.cluster.check_nodes())
        nodes = [node for node in self.cluster.nodes() if self.cells_at_a_time(node)]
        self._check([node for node in nodes if node.node_id not in self.cluster.facts])
        self._describe([node for node in nodes if node.node_id in self.cluster.facts])
        known = [node for node in nodes if node.node_id in self.hardware]
        if self.chosen is None and known:
            cells = dict.fromkeys(self.hardware.values(), 0)
            for node in known:
                cells[self.hardware[node.node_id]] += self.cells_at_a_time(node)
            self.chosen = max(cells, key=lambda each: (cells[each], each))
        found = tuple(node for node in known if self.hardware[node.node_id] == self.chosen)
        for node in known:
            if node not in found:
                self._refuse(node, f"another CPU or GPU model ({words(self.hardware, node)})")
        return found

    def cells_at_a_time(self, node: ClusterNode) -> int:
        """Return how many cells an idle node has room for."""
        budget = self.budget
        fitting = [node.cpus / budget.threads]
        if budget.gpus:
            fitting.append(node.gpus / budget.gpus)
        if budget.memory_limit_mb:
            fitting.append(node.memory_mb / budget.memory_limit_mb)
        return int(min(fitting))

    def restricted(self) -> RestrictedConnection:
        """Return the connection as an engine sees it that is to use these nodes only."""
        cluster = self.cluster
        return RestrictedConnection(cluster.address, cluster.here, cluster.facts, like=self)

    def _require_room(self, nodes: tuple[ClusterNode, ...]) -> None:
        """Refuse cells that fit on no node, even an idle one."""
        if any(map(self.cells_at_a_time, nodes)):
            return
        memory = self.budget.memory_limit_mb
        asked = f"threads = {self.budget.threads}, reserved_gpus = {self.budget.gpus}"
        known = "; ".join(
            f"{node.name} has {node.cpus:g} cores, {node.gpus:g} GPUs and {node.memory_mb:,.0f} MB"
            for node in nodes
        )
        raise ClusterError(
            f"a cell with {asked}{f' and {memory:,.0f} MB of memory' if memory else ''} fits on no "
            f"node of the cluster: {known}. Lower what it asks for, or add a node"
        )

    def selector(self) -> dict[str, str]:
        """Return Ray's selector of these nodes."""
        return on_nodes([node.node_id for node in self.alive()])

    def memory_per_core(self) -> int:
        """Return the bytes that every node has for each of its cores."""
        return int(min(node.memory_mb / node.cpus for node in self.alive()) * BYTES_PER_MB)

    def name_of(self, node_id: str) -> str:
        found = [node.name for node in self.cluster.nodes() if node.node_id == node_id]
        return found[0] if found else node_id[:8]

    def is_alive(self, node_id: str) -> bool:
        return any(node.node_id == node_id for node in self.cluster.nodes())

    def _check(self, nodes: list[ClusterNode]) -> None:
        """Check nodes that have joined since."""
        wrong = self.cluster.mismatches(
            [each for each in nodes if each.node_id not in self.refused]
        )
        for node in nodes:
            if node.node_id in wrong:
                self._refuse(node, wrong[node.node_id])

    def _describe(self, nodes: list[ClusterNode]) -> None:
        """Ask nodes for their models."""
        import ray

        asked = {
            node: ray.remote(describe)
            .options(num_cpus=0, max_retries=0, label_selector=on_nodes([node.node_id]))
            .remote()
            for node in nodes
            if node.node_id not in self.hardware and node.node_id not in self.refused
        }
        for node, reply in asked.items():
            try:
                self.hardware[node.node_id] = ray.get(reply, timeout=ANSWER_S)
            except ray.exceptions.RayError as error:
                self._refuse(node, f"it does not answer ({type(error).__name__})")

    def _refuse(self, node: ClusterNode, why: str) -> None:
        if node.node_id not in self.refused:
            self.refused.add(node.node_id)
            self.tell(f"node {node.name} is not used: {why}")


@dataclass
class RestrictedConnection(ClusterConnection):
    """A joined cluster of which only the nodes of ``like`` are used."""

    like: LikeNodes = field(kw_only=True)

    def nodes(self) -> tuple[ClusterNode, ...]:
        return self.like.found()


def describe() -> Hardware:
    """Return the models of this machine's CPU and GPUs; how many GPUs there are is no matter."""
    found: dict[str, Any] = machine()
    return str(found.get("cpu", "")), tuple(sorted(set(found.get("gpus", ()))))


def words(hardware: dict[str, Hardware], node: ClusterNode) -> str:
    cpu, gpus = hardware[node.node_id]
    return ", ".join([cpu or "unknown CPU", *gpus])
