"""Rounding in float32: sums over many rows, and signs of ReLU beside its kink."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks._fusion_rounding import errors_of, margin_biases, middle_of_gap
from optbench.gnn.kernels.dense_products import narrow_product
from optbench.gnn.kernels.fused_network import FusedNetwork, NetworkWidths
from optbench.gnn.kernels.kernel_rates import KernelCase
from optbench.gnn.kernels.sparse_functions import Epilogue, finished_rows
from tests.gnn.kernels.kernel_cases import CLASSES, FEATURES, GRAPH, training_of

ROWS = 200_000
PLANS = {
    "gcn": {"aggregated_before", "one_pass1", "spmm_epilogue2"},
    "sage": {"aggregated_last1", "aggregated_last2", "one_pass1"},
}
# Half a step of float32 at 1 is 2⁻²⁴: 1 + TINY is 1.
TINY = 2.0**-30


def relative_error(found: torch.Tensor, exact: torch.Tensor) -> float:
    return float((found.double() - exact).norm() / exact.norm())


def test_the_gradient_of_a_bias_keeps_its_digits_over_many_rows() -> None:
    # One running sum in float32 is 5e-6 off after 200,000 rows of one sign, and grows with them.
    given = torch.from_numpy(np.random.default_rng(0).uniform(0.5, 1.5, (ROWS, 4))).float()
    bias: Any = torch.zeros(4, requires_grad=True)
    out: Any = finished_rows(given.clone(), bias, Epilogue("elu"))
    out.backward(given)
    # All values are positive, so that ELU is the identity.
    assert relative_error(bias.grad, given.double().sum(0)) < 5e-7


def test_the_gradient_of_scores_keeps_its_digits_over_many_rows() -> None:
    # MKL's product of 2 by 200,000 and 200,000 by 8 is 5e-6 off for rows of one sign. Blocks do
    # not divide the rows: 37 are left over.
    rng = np.random.default_rng(0)
    values, given = (
        torch.from_numpy(rng.uniform(0.5, 1.5, (ROWS // 1024 * 1024 + 37, width))).float()
        for width in (8, 2)
    )
    weight: Any = torch.ones(2, 8, requires_grad=True)
    out: Any = narrow_product(values, weight)
    out.backward(given)
    assert relative_error(weight.grad, given.double().t() @ values.double()) < 5e-7


def case_of(kind: Any) -> KernelCase:
    data = replace(training_of(kind), graph=GRAPH)
    return KernelCase(data, NetworkWidths(kind, FEATURES, 16, CLASSES))


def cancelling_features(kind: Any) -> torch.Tensor:
    """Features with which node 7, which has no neighbour, comes to 2⁻³⁰ in three hidden columns.

    Column c of the three has the weights 1, −1 and 2⁻³⁰ (of itself, in SAGE) in another order.
    """
    drawn = np.random.default_rng(1).standard_normal((8, FEATURES))
    drawn[7] = [1, 1, 1] + [0] * (FEATURES - 3)
    return torch.from_numpy(drawn).float()


@pytest.fixture
def cancelling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks whose first three hidden columns have those weights."""
    drawn = FusedNetwork.__init__

    def made(self: FusedNetwork, widths: NetworkWidths, seed: int, *others: Any) -> None:
        drawn(self, widths, seed, *others)
        first = 16 if widths.kind == "sage" else 0
        orders = [[TINY, 1, -1], [1, TINY, -1], [1, -1, TINY]]
        self.weights[0].data[first : first + 3, :3] = torch.tensor(orders)

    monkeypatch.setattr(FusedNetwork, "__init__", made)


@pytest.mark.usefixtures("cancelling")
@pytest.mark.parametrize("kind", list(PLANS))
def test_gradients_agree_where_signs_of_relu_do(kind: Any) -> None:
    # Whichever two of three terms are added first, in two of the three columns one of them is
    # 2⁻³⁰ and is lost; the value is then 0 in float32 and positive in float64.
    features = cancelling_features(kind)
    found = errors_of(case_of(kind), frozenset(PLANS[kind]), features)
    for step in ("plan", "plain"):
        assert found[f"drawn {step} signs"] == 2
        assert found[f"drawn {step} farthest"] == pytest.approx(TINY)
        assert found[f"drawn {step} outputs"] < 1e-6
        assert found[f"drawn {step} gradients"] > 1e-3
        assert found[f"drawn {step} gradients at its signs"] < 1e-6
        # With biases that keep values away from 0, nothing depends on signs.
        assert found[f"margin {step} signs"] == 0
        assert found[f"margin {step} outputs"] < 1e-6
        assert found[f"margin {step} gradients"] < 1e-6
    assert found["margin margin"] > 1000 * found["margin plan hidden"]


def test_a_wrong_gradient_is_found_with_the_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    # The comparison can fail: ReLU that lets a thousandth of negative gradients pass.
    relu = torch.ops.aten.threshold_backward

    def leaking(gradient: torch.Tensor, result: torch.Tensor, threshold: float) -> Any:
        return relu(gradient, result, threshold) + 1e-3 * gradient

    monkeypatch.setattr(torch.ops.aten, "threshold_backward", leaking)
    found = errors_of(case_of("gcn"), frozenset(PLANS["gcn"]), cancelling_features("gcn"))
    assert found["margin plan gradients"] > 1e-4
    assert found["drawn plan gradients at its signs"] > 1e-4


def test_biases_are_in_the_middle_of_the_widest_gap_around_zero() -> None:
    # Sixteen values of ±10 in 19: the standard deviation is 40 / √19 or so, 9.2; its tenth, 0.92,
    # ends the range. Between −0.2 and 0.6 is the widest gap, with its middle at 0.2.
    values = np.array([10.0, -10.0] * 8 + [-0.5, -0.2, 0.6])
    assert middle_of_gap(values) == pytest.approx(0.2)
    case, features = case_of("gcn"), cancelling_features("gcn")
    assert margin_biases(case, features).dtype == torch.float32
