"""Local search, spectral starts and cycles on graphs whose best cut is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from optbench.plugins.solvers.mis_spectral import population
from optbench.plugins.solvers.mis_spectral.level_graph import LevelGraph, cut_weight
from optbench.plugins.solvers.mis_spectral.local_search import refine
from optbench.plugins.solvers.mis_spectral.multilevel import CutScore, CycleSettings, Multilevel
from optbench.plugins.solvers.mis_spectral.population import Population
from optbench.plugins.solvers.mis_spectral.spectral_start import fill, spectral_partitions
from tests.solvers.mis_spectral.small_graphs import clique, lattice, path, rows_of, star


def limits(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


def cut(rows: tuple[np.ndarray, ...], part: np.ndarray) -> int:
    return int(cut_weight(rows[0], rows[1], rows[2], part))


def test_alternating_parts_of_a_path_become_two_halves() -> None:
    """A path of 8 nodes in alternating parts cuts 7 edges; what is gained is what the cut falls."""
    rows, part = rows_of(8, path(8)), np.arange(8) % 2
    gained = refine(*rows, part, limits(4, 4), 2, 20, 10, 1)
    assert cut(rows, part) == 7 - gained <= 3
    assert np.bincount(part).tolist() == [4, 4]


def test_overloaded_parts_are_emptied() -> None:
    """All 9 nodes of a lattice of side 3 in one part: two others are filled to the limits."""
    rows, part = rows_of(9, lattice(3)), np.zeros(9, dtype=np.int64)
    refine(*rows, part, limits(3, 4, 2), 1, 20, 10, 1)
    assert np.bincount(part, minlength=3).tolist() == [3, 4, 2]


def test_a_round_goes_back_to_its_best_point() -> None:
    """Two cliques in their parts: no move is better, and none remains."""
    rows = rows_of(8, [*clique(0, 4), *clique(4, 4), (0, 4)])
    part = np.repeat([0, 1], 4)
    assert refine(*rows, part, limits(5, 5), 1, 20, 10, 1) == 0
    assert part.tolist() == [0] * 4 + [1] * 4


def test_spectral_clustering_finds_cliques_and_skips_isolated_nodes() -> None:
    """Three cliques in a ring; three isolated nodes fill the emptiest parts, one each."""
    edges = [*clique(0, 5), *clique(5, 5), *clique(10, 5), (0, 5), (6, 10), (11, 1)]
    graph = LevelGraph(*rows_of(18, edges))
    found = spectral_partitions(graph, limits(6, 6, 6), np.random.default_rng(0), 6)
    assert min(cut(graph, each) for each in found) == 3
    assert all(np.bincount(each).tolist() == [6, 6, 6] for each in found)


def test_a_graph_without_edges_is_filled_by_size() -> None:
    """Nodes of 5, 4, 3, 2 into limits of 7: 5 and 4 apart, then 3 beside 4, 2 beside 5."""
    part = np.full(4, -1, dtype=np.int64)
    fill(part, limits(5, 4, 3, 2), limits(7, 7))
    assert part.tolist() == [0, 1, 1, 0]


def multilevel(rows: tuple[np.ndarray, ...], *limit: int) -> Multilevel:
    return Multilevel(LevelGraph(*rows), limits(*limit), lambda: False)


def test_recombination_is_no_worse_than_the_better_parent() -> None:
    search, rng = multilevel(rows_of(144, lattice(12)), 38, 38, 38, 38), np.random.default_rng(0)
    parents = [search.cycle(CycleSettings(), rng) for _ in range(2)]
    better = sorted(
        (each for each in parents if each is not None), key=lambda p: cut(search.graph, p)
    )
    child = search.cycle(CycleSettings(coarsest=20), rng, better)
    assert child is not None and search.score(child) <= search.score(better[0])


def test_a_cycle_is_given_up_when_time_is_over() -> None:
    search = Multilevel(LevelGraph(*rows_of(400, lattice(20))), limits(200, 200), lambda: True)
    assert search.cycle(CycleSettings(coarsest=20), np.random.default_rng(0)) is None


@pytest.mark.parametrize(
    ("one", "other", "is_less"),
    [((0, 9), (1, 0), True), ((0, 3), (0, 4), True), ((0, 4), (0, 4), False)],
)
def test_scores_count_the_excess_first(
    one: tuple[int, int], other: tuple[int, int], is_less: bool
) -> None:
    assert (CutScore(*one) < CutScore(*other)) is is_less
    assert CutScore(*one) <= CutScore(*other)


def test_a_population_holds_different_partitions_best_first() -> None:
    search = multilevel(rows_of(144, lattice(12)), 38, 38, 38, 38)
    found = Population(search, np.random.default_rng(0))
    spent = iter(np.linspace(0, 1, 40))
    best = [
        each.score.cut
        for each, _ in zip(found.improvements(lambda: next(spent)), range(30), strict=False)
    ]
    assert best == sorted(best, reverse=True)
    cuts = [each.score.cut for each in found.members]
    assert cuts == sorted(cuts) and 1 < len(cuts) <= 12
    masks = {each.cut.tobytes() for each in found.members}
    assert len(masks) == len(cuts)


def test_starts_on_large_graphs_begin_with_a_population_on_a_coarser_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A lattice of 12 × 12 in halves: 12 edges at least, and a nested start comes near them."""
    monkeypatch.setattr(population, "NESTED_NODES", 100)
    monkeypatch.setattr(population, "NESTED_LEAST", 90)
    search = multilevel(rows_of(144, lattice(12)), 72, 72)
    graphs = list[int]()

    def recorded(graph: LevelGraph, *args: Any) -> Multilevel:
        graphs.append(graph.num_nodes)
        return Multilevel(graph, *args)

    monkeypatch.setattr(population, "Multilevel", recorded)
    nested = Population(search, np.random.default_rng(0), 2)
    nested.run_cycle(0.0)
    assert len(graphs) == 1 and graphs[0] <= 90
    assert nested.best.score.excess == 0 and 12 <= nested.best.score.cut <= 18


def test_a_star_is_cut_at_as_few_leaves_as_the_limit_allows() -> None:
    search = multilevel(rows_of(101, star(101)), 60, 60)
    part = search.cycle(CycleSettings(), np.random.default_rng(0))
    assert part is not None and search.score(part) == CutScore(0, 41)
