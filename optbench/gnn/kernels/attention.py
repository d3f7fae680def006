"""Attention over arcs: with tensors per arc, as PyTorch Geometric has it, and without.

Values are rows of ``heads`` equal parts; halves are rows (u, v) of a number per head: u is read
from the source of an arc, v from its target. Targets are the first of the sources. ``kept`` has a
row per arc, 0 where the share of a head is dropped; shares that stay are multiplied by ``scale``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from optbench.gnn.kernels.arc_rows import ArcRows
from optbench.gnn.kernels.compiled_rows import (
    LEAST_SUM,
    SLOPE,
    attend,
    attend_back,
    shifted_scores,
)
from optbench.gnn.kernels.counter_dropout import Bytes
from optbench.gnn.kernels.dense_products import narrow_product
from optbench.gnn.kernels.sparse_functions import on_processor, untyped


@dataclass(frozen=True, eq=False)
class KernelAttention:
    """Attention of a layer: ``scores`` holds the vectors of sources and of targets by head."""

    scores: torch.Tensor
    compiled: bool
    scale: float = 1.0

    @property
    def heads(self) -> int:
        return self.scores.shape[1]

    def halves(self, values: torch.Tensor) -> torch.Tensor:
        """Halves of the scores of rows."""
        if not self.compiled:
            parts = values.view(len(values), 1, self.heads, -1)
            return (parts * self.scores).sum(-1).flatten(1)
        # Row (s, k) of the block matrix is the vector of head k, at the columns of its part.
        own_part = torch.eye(self.heads, dtype=values.dtype, device=values.device)[:, :, None]
        block = (self.scores[:, :, None, :] * own_part).flatten(2).flatten(0, 1)
        return narrow_product(values, block)

    def __call__(
        self, rows: ArcRows, values: torch.Tensor, halves: torch.Tensor, kept: Bytes | None
    ) -> torch.Tensor:
        way = row_attention if self.compiled else arc_attention
        return way(rows, values, halves, self.heads, kept, self.scale)


def arc_attention(
    rows: ArcRows,
    values: torch.Tensor,
    halves: torch.Tensor,
    heads: int,
    kept: Bytes | None = None,
    scale: float = 1.0,
) -> torch.Tensor:
    """Attention by an operation of torch at a time, with the rows of values written per arc."""
    target, source, _ = rows.ends
    score = halves[:, :heads].index_select(0, source) + halves[:, heads:].index_select(0, target)
    score = torch.nn.functional.leaky_relu(score, SLOPE)
    into = target[:, None].expand_as(score)
    start = score.new_full((rows.num_targets, heads), -torch.inf)
    most = start.scatter_reduce(0, into, score.detach(), "amax")
    raised = (score - most.index_select(0, target)).exp()
    total = raised.new_zeros(rows.num_targets, heads).index_add(0, target, raised) + LEAST_SUM
    share = raised / total.index_select(0, target)
    if kept is not None:
        share = share * (torch.from_numpy(kept).to(share) * scale)
    parts = values.index_select(0, source).view(len(source), heads, -1) * share[:, :, None]
    out = values.new_zeros(rows.num_targets, values.shape[1])
    return out.index_add(0, target, parts.view(len(source), -1))


class RowAttention(torch.autograd.Function):
    """Attention by compiled loops over rows, with a number per arc and head."""

    @staticmethod
    def forward(
        ctx: Any,
        rows: ArcRows,
        values: torch.Tensor,
        halves: torch.Tensor,
        heads: int,
        kept: Bytes,
        scale: float,
    ) -> torch.Tensor:
        source, scores = values.detach().contiguous(), halves.detach().contiguous()
        share = source.new_empty(len(rows.source), heads)
        out = source.new_empty(rows.num_targets, source.shape[1])
        shifted_scores(rows.ptr, rows.source, scores.numpy(), heads, share.numpy())
        share.exp_()
        arrays = source.numpy()
        ctx.dropped = (kept, arrays.dtype.type(scale))
        attend(rows.ptr, rows.source, arrays, share.numpy(), *ctx.dropped, out.numpy())
        ctx.rows = rows
        ctx.save_for_backward(source, scores, share, out)
        return out

    @staticmethod
    def backward(
        ctx: Any, *gradients: torch.Tensor
    ) -> tuple[None, torch.Tensor, torch.Tensor, None, None, None]:
        values, halves, share, result = ctx.saved_tensors
        to_values, to_halves = torch.zeros_like(values), torch.zeros_like(halves)
        rows, given = ctx.rows, gradients[0].contiguous()
        kernel = (rows.ptr, rows.source, values.numpy(), halves.numpy(), share.numpy())
        after = (given.numpy(), result.numpy(), to_values.numpy(), to_halves.numpy())
        attend_back(*kernel, *ctx.dropped, *after)
        return None, to_values, to_halves, None, None, None


def row_attention(
    rows: ArcRows,
    values: torch.Tensor,
    halves: torch.Tensor,
    heads: int,
    kept: Bytes | None = None,
    scale: float = 1.0,
) -> torch.Tensor:
    """Attention without rows of values per arc; differentiable by values and halves."""
    if not on_processor(values):
        return arc_attention(rows, values, halves, heads, kept, scale)
    stays = np.empty((0, 0), np.uint8) if kept is None else kept
    out: torch.Tensor = untyped(RowAttention).apply(rows, values, halves, heads, stays, scale)
    return out
