"""Loads and limits of parts by the speed and the memory of devices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from optbench.plugins.discovery import load_problem
from optbench.plugins.solvers.mis_spectral.part_loads import node_loads, part_loads, part_shares
from optbench.shapes.gnn_training.operator_costs import Operator, OperatorCost


def data(spec: str, **changes: Any) -> Any:
    made = load_problem(f"gnn_training:graph=grid,nodes=16,{spec}").instance(0).data
    return replace(made, **changes)


def test_a_cut_has_nodes_as_loads_and_max_part_as_limits() -> None:
    (loads,) = part_loads(data("parts=4,max_part=5"))
    assert loads.size.tolist() == [1] * 16 and loads.limit.tolist() == [5] * 4


def test_shares_follow_speeds() -> None:
    """Devices 2 : 1 and three parts: the first device has two of them, a third of all each."""
    given = data("parts=3,devices=2:1,minimize=step")
    assert part_shares(given) == pytest.approx([1 / 3, 1 / 3, 1 / 3])
    assert part_shares(data("parts=2,devices=4:1,minimize=step")) == pytest.approx([0.8, 0.2])


def test_recorded_speeds_count() -> None:
    """The first device runs at half its speed: 1 : 1."""
    given = data("parts=2,devices=2:1,minimize=step", speeds=np.array([[0.5, 1.0]]))
    assert part_shares(given) == pytest.approx([0.5, 0.5])


def test_what_exceeds_a_memory_goes_to_the_others() -> None:
    """One operator that keeps 1e9 bytes per node, 16 in all; the first device has 4 GB."""
    kept = (Operator("kept", "dense", (-1,), OperatorCost(1e9, kept_bytes_per_node=1e9)),)
    given = data("parts=3,devices=1:1:1,minimize=step")
    small = replace(given.devices[0], memory_gb=4.0)
    given = replace(
        given,
        operators=kept,
        fusions=(),
        parameter_bytes=0.0,
        devices=(small, *given.devices[1:]),
    )
    assert part_shares(given) == pytest.approx([0.25, 0.375, 0.375])


def test_loads_are_in_proportion_to_the_work_of_nodes_and_arcs() -> None:
    """One flop per node and one per arc: corners of the lattice have 2 arcs, inner nodes 4."""
    work = (Operator("work", "dense", (-1,), OperatorCost(1e9, 1e9)),)
    found = node_loads(data("parts=2,minimize=step", operators=work, fusions=()))
    # 16 nodes and 48 arcs: 4 in the mean. A corner has 1 + 2, an inner node 1 + 4.
    assert (found[0], found[5]) == (75, 125)


def test_max_part_limits_what_speed_asks_for() -> None:
    """Of 16 nodes the first part would have 13: it has 10, and the second one what is left."""
    limits = [
        each.limit.tolist()
        for each in part_loads(data("parts=2,devices=4:1,minimize=step,max_part=10"))
    ]
    assert all(first == 10 and first + second >= 16 for first, second in limits)
