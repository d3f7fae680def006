"""GCN, GraphSAGE and GAT on the rows of one process; halo rows come from others.

With own rows X, weights a_uv of ``LocalGraph`` and the halo rows of others, a layer is

    GCN    A (X W) + b,            a_uv = 1 / √(d_u d_v), d with the node itself
    SAGE   (A X) W + X V + b,      a_uv = 1 / d_v
    GAT    Σ_u α_uv W x_u + b,     α_uv = softmax over u of leakyrelu(s·W x_u + t·W x_v)

ReLU (ELU in GAT) and dropout stand between layers; GAT drops attention too. Hidden layers of GAT
have ``heads`` heads side by side. ``aggregated_before`` of a plan of fusions makes A X of the
features, which never change, once before the training.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from optbench.gnn.kernels.counter_dropout import CounterDropout, arc_numbers
from optbench.gnn.runtime.halo_exchange import HaloExchange
from optbench.gnn.runtime.sparse_product import SparseProduct
from optbench.gnn.runtime.training_job import GraphNetworkSettings
from optbench.shapes.gnn_training.training_data import Ints

SLOPE = 0.2
# GAT's masks of attention are numbered apart from those of rows.
ATTENTION_LAYERS = 128
Drop = Callable[[Ints, Tensor], Tensor]


@dataclass
class ArcBlock:
    """Arcs to rows ``first`` .. ``last`` - 1, each to the row ``target`` counted from ``first``.

    ``number`` is the global number of an arc, by which it is dropped.
    """

    first: int
    last: int
    target: Tensor
    source: Tensor
    number: Ints

    @property
    def num_rows(self) -> int:
        return self.last - self.first


class LocalRows:
    """Sums over neighbours on one process; the exchange runs while own rows are summed."""

    def __init__(
        self,
        exchange: HaloExchange,
        settings: GraphNetworkSettings,
        num_nodes: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self.exchange, self.local = exchange, exchange.local
        if settings.network == "gat":
            self._blocks = self._attention_blocks(num_nodes, device)
        else:
            self._near, self._far = self._products(settings.network == "gcn", dtype, device)

    def aggregate(self, rows: Tensor) -> Tensor:
        """A X: own columns while the halo is under way, then the halo's on the boundary."""
        own, coming, flight = self.exchange.start(rows)
        near = self._near(own)
        halo = self.exchange.finish(coming, flight)
        if not len(halo):
            return near
        inner = self.local.num_inner
        return torch.cat([near[:inner], near[inner:] + self._far(halo)])

    def attend(self, rows: Tensor, ahead: Tensor, behind: Tensor, drop: Drop) -> Tensor:
        """Weighted sums of rows (nodes × heads × width): inner rows, then those of the boundary."""
        own, coming, flight = self.exchange.start(rows)
        inner, boundary = self._blocks
        to = (own * behind).sum(-1)
        first = _attention(inner, own, (own * ahead).sum(-1), to, drop)
        halo = self.exchange.finish(coming, flight)
        every = torch.cat([own, halo])
        return torch.cat([first, _attention(boundary, every, (every * ahead).sum(-1), to, drop)])

    def _products(
        self, gcn: bool, dtype: torch.dtype, device: torch.device
    ) -> tuple[SparseProduct, SparseProduct]:
        local = self.local
        weights = local.symmetric_weights() if gcn else local.mean_weights()
        target, source, n = local.target, local.source, local.num_own
        near = source < n
        rows, columns, values = target[near], source[near], weights[near]
        if gcn:
            itself = np.arange(n)
            rows, columns = np.concatenate([rows, itself]), np.concatenate([columns, itself])
            values = np.concatenate([values, 1.0 / (local.degree[:n] + 1.0)])
        inner = local.num_inner
        far = (target[~near] - inner, source[~near] - n, weights[~near])
        products = (
            SparseProduct(rows, columns, values, (n, n), dtype),
            SparseProduct(*far, (n - inner, len(local.halo)), dtype),
        )
        for each in products:
            each.to(device)
        return products

    def _attention_blocks(self, num_nodes: int, device: torch.device) -> tuple[ArcBlock, ArcBlock]:
        """Arcs to inner rows, and to those of the boundary; each row has an arc from itself."""
        local = self.local
        itself = np.arange(local.num_own)
        target = np.concatenate([local.target, itself])
        source = np.concatenate([local.source, itself])
        number = arc_numbers(local.own[target], local.columns[source], num_nodes)

        def block(first: int, last: int) -> ArcBlock:
            chosen = np.flatnonzero((target >= first) & (target < last))
            ends = (target[chosen] - first, source[chosen])
            to, of = (torch.from_numpy(each).to(device) for each in ends)
            return ArcBlock(first, last, to, of, number[chosen])

        return block(0, local.num_inner), block(local.num_inner, local.num_own)


def _attention(block: ArcBlock, rows: Tensor, scores: Tensor, to: Tensor, drop: Drop) -> Tensor:
    """Softmax over the arcs to each row, and the weighted sum of rows."""
    here = to[block.first : block.last]
    score = functional.leaky_relu(scores[block.source] + here[block.target], SLOPE)
    at = block.target[:, None].expand_as(score)
    peak = score.new_full((block.num_rows, score.shape[1]), -math.inf)
    peak = peak.scatter_reduce(0, at, score.detach(), "amax")
    power = torch.exp(score - peak[block.target])
    total = power.new_zeros(peak.shape).index_add(0, block.target, power)
    weight = drop(block.number, power / total[block.target])
    summed = rows.new_zeros((block.num_rows, *rows.shape[1:]))
    return summed.index_add(0, block.target, weight[..., None] * rows[block.source])


class DistributedNetwork(nn.Module):
    """A network of ``len(widths)`` - 1 layers whose parameters every process has."""

    def __init__(
        self, settings: GraphNetworkSettings, widths: tuple[int, ...], seed: int, dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.settings, self.dropout = settings, CounterDropout(settings.dropout, seed)
        self.layers = nn.ModuleList()
        generator = torch.Generator().manual_seed(seed)
        last = len(widths) - 2
        for number, (a, b) in enumerate(pairwise(widths)):
            heads = settings.heads if settings.network == "gat" and number < last else 1
            inputs = a * settings.heads if settings.network == "gat" and number else a
            self.layers.append(_parameters(settings, inputs, heads, b, generator, dtype))

    def forward(
        self, features: Tensor, rows: LocalRows, step: int | None, before: Tensor | None = None
    ) -> Tensor:
        """The classes' scores of own rows; without ``step`` nothing is dropped."""
        h = features
        for number, layer in enumerate(self.layers):
            if number:
                h = functional.elu(h) if self.settings.network == "gat" else torch.relu(h)
                h = self._drop(step, number, rows.local.own, h)
            p: dict[str, Tensor] = dict(layer.named_parameters())
            if self.settings.network == "gat":
                h = self._attended(number, p, h, rows, step)
                continue
            ready = before if number == 0 else None
            if self.settings.network == "gcn":
                h = rows.aggregate(h @ p["w"]) if ready is None else ready @ p["w"]
            else:
                near = rows.aggregate(h) if ready is None else ready
                h = near @ p["w"] + h @ p["v"]
            h = h + p["b"]
        return h

    def _attended(
        self, number: int, p: dict[str, Tensor], h: Tensor, rows: LocalRows, step: int | None
    ) -> Tensor:
        def drop(arcs: Ints, weight: Tensor) -> Tensor:
            return self._drop(step, ATTENTION_LAYERS + number, arcs, weight)

        wide = (h @ p["w"]).view(len(h), len(p["ahead"]), -1)
        return rows.attend(wide, p["ahead"], p["behind"], drop).flatten(1) + p["b"]

    def _drop(self, step: int | None, layer: int, items: Ints, values: Tensor) -> Tensor:
        if step is None or not self.settings.dropout:
            return values
        mask = self.dropout.mask(step, layer, items, values.shape[1], values.dtype)
        return values * mask.to(values.device)


def _parameters(
    settings: GraphNetworkSettings,
    inputs: int,
    heads: int,
    width: int,
    generator: torch.Generator,
    dtype: torch.dtype,
) -> nn.Module:
    """The parameters of a layer, drawn as Glorot and Bengio have it; float32 draws for any type."""
    layer = nn.Module()

    def add(name: str, *shape: int) -> None:
        bound = math.sqrt(6.0 / (shape[0] + shape[-1])) if name != "b" else 0.0
        drawn = (torch.rand(shape, generator=generator) * 2 - 1) * bound
        layer.register_parameter(name, nn.Parameter(drawn.to(dtype)))

    add("w", inputs, heads * width)
    if settings.network == "sage":
        add("v", inputs, width)
    if settings.network == "gat":
        add("ahead", heads, width)
        add("behind", heads, width)
    add("b", heads * width)
    return layer
