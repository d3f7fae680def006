"""Rows of neighbours on other processes, taken from where they are computed.

While ``refreshing`` is active, tensors with a row per node that layers of PyTorch Geometric give to
``propagate`` and ``edge_updater``, and those that layers with fused kernels are given, are numbered
in the order of the calls. Those of a plan are refreshed: the rows of the halo, which other
processes own, are replaced by what their owners have. Rows behind the halo stay as they are; they
only make degrees right. What each tensor is replaced by is a function of its number: nothing while
the whole graph is recorded, recorded rows while a plan is tried, and the exchange between processes
while one is trained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from optbench.gnn.operators.convolution_kernels import FusedConvolution
from optbench.gnn.own_model.node_neighbourhood import NodeNeighbourhood
from optbench.gnn.runtime.halo_exchange import HaloExchange

METHODS = ("propagate", "edge_updater")
# Of layers with fused kernels, which sum within one call.
FUSED_METHODS = ("forward",)
Refresh = Callable[[int, Tensor], Tensor]


@dataclass(frozen=True)
class RowPlan:
    """How deep a neighbourhood is, and the numbers of the tensors that are refreshed."""

    depth: int
    refreshed: frozenset[int] = frozenset()


@dataclass
class RecordedRows:
    """Tensors of a pass over the whole graph."""

    tensors: list[Tensor] = field(default_factory=list)

    def record(self, number: int, rows: Tensor) -> Tensor:
        self.tensors.append(rows.detach())
        return rows

    def replay(self, around: NodeNeighbourhood, plan: RowPlan) -> Refresh:
        """Take the rows of the halo from the record."""
        first, last = around.num_own, around.num_own + around.num_halo
        halo = torch.from_numpy(around.nodes[first:last])

        def refresh(number: int, rows: Tensor) -> Tensor:
            if number not in plan.refreshed:
                return rows
            return torch.cat([rows[:first], self.tensors[number][halo], rows[last:]])

        return refresh


def exchanged(exchange: HaloExchange, around: NodeNeighbourhood, plan: RowPlan) -> Refresh:
    """Take the rows of the halo from the processes that own them."""
    first, last = around.num_own, around.num_own + around.num_halo

    def refresh(number: int, rows: Tensor) -> Tensor:
        if number not in plan.refreshed:
            return rows
        return torch.cat([exchange.whole(rows[:first]), rows[last:].detach()])

    return refresh


@contextmanager
def refreshing(module: nn.Module, num_rows: int, refresh: Refresh | None) -> Iterator[None]:
    """Refresh what layers of the module sum over neighbours."""
    if refresh is None:
        yield
        return
    from torch_geometric.nn import MessagePassing

    numbered = _Numbered(num_rows, refresh)
    methods = [
        (layer, name)
        for layer in module.modules()
        if isinstance(layer, MessagePassing)
        for name in (FUSED_METHODS if isinstance(layer, FusedConvolution) else METHODS)
    ]
    for layer, name in methods:
        object.__setattr__(layer, name, numbered.wrapped(getattr(layer, name)))
    try:
        yield
    finally:
        for layer, name in methods:
            object.__delattr__(layer, name)


class _Numbered:
    """The tensors of one pass, counted."""

    def __init__(self, num_rows: int, refresh: Refresh) -> None:
        self._num_rows, self._refresh, self._count = num_rows, refresh, 0

    def wrapped(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            seen = dict[int, Tensor]()
            fresh = {name: self._fresh(value, seen) for name, value in named.items()}
            return method(*(self._fresh(value, seen) for value in given), **fresh)

        return call

    def _fresh(self, value: Any, seen: dict[int, Tensor]) -> Any:
        """The value with its tensors refreshed; the same tensor once."""
        if isinstance(value, (tuple, list)):
            return type(value)(self._fresh(each, seen) for each in value)
        if not isinstance(value, Tensor) or not value.is_floating_point() or not value.ndim:
            return value
        if len(value) != self._num_rows:
            return value
        if id(value) not in seen:
            seen[id(value)] = self._refresh(self._count, value)
            self._count += 1
        return seen[id(value)]
