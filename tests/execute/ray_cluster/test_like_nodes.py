"""Which nodes of a cluster are alike, and have room for a cell. The nodes are made up,
and all is known of them, so that none is asked.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from optbench.execute.ray_cluster.connection import ClusterConnection, ClusterError, ClusterNode
from optbench.execute.ray_cluster.like_nodes import Hardware, LikeNodes
from optbench.study.declared import CellBudget

PLAIN: Hardware = ("EPYC", ())
WITH_GPUS: Hardware = ("EPYC", ("A100",))


def node(name: str, cpus: float, gpus: float = 0.0, memory_mb: float = 64_000.0) -> ClusterNode:
    return ClusterNode(name, name, "10.0.0.1", cpus, gpus, memory_mb)


@dataclass
class KnownCluster(ClusterConnection):
    """A cluster whose nodes are all checked."""

    alive: tuple[ClusterNode, ...] = ()

    def nodes(self) -> tuple[ClusterNode, ...]:
        return self.alive


def like(budget: CellBudget, hardware: dict[str, Hardware], *nodes: ClusterNode) -> LikeNodes:
    facts = {each.node_id: {"cores": [0]} for each in nodes}
    cluster = KnownCluster("10.0.0.1:6379", {"packages": {}}, facts, alive=nodes)
    said: list[str] = []
    return LikeNodes(cluster, budget, said.append, dict(hardware))


THREE = (node("a", 32), node("b", 32), node("c", 8, gpus=2))
MODELS = {"a": PLAIN, "b": PLAIN, "c": WITH_GPUS}


def test_the_model_with_room_for_the_most_cells_is_taken() -> None:
    """64 cells of one core fit on the plain nodes and 8 on the other; with a GPU, 0 and 2."""
    plain = like(CellBudget(), MODELS, *THREE)
    assert [each.node_id for each in plain.alive()] == ["a", "b"]
    assert sum(map(plain.cells_at_a_time, plain.alive())) == 64
    gpus = like(CellBudget(gpus=1), MODELS, *THREE)
    assert [each.node_id for each in gpus.alive()] == ["c"]
    assert sum(map(gpus.cells_at_a_time, gpus.alive())) == 2
    # 64,000 / 20,000 MB: three cells of four threads each.
    wide = like(CellBudget(threads=4, memory_limit_mb=20_000), MODELS, *THREE)
    assert sum(map(wide.cells_at_a_time, wide.alive())) == 6


def test_a_cell_that_fits_nowhere_is_refused_with_what_there_is() -> None:
    with pytest.raises(ClusterError, match=r"reserved_gpus = 3 fits on no node.*c .* 2 GPUs"):
        like(CellBudget(gpus=3), MODELS, *THREE).alive()


def test_an_engine_on_these_nodes_sees_no_others() -> None:
    """The defaults of a search and its trials run on the same hardware."""
    found = like(CellBudget(gpus=1), MODELS, *THREE)
    restricted = found.restricted()
    assert [each.node_id for each in restricted.nodes()] == ["c"]
    assert [each.node_id for each in restricted.check_nodes()] == ["c"]
    assert restricted.facts is found.cluster.facts
