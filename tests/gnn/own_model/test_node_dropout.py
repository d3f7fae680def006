"""Dropout of a module by the global numbers of nodes and arcs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from optbench.errors import ModelError
from optbench.gnn.kernels.counter_dropout import CounterDropout
from optbench.gnn.own_model.node_dropout import NodeDropout, RowNumbers
from optbench.gnn.own_model.node_neighbourhood import neighbourhood
from optbench.shapes.gnn_training.training_data import DataGraph

# A path 0 - 1 - 2 - 3 - 4; around node 3: nodes 3, 2, 4, and arcs 3-2, 3-4, 2-3, 4-3.
PATH = DataGraph(5, np.arange(4), np.arange(1, 5))
ROWS = RowNumbers(neighbourhood(PATH, np.array([3]), 1), 5)
DROPOUT = CounterDropout(0.5, seed=7)


def mode(step: int | None = 2, only_dropout: bool = True) -> NodeDropout:
    return NodeDropout(7, ROWS, step, only_dropout, "Net")


@pytest.mark.parametrize(
    ("rows", "numbers"),
    [
        (3, [3, 2, 4]),
        # An arc u → v is 5 v + u; its source ascends in the order 3, 2, 4.
        (4, [5 * 2 + 3, 5 * 4 + 3, 5 * 3 + 2, 5 * 3 + 4]),
        (7, [13, 23, 17, 19, 5 * 3 + 3, 5 * 2 + 2, 5 * 4 + 4]),
        (2, [0, 1]),
    ],
)
def test_masks_are_those_of_global_numbers(rows: int, numbers: list[int]) -> None:
    assert ROWS.of(rows).tolist() == numbers
    values = torch.ones(rows, 6)
    with mode():
        first, second = (functional.dropout(values, 0.5, training=True) for _ in range(2))
    for layer, found in enumerate((first, second)):
        expected = DROPOUT.mask(2, layer, np.array(numbers), 6, torch.float32)
        assert torch.equal(found, expected)


def test_modules_and_old_names_are_the_same_function() -> None:
    values = torch.ones(3, 2, 3)
    with mode():
        by_module = torch.nn.Dropout(0.5)(values)
    with mode():
        by_name = torch.dropout(values, 0.5, True)
    assert torch.equal(by_module, by_name) and 0 < int((by_name == 0).sum()) < 18


def test_nothing_is_dropped_without_a_step_or_while_not_training() -> None:
    values = torch.ones(3, 2)
    with mode(step=None):
        assert torch.equal(functional.dropout(values, 0.5, training=True), values)
    with mode():
        assert torch.equal(functional.dropout(values, 0.5, training=False), values)
        assert not functional.dropout(values, 1.0, training=True).any()


def test_gradients_have_the_mask_and_values_may_be_dropped_in_place() -> None:
    values = torch.ones(3, 4, requires_grad=True)
    with mode():
        out = functional.dropout(values, 0.5, training=True)
    out.sum().backward()  # type: ignore[no-untyped-call]  # of PyTorch
    assert values.grad is not None and torch.equal(values.grad, out.detach())
    held = torch.ones(3, 4)
    with mode():
        functional.dropout(held, 0.5, training=True, inplace=True)
    assert torch.equal(held, out.detach())


def alpha(values: torch.Tensor) -> Any:
    return functional.alpha_dropout(values, 0.5, training=True)


@pytest.mark.parametrize(
    ("draw", "name"),
    [(torch.rand_like, "rand_like"), (alpha, "alpha_dropout"), (torch.bernoulli, "bernoulli")],
)
def test_other_random_numbers_are_refused_on_several_devices(draw: Any, name: str) -> None:
    values = torch.full((3, 2), 0.5)
    with pytest.raises(ModelError, match=f"draws random numbers by {name}"), mode():
        draw(values)
    with mode(only_dropout=False):
        assert draw(values).shape == (3, 2)
