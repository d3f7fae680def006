"""One layer of GCN, GraphSAGE or GAT by the kernels that a fusion plan names.

Names are those of the fusions of ``operator_costs``, with the number of the layer:

    (none)               gather, scale and scatter with a value per arc and column
    spmm1                one sparse product
    spmm_epilogue1       the same, with bias, activation and dropout of a row while it is computed
    aggregated_before    the first layer from A X, which was computed once before training
    aggregated_first1    (A X) W for A (X W)
    one_product1         SAGE: [A X | X] times both weights
    aggregated_last1     SAGE: A (X W₁) + X W₂ for (A X) W₁ + X W₂, by one dense product
    aggregated_last_epilogue1   the same, with the addition and the epilogue of a row in one pass
    attention1           GAT: attention without rows of values per arc
    attention_epilogue1  the same, and the epilogue in one pass
    one_pass1            bias, activation and dropout in one pass

How rows of neighbours are summed, and borrowed from other processes, is up to ``NeighbourSums``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import torch

from optbench.errors import ModelError
from optbench.gnn.kernels.arc_rows import ArcRows
from optbench.gnn.kernels.attention import KernelAttention
from optbench.gnn.kernels.counter_dropout import Bytes, Ints
from optbench.gnn.kernels.dense_products import FixedRows, dense_product, finished_dense
from optbench.gnn.kernels.neighbour_sums import KeptArcs, NeighbourSums
from optbench.gnn.kernels.sparse_functions import (
    Epilogue,
    arc_sums,
    finished_rows,
    sparse_product,
)

# Rows of nodes: a tensor, features that no step changes, or those stored as a sparse matrix.
NodeRows: TypeAlias = torch.Tensor | FixedRows | ArcRows


def every_arc(numbers: Ints) -> Bytes | None:
    """Drop no arc."""
    return None


@dataclass(frozen=True, eq=False)
class LayerKernels:
    """How a layer is computed: its number from 1, the names of fusions, arcs, epilogue.

    ``before`` is what the first layer takes with ``aggregated_before``: A X for GCN, [A X | X] for
    SAGE. ``kept`` has the arcs whose attention is not dropped; others are scaled as rows are.
    """

    layer: int
    fused: frozenset[str]
    rows: NeighbourSums
    epilogue: Epilogue
    before: NodeRows | None = None
    kept: KeptArcs = every_arc
    arc_scale: float = 1.0

    def has(self, fusion: str) -> bool:
        """Whether a fusion of this layer is chosen."""
        return f"{fusion}{self.layer}" in self.fused

    def sums(self, values: torch.Tensor) -> torch.Tensor:
        """Weighted sums over arcs of rows of own and borrowed nodes."""
        return self.rows.summed(values, sparse_product if self.has("spmm") else arc_sums)

    def finished_product(
        self, values: NodeRows, weight: torch.Tensor, bias: torch.Tensor
    ) -> torch.Tensor:
        """Rows times the transposed weight, with the epilogue."""
        if self.has("one_pass") and not isinstance(values, ArcRows):
            return finished_dense(values, weight, bias, self.epilogue)
        return self.finished(product(values, weight), bias)

    def finished(self, values: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """The epilogue of rows."""
        if self.has("one_pass") or self.has("attention_epilogue"):
            return finished_rows(values, bias, self.epilogue)
        return self.epilogue.unfused(values, bias)


def product(values: NodeRows, weight: torch.Tensor) -> torch.Tensor:
    """Rows times the transposed weight."""
    if isinstance(values, ArcRows):
        return sparse_product(values, weight.t())
    return dense_product(values, weight)


def gcn_layer(
    how: LayerKernels, values: NodeRows, weight: torch.Tensor, bias: torch.Tensor
) -> torch.Tensor:
    """A X W + b, with the epilogue."""
    if how.before is not None:
        return how.finished_product(how.before, weight, bias)
    if how.has("aggregated_first"):
        summed = how.rows.summed(dense_rows(values, "aggregated_first"), sparse_product)
        return how.finished_product(summed, weight, bias)
    rows = product(values, weight)
    if how.has("spmm_epilogue"):
        return how.rows.finished(rows, None, bias, how.epilogue)
    return how.finished(how.sums(rows), bias)


def sage_layer(
    how: LayerKernels, values: NodeRows, weight: torch.Tensor, bias: torch.Tensor
) -> torch.Tensor:
    """(A X) W₁ + X W₂ + b, with the epilogue; ``weight`` is W₁ above W₂, both transposed."""
    width = len(bias)
    near, own = weight[:width], weight[width:]
    if how.before is not None:
        return how.finished_product(how.before, torch.cat([near, own], 1), bias)
    whole = how.has("aggregated_last_epilogue")
    if whole or how.has("aggregated_last"):
        by_near, by_own = torch.split(product(values, weight), width, 1)
        if whole:
            return how.rows.finished(by_near, by_own, bias, how.epilogue)
        return how.finished(how.rows.summed(by_near, sparse_product) + by_own, bias)
    rows = dense_rows(values, "the order (A X) W")
    summed = how.sums(rows)
    if how.has("one_product"):
        joined = torch.cat([summed, rows], 1)
        return how.finished_product(joined, torch.cat([near, own], 1), bias)
    return how.finished(product(summed, near) + product(values, own), bias)


def gat_layer(
    how: LayerKernels,
    values: NodeRows,
    weight: torch.Tensor,
    scores: torch.Tensor,
    bias: torch.Tensor,
) -> torch.Tensor:
    """Attention over X W + b; ``scores`` holds the vectors of sources and of targets by head."""
    compiled = how.has("attention") or how.has("attention_epilogue")
    attention = KernelAttention(scores, compiled, how.arc_scale)
    out = how.rows.attended(product(values, weight), attention.halves, attention, how.kept)
    # Attention keeps its result for the backward pass, and the epilogue writes over what it gets.
    fused = how.has("one_pass") or how.has("attention_epilogue")
    return how.finished(out.clone() if fused else out, bias)


def dense_rows(values: NodeRows, fusion: str) -> torch.Tensor:
    """Refuse sparse features where their rows are summed in every step."""
    if isinstance(values, ArcRows):
        raise ModelError(
            f"layer 1: {fusion} sums rows of sparse features in every step; choose "
            "aggregated_before or aggregated_last1, or store the features densely"
        )
    return values.values if isinstance(values, FixedRows) else values
