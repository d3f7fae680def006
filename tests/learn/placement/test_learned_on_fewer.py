"""Agents and their controls leave out a device with a slow link, as rules with a planner do."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from optbench.gnn.placement.placement_methods import LEARNED, place
from optbench.gnn.placement.placement_table import PlacementTable, table_step_s
from optbench.shapes.gnn_training.operator_costs import Operator, OperatorCost

OPERATORS = (Operator("a", "sum", (-1,), OperatorCost(bytes_per_arc=8.0, row_bytes=1.0)),)


def slow_link(parameter_bytes: float) -> PlacementTable:
    """Six parts of 1 s on three equal devices; links are of 1 GB/s, those to device 2 of 0.1."""
    rate = np.array([[1.0, 1.0, 0.1], [1.0, 1.0, 0.1], [0.1, 0.1, 1.0]])
    work, none = np.ones((6, 3, 1)), np.zeros((6, 6))
    limits, zero = np.full(3, inf), np.zeros((3, 3))
    return PlacementTable(
        work, none, 1.0, 2.0, rate, zero, 0.0, np.ones(6), limits, parameter_bytes, OPERATORS
    )


@pytest.mark.parametrize("method", LEARNED)
def test_agents_leave_out_what_slows_all_down(method: str) -> None:
    # All: 2 + 4 x (0.3 / 3) / 0.1 = 6 s; devices 0 and 1: 3 + 2 x 0.3 / 2 = 3.3 s.
    table = slow_link(3e8)
    found = place(method, table, np.random.default_rng(0), lambda: inf)
    assert np.bincount(found, minlength=3).tolist() == [3, 3, 0]
    assert table_step_s(table, found) == pytest.approx(3.3)
    # All: 2 + 0.04 s; two devices take at least 3 s.
    whole = place(method, slow_link(3e6), np.random.default_rng(0), lambda: inf)
    assert np.bincount(whole).tolist() == [2, 2, 2]
