"""What a process owns, needs and sends."""

from __future__ import annotations

import numpy as np

from optbench.gnn.runtime.local_graph import local_graph
from optbench.shapes.gnn_training.training_data import DataGraph
from tests.gnn.runtime.small_training import labelled


def test_path_of_five_nodes() -> None:
    """0 - 1 - 2 - 3 - 4 with 0, 1, 4 on process 0, and 2, 3 on process 1."""
    graph = DataGraph(5, np.arange(4), np.arange(1, 5))
    device = np.array([0, 0, 1, 1, 0])
    first, second = local_graph(graph, device, 0), local_graph(graph, device, 1)
    # Node 0 has own neighbours only; 1 needs row 2, and 4 needs row 3.
    assert first.own.tolist() == [0, 1, 4] and first.num_inner == 1
    assert first.halo.tolist() == [2, 3] and first.columns.tolist() == [0, 1, 4, 2, 3]
    assert first.target.tolist() == [0, 1, 1, 2] and first.source.tolist() == [1, 0, 3, 4]
    assert second.num_inner == 0 and second.halo.tolist() == [1, 4]
    # Process 0 sends nodes 1 and 4, its own rows 1 and 2; process 1 sends 2 and 3, rows 0 and 1.
    (to,) = first.peers
    (back,) = second.peers
    assert (to.rank, to.send.tolist(), to.first, to.last) == (1, [1, 2], 0, 2)
    assert (back.rank, back.send.tolist()) == (0, [0, 1])


def test_every_row_sent_is_expected() -> None:
    nodes = labelled(3)
    locals_ = [local_graph(nodes.graph, nodes.device, rank) for rank in range(3)]
    assert sum(len(each.target) for each in locals_) == 2 * nodes.graph.num_edges
    for each in locals_:
        for peer in each.peers:
            other = locals_[peer.rank]
            (back,) = (p for p in other.peers if p.rank == each.rank)
            kept = other.halo[back.first : back.last]
            assert each.own[peer.send].tolist() == kept.tolist()


def test_one_process_needs_nothing() -> None:
    nodes = labelled(1)
    alone = local_graph(nodes.graph, nodes.device, 0)
    assert alone.peers == () and len(alone.halo) == 0 and alone.num_inner == nodes.graph.num_nodes
