"""A GCN, GraphSAGE or GAT whose operators are the kernels of a fusion plan.

The parameters are the same for every plan, so that plans can be exchanged during training, and so
are outputs and gradients, up to rounding.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from optbench.errors import ModelError
from optbench.gnn.kernels.arc_rows import ArcRows, NetworkKind, matrix_rows
from optbench.gnn.kernels.counter_dropout import Bytes, CounterDropout, Ints
from optbench.gnn.kernels.dense_products import FixedRows
from optbench.gnn.kernels.kernel_names import BEFORE
from optbench.gnn.kernels.layer_kernels import (
    LayerKernels,
    NodeRows,
    every_arc,
    gat_layer,
    gcn_layer,
    sage_layer,
)
from optbench.gnn.kernels.neighbour_sums import KeptArcs, NeighbourSums, WholeRows
from optbench.gnn.kernels.sparse_functions import Activation, Epilogue, sparse_product

# Masks of attention are numbered apart from those of rows.
ATTENTION_LAYERS = 128


@dataclass(frozen=True)
class NetworkWidths:
    """Widths of a network; ``hidden`` is that of the hidden layer, or of several.

    ``heads`` divides hidden widths of GAT, and is 1 elsewhere; the last layer has one head.
    """

    kind: NetworkKind
    features: int
    hidden: int | tuple[int, ...]
    classes: int
    heads: int = 1

    def __post_init__(self) -> None:
        for width in self.hidden_widths:
            most = width if self.kind == "gat" else 1
            if not 1 <= self.heads <= most or width % self.heads:
                raise ModelError(
                    f"heads is {self.heads}; it must divide hidden = {width} in GAT, and be 1 in "
                    "other networks"
                )

    @property
    def hidden_widths(self) -> tuple[int, ...]:
        return (self.hidden,) if isinstance(self.hidden, int) else self.hidden

    @property
    def layers(self) -> tuple[tuple[int, int, int], ...]:
        """Inputs, outputs and heads of each layer."""
        ends = (self.features, *self.hidden_widths, self.classes)
        last = len(ends) - 2
        return tuple(
            (a, b, 1 if k == last else self.heads) for k, (a, b) in enumerate(pairwise(ends))
        )


@dataclass(frozen=True, eq=False)
class NetworkInputs:
    """Arcs and features of a graph, or of a process's part of it, and what a plan keeps of them."""

    rows: NeighbourSums
    features: NodeRows
    before: NodeRows | None

    def before_of(self, layer: int, fused: Collection[str]) -> NodeRows | None:
        """What was aggregated before, for the first layer of a plan that takes it."""
        if layer > 1 or BEFORE not in fused:
            return None
        if self.before is None:
            raise ModelError(f"{BEFORE}: the inputs were made for a plan without it; make them new")
        return self.before


@dataclass(frozen=True)
class StepDropout:
    """The dropout of one step: ``nodes`` are the global numbers of the computed rows.

    With ``attention`` the shares of arcs are dropped as well.
    """

    dropout: CounterDropout
    step: int
    nodes: Ints
    attention: bool = False

    @property
    def scale(self) -> float:
        return 1 / (1 - self.dropout.rate)

    def of_layer(self, layer: int, width: int) -> Bytes:
        """Kept values of a layer."""
        return self.dropout.kept(self.step, layer, self.nodes, width)

    def of_arcs(self, layer: int, heads: int) -> KeptArcs:
        """Kept arcs of a layer."""
        if not self.attention:
            return every_arc

        def kept(numbers: Ints) -> Bytes:
            return self.dropout.kept(self.step, ATTENTION_LAYERS + layer, numbers, heads)

        return kept


def network_inputs(
    kind: NetworkKind,
    fused: Collection[str],
    rows: ArcRows | NeighbourSums,
    features: Any,
) -> NetworkInputs:
    """Return what the network reads: ``features`` is a tensor of own rows, or a sparse matrix of
    scipy; with ``aggregated_before`` they are aggregated now.
    """
    sums = WholeRows(rows) if isinstance(rows, ArcRows) else rows
    if not isinstance(features, torch.Tensor):
        return _sparse_inputs(kind, fused, sums, features)
    if BEFORE not in fused:
        return NetworkInputs(sums, FixedRows(features), None)
    _require_fixed_sums(kind)
    summed = sums.summed(features, sparse_product)
    before = torch.cat([summed, features], 1) if kind == "sage" else summed
    return NetworkInputs(sums, FixedRows(features), FixedRows(before))


def _sparse_inputs(
    kind: NetworkKind, fused: Collection[str], sums: NeighbourSums, features: Any
) -> NetworkInputs:
    """The same for a sparse matrix of scipy, whose rows are exchanged, once, as dense ones."""
    from scipy.sparse import csr_array, hstack

    numbers = sums.dtype
    kept = matrix_rows(features, numbers)
    if BEFORE not in fused:
        return NetworkInputs(sums, kept, None)
    _require_fixed_sums(kind)
    if isinstance(sums, WholeRows):
        rows = sums.rows
        shape = (rows.num_targets, rows.num_sources)
        total = csr_array((rows.weight, rows.source, rows.ptr), shape=shape) @ csr_array(features)
    else:
        dense = torch.from_numpy(features.toarray().astype(numbers))
        total = csr_array(sums.summed(dense, sparse_product).numpy())
    joined = hstack([total, csr_array(features)]) if kind == "sage" else total
    return NetworkInputs(sums, kept, matrix_rows(joined, numbers))


def _require_fixed_sums(kind: NetworkKind) -> None:
    if kind == "gat":
        raise ModelError(f"{BEFORE}: attention changes in every step; leave it out for gat")


class FusedNetwork(torch.nn.Module):
    """Layers from features over hidden widths to classes; weights are drawn by the seed (Glorot).

    Layer k has ``weights``, ``biases`` and, in GAT, ``scores`` number k - 1.
    """

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
        for a, b, heads in widths.layers:
            self.weights.append(torch.nn.Parameter(drawn(blocks, b, a).detach().flatten(0, 1)))
            self.biases.append(torch.nn.Parameter(torch.zeros(b, dtype=dtype)))
            if widths.kind == "gat":
                self.scores.append(drawn(2, heads, b // heads))

    def forward(
        self, inputs: NetworkInputs, fused: Collection[str], dropout: StepDropout | None = None
    ) -> torch.Tensor:
        """Return the rows of classes of the nodes, before any softmax."""
        values, chosen = inputs.features, frozenset(fused)
        for layer in range(1, len(self.widths.layers) + 1):
            values = self.layer_rows(layer, inputs, values, chosen, dropout)
        assert isinstance(values, torch.Tensor)
        return values

    def layer_rows(
        self,
        layer: int,
        inputs: NetworkInputs,
        values: NodeRows,
        fused: frozenset[str],
        dropout: StepDropout | None = None,
    ) -> torch.Tensor:
        """Return the rows of one layer, numbered from 1, with its activation."""
        kind, k, last = self.widths.kind, layer - 1, layer == len(self.widths.layers)
        weight, bias, heads = self.weights[k], self.biases[k], self.widths.layers[k][2]
        activation: Activation = "identity" if last else "elu" if kind == "gat" else "relu"
        scale = 1.0 if dropout is None else dropout.scale
        kept = None if dropout is None or last else dropout.of_layer(layer, len(bias))
        how = LayerKernels(
            layer,
            fused,
            inputs.rows,
            Epilogue(activation, kept, scale if kept is not None else 1.0),
            inputs.before_of(layer, fused),
            every_arc if dropout is None else dropout.of_arcs(layer, heads),
            scale,
        )
        if kind == "gat":
            return gat_layer(how, values, weight, self.scores[k], bias)
        return (gcn_layer if kind == "gcn" else sage_layer)(how, values, weight, bias)
