"""One process that trains a user's module on the neighbourhood of its device's nodes.

Two ways were compared to run a module that knows nothing of processes:

    neighbourhood   a process holds the nodes of its device and all nodes that their rows depend on.
                    The module runs unchanged. Nodes near a boundary are computed by several
                    processes. Besides gradients, the rows of neighbours that layers of PyTorch
                    Geometric sum are exchanged (``row_refresh``), which keeps the neighbourhood
                    shallow; where the module has no such layers, nothing but gradients is.
    exchange        a process holds its nodes and their neighbours, and the inputs of each layer
                    that sums over neighbours are exchanged by hooks on PyTorch Geometric's
                    MessagePassing. No node is computed twice, but a hook has to know what such a
                    layer does with its inputs, and sums in the module's own code are not seen.

The first takes every module whose rows depend on a neighbourhood, which is found by running it, and
is exact. Before the training, rows of the neighbourhood are compared with those of the whole graph.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from optbench.errors import ModelError
from optbench.files import write_whole
from optbench.gnn.operators.fused_module import ModuleFusions, fused_module
from optbench.gnn.operators.model_files import load_model
from optbench.gnn.operators.operator_graph import operator_graph
from optbench.gnn.own_model.needed_rows import agree, needed_rows
from optbench.gnn.own_model.node_neighbourhood import NodeNeighbourhood, neighbourhood
from optbench.gnn.own_model.own_model_job import (
    COMPUTED,
    MODEL,
    OwnModelSettings,
    own_model_fingerprint,
    read_own_model,
)
from optbench.gnn.own_model.own_network import OwnNetwork, first_rows
from optbench.gnn.own_model.row_refresh import RowPlan, exchanged
from optbench.gnn.runtime.process_ranks import ProcessRanks
from optbench.gnn.runtime.training_job import LabelledNodes
from optbench.gnn.runtime.training_worker import TrainingWorker


class OwnModelWorker(TrainingWorker):
    """A process with the neighbourhood of its nodes, and the module that every process has."""

    def _made(self, nodes: LabelledNodes) -> nn.Module:
        own, ranks, seed = self.exchange.local.own, self.ranks, self.job.seed
        settings = read_own_model(self.folder)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            module: nn.Module = load_model(
                settings.model, settings.features, settings.hidden, settings.classes
            )
        module.to(self.dtype)
        module.load_state_dict(ranks.from_first(module.state_dict()))
        several, n = ranks.size > 1, nodes.graph.num_nodes
        module, fusions = _fused(module, settings)
        plan, refresh = RowPlan(1), None
        if several:
            plan = needed_rows(module, settings.features, seed, settings.model)
        around = neighbourhood(nodes.graph, own, plan.depth, self.exchange.local.halo)
        features = self._features_of(nodes, around.nodes)
        module.to(self.device)
        if several:
            refresh = exchanged(self.exchange, around, plan)
            whole = self._whole_rows(module, nodes, settings.model)
            found = first_rows(module, around, features, n, seed, settings.model, refresh)
            self._check(found.cpu(), whole[own], plan.depth, settings.model)
        self._note(plan, around, fusions)
        return OwnNetwork(
            module, around, features, n, seed, settings.model, refresh, only_dropout=several
        )

    def _scores(self, step: int | None) -> Tensor:
        scores: Tensor = self.network(step)
        return scores

    def _fingerprint(self) -> str:
        return own_model_fingerprint(self.folder)

    def _weights(self) -> dict[str, Any]:
        network: Any = self.network
        weights: dict[str, Any] = network.module.state_dict()
        return weights

    def _note(self, plan: RowPlan, around: NodeNeighbourhood, fusions: ModuleFusions) -> None:
        """Write how many nodes and arcs each process computes, and by which kernels."""
        sizes = self.ranks.gathered((len(around.nodes), around.num_arcs))
        if self.ranks.rank == 0:
            nodes, arcs = (list(each) for each in zip(*sizes, strict=True))
            words = {
                "neighbourhood_depth": plan.depth,
                "refreshed_tensors": len(plan.refreshed),
                "fusions": fusions.executed,
                "fusions_not_executed": sorted(fusions.left),
                "fusion_remarks": {**fusions.partly, **fusions.left},
                "nodes_computed": nodes,
                "arcs_computed": arcs,
            }
            write_whole(self.folder / COMPUTED, json.dumps(words))

    def _features_of(self, nodes: LabelledNodes, which: np.ndarray[Any, Any]) -> Tensor:
        return torch.from_numpy(np.asarray(nodes.features[which])).to(self.device, self.dtype)

    def _whole_rows(self, module: nn.Module, nodes: LabelledNodes, name: str) -> Tensor:
        """The rows of all nodes in the first step, computed by process 0."""
        found: Any = None
        if self.ranks.rank == 0:
            n = nodes.graph.num_nodes
            around = neighbourhood(nodes.graph, np.arange(n), 1)
            x = self._features_of(nodes, around.nodes)
            rows = first_rows(module, around, x, n, self.job.seed, name).cpu()
            wrong = int((~torch.isfinite(rows).all(dim=1)).sum())
            if wrong:
                raise ModelError(
                    f"{name}: in the first step the scores of {wrong} nodes are not numbers. Scale "
                    "the features (scaling=standard), or look for divisions by zero in its code"
                )
            found = rows.numpy()
        return torch.from_numpy(self.ranks.from_first(found))

    def _check(self, found: Tensor, whole: Tensor, depth: int, name: str) -> None:
        """Refuse a module whose rows on the neighbourhood are not those on the whole graph."""
        if any(self.ranks.gathered(not agree(found, whole))):
            raise ModelError(
                f"{name}: on the nodes of a device and their neighbourhood of depth {depth} the "
                "module gives other scores than on the whole graph, so that several devices cannot "
                "train it. Scores of a node must depend on its neighbourhood alone: leave out what "
                "counts or mixes all nodes, or train on one device"
            )


def _fused(module: nn.Module, settings: OwnModelSettings) -> tuple[nn.Module, ModuleFusions]:
    """The module with the kernels of the plan's fusions, and what became of these."""
    if not settings.fusions:
        return module, ModuleFusions()
    try:
        graph = operator_graph(module, settings.features, settings.model)
        fused: Any = fused_module(module, graph, settings.fusions, settings.model)
    except ModelError as error:  # The module itself has been exported before.
        return module, ModuleFusions(left=dict.fromkeys(settings.fusions, str(error)))
    found: ModuleFusions = fused.fusions
    return fused, found


def worker_of(folder: Path, ranks: ProcessRanks) -> TrainingWorker:
    """The process of a folder's job: of a user's module, or of a built-in network."""
    kind = OwnModelWorker if (folder / MODEL).is_file() else TrainingWorker
    return kind(folder, ranks)
