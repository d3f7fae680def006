"""A user's module on the nodes of one process: unchanged code, and the rows of own nodes."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from optbench.errors import ModelError
from optbench.gnn.operators.exported_model import failing
from optbench.gnn.own_model.node_dropout import NodeDropout, RowNumbers
from optbench.gnn.own_model.node_neighbourhood import NodeNeighbourhood, neighbourhood
from optbench.shapes.gnn_training.training_data import DataGraph, Ints

# Rows of a module are compared up to rounding.
ROUNDING = {torch.float64: 1e-10, torch.float32: 1e-4}
MOST_DEPTH = 16
# Parameters are drawn anew so often: at one point an influence may happen to be zero.
TRIES = 3
# Deviation of what is added to them, so that offsets that begin at zero are not zero.
SPREAD = 0.3
MIXING = (nn.modules.batchnorm._NormBase,)


class OwnNetwork(nn.Module):
    """A user's module with its neighbourhood of the graph; parameters are those of the module."""

    def __init__(
        self,
        module: nn.Module,
        around: NodeNeighbourhood,
        features: Tensor,
        num_nodes: int,
        seed: int,
        only_dropout: bool,
        name: str,
    ) -> None:
        super().__init__()
        self.module, self.name, self._only_dropout = module, name, only_dropout
        self._around, self._seed = around, seed
        self._rows = RowNumbers(around, num_nodes)
        ends = np.stack([around.source, around.target])
        padding = features.new_zeros((around.padding, features.shape[1]))
        self._features = torch.cat([features, padding])
        self._arcs = torch.from_numpy(ends).to(features.device)

    def forward(self, *unused: Any) -> Tensor:
        """The scores of own nodes; the step is the third of ``features, rows, step, before``."""
        step: int | None = unused[2] if len(unused) > 2 else None
        self.module.train(step is not None)
        mode = NodeDropout(self._seed, self._rows, step, self._only_dropout, self.name)
        with failing(self.name, "forward(x, edge_index) fails"), mode:
            scores: Tensor = self.module(self._features, self._arcs)
        if len(scores) != self._around.num_rows:
            raise ModelError(
                f"{self.name}: forward(x, edge_index) returns {len(scores)} rows for "
                f"{self._around.num_rows} nodes; it must return a row of scores for each node"
            )
        return scores[: self._around.num_own]


def needed_depth(module: nn.Module, num_features: int, seed: int, name: str) -> int:
    """Return the depth of neighbourhoods on which the module computes the rows of own nodes.

    The module is run on a long strip of nodes, whole and cut to the neighbourhood of nodes in its
    middle, with parameters that are drawn anew, while training: what mixes all nodes, such as
    batch normalisation, needs the whole strip, whatever its length.
    """
    graph, own = _strip()
    everything = np.arange(graph.num_nodes)
    generator = torch.Generator().manual_seed(seed)
    dtype, depth = _probed_type(module, num_features, name), 0
    for _ in range(TRIES):
        tried = deepcopy(module).to(dtype)
        with torch.no_grad():
            for each in tried.parameters():
                drawn = torch.randn(each.shape, generator=generator, dtype=each.dtype)
                each.copy_(each + SPREAD * drawn)
        x = torch.randn((graph.num_nodes, num_features), generator=generator, dtype=dtype)
        whole = _strip_rows(tried, everything, 1, x, name)[own]
        while not agree(_strip_rows(tried, own, depth, x, name), whole):
            depth += 1
            if depth > MOST_DEPTH:
                raise ModelError(f"{name}: {_mixing_words(module)}")
    return depth


def _strip_rows(module: nn.Module, nodes: Ints, depth: int, x: Tensor, name: str) -> Tensor:
    """Rows of nodes of the strip, by their neighbourhood."""
    graph, _ = _strip()
    around = neighbourhood(graph, nodes, depth)
    rows = x[torch.from_numpy(around.nodes)]
    return first_rows(module, around, rows, graph.num_nodes, 0, name)


def _probed_type(module: nn.Module, num_features: int, name: str) -> torch.dtype:
    """float64, or float32 where the module's code insists on it."""
    graph, own = _strip()
    x = torch.zeros((graph.num_nodes, num_features), dtype=torch.float64)
    try:
        _strip_rows(deepcopy(module).double(), own, 1, x, name)
    except ModelError as error:
        if error.__cause__ is None:
            raise
        return torch.float32
    return torch.float64


def first_rows(
    module: nn.Module,
    around: NodeNeighbourhood,
    features: Tensor,
    num_nodes: int,
    seed: int,
    name: str,
) -> Tensor:
    """The rows of own nodes in the first step of a training, by a copy of the module."""
    network = OwnNetwork(deepcopy(module), around, features, num_nodes, seed, True, name)
    with torch.no_grad():
        found: Tensor = network(None, None, 0)
    return found


def agree(one: Tensor, other: Tensor) -> bool:
    """Whether two results differ by rounding only."""
    most = float(other.abs().max()) if other.numel() else 0.0
    off = float((one - other).abs().max()) if one.numel() else 0.0
    return off <= ROUNDING[other.dtype] * max(most, 1e-30)


def _mixing_words(module: nn.Module) -> str:
    """What to do about a module whose rows depend on all nodes."""
    mixing = [
        f"{where or 'it'} ({type(each).__name__})"
        for where, each in module.named_modules()
        if isinstance(each, MIXING) or type(each).__name__ in ("BatchNorm", "GraphNorm", "PairNorm")
    ]
    cause = f", because of {', '.join(mixing[:3])}" if mixing else ""
    return (
        f"the scores of a node depend on nodes more than {MOST_DEPTH} arcs away, or on all "
        f"nodes{cause}, so that several devices cannot train it. Normalise each row "
        "(torch.nn.LayerNorm) and leave pooling over all nodes out, or train on one device"
    )


@cache
def _strip() -> tuple[DataGraph, Ints]:
    """Two rows of nodes with a diagonal in every third square, and six nodes in the middle."""
    columns = 2 * MOST_DEPTH + 8
    edges = set[tuple[int, int]]()
    for k in range(columns):
        edges.add((2 * k, 2 * k + 1))
        if k + 1 < columns:
            edges |= {(2 * k, 2 * k + 2), (2 * k + 1, 2 * k + 3)}
            if k % 3 == 0:
                edges.add((2 * k, 2 * k + 3))
    tail, head = np.array(sorted(edges), dtype=np.int64).T
    middle = np.arange(columns - 3, columns + 3, dtype=np.int64)
    return DataGraph(2 * columns, np.ascontiguousarray(tail), np.ascontiguousarray(head)), middle
