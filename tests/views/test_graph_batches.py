"""Graphs in PyG: batches number tasks and pairs on, a layer runs, and torch is imported late."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

from optbench.model.instance import Floats
from optbench.views.graph import COLUMNS, EDGE_TYPES, EDGES, NODE_TYPES, graph_of
from optbench.views.graph.feature_columns import PRECEDES, RUNS_ON, reverse
from tests.sample_files.inputs import cluster
from tests.views.graph_cases import CASES, nested, permuted


def test_a_batch_numbers_tasks_and_pairs_on() -> None:
    from torch_geometric.data import Batch

    a, b = graph_of(cluster()), graph_of(nested())
    batch = Batch.from_data_list([a, b])
    tasks, pairs = a["task"].num_nodes, len(a.pair_task)
    assert batch.pair_task.tolist() == [*a.pair_task.tolist(), *(b.pair_task + tasks).tolist()]
    assert batch[RUNS_ON].pair.tolist() == [
        *a[RUNS_ON].pair.tolist(),
        *(b[RUNS_ON].pair + pairs).tolist(),
    ]
    assert batch.pair_mode.tolist() == [*a.pair_mode.tolist(), *b.pair_mode.tolist()]
    assert torch.equal(batch[RUNS_ON].edge_index[0], batch.pair_task[batch[RUNS_ON].pair])
    assert batch.scales.shape == (2, 8)


def embedded(graph: Any, layer: str) -> dict[str, Floats]:
    """One layer of heterogeneous message passing, with weights of seed 0."""
    from torch_geometric.nn import GATv2Conv, HeteroConv, HGTConv

    torch.manual_seed(0)
    x, edges = graph.x_dict, graph.edge_index_dict
    if layer == "hgt":
        conv = HGTConv(
            {kind: len(COLUMNS[kind]) for kind in NODE_TYPES}, 8, (NODE_TYPES, EDGE_TYPES), heads=2
        )
        out = conv(x, edges)
    else:
        layers = {
            edge: GATv2Conv((-1, -1), 8, edge_dim=len(EDGES[edge]), add_self_loops=False)
            for edge in (PRECEDES, RUNS_ON)
        }
        back = reverse(RUNS_ON)
        layers[back] = GATv2Conv((-1, -1), 8, edge_dim=len(EDGES[RUNS_ON]), add_self_loops=False)
        conv = HeteroConv(layers)
        out = conv(x, edges, edge_attr_dict={edge: graph[edge].edge_attr for edge in layers})
    return {
        kind: values.detach().double().numpy() for kind, values in out.items() if values is not None
    }


@pytest.mark.parametrize("layer", ["hgt", "hetero"])
@pytest.mark.parametrize("case", CASES)
def test_a_layer_runs_and_permuting_tasks_permutes_its_output(case: str, layer: str) -> None:
    instance = CASES[case]()
    order = np.random.default_rng(5).permutation(instance.num_tasks)
    before, after = (
        embedded(graph_of(instance), layer),
        embedded(graph_of(permuted(instance, order)), layer),
    )
    assert before["task"].shape == (instance.num_tasks, 8) and np.isfinite(before["task"]).all()
    np.testing.assert_allclose(after["task"], before["task"][order], rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(after["device"], before["device"], rtol=2e-4, atol=2e-5)


def test_torch_is_imported_late() -> None:
    code = (
        "import sys, optbench.views.graph; print(any(name in sys.modules for name in "
        "('torch', 'torch_geometric')))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "False"
    )
