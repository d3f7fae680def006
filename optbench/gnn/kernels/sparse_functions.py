"""Operators on rows of nodes as differentiable functions of torch: sums over arcs, and epilogues.

``arc_sums`` makes a value per arc and column, as PyTorch Geometric does by default. The others
write nothing per arc: one sparse product forward, one with the transpose backward. Compiled loops
run on processors; on a GPU the same is computed by torch, an operation at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from optbench.gnn.kernels.arc_rows import ArcRows
from optbench.gnn.kernels.compiled_rows import ELU, IDENTITY, RELU, finish, sum_and_finish, unfinish

Activation: TypeAlias = Literal["identity", "relu", "elu"]
CODES: dict[Activation, int] = {"identity": IDENTITY, "relu": RELU, "elu": ELU}
# Narrower products are faster in torch's own kernel, followed by the epilogue.
LEAST_COMPILED_WIDTH = 32


@dataclass(frozen=True, eq=False)
class Epilogue:
    """Bias, activation and dropout of a layer; no ``kept`` drops nothing."""

    activation: Activation
    kept: NDArray[np.uint8] | None = None
    scale: float = 1.0

    def unfused(self, values: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """The same by torch, an operation at a time."""
        out = values + bias
        if self.activation == "relu":
            out = torch.relu(out)
        elif self.activation == "elu":
            out = torch.nn.functional.elu(out)
        if self.kept is None:
            return out
        return out * (torch.from_numpy(self.kept).to(out) * self.scale)

    def part(self, first: int, last: int) -> Epilogue:
        """The epilogue of some of the rows."""
        return self if self.kept is None else replace(self, kept=self.kept[first:last])

    def arguments(self, like: NDArray[Any]) -> tuple[int, NDArray[np.uint8], Any]:
        """Activation, kept values and scale, as compiled loops take them."""
        kept = np.empty((0, 0), np.uint8) if self.kept is None else self.kept
        return CODES[self.activation], kept, like.dtype.type(self.scale)


def arc_sums(rows: ArcRows, values: torch.Tensor) -> torch.Tensor:
    """Weighted sums with a value per arc and column: gather, scale, scatter."""
    target, source, weight = rows.ends
    scaled = values.index_select(0, source) * weight
    return values.new_zeros(rows.num_targets, values.shape[1]).index_add(0, target, scaled)


class SparseProduct(torch.autograd.Function):
    """Weighted sums of rows as one sparse product."""

    @staticmethod
    def forward(ctx: Any, rows: ArcRows, values: torch.Tensor) -> torch.Tensor:
        ctx.rows = rows
        return rows.matrix @ values

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[None, torch.Tensor]:
        return None, ctx.rows.transposed.matrix @ gradients[0].contiguous()


class FinishedRows(torch.autograd.Function):
    """The epilogue of rows in one pass, in place."""

    @staticmethod
    def forward(
        ctx: Any, values: torch.Tensor, bias: torch.Tensor, epilogue: Epilogue
    ) -> torch.Tensor:
        finish_in_place(values.detach(), bias.detach(), epilogue)
        ctx.epilogue = epilogue
        ctx.mark_dirty(values)
        ctx.save_for_backward(values)
        return values

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        (result,) = ctx.saved_tensors
        return *before_epilogue(gradients[0], result, ctx.epilogue), None


class FinishedProduct(torch.autograd.Function):
    """A sparse product, rows that are added to it, and the epilogue of the sums."""

    @staticmethod
    def forward(
        ctx: Any,
        rows: ArcRows,
        values: torch.Tensor,
        added: torch.Tensor | None,
        bias: torch.Tensor,
        epilogue: Epilogue,
    ) -> torch.Tensor:
        source = values.detach().contiguous()
        width = source.shape[1]
        start = source.new_empty(0, width) if added is None else added.detach().contiguous()
        if width < LEAST_COMPILED_WIDTH:
            out = rows.matrix @ source
            out = out if added is None else out.add_(start)
            finish_in_place(out, bias.detach(), epilogue)
        else:
            out = source.new_empty(rows.num_targets, width)
            arrays = out.numpy()
            options = epilogue.arguments(arrays)
            csr = (rows.ptr, rows.source, rows.weight)
            given = (source.numpy(), start.numpy(), bias.detach().numpy())
            sum_and_finish(*csr, *given, *options, arrays)
        ctx.rows, ctx.epilogue, ctx.adds = rows, epilogue, added is not None
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(
        ctx: Any, *gradients: torch.Tensor
    ) -> tuple[None, torch.Tensor, torch.Tensor | None, torch.Tensor, None]:
        (result,) = ctx.saved_tensors
        before, to_bias = before_epilogue(gradients[0], result, ctx.epilogue)
        to_added = before if ctx.adds else None
        return None, ctx.rows.transposed.matrix @ before, to_added, to_bias, None


def finish_in_place(values: torch.Tensor, bias: torch.Tensor, epilogue: Epilogue) -> None:
    """Apply an epilogue to rows."""
    if epilogue.activation == "elu" or epilogue.kept is not None:
        arrays = values.numpy()
        finish(arrays, bias.numpy(), *epilogue.arguments(arrays))
        return
    values.add_(bias)
    if epilogue.activation == "relu":
        values.relu_()


def before_epilogue(
    gradient: torch.Tensor, result: torch.Tensor, epilogue: Epilogue
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients of the rows before an epilogue, and of the bias.

    That of ReLU, with dropout or without, follows from the sign of the result.
    """
    given = gradient.contiguous()
    if epilogue.activation == "identity" and epilogue.kept is None:
        return given, given.sum(0)
    if epilogue.activation == "relu":
        out = torch.ops.aten.threshold_backward(given, result, 0)
        out = out if epilogue.kept is None else out.mul_(epilogue.scale)
        return out, out.sum(0)
    out = torch.empty_like(result)
    to_bias = result.new_zeros(result.shape[1])
    arrays = result.numpy()
    unfinish(given.numpy(), arrays, *epilogue.arguments(arrays), out.numpy(), to_bias.numpy())
    return out, to_bias


def untyped(function: Any) -> Any:
    """The same without types: torch declares none for ``apply``."""
    return function


def on_processor(values: torch.Tensor) -> bool:
    """Whether compiled loops can read these values."""
    return values.device.type == "cpu"


def sparse_product(rows: ArcRows, values: torch.Tensor) -> torch.Tensor:
    """Weighted sums of rows; differentiable by the rows."""
    out: torch.Tensor = untyped(SparseProduct).apply(rows, values)
    return out


def finished_rows(values: torch.Tensor, bias: torch.Tensor, epilogue: Epilogue) -> torch.Tensor:
    """Rows with their epilogue, written over the given ones, which no operator may have kept;
    differentiable by rows and bias.
    """
    if not on_processor(values):
        return epilogue.unfused(values, bias)
    out: torch.Tensor = untyped(FinishedRows).apply(values, bias, epilogue)
    return out


def finished_product(
    rows: ArcRows,
    values: torch.Tensor,
    added: torch.Tensor | None,
    bias: torch.Tensor,
    epilogue: Epilogue,
) -> torch.Tensor:
    """Weighted sums of rows, plus ``added``, with their epilogue; differentiable by all three."""
    if not on_processor(values):
        total = sparse_product(rows, values)
        return epilogue.unfused(total if added is None else total + added, bias)
    out: torch.Tensor = untyped(FinishedProduct).apply(rows, values, added, bias, epilogue)
    return out
