"""A user's module on the nodes of one process: unchanged code, and the rows of own nodes."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import torch
from torch import Tensor, nn

from optbench.errors import ModelError
from optbench.gnn.operators.exported_model import failing
from optbench.gnn.own_model.node_dropout import NodeDropout, RowNumbers
from optbench.gnn.own_model.node_neighbourhood import NodeNeighbourhood
from optbench.gnn.own_model.row_refresh import Refresh, refreshing


class OwnNetwork(nn.Module):
    """A user's module with its neighbourhood of the graph; parameters are those of the module."""

    def __init__(
        self,
        module: nn.Module,
        around: NodeNeighbourhood,
        features: Tensor,
        num_nodes: int,
        seed: int,
        name: str,
        refresh: Refresh | None = None,
        only_dropout: bool = True,
    ) -> None:
        super().__init__()
        self.module, self.name, self._only_dropout = module, name, only_dropout
        self._around, self._seed, self._refresh = around, seed, refresh
        self._rows = RowNumbers(around, num_nodes)
        ends = np.stack([around.source, around.target])
        padding = features.new_zeros((around.padding, features.shape[1]))
        self._features = torch.cat([features, padding])
        self._arcs = torch.from_numpy(ends).to(features.device)

    def forward(self, step: int | None = None) -> Tensor:
        """The scores of own nodes; without ``step`` nothing is dropped."""
        self.module.train(step is not None)
        rows = self._around.num_rows
        mode = NodeDropout(self._seed, self._rows, step, self._only_dropout, self.name)
        refreshed = refreshing(self.module, rows, self._refresh)
        with failing(self.name, "forward(x, edge_index) fails"), refreshed, mode:
            scores: Tensor = self.module(self._features, self._arcs)
        if len(scores) != rows:
            raise ModelError(
                f"{self.name}: forward(x, edge_index) returns {len(scores)} rows for {rows} "
                "nodes; it must return a row of scores for each node"
            )
        return scores[: self._around.num_own]


def first_rows(
    module: nn.Module,
    around: NodeNeighbourhood,
    features: Tensor,
    num_nodes: int,
    seed: int,
    name: str,
    refresh: Refresh | None = None,
) -> Tensor:
    """The rows of own nodes in the first step of a training, by a copy of the module."""
    network = OwnNetwork(deepcopy(module), around, features, num_nodes, seed, name, refresh)
    with torch.no_grad():
        found: Tensor = network(0)
    return found
