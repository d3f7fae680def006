"""Products of rows and weights by oneDNN, with what follows them in the same kernel.

    forward    y = relu(x Wᵀ + b)                          one kernel, which writes y alone
    backward   ∂z = ∂y where y > 0,  ∂W = ∂zᵀ x,  ∂b = Σ ∂z    from y, without a kept mask

The products of torch's linear layers run in oneDNN only where a model was compiled; the operator
``mkldnn::_linear_pointwise``, which compiled models call, is called here directly. Where torch was
built without it, and for other types than float32, torch's own products take its place.

Rows that are the same in every step (``FixedRows``) keep their transpose, which makes the sums over
all rows in ∂W run along contiguous values.

Where torch's own product sums over all rows, it does so in blocks of rows: MKL keeps one running
sum for narrow products, whose error in float32 is 1e-5 after a million rows.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from torch.nn.functional import linear

from optbench.gnn.kernels.compiled_rows import SUMMED_ROWS
from optbench.gnn.kernels.sparse_functions import (
    Epilogue,
    before_epilogue,
    finish_in_place,
    on_processor,
    untyped,
)


class FixedRows:
    """Dense rows of nodes that no step changes, such as features."""

    def __init__(self, values: torch.Tensor) -> None:
        self.values = values

    @cached_property
    def transposed(self) -> torch.Tensor:
        """A column per node."""
        return self.values.t().contiguous()


def has_onednn(values: torch.Tensor) -> bool:
    """Whether oneDNN multiplies these values."""
    fits = values.dtype == torch.float32 and on_processor(values) and values.numel() > 0
    built: Any = torch.backends.mkldnn
    return fits and built.is_available() and hasattr(_operators(), _NAME)


_NAME = "_linear_pointwise"


def _operators() -> Any:
    return torch.ops.mkldnn


def multiplied(
    values: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, relu: bool = False
) -> torch.Tensor:
    """Rows times the transposed weight, with bias and ReLU; without gradients."""
    if has_onednn(values):
        after = "relu" if relu else "none"
        found: torch.Tensor = getattr(_operators(), _NAME)(values, weight, bias, after, [], "")
        return found
    out = linear(values, weight, bias)
    return out.relu_() if relu else out


def weight_gradient(
    gradient: torch.Tensor, values: torch.Tensor, transposed: torch.Tensor | None
) -> torch.Tensor:
    """The transposed gradient of rows times the rows."""
    if transposed is not None:
        return multiplied(transposed, gradient.t()).t()
    if has_onednn(values):
        return multiplied(gradient.t(), values.t())
    return summed_products(gradient, values)


def summed_products(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """The transposed left rows times the right ones, summed in blocks of rows."""
    whole = len(left) - len(left) % SUMMED_ROWS
    rest = left[whole:].t() @ right[whole:]
    if whole == 0:
        return rest
    blocks = [each[:whole].reshape(-1, SUMMED_ROWS, each.shape[1]) for each in (left, right)]
    return torch.bmm(blocks[0].transpose(1, 2), blocks[1]).sum(0) + rest


class NarrowProduct(torch.autograd.Function):
    """Rows times the transposed weight of a few outputs, such as scores of attention."""

    @staticmethod
    def forward(ctx: Any, values: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(values, weight)
        return linear(values, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, weight = ctx.saved_tensors
        return gradients[0] @ weight, summed_products(gradients[0], values)


class DenseProduct(torch.autograd.Function):
    """Rows times the transposed weight."""

    @staticmethod
    def forward(
        ctx: Any, values: torch.Tensor, weight: torch.Tensor, fixed: FixedRows | None
    ) -> torch.Tensor:
        ctx.fixed = fixed
        ctx.save_for_backward(values, weight)
        return multiplied(values.detach(), weight.detach())

    @staticmethod
    def backward(
        ctx: Any, *gradients: torch.Tensor
    ) -> tuple[torch.Tensor | None, torch.Tensor | None, None]:
        values, weight = ctx.saved_tensors
        return *_both(ctx, gradients[0].contiguous(), values, weight), None


class FinishedDense(torch.autograd.Function):
    """The same with the epilogue of the products in the kernel."""

    @staticmethod
    def forward(
        ctx: Any,
        values: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        epilogue: Epilogue,
        fixed: FixedRows | None,
    ) -> torch.Tensor:
        relu = epilogue.activation == "relu"
        out = multiplied(values.detach(), weight.detach(), bias.detach(), relu)
        rest = replace(epilogue, activation="identity") if relu else epilogue
        if rest.activation != "identity" or rest.kept is not None:
            finish_in_place(out, torch.zeros_like(bias), rest)
        ctx.fixed, ctx.epilogue = fixed, epilogue
        ctx.save_for_backward(values, weight, out)
        return out

    @staticmethod
    def backward(
        ctx: Any, *gradients: torch.Tensor
    ) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor, None, None]:
        values, weight, out = ctx.saved_tensors
        before, to_bias = before_epilogue(gradients[0], out, ctx.epilogue)
        return *_both(ctx, before, values, weight), to_bias, None, None


def _both(
    ctx: Any, gradient: torch.Tensor, values: torch.Tensor, weight: torch.Tensor
) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """Gradients of rows and of the weight, those that are needed."""
    to_values = multiplied(gradient, weight.t()) if ctx.needs_input_grad[0] else None
    if not ctx.needs_input_grad[1]:
        return to_values, None
    transposed = None if ctx.fixed is None else ctx.fixed.transposed
    return to_values, weight_gradient(gradient, values, transposed)


def dense_product(values: torch.Tensor | FixedRows, weight: torch.Tensor) -> torch.Tensor:
    """Rows times the transposed weight; differentiable by both."""
    fixed = values if isinstance(values, FixedRows) else None
    rows = values.values if isinstance(values, FixedRows) else values
    out: torch.Tensor = untyped(DenseProduct).apply(rows, weight, fixed)
    return out


def narrow_product(values: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """The same for a few outputs."""
    out: torch.Tensor = untyped(NarrowProduct).apply(values, weight)
    return out


def finished_dense(
    values: torch.Tensor | FixedRows, weight: torch.Tensor, bias: torch.Tensor, epilogue: Epilogue
) -> torch.Tensor:
    """The same with the epilogue; differentiable by the bias too."""
    fixed = values if isinstance(values, FixedRows) else None
    rows = values.values if isinstance(values, FixedRows) else values
    if not on_processor(rows):
        return epilogue.unfused(linear(rows, weight), bias)
    out: torch.Tensor = untyped(FinishedDense).apply(rows, weight, bias, epilogue, fixed)
    return out
