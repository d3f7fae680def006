"""What a module needs to compute the rows of own nodes, found by running it.

The module is run on a long strip of nodes, whole and cut to the neighbourhood of nodes in its
middle, with parameters that are drawn anew, while training. The plan is the smallest depth at which
the rows agree where all tensors with a row per node are refreshed before neighbours are summed, and
then the fewest of them, dropped one after the other. A module whose sums are its own code, which
cannot be refreshed, has a deeper neighbourhood instead. What mixes all nodes, such as batch
normalisation, agrees at no depth.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor, nn

from optbench.errors import ModelError
from optbench.gnn.own_model.node_neighbourhood import neighbourhood
from optbench.gnn.own_model.own_network import first_rows
from optbench.gnn.own_model.row_refresh import RecordedRows, RowPlan
from optbench.shapes.gnn_training.training_data import DataGraph, Ints

# Rows of a module are compared up to rounding.
ROUNDING = {torch.float64: 1e-10, torch.float32: 1e-4}
MOST_DEPTH = 16
# Parameters are drawn anew so often: at one point an influence may happen to be zero.
TRIES = 3
# Deviation of what is added to them, so that offsets that begin at zero are not zero.
SPREAD = 0.3
MIXING = ("BatchNorm", "BatchNorm1d", "GraphNorm", "InstanceNorm", "PairNorm", "SyncBatchNorm")


def needed_rows(module: nn.Module, num_features: int, seed: int, name: str) -> RowPlan:
    """Return the depth of neighbourhoods, and the tensors that are refreshed."""
    generator = torch.Generator().manual_seed(seed)
    dtype = _probed_type(module, num_features, name)
    typed = deepcopy(module).to(dtype)
    trials = [_Trial.drawn(typed, num_features, generator, dtype, name) for _ in range(TRIES)]
    every = frozenset(range(len(trials[0].recorded.tensors)))
    for depth in range(MOST_DEPTH + 1):
        plan = RowPlan(depth, every if depth else frozenset())
        if all(trial.agrees(plan) for trial in trials):
            break
    else:
        raise ModelError(f"{name}: {_mixing_words(module)}")
    for number in sorted(plan.refreshed):
        fewer = RowPlan(depth, plan.refreshed - {number})
        if all(trial.agrees(fewer) for trial in trials):
            plan = fewer
    return plan


@dataclass
class _Trial:
    """A module with drawn parameters, and its rows on the whole strip."""

    module: nn.Module
    x: Tensor
    name: str
    whole: Tensor
    recorded: RecordedRows

    @classmethod
    def drawn(
        cls,
        module: nn.Module,
        num_features: int,
        generator: torch.Generator,
        dtype: torch.dtype,
        name: str,
    ) -> _Trial:
        graph, own = _strip()
        tried = deepcopy(module)
        with torch.no_grad():
            for each in tried.parameters():
                drawn = torch.randn(each.shape, generator=generator, dtype=each.dtype)
                each.copy_(each + SPREAD * drawn)
        x = torch.randn((graph.num_nodes, num_features), generator=generator, dtype=dtype)
        around, recorded = neighbourhood(graph, np.arange(graph.num_nodes), 1), RecordedRows()
        whole = first_rows(tried, around, x, graph.num_nodes, 0, name, recorded.record)
        return cls(tried, x, name, whole[own], recorded)

    def agrees(self, plan: RowPlan) -> bool:
        """Whether the rows of own nodes are the same under a plan."""
        graph, own = _strip()
        around = neighbourhood(graph, own, plan.depth)
        rows = self.x[torch.from_numpy(around.nodes)]
        refresh = self.recorded.replay(around, plan)
        found = first_rows(self.module, around, rows, graph.num_nodes, 0, self.name, refresh)
        return agree(found, self.whole)


def agree(one: Tensor, other: Tensor) -> bool:
    """Whether two results differ by rounding only."""
    most = float(other.abs().max()) if other.numel() else 0.0
    off = float((one - other).abs().max()) if one.numel() else 0.0
    return off <= ROUNDING[other.dtype] * max(most, 1e-30)


def _probed_type(module: nn.Module, num_features: int, name: str) -> torch.dtype:
    """float64, or float32 where the module's code insists on it."""
    graph, own = _strip()
    around = neighbourhood(graph, own, 1)
    x = torch.zeros((len(around.nodes), num_features), dtype=torch.float64)
    try:
        first_rows(deepcopy(module).double(), around, x, graph.num_nodes, 0, name)
    except ModelError as error:
        if error.__cause__ is None:
            raise
        return torch.float32
    return torch.float64


def _mixing_words(module: nn.Module) -> str:
    """What to do about a module whose rows depend on all nodes."""
    mixing = [
        f"{where or 'it'} ({type(each).__name__})"
        for where, each in module.named_modules()
        if type(each).__name__ in MIXING
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
