"""Fused kernels of PyTorch Geometric's GCNConv, SAGEConv and GATConv, for a user's own module.

The kernels read the parameters of the layer, so that its state stays what it was. Arcs and their
weights are made once for each ``edge_index``; A X is computed again where a layer is given other
features than in the step before, so that outputs do not depend on whether features are fixed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from optbench.gnn.kernels.arc_rows import ArcRows, arc_rows
from optbench.gnn.kernels.attention import row_attention
from optbench.gnn.kernels.compiled_rows import SLOPE
from optbench.gnn.kernels.dense_products import FixedRows, dense_product, finished_dense
from optbench.gnn.kernels.sparse_functions import (
    Epilogue,
    arc_sums,
    finished_product,
    sparse_product,
)

# What kernels exist for, by the class of a layer: stems of the names of fusion candidates.
STEMS = {
    "GCNConv": ("spmm", "spmm_epilogue", "aggregated_before", "aggregated_first", "chain"),
    "SAGEConv": (
        *("spmm", "spmm_epilogue", "aggregated_before", "aggregated_last", "one_product"),
        "chain",
    ),
    "GATConv": ("attention", "attention_epilogue"),
}
SUMS = ("add", "sum")


def missing_kernel(layer: Any) -> str:
    """Why a layer has no kernels; empty where it has."""
    from torch_geometric.nn import GATConv, GCNConv, SAGEConv

    kind = type(layer)
    if kind is GCNConv:
        checks = {"aggr": str(layer.aggr) in SUMS, "decomposed_layers": _is_whole(layer)}
    elif kind is SAGEConv:
        checks = {"aggr": str(layer.aggr) in (*SUMS, "mean"), "normalize": not layer.normalize}
        checks |= {"project": not layer.project, "decomposed_layers": _is_whole(layer)}
    elif kind is GATConv:
        checks = {"negative_slope": layer.negative_slope == SLOPE, "dropout": layer.dropout == 0}
        checks |= {"edge_dim": layer.edge_dim is None, "residual": not layer.residual}
        checks |= {"in_channels": layer.lin is not None, "decomposed_layers": _is_whole(layer)}
    else:
        return f"there are no kernels of {kind.__name__}, only of {', '.join(STEMS)}"
    wrong = [name for name, fits in checks.items() if not fits]
    if wrong:
        return f"there is no kernel of {kind.__name__} with {wrong[0]}={getattr(layer, wrong[0])}"
    return ""


def _is_whole(layer: Any) -> bool:
    return int(layer.decomposed_layers) == 1


@dataclass(eq=False)
class ConvolutionKernels:
    """The kernels of one layer: stems of its fusions, and whether they include the ReLU behind it.

    What is made from arcs and features is kept with the tensors that it was made from.
    """

    kind: str
    fused: frozenset[str]
    relu: bool
    _arcs: tuple[Any, ArcRows] | None = field(default=None, init=False)
    _before: tuple[Any, FixedRows] | None = field(default=None, init=False)
    _seen: tuple[Any, FixedRows] | None = field(default=None, init=False)

    def __call__(self, layer: Any, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        rows = self._rows(layer, x, edge_index)
        if self.kind == "GATConv":
            return self._attention(layer, x, rows)
        return (self._gcn if self.kind == "GCNConv" else self._sage)(layer, x, rows)

    def _rows(self, layer: Any, x: torch.Tensor, edge_index: torch.Tensor) -> ArcRows:
        key = (edge_index, edge_index._version, len(x), x.dtype)
        if self._arcs is None or not _same(self._arcs[0], key):
            self._arcs = (key, _arcs_of(layer, self.kind, x, edge_index))
        return self._arcs[1]

    def _fixed(self, x: torch.Tensor) -> torch.Tensor | FixedRows:
        """The rows, with their transpose where they are those of the step before."""
        if x.requires_grad:
            return x
        if self._seen is not None and _same(self._seen[0], (x, x._version)):
            return self._seen[1]
        self._seen = ((x, x._version), FixedRows(x))
        return x

    def _summed_before(self, x: torch.Tensor, rows: ArcRows, joined: bool) -> FixedRows:
        key = (x, x._version, id(rows))
        if self._before is None or not _same(self._before[0], key):
            summed = sparse_product(rows, x)
            self._before = (key, FixedRows(torch.cat([summed, x], 1) if joined else summed))
        return self._before[1]

    def _gcn(self, layer: Any, x: torch.Tensor, rows: ArcRows) -> torch.Tensor:
        weight, bias = layer.lin.weight, _bias_of(layer.bias, layer.lin.weight)
        epilogue = self._epilogue()
        if "aggregated_before" in self.fused and not x.requires_grad:
            return finished_dense(self._summed_before(x, rows, False), weight, bias, epilogue)
        if "aggregated_first" in self.fused:
            return finished_dense(sparse_product(rows, x), weight, bias, epilogue)
        product = dense_product(self._fixed(x), weight)
        return self._finished_sums(rows, product, None, bias)

    def _sage(self, layer: Any, x: torch.Tensor, rows: ArcRows) -> torch.Tensor:
        near = layer.lin_l.weight
        own: Any = layer.lin_r.weight if layer.root_weight else None
        bias, epilogue = _bias_of(layer.lin_l.bias, near), self._epilogue()
        if "aggregated_last" in self.fused:
            if own is None:
                return self._finished_sums(rows, dense_product(self._fixed(x), near), None, bias)
            both = dense_product(self._fixed(x), torch.cat([near, own]))
            by_near, by_own = torch.split(both, len(near), 1)
            return self._finished_sums(rows, by_near, by_own, bias)
        before = "aggregated_before" in self.fused and not x.requires_grad
        joined = "one_product" in self.fused and own is not None
        summed: torch.Tensor | FixedRows
        if before:
            summed = self._summed_before(x, rows, joined)
        else:
            summed = self._sums(rows, x)
            summed = torch.cat([summed, x], 1) if joined else summed
        if joined:
            return finished_dense(summed, torch.cat([near, own], 1), bias, epilogue)
        if own is None:
            return finished_dense(summed, near, bias, epilogue)
        out = dense_product(summed, near) + dense_product(self._fixed(x), own) + bias
        return torch.relu(out) if self.relu else out

    def _attention(self, layer: Any, x: torch.Tensor, rows: ArcRows) -> torch.Tensor:
        heads, width = layer.heads, layer.out_channels
        values = dense_product(self._fixed(x), layer.lin.weight)
        own_part = torch.eye(heads, dtype=values.dtype)[:, :, None]
        scores = torch.cat([layer.att_src, layer.att_dst])
        block = (scores[:, :, None, :] * own_part).flatten(2).flatten(0, 1)
        # The layer calls dropout, if only with a rate of 0; what counts its calls finds this one.
        halves = torch.nn.functional.dropout(values @ block.t(), 0.0, layer.training)
        out = row_attention(rows, values, halves, heads)
        out = out if layer.concat else out.view(-1, heads, width).mean(1)
        out = out if layer.bias is None else out + layer.bias
        return torch.relu(out) if self.relu else out

    def _epilogue(self) -> Epilogue:
        return Epilogue("relu" if self.relu else "identity")

    def _sums(self, rows: ArcRows, values: torch.Tensor) -> torch.Tensor:
        sparse = {"spmm", "spmm_epilogue"} & self.fused
        return (sparse_product if sparse else arc_sums)(rows, values)

    def _finished_sums(
        self, rows: ArcRows, values: torch.Tensor, added: torch.Tensor | None, bias: torch.Tensor
    ) -> torch.Tensor:
        if {"spmm_epilogue", "aggregated_last"} & self.fused:
            return finished_product(rows, values, added, bias, self._epilogue())
        out = self._sums(rows, values) + bias
        return torch.relu(out) if self.relu else out


class FusedConvolution:
    """Comes before the class of a layer; ``kernels`` compute what it is called with."""

    kernels: ConvolutionKernels

    def forward(self, x: Any, edge_index: Any, *others: Any, **more: Any) -> Any:
        plain = not others and not more and isinstance(x, torch.Tensor) and x.ndim == 2
        arcs = isinstance(edge_index, torch.Tensor) and edge_index.layout == torch.strided
        if plain and arcs and x.device.type == "cpu" and edge_index.ndim == 2:
            return self.kernels(self, x, edge_index)
        layer: Any = super()
        return layer.forward(x, edge_index, *others, **more)


def _same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether tensors are the same objects, unchanged, and other values equal."""
    return all(
        a is b if isinstance(a, torch.Tensor) else a == b for a, b in zip(one, other, strict=True)
    )


def _bias_of(bias: torch.Tensor | None, weight: torch.Tensor) -> torch.Tensor:
    return weight.new_zeros(len(weight)) if bias is None else bias


def _arcs_of(layer: Any, kind: str, x: torch.Tensor, edge_index: torch.Tensor) -> ArcRows:
    """The arcs of a layer by target; arcs that repeat are added up where sums are linear."""
    from torch_geometric.nn.conv.gcn_conv import gcn_norm
    from torch_geometric.utils import add_self_loops, remove_self_loops

    n, weight = len(x), None
    if kind == "GCNConv" and layer.normalize:
        given = (n, layer.improved, layer.add_self_loops, layer.flow, x.dtype)
        edge_index, weight = gcn_norm(edge_index, None, *given)
    elif kind == "GATConv" and layer.add_self_loops:
        edge_index, _ = remove_self_loops(edge_index)
        edge_index, _ = add_self_loops(edge_index, num_nodes=n)
    ends = edge_index.numpy()
    source, target = ends if layer.flow == "source_to_target" else ends[::-1]
    values = np.ones(len(source), x.new_empty(0).numpy().dtype)
    values = values if weight is None else weight.numpy()
    if str(layer.aggr) == "mean":
        values = (
            values / np.maximum(np.bincount(target, minlength=n), 1).astype(values.dtype)[target]
        )
    if kind != "GATConv":
        arcs, place = np.unique(target * n + source, return_inverse=True)
        total = np.bincount(place, values, minlength=len(arcs)).astype(values.dtype)
        target, source, values = arcs // n, arcs % n, total
    return arc_rows(target, source, values, n, n)
