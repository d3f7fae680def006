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

``exchange`` is called on rows of own nodes before they are summed over arcs; it returns them
followed by the rows that other processes own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import torch
from torch.nn.functional import linear

from optbench.errors import ModelError
from optbench.gnn.kernels.arc_rows import ArcRows
from optbench.gnn.kernels.attention import arc_attention, row_attention
from optbench.gnn.kernels.dense_products import FixedRows, dense_product, finished_dense
from optbench.gnn.kernels.sparse_functions import (
    Epilogue,
    arc_sums,
    finished_product,
    finished_rows,
    sparse_product,
)

Exchange: TypeAlias = Callable[[torch.Tensor], torch.Tensor]
# Rows of nodes: a tensor, features that no step changes, or those stored as a sparse matrix.
NodeRows: TypeAlias = torch.Tensor | FixedRows | ArcRows


def alone(values: torch.Tensor) -> torch.Tensor:
    """The exchange of a process that owns all nodes."""
    return values


@dataclass(frozen=True, eq=False)
class LayerKernels:
    """How a layer is computed: its number from 1, the names of fusions, arcs, epilogue.

    ``before`` is what the first layer takes with ``aggregated_before``: A X for GCN, [A X | X] for
    SAGE."""

    layer: int
    fused: frozenset[str]
    rows: ArcRows
    epilogue: Epilogue
    heads: int = 1
    before: NodeRows | None = None
    exchange: Exchange = field(default=alone)

    def has(self, fusion: str) -> bool:
        """Whether a fusion of this layer is chosen."""
        return f"{fusion}{self.layer}" in self.fused

    def sums(self, values: torch.Tensor) -> torch.Tensor:
        """Weighted sums over arcs of rows of own and borrowed nodes."""
        return (sparse_product if self.has("spmm") else arc_sums)(self.rows, values)

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
        summed = sparse_product(how.rows, how.exchange(dense_rows(values, "aggregated_first")))
        return how.finished_product(summed, weight, bias)
    rows = how.exchange(product(values, weight))
    if how.has("spmm_epilogue"):
        return finished_product(how.rows, rows, None, bias, how.epilogue)
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
        near_rows, by_own = torch.split(product(values, weight), width, 1)
        by_near = how.exchange(near_rows)
        if whole:
            return finished_product(how.rows, by_near, by_own, bias, how.epilogue)
        return how.finished(sparse_product(how.rows, by_near) + by_own, bias)
    rows = dense_rows(values, "the order (A X) W")
    summed = how.sums(how.exchange(rows))
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
    rows = how.exchange(product(values, weight))
    if not (how.has("attention") or how.has("attention_epilogue")):
        parts = rows.view(len(rows), 1, how.heads, -1)
        halves = (parts * scores).sum(-1).flatten(1)
        return how.finished(arc_attention(how.rows, rows, halves, how.heads), bias)
    # Row (s, k) of the block matrix is the vector of head k, at the columns of its part.
    own_part = torch.eye(how.heads, dtype=rows.dtype)[:, :, None]
    block = (scores[:, :, None, :] * own_part).flatten(2).flatten(0, 1)
    halves = linear(rows, block)
    # Attention keeps its result for the backward pass, and the epilogue writes over what it gets.
    attended = row_attention(how.rows, rows, halves, how.heads)
    fused = how.has("one_pass") or how.has("attention_epilogue")
    return how.finished(attended.clone() if fused else attended, bias)


def dense_rows(values: NodeRows, fusion: str) -> torch.Tensor:
    """Refuse sparse features where their rows are summed in every step."""
    if isinstance(values, ArcRows):
        raise ModelError(
            f"layer 1: {fusion} sums rows of sparse features in every step; choose "
            "aggregated_before or aggregated_last1, or store the features densely"
        )
    return values.values if isinstance(values, FixedRows) else values
