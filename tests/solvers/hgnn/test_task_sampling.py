"""Which edges carry messages, by hand on a graph of five edges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from optbench.model.instance import Instance
from solvers.hgnn.network_settings import NetworkSettings, Sampling
from solvers.hgnn.seen_arrays import SeenArrays
from solvers.hgnn.situation import situation_of
from solvers.hgnn.task_sampling import taking_part


@pytest.fixture(scope="module")
def seen(cluster: Instance) -> SeenArrays:
    """0 → 1 → 2 → 3 and 0 → 4 → 3, task 3 being the most important, then 4, 2, 1, 0."""
    return replace(
        situation_of(cluster).seen,
        source=np.array([0, 1, 2, 0, 4]),
        target=np.array([1, 2, 3, 4, 3]),
        importance=np.array([0.0, 0.1, 0.2, 1.0, 0.5], dtype=np.float32),
    )


def edges(seen: SeenArrays, sampling: Sampling, keep: float) -> list[list[tuple[int, int]]]:
    settings = NetworkSettings(sampling=sampling, keep=keep)
    rounds = taking_part(seen, settings)
    return [list(zip(s.tolist(), t.tolist(), strict=True)) for s, t in rounds]


def test_without_sampling_all_edges_take_part(seen: SeenArrays) -> None:
    every = [(0, 1), (1, 2), (2, 3), (0, 4), (4, 3)]
    assert edges(seen, "none", 0.1) == [every, every]


def test_importance_keeps_the_edges_at_the_most_important_tasks(seen: SeenArrays) -> None:
    """Both edges into 3 have importance 1; two of five edges are kept."""
    assert edges(seen, "importance", 0.4) == [[(2, 3), (4, 3)]] * 2


def test_layers_go_on_from_what_was_reached(seen: SeenArrays) -> None:
    """After the edges into 3, those at 2 and 4 are (1, 2) and (0, 4)."""
    assert edges(seen, "layer", 0.4) == [[(2, 3), (4, 3)], [(1, 2), (0, 4)]]


def test_subgraphs_grow_from_what_waits_for_nothing(seen: SeenArrays) -> None:
    """Only task 0 has no predecessor: its two edges first, then (1, 2)."""
    assert edges(seen, "subgraph", 0.4) == [[(0, 1), (0, 4)]] * 2
    assert edges(seen, "subgraph", 0.6) == [[(0, 1), (1, 2), (0, 4)]] * 2
