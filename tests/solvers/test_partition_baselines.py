"""METIS once and many times, streaming, random parts: balance is held, or nothing is reported."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.plugins.discovery import load_problem
from optbench.plugins.solvers._metis_runs import MetisRuns
from optbench.plugins.solvers.ldg import streamed
from optbench.shapes.gnn_training.cut_graph import CutGraph
from tests.solvers.mis_spectral.small_graphs import clique, cycle, path, rows_of, star, training_on

BASELINES = ("metis", "metis_best", "ldg", "random_parts")
# Graphs on which METIS may crash, or has nothing to cut.
ODD = {
    "one node each": training_on(5, cycle(5), 5),
    "one part": training_on(5, cycle(5), 1),
    "no edge": training_on(6, [], 3),
    "two nodes": training_on(2, [(0, 1)], 2),
    "star": training_on(9, star(9), 2),
    "isolated": training_on(30, clique(0, 12), 3),
    "small parts": training_on(12, path(12), 5),
}

# METIS balances what it cuts: on these graphs it fills a part beyond the limit.
TOO_FULL = {("metis", "isolated"), ("metis_best", "isolated")}


def solved(instance: Any, solver: str, **options: Any) -> Any:
    settings = {"work_limit": 6, "time_limit_s": 20.0, "bound": False} | options
    return ob.solve(instance, solver, **settings)


@pytest.mark.parametrize("solver", BASELINES)
@pytest.mark.parametrize("name", ODD)
def test_odd_graphs_are_partitioned_or_the_limit_is_named(solver: str, name: str) -> None:
    result = solved(ODD[name], solver)
    if (solver, name) in TOO_FULL:
        assert result.schedule is None
        assert "METIS makes a part of more than 10 nodes" in result.message
    else:
        assert result.verified and result.message is None


def test_metis_defines_its_own_limit() -> None:
    """The default instance allows METIS's largest part, which METIS therefore keeps to."""
    instance = load_problem("gnn_training:graph=mesh,nodes=500,parts=5").instance(0)
    result = solved(instance, "metis")
    cut, part = MetisRuns(instance.data).part()
    assert result.objective == cut == CutGraph(instance.data.graph, part, 5).cut_edges
    assert np.bincount(part).max() == instance.data.max_part


def test_many_seeds_are_no_worse_than_one() -> None:
    instance = load_problem("gnn_training:graph=power,nodes=500,parts=5").instance(0)
    one, many = (solved(instance, name).objective for name in ("metis", "metis_best"))
    assert one is not None and many is not None and many <= one
    again = solved(instance, "metis_best").objective
    assert again == many


def test_the_limit_is_given_to_metis_in_its_unit() -> None:
    """1,000 nodes in 4 parts of at most 260: 40 thousandths above 250; none is at least 1; in 5
    parts of at most 205: 25 thousandths, of which a floating quotient would leave 24.
    """
    wide = load_problem("gnn_training:graph=power,nodes=1000,parts=4,max_part=260").instance(0)
    tight = load_problem("gnn_training:graph=power,nodes=1000,parts=4,max_part=250").instance(0)
    fifths = load_problem("gnn_training:graph=power,nodes=1000,parts=5,max_part=205").instance(0)
    found = [MetisRuns(each.data).ufactor for each in (wide, tight, fifths)]
    assert found == [40, 1, 25]


def test_streaming_by_hand() -> None:
    """The path 0-1-2-3 in order, two parts of 2: 0 opens a part, 1 joins it, 2 finds it full, and
    3 joins 2.
    """
    ptr, adj, _, _ = rows_of(4, path(4))
    assert streamed(ptr, adj, np.arange(4), 2, 2).tolist() == [0, 0, 1, 1]


def test_streaming_prefers_the_emptier_of_equal_parts() -> None:
    """Without edges nodes go to the parts in turn."""
    ptr, adj, _, _ = rows_of(6, [])
    assert streamed(ptr, adj, np.arange(6), 3, 4).tolist() == [0, 1, 2, 0, 1, 2]


def test_random_parts_differ_by_at_most_one_node() -> None:
    instance = load_problem("gnn_training:graph=grid,nodes=25,parts=4,imbalance=0").instance(0)
    sizes = np.bincount(solved(instance, "random_parts").schedule.part)
    assert sorted(sizes.tolist()) == [6, 6, 6, 7]


def test_metis_by_speed_gives_a_faster_device_more() -> None:
    """Devices of 4 : 1 and a mesh of 500: 400 nodes and 100, within METIS's own imbalance."""
    spec = "gnn_training:graph=mesh,nodes=500,parts=2,devices=4:1,minimize=step"
    result = solved(load_problem(spec).instance(0), "metis:by_speed=true")
    assert result.verified and 380 <= np.bincount(result.schedule.part)[0] <= 420
