"""S X for a constant sparse S, whose transpose is kept for the gradient."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor

from optbench.shapes.gnn_training.training_data import Floats, Ints


class SparseProduct:
    """A sparse matrix of ``shape`` with entries (row, column, value)."""

    def __init__(
        self,
        row: Ints,
        column: Ints,
        value: Floats,
        shape: tuple[int, int],
        dtype: torch.dtype,
    ) -> None:
        self.matrix = _compressed(row, column, value, shape, dtype)
        self.transposed = _compressed(column, row, value, (shape[1], shape[0]), dtype)

    def __call__(self, x: Tensor) -> Tensor:
        found: Tensor = _Product.apply(self, x)  # type: ignore[no-untyped-call]
        return found

    def to(self, device: torch.device) -> None:
        self.matrix, self.transposed = self.matrix.to(device), self.transposed.to(device)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, product: SparseProduct, x: Tensor) -> Tensor:
        ctx.product = product
        return product.matrix @ x

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return None, ctx.product.transposed @ gradients[0].contiguous()


def _compressed(
    row: Ints, column: Ints, value: Floats, shape: tuple[int, int], dtype: torch.dtype
) -> Tensor:
    """Compressed rows; torch warns that they are a beta feature."""
    order = np.lexsort((column, row))
    ptr = np.zeros(shape[0] + 1, dtype=np.int64)
    np.cumsum(np.bincount(row, minlength=shape[0]), out=ptr[1:])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(
            torch.from_numpy(ptr),
            torch.from_numpy(column[order]),
            torch.from_numpy(value[order]).to(dtype),
            size=shape,
        )
