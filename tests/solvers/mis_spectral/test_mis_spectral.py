"""mis_spectral on graphs whose best cut is known, and on degenerate ones; balance always holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.errors import UnsupportedError
from optbench.plugins.discovery import load_problem
from optbench.plugins.solvers.mis_spectral import MisSpectral
from tests.solvers.mis_spectral.small_graphs import (
    clique,
    cycle,
    lattice,
    path,
    star,
    training_on,
)

TRIANGLES = [*clique(0, 3), *clique(3, 3), *clique(6, 3), *clique(9, 3)]
# Each with the least number of edges between parts of at most max_part nodes.
KNOWN: dict[str, tuple[Any, int]] = {
    # Any cut of a path into k runs removes k − 1 edges, of a cycle k.
    "path": (training_on(12, path(12), 3), 2),
    "cycle": (training_on(12, cycle(12), 4), 4),
    # Two cliques, joined by one edge.
    "cliques": (training_on(10, [*clique(0, 5), *clique(5, 5), (0, 5)], 2), 1),
    # Halves of a lattice of side 4 are joined by 4 edges at least.
    "lattice": (training_on(16, lattice(4), 2), 4),
    # The part of the centre holds 4 of the 8 leaves.
    "star": (training_on(9, star(9), 2), 4),
    # Parts of one node each: every edge is cut.
    "one node each": (training_on(6, clique(0, 6), 6), 15),
    # Two triangles per part.
    "triangles": (training_on(12, TRIANGLES, 2), 0),
    # One part of 3 nodes and another of 5 isolated ones.
    "isolated": (training_on(8, clique(0, 3), 2, 5), 0),
    # The triangle does not fit into a part of 2 nodes: it is split, which cuts 2 of its edges.
    "split triangle": (training_on(6, clique(0, 3), 3, 2), 2),
    "no edge": (training_on(5, [], 2), 0),
    "one part": (training_on(5, cycle(5), 1), 0),
    "two nodes": (training_on(2, [(0, 1)], 2), 1),
}


def solved(instance: Any, solver: str = "mis_spectral", **options: Any) -> Any:
    settings = {"work_limit": 12, "time_limit_s": 60.0, "bound": False} | options
    return ob.solve(instance, solver, **settings)


@pytest.mark.parametrize("name", KNOWN)
def test_known_cuts_are_found_within_the_limit(name: str) -> None:
    instance, optimum = KNOWN[name]
    result = solved(instance)
    assert result.verified and result.objective == optimum
    part = result.schedule.part
    assert np.bincount(part, minlength=instance.data.num_parts).max() <= instance.data.max_part


@pytest.mark.parametrize(
    "spec",
    [
        "gnn_training:graph=community,nodes=300,parts=5,imbalance=0",
        "gnn_training:graph=power,nodes=300,parts=3",
        "gnn_training:graph=molecules,nodes=300,parts=7,imbalance=0",
        "gnn_training:graph=molecules,nodes=300,parts=60,imbalance=0",
        "gnn_training:graph=hubs,nodes=200,parts=8,imbalance=0",
        "gnn_training:graph=mesh,nodes=200,parts=200",
    ],
)
def test_balance_is_held_on_every_family(spec: str) -> None:
    """Whatever the seed; parts of ceil(n / k) nodes leave no room at all."""
    for seed in range(3):
        assert solved(load_problem(spec).instance(seed), seed=seed, work_limit=4).verified


def test_it_beats_random_parts_and_streaming() -> None:
    instance = load_problem("gnn_training:graph=community,nodes=400,parts=4,imbalance=0.05")
    cuts = [solved(instance.instance(0), name).objective for name in ORDERED]
    assert cuts == sorted(cuts) and len(set(cuts)) == len(cuts)


ORDERED = ("mis_spectral", "ldg", "random_parts")


def test_same_seed_same_parts_and_another_seed_others() -> None:
    instance = load_problem("gnn_training:graph=power,nodes=300,parts=4").instance(0)
    one, again, other = (solved(instance, seed=seed, work_limit=3) for seed in (1, 1, 2))
    assert (one.schedule.part == again.schedule.part).all()
    assert (one.schedule.part != other.schedule.part).any()


def test_every_improvement_is_reported() -> None:
    instance = load_problem("gnn_training:graph=mesh,nodes=600,parts=8,imbalance=0.02").instance(0)
    result = solved(instance, "mis_spectral:first_cycles=1", work_limit=60)
    cuts = [point.objective for point in result.trajectory]
    assert len(cuts) > 1 and cuts == sorted(cuts, reverse=True) and cuts[-1] == result.objective


@pytest.mark.parametrize(
    ("nodes", "parts", "cycles"),
    [(4_000, 1, 2), (4_000, 8, 4), (4_001, 2, 4), (50_000, 5, 6), (50_001, 2, 3), (50_001, 8, 4)],
)
def test_the_cycles_before_the_first_report(nodes: int, parts: int, cycles: int) -> None:
    """2, with two more above 4,000 nodes and one for each doubling of the parts from 2 to 8 (5
    counts as 8); above 50,000 one more, and one for more parts than 2.
    """
    assert MisSpectral().opening(nodes, parts) == cycles
    assert MisSpectral(first_cycles=9).opening(nodes, parts) == 9


def test_more_cycles_cut_no_more() -> None:
    instance = load_problem("gnn_training:graph=mesh,nodes=600,parts=8,imbalance=0.02").instance(0)
    few, many = (solved(instance, work_limit=work).objective for work in (3, 60))
    assert few is not None and many is not None and many <= few


def test_a_faster_device_is_given_more() -> None:
    """Devices of speeds 2 : 1: a step is shorter than with equal parts, or with METIS's."""
    spec = "gnn_training:graph=mesh,nodes=600,parts=2,devices=2:1,minimize=step"
    instance = load_problem(f"{spec},features=16,latency_s=0").instance(0)
    result, equal = solved(instance), solved(instance, "metis")
    sizes = np.bincount(result.schedule.part)
    assert sizes[0] > 1.8 * sizes[1]
    assert result.metrics["step_s"] < 0.8 * equal.metrics["step_s"]


def test_speed_is_used_within_max_part() -> None:
    spec = "gnn_training:graph=mesh,nodes=300,parts=2,devices=2:1,minimize=step,max_part=180"
    result = solved(load_problem(spec).instance(0))
    assert result.verified and np.bincount(result.schedule.part).max() == 180


def test_too_many_parts_are_refused() -> None:
    """A pull and a place in a queue, 8 bytes each, of each of 450 million nodes by part."""
    instance = training_on(30_000, path(30_000), 15_000)
    with pytest.raises(UnsupportedError, match=r"need tables of 7.2 GB, more than 4 GB"):
        solved(instance)


def test_parameters_out_of_range_are_refused() -> None:
    with pytest.raises(ob.ParameterError, match="patience is 0"):
        solved(KNOWN["path"][0], "mis_spectral:patience=0")


def test_molecules_stay_whole_where_there_is_hardly_room() -> None:
    """Eight parts of 252 for 2,000 atoms: packing in order leaves one part too full by an atom or
    two, and exchanges of molecules between parts find room.
    """
    for seed in range(4):
        instance = load_problem("gnn_training:graph=molecules,parts=8").instance(seed)
        assert solved(instance).objective == 0
