"""repartition: nodes stay where moving costs, limits hold, new nodes join their neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.errors import ModelError, UnsupportedError
from optbench.plugins.discovery import load_problem
from optbench.shapes.gnn_training.part_labels import kept_labels
from tests.solvers.mis_spectral.small_graphs import clique, path, training_on


def solved(instance: Any, solver: str = "repartition", **options: Any) -> Any:
    settings = {"work_limit": 4, "time_limit_s": 60.0, "bound": False} | options
    return ob.solve(instance, solver, **settings)


def changed(nodes: int, edges: Any, parts: int, most: int, previous: list[int]) -> Any:
    return training_on(nodes, edges, parts, most, previous=np.array(previous, dtype=np.int64))


def test_a_new_node_joins_its_neighbours() -> None:
    """Nodes 6 and 7 are new; 6 has its edges in part 1, and 7 hangs on 6."""
    edges = [*clique(0, 3), *clique(3, 3), (3, 6), (4, 6), (6, 7)]
    result = solved(changed(8, edges, 2, 5, [0, 0, 0, 1, 1, 1, -1, -1]))
    assert result.objective == 0 and result.metrics["moved_nodes"] == 0
    assert result.schedule.part.tolist() == [0, 0, 0, 1, 1, 1, 1, 1]


def test_a_full_part_sends_nodes_away() -> None:
    """A path of 6 in parts of at most 3, of which one had 4: one node at the border moves."""
    result = solved(changed(6, path(6), 2, 3, [0, 0, 0, 0, 1, 1]))
    assert result.verified and result.metrics["moved_nodes"] == 1
    assert result.schedule.part.tolist() == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize(("price", "moved", "cut"), [(1.5, 1, 0), (2.5, 0, 2)])
def test_a_node_moves_where_it_saves_more_than_its_price(
    price: float, moved: int, cut: int
) -> None:
    """Node 2 of a triangle stands in the other part: moving it saves two cut edges."""
    instance = changed(6, [*clique(0, 3), *clique(3, 3)], 2, 4, [0, 0, 1, 1, 1, 1])
    result = solved(instance, f"repartition:move_price={price}")
    assert (result.metrics["moved_nodes"], result.objective) == (moved, cut)


@pytest.mark.parametrize("family", ["community", "mesh", "power", "molecules", "hubs"])
def test_limits_hold_and_fewer_nodes_move_than_anew(family: str) -> None:
    spec = f"gnn_training:graph={family},nodes=300,parts=4,changed=0.1"
    instance = load_problem(spec).instance(1)
    carried, anew = solved(instance), solved(instance, "metis")
    assert carried.verified
    assert carried.metrics["moved_nodes"] < anew.metrics["moved_nodes"]


def test_the_same_seed_gives_the_same_parts() -> None:
    instance = load_problem("gnn_training:graph=mesh,nodes=300,parts=4,changed=0.1").instance(1)
    one, again = (solved(instance, seed=2).schedule.part for _ in range(2))
    assert np.array_equal(one, again)


def test_without_a_partition_before_it_refuses() -> None:
    with pytest.raises(UnsupportedError, match=r"changed=0\.05"):
        solved(training_on(6, path(6), 2))


def test_parts_made_anew_are_numbered_for_most_nodes_to_stay() -> None:
    """Of the parts 2, 0, 1 of three pairs, the first two pairs were 0 and 1 before."""
    data = changed(6, path(6), 3, 2, [0, 0, 1, 1, 2, -1]).data
    part = np.array([2, 2, 0, 0, 1, 1])
    assert kept_labels(data, part).tolist() == [0, 0, 1, 1, 2, 2]
    still = training_on(6, path(6), 3).data
    assert kept_labels(still, part) is part


def test_parts_before_are_checked() -> None:
    for previous, words in (([0, 1], "2 entries for 6 nodes"), ([0, 0, 2, 0, 0, 0], r"\[2\] is 2")):
        with pytest.raises(ModelError, match=words):
            changed(6, path(6), 2, 3, previous)
