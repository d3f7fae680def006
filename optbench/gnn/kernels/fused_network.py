"""A two-layer GCN, GraphSAGE or GAT whose operators are the kernels of a fusion plan.

The parameters are the same for every plan, so that plans can be exchanged during training, and so
are outputs and gradients, up to rounding.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from optbench.errors import ModelError
from optbench.gnn.kernels.arc_rows import ArcRows, NetworkKind, matrix_rows
from optbench.gnn.kernels.counter_dropout import CounterDropout, Ints
from optbench.gnn.kernels.dense_products import FixedRows
from optbench.gnn.kernels.layer_kernels import (
    Exchange,
    LayerKernels,
    NodeRows,
    alone,
    gat_layer,
    gcn_layer,
    sage_layer,
)
from optbench.gnn.kernels.sparse_functions import Activation, Epilogue, sparse_product

BEFORE = "aggregated_before"


@dataclass(frozen=True)
class NetworkWidths:
    """Widths of a network; ``heads`` divides the hidden width of GAT, and is 1 elsewhere."""

    kind: NetworkKind
    features: int
    hidden: int
    classes: int
    heads: int = 1

    def __post_init__(self) -> None:
        most = self.hidden if self.kind == "gat" else 1
        if not 1 <= self.heads <= most or self.hidden % self.heads:
            raise ModelError(
                f"heads is {self.heads}; it must divide hidden = {self.hidden} in GAT, and be 1 in "
                "other networks"
            )


@dataclass(frozen=True, eq=False)
class NetworkInputs:
    """Arcs and features of a graph, or of a process's part of it, and what a plan keeps of them."""

    rows: ArcRows
    features: NodeRows
    before: NodeRows | None
    exchange: Exchange = alone

    def before_of(self, layer: int, fused: Collection[str]) -> NodeRows | None:
        """What was aggregated before, for the first layer of a plan that takes it."""
        if layer > 1 or BEFORE not in fused:
            return None
        if self.before is None:
            raise ModelError(f"{BEFORE}: the inputs were made for a plan without it; make them new")
        return self.before


@dataclass(frozen=True)
class StepDropout:
    """The dropout of one step: ``nodes`` are the global numbers of the computed rows."""

    dropout: CounterDropout
    step: int
    nodes: Ints

    def of_layer(self, layer: int, width: int) -> tuple[Any, float]:
        """Kept values and scale of a layer."""
        kept = self.dropout.kept(self.step, layer, self.nodes, width)
        return kept, 1 / (1 - self.dropout.rate)


def network_inputs(
    kind: NetworkKind,
    fused: Collection[str],
    rows: ArcRows,
    features: Any,
    exchange: Exchange = alone,
) -> NetworkInputs:
    """Return what the network reads: ``features`` is a tensor of own rows, or a sparse matrix of
    scipy; with ``aggregated_before`` they are aggregated now.
    """
    sparse = not isinstance(features, torch.Tensor)
    kept: NodeRows = matrix_rows(features, rows.weight.dtype) if sparse else FixedRows(features)
    if BEFORE not in fused:
        return NetworkInputs(rows, kept, None, exchange)
    if kind == "gat":
        raise ModelError(f"{BEFORE}: attention changes in every step; leave it out for gat")
    if not isinstance(kept, ArcRows):
        summed = sparse_product(rows, exchange(features))
        before = torch.cat([summed, features], 1) if kind == "sage" else summed
        return NetworkInputs(rows, kept, FixedRows(before), exchange)
    from scipy.sparse import csr_array, hstack

    if exchange is not alone:
        raise ModelError(f"{BEFORE}: features that are exchanged must be stored densely")
    shape = (rows.num_targets, rows.num_sources)
    total = csr_array((rows.weight, rows.source, rows.ptr), shape=shape) @ csr_array(features)
    joined = hstack([total, csr_array(features)]) if kind == "sage" else total
    return NetworkInputs(rows, kept, matrix_rows(joined, rows.weight.dtype), exchange)


class FusedNetwork(torch.nn.Module):
    """Two layers, features → hidden → classes; weights are drawn by the seed (Glorot)."""

    def __init__(self, widths: NetworkWidths, seed: int, dtype: torch.dtype = torch.float32):
        super().__init__()
        self.widths = widths
        rng = np.random.default_rng(seed)

        def drawn(*shape: int) -> torch.nn.Parameter:
            # Of a block of outputs by inputs, the last two dimensions.
            limit = np.sqrt(6 / sum(shape[-2:]))
            return torch.nn.Parameter(torch.tensor(rng.uniform(-limit, limit, shape), dtype=dtype))

        self.weights, self.biases = torch.nn.ParameterList(), torch.nn.ParameterList()
        self.scores = torch.nn.ParameterList()
        blocks = 2 if widths.kind == "sage" else 1
        layers = ((widths.features, widths.hidden), (widths.hidden, widths.classes))
        for (a, b), heads in zip(layers, (widths.heads, 1), strict=True):
            self.weights.append(torch.nn.Parameter(drawn(blocks, b, a).detach().flatten(0, 1)))
            self.biases.append(torch.nn.Parameter(torch.zeros(b, dtype=dtype)))
            if widths.kind == "gat":
                self.scores.append(drawn(2, heads, b // heads))

    def forward(
        self, inputs: NetworkInputs, fused: Collection[str], dropout: StepDropout | None = None
    ) -> torch.Tensor:
        """Return the rows of classes of the nodes, before any softmax."""
        hidden = self._layer(1, inputs, inputs.features, frozenset(fused), dropout)
        return self._layer(2, inputs, hidden, frozenset(fused), None)

    def _layer(
        self,
        layer: int,
        inputs: NetworkInputs,
        values: NodeRows,
        fused: frozenset[str],
        dropout: StepDropout | None,
    ) -> torch.Tensor:
        kind, k, last = self.widths.kind, layer - 1, layer == 2
        weight, bias = self.weights[k], self.biases[k]
        activation: Activation = "identity" if last else "elu" if kind == "gat" else "relu"
        kept, scale = (None, 1.0) if dropout is None else dropout.of_layer(layer, len(bias))
        how = LayerKernels(
            layer,
            fused,
            inputs.rows,
            Epilogue(activation, kept, scale),
            1 if last else self.widths.heads,
            inputs.before_of(layer, fused),
            inputs.exchange,
        )
        if kind == "gat":
            return gat_layer(how, values, weight, self.scores[k], bias)
        return (gcn_layer if kind == "gcn" else sage_layer)(how, values, weight, bias)
