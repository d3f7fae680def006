"""Products with their epilogue against torch's own operators in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from optbench.gnn.kernels.dense_products import FixedRows, dense_product, finished_dense
from optbench.gnn.kernels.sparse_functions import Activation, Epilogue

KEPT = np.random.default_rng(2).integers(0, 2, (30, 12)).astype(np.uint8)


def drawn(*shape: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(sum(shape)).standard_normal(shape))


def gradients(out: torch.Tensor, *leaves: torch.Tensor) -> list[torch.Tensor]:
    factors = drawn(*out.shape).to(out.dtype)
    found = torch.autograd.grad((out * factors).sum(), leaves)
    return [out.detach().double(), *(each.double() for each in found)]


def assert_close(found: list[torch.Tensor], expected: list[torch.Tensor], within: float) -> None:
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        assert float((one - other).norm()) <= within * float(other.norm())


@pytest.mark.parametrize(("dtype", "within"), [(torch.float32, 1e-6), (torch.float64, 1e-14)])
@pytest.mark.parametrize("kept", [None, KEPT])
@pytest.mark.parametrize("activation", ["identity", "relu", "elu"])
def test_the_epilogue_is_that_of_torch(
    activation: Activation, kept: Any, dtype: torch.dtype, within: float
) -> None:
    epilogue = Epilogue(activation, kept, 1.0 if kept is None else 2.0)
    exact: Any = [each.requires_grad_() for each in (drawn(30, 7), drawn(12, 7), drawn(12))]
    expected = gradients(epilogue.unfused(exact[0] @ exact[1].t(), exact[2]), *exact)
    leaves: Any = [each.detach().to(dtype).requires_grad_() for each in exact]
    values, weight, bias = leaves
    found = gradients(finished_dense(values, weight, bias, epilogue), *leaves)
    assert_close(found, expected, within)


def test_fixed_rows_give_the_gradients_of_weights_that_other_rows_give() -> None:
    values, weight = drawn(30, 7).float(), drawn(12, 7).float().requires_grad_()
    fixed = FixedRows(values)
    expected = gradients(dense_product(values, weight), weight)
    assert_close(gradients(dense_product(fixed, weight), weight), expected, 1e-6)
    assert torch.equal(fixed.transposed, values.t())


def test_a_process_without_rows_has_gradients_of_zero() -> None:
    weight: Any = drawn(12, 7).float().requires_grad_()
    bias: Any = drawn(12).float().requires_grad_()
    out: Any = finished_dense(FixedRows(torch.empty(0, 7)), weight, bias, Epilogue("relu"))
    out.sum().backward()
    assert out.shape == (0, 12)
    assert not weight.grad.any()
    assert not bias.grad.any()
