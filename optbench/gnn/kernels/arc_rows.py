"""The arcs of a graph as a sparse matrix with a row per target, kept with its transpose.

Rows are the nodes whose values are computed, columns the nodes whose rows are read, in local
numbers: the two may differ in number, as where a process owns some nodes and borrows others.
Weights are 1 / √(d_i d_j) over the degrees with self-loops for GCN, 1 / d_i for the means of SAGE,
and 1 with self-loops for GAT.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from optbench.errors import ModelError
from optbench.shapes.gnn_training.training_data import DataGraph, Ints

if TYPE_CHECKING:
    import torch

Floats: TypeAlias = NDArray[Any]
NetworkKind: TypeAlias = Literal["gcn", "sage", "gat"]


@dataclass(frozen=True, eq=False)
class ArcRows:
    """Arcs by target: row i holds ``source[ptr[i]:ptr[i + 1]]`` with weights of a float type.

    Tensors are made on ``device``.
    """

    num_sources: int
    ptr: Ints
    source: Ints
    weight: Floats
    device: str = "cpu"

    @property
    def num_targets(self) -> int:
        return len(self.ptr) - 1

    @cached_property
    def target(self) -> Ints:
        """The target of every arc."""
        return np.repeat(np.arange(self.num_targets), np.diff(self.ptr))

    @cached_property
    def matrix(self) -> torch.Tensor:
        """The rows as torch's sparse matrix."""
        import torch

        # Torch's product copies indices of 8 bytes to such of 4 bytes in every call.
        narrow = max(len(self.source), self.num_sources) < 2**31 and self.device == "cpu"
        kind = np.int32 if narrow else np.int64
        ptr, source, weight = self._tensors(self.ptr.astype(kind), self.source.astype(kind))
        size = (self.num_targets, self.num_sources)
        with warnings.catch_warnings():
            # Torch announces that CSR tensors are in beta state.
            warnings.simplefilter("ignore", UserWarning)
            return torch.sparse_csr_tensor(ptr, source, weight, size=size, check_invariants=True)

    @cached_property
    def transposed(self) -> ArcRows:
        """The arcs by source."""
        order = np.argsort(self.source, kind="stable")
        ptr = _offsets(self.source, self.num_sources)
        return ArcRows(self.num_targets, ptr, self.target[order], self.weight[order], self.device)

    @cached_property
    def ends(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Targets, sources and weights (a column) of the arcs as tensors."""
        target, source, weight = self._tensors(self.target, self.source)
        return target, source, weight[:, None]

    def _tensors(
        self, first: NDArray[Any], second: NDArray[Any]
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Two arrays of numbers, and the weights, on the device."""
        import torch

        a, b, c = (torch.from_numpy(each).to(self.device) for each in (first, second, self.weight))
        return a, b, c


def arc_rows(
    target: Ints,
    source: Ints,
    weight: Floats,
    num_targets: int,
    num_sources: int,
    device: str = "cpu",
) -> ArcRows:
    """Return arcs that are given in any order."""
    for name, nodes, limit in (("target", target, num_targets), ("source", source, num_sources)):
        wrong = (nodes < 0) | (nodes >= limit)
        for arc in np.flatnonzero(wrong)[:1].tolist():
            raise ModelError(f"arc {arc} has {name} {nodes[arc]}; it must be from 0 to {limit - 1}")
    order = np.lexsort((source, target))
    ptr = _offsets(target, num_targets)
    numbers = np.ascontiguousarray(source[order], dtype=np.int64)
    return ArcRows(num_sources, ptr, numbers, np.ascontiguousarray(weight[order]), device)


def network_arcs(graph: DataGraph, network: NetworkKind, dtype: Any = np.float32) -> ArcRows:
    """Return the arcs of a whole graph with the weights of a network."""
    n = graph.num_nodes
    loops = np.arange(n if network != "sage" else 0)
    target = np.concatenate([graph.tail, graph.head, loops])
    source = np.concatenate([graph.head, graph.tail, loops])
    degree = np.maximum(np.bincount(target, minlength=n), 1).astype(np.float64)
    if network == "gcn":
        weight = 1 / np.sqrt(degree[target] * degree[source])
    elif network == "sage":
        weight = 1 / degree[target]
    else:
        weight = np.ones(len(target))
    return arc_rows(target, source, weight.astype(dtype), n, n)


def matrix_rows(matrix: Any, dtype: Any = np.float32) -> ArcRows:
    """Return a sparse matrix of scipy, such as sparse features, in the same form."""
    rows = matrix.tocsr()
    rows.sort_indices()
    ptr, column = rows.indptr.astype(np.int64), rows.indices.astype(np.int64)
    return ArcRows(rows.shape[1], ptr, column, rows.data.astype(dtype))


def _offsets(row: Ints, num_rows: int) -> Ints:
    out = np.zeros(num_rows + 1, dtype=np.int64)
    np.cumsum(np.bincount(row, minlength=num_rows), out=out[1:])
    return out
