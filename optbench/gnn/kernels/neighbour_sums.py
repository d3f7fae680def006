"""Sums over the neighbours of the computed rows, as layers take them.

A process that owns all nodes has ``WholeRows``. One that owns a part of them gives another
``NeighbourSums``, which borrows rows of other processes while it sums own ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import torch

from optbench.gnn.kernels.arc_rows import ArcRows
from optbench.gnn.kernels.counter_dropout import Bytes, Ints, arc_numbers
from optbench.gnn.kernels.sparse_functions import Epilogue, finished_product

Sums: TypeAlias = Callable[[ArcRows, torch.Tensor], torch.Tensor]
# Halves of scores of rows of values.
Halves: TypeAlias = Callable[[torch.Tensor], torch.Tensor]
Attention: TypeAlias = Callable[[ArcRows, torch.Tensor, torch.Tensor, Bytes | None], torch.Tensor]
# Which heads of arcs, given by their global numbers, keep their share; none drops nothing.
KeptArcs: TypeAlias = Callable[[Ints], Bytes | None]


class NeighbourSums(Protocol):
    """What a layer asks of the arcs of a graph; rows of values are those of own nodes."""

    @property
    def dtype(self) -> Any:
        """The type of the weights, as numpy has it."""

    def summed(self, values: torch.Tensor, sums: Sums) -> torch.Tensor:
        """Weighted sums of the rows of neighbours."""

    def finished(
        self,
        values: torch.Tensor,
        added: torch.Tensor | None,
        bias: torch.Tensor,
        epilogue: Epilogue,
    ) -> torch.Tensor:
        """The same plus ``added``, with the epilogue of a row while it is computed."""

    def attended(
        self, values: torch.Tensor, halves: Halves, attention: Attention, kept: KeptArcs
    ) -> torch.Tensor:
        """Sums of rows weighted by attention."""


@dataclass(frozen=True, eq=False)
class NumberedArcs:
    """Arcs, and the global number of each, by which it is dropped."""

    rows: ArcRows
    numbers: Ints


@dataclass(frozen=True, eq=False)
class WholeRows:
    """All neighbours of the computed rows are own nodes; without ``numbers`` own nodes are all."""

    rows: ArcRows
    numbers: Ints | None = None

    @property
    def dtype(self) -> Any:
        return self.rows.weight.dtype

    @cached_property
    def arc_numbers(self) -> Ints:
        if self.numbers is not None:
            return self.numbers
        return arc_numbers(self.rows.target, self.rows.source, self.rows.num_sources)

    def summed(self, values: torch.Tensor, sums: Sums) -> torch.Tensor:
        return sums(self.rows, values)

    def finished(
        self,
        values: torch.Tensor,
        added: torch.Tensor | None,
        bias: torch.Tensor,
        epilogue: Epilogue,
    ) -> torch.Tensor:
        return finished_product(self.rows, values, added, bias, epilogue)

    def attended(
        self, values: torch.Tensor, halves: Halves, attention: Attention, kept: KeptArcs
    ) -> torch.Tensor:
        return attention(self.rows, values, halves(values), kept(self.arc_numbers))
