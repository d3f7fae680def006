"""Sums over the neighbours of a process's nodes, computed while the halo's rows are under way.

With A split into rows of inner and of boundary nodes, and the latter into columns of own and of
halo nodes,

    A X = ( A_inner X_own                         while the halo is under way
            A_near X_own + A_far X_halo ),        the last product once it has come

so that a fused epilogue follows the product of inner rows, and that of the boundary begins with
the sums of own columns. Attention needs all arcs to a row at once: rows of inner nodes are
computed meanwhile, those of the boundary afterwards. No kernel loses the overlap. Backward the
gradients of the halo go first, and what is computed between hides them too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from optbench.gnn.kernels.arc_rows import ArcRows, NetworkKind, arc_rows
from optbench.gnn.kernels.counter_dropout import Ints, arc_numbers
from optbench.gnn.kernels.neighbour_sums import (
    Attention,
    Halves,
    KeptArcs,
    NeighbourSums,
    NumberedArcs,
    Sums,
    WholeRows,
)
from optbench.gnn.kernels.sparse_functions import Epilogue, finished_product, sparse_product
from optbench.gnn.runtime.halo_exchange import HaloExchange
from optbench.gnn.runtime.local_graph import LocalGraph
from optbench.shapes.gnn_training.training_data import Floats


@dataclass(frozen=True, eq=False)
class LocalArcs:
    """Arcs from columns to own nodes, with weights and global numbers."""

    target: Ints
    source: Ints
    weight: Floats
    number: Ints
    device: str = "cpu"

    def chosen(self, which: Ints, first: tuple[int, int], shape: tuple[int, int]) -> NumberedArcs:
        """Some arcs in rows and columns that are counted from ``first``."""
        target, source = self.target[which] - first[0], self.source[which] - first[1]
        rows = arc_rows(target, source, self.weight[which], *shape, self.device)
        return NumberedArcs(rows, self.number[which][np.lexsort((source, target))])


@dataclass(frozen=True, eq=False)
class HaloRows:
    """Neighbours on this process and on others."""

    exchange: HaloExchange
    arcs: LocalArcs

    @property
    def dtype(self) -> Any:
        return self.arcs.weight.dtype

    @cached_property
    def split(self) -> tuple[int, int]:
        """Numbers of inner nodes and of those on the boundary."""
        local = self.exchange.local
        return local.num_inner, local.num_own - local.num_inner

    @cached_property
    def inner(self) -> NumberedArcs:
        which = np.flatnonzero(self.arcs.target < self.split[0])
        return self.arcs.chosen(which, (0, 0), (self.split[0], sum(self.split)))

    @cached_property
    def near(self) -> ArcRows:
        own = (self.arcs.target >= self.split[0]) & (self.arcs.source < sum(self.split))
        first = (self.split[0], 0)
        return self.arcs.chosen(np.flatnonzero(own), first, (self.split[1], sum(self.split))).rows

    @cached_property
    def far(self) -> ArcRows:
        away = np.flatnonzero(self.arcs.source >= sum(self.split))
        shape = (self.split[1], len(self.exchange.local.halo))
        return self.arcs.chosen(away, (self.split[0], sum(self.split)), shape).rows

    @cached_property
    def boundary(self) -> tuple[NumberedArcs, torch.Tensor]:
        """All arcs to the boundary, and the own nodes that they read, those of the boundary first;
        the halo follows.
        """
        inner, own = self.split[0], sum(self.split)
        which = np.flatnonzero(self.arcs.target >= inner)
        source = self.arcs.source[which]
        needed = np.concatenate([np.arange(inner, own), np.unique(source[source < inner])])
        column = np.zeros(self.exchange.local.num_columns, dtype=np.int64)
        column[needed] = np.arange(len(needed))
        column[own:] = len(needed) + np.arange(len(column) - own)
        moved = LocalArcs(
            self.arcs.target[which],
            column[source],
            self.arcs.weight[which],
            self.arcs.number[which],
            self.arcs.device,
        )
        shape = (self.split[1], len(needed) + len(column) - own)
        arcs = moved.chosen(np.arange(len(which)), (inner, 0), shape)
        return arcs, torch.from_numpy(needed).to(self.arcs.device)

    def summed(self, values: torch.Tensor, sums: Sums) -> torch.Tensor:
        own, coming, flight = self.exchange.start(values)
        first, second = sums(self.inner.rows, own), sums(self.near, own)
        halo = self.exchange.finish(coming, flight)
        return torch.cat([first, second + sums(self.far, halo)])

    def finished(
        self,
        values: torch.Tensor,
        added: torch.Tensor | None,
        bias: torch.Tensor,
        epilogue: Epilogue,
    ) -> torch.Tensor:
        inner, last = self.split[0], sum(self.split)
        to_inner, to_outer = (None, None) if added is None else torch.split(added, list(self.split))
        own, coming, flight = self.exchange.start(values)
        first = finished_product(self.inner.rows, own, to_inner, bias, epilogue.part(0, inner))
        begun = sparse_product(self.near, own)
        begun = begun if to_outer is None else begun + to_outer
        halo = self.exchange.finish(coming, flight)
        rest = finished_product(self.far, halo, begun, bias, epilogue.part(inner, last))
        return torch.cat([first, rest])

    def attended(
        self, values: torch.Tensor, halves: Halves, attention: Attention, kept: KeptArcs
    ) -> torch.Tensor:
        own, coming, flight = self.exchange.start(values)
        of_own = halves(own)
        first = attention(self.inner.rows, own, of_own, kept(self.inner.numbers))
        halo = self.exchange.finish(coming, flight)
        arcs, needed = self.boundary
        rows = torch.cat([own.index_select(0, needed), halo])
        of_rows = torch.cat([of_own.index_select(0, needed), halves(halo)])
        return torch.cat([first, attention(arcs.rows, rows, of_rows, kept(arcs.numbers))])


def neighbour_rows(
    kind: NetworkKind, exchange: HaloExchange, num_nodes: int, dtype: torch.dtype, device: str
) -> NeighbourSums:
    """The neighbours of a process's nodes, as the layers of a network weigh them."""
    arcs = _local_arcs(kind, exchange.local, num_nodes, dtype, device)
    local = exchange.local
    if not local.peers:
        shape = (local.num_own, local.num_own)
        every = arcs.chosen(np.arange(len(arcs.target)), (0, 0), shape)
        return WholeRows(every.rows, every.numbers)
    return HaloRows(exchange, arcs)


def _local_arcs(
    kind: NetworkKind, local: LocalGraph, num_nodes: int, dtype: torch.dtype, device: str
) -> LocalArcs:
    """Arcs of a process; a node of GCN and GAT is its own neighbour."""
    itself = np.arange(local.num_own if kind != "sage" else 0)
    target = np.concatenate([local.target, itself])
    source = np.concatenate([local.source, itself])
    if kind == "gcn":
        root = np.sqrt(local.degree + 1.0)
        weight = 1.0 / (root[target] * root[source])
    elif kind == "sage":
        weight = 1.0 / local.degree[target]
    else:
        weight = np.ones(len(target))
    number = arc_numbers(local.own[target], local.columns[source], num_nodes)
    values = weight.astype(str(dtype).removeprefix("torch."))
    return LocalArcs(target, source, values, number, device)
