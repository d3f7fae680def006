"""Attention over arcs: with tensors per arc, as PyTorch Geometric has it, and without.

Values are rows of ``heads`` equal parts; halves are rows (u, v) of a number per head: u is read
from the source of an arc, v from its target. Targets are the first of the sources.
"""

from __future__ import annotations

from typing import Any

import torch

from optbench.gnn.kernels.arc_rows import ArcRows
from optbench.gnn.kernels.compiled_rows import (
    LEAST_SUM,
    SLOPE,
    attend,
    attend_back,
    shifted_scores,
)
from optbench.gnn.kernels.sparse_functions import untyped


def arc_attention(
    rows: ArcRows, values: torch.Tensor, halves: torch.Tensor, heads: int
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
    parts = values.index_select(0, source).view(len(source), heads, -1) * share[:, :, None]
    out = values.new_zeros(rows.num_targets, values.shape[1])
    return out.index_add(0, target, parts.view(len(source), -1))


class RowAttention(torch.autograd.Function):
    """Attention by compiled loops over rows, with a number per arc and head."""

    @staticmethod
    def forward(
        ctx: Any, rows: ArcRows, values: torch.Tensor, halves: torch.Tensor, heads: int
    ) -> torch.Tensor:
        source, scores = values.detach().contiguous(), halves.detach().contiguous()
        share = source.new_empty(len(rows.source), heads)
        out = source.new_empty(rows.num_targets, source.shape[1])
        shifted_scores(rows.ptr, rows.source, scores.numpy(), heads, share.numpy())
        share.exp_()
        attend(rows.ptr, rows.source, source.numpy(), share.numpy(), out.numpy())
        ctx.rows = rows
        ctx.save_for_backward(source, scores, share, out)
        return out

    @staticmethod
    def backward(
        ctx: Any, *gradients: torch.Tensor
    ) -> tuple[None, torch.Tensor, torch.Tensor, None]:
        values, halves, share, result = ctx.saved_tensors
        to_values, to_halves = torch.zeros_like(values), torch.zeros_like(halves)
        given = (values, halves, share, gradients[0].contiguous(), result, to_values, to_halves)
        attend_back(ctx.rows.ptr, ctx.rows.source, *(each.numpy() for each in given))
        return None, to_values, to_halves, None


def row_attention(
    rows: ArcRows, values: torch.Tensor, halves: torch.Tensor, heads: int
) -> torch.Tensor:
    """Attention without rows of values per arc; differentiable by values and halves."""
    out: torch.Tensor = untyped(RowAttention).apply(rows, values, halves, heads)
    return out
