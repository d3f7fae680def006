"""Schedulers that do not tell GPU generations apart, on observations made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from optbench.plugins.solvers._blind_sharing import UNKNOWN, MeanThroughputs, needs
from optbench.plugins.solvers.best_fit import packed
from optbench.plugins.solvers.round_robin import RoundRobin, in_turn
from optbench.shapes.colocation.allocations import Placement
from optbench.shapes.colocation.colocation_process import ColocationProcess, Observation
from tests.shapes.colocation.two_gpus import ALONE, FAST, GANG, HEAVY, LIGHT, SLOW, cluster


def observed(*jobs: tuple[Any, ...]) -> Observation:
    """Jobs are (type, required per second), training jobs that arrive at 0."""
    rows = [(kind, 0.0, required, 1e4, 0.0) for kind, required in jobs]
    return ColocationProcess(cluster(rows), 0).observe()


def table(placed: Placement) -> set[tuple[int, int, int]]:
    columns = (placed.gpu_type, placed.first, placed.second)
    return set(zip(*(each.tolist() for each in columns), strict=True))


def test_shares_are_of_the_mean_throughput_over_gpus() -> None:
    """Heavy does 2 and 1 per second, 1.5 on average; alone does 1 where it runs; the gang 3.75."""
    seen = observed((HEAVY, 0.75), (ALONE, 0.5), (GANG, 1.5))
    known = MeanThroughputs()
    known.learn(seen)
    assert needs(seen, known) == pytest.approx([0.5, 0.5, 0.4])
    assert MeanThroughputs().share(HEAVY, 0.75) == UNKNOWN


def test_best_fit_by_hand() -> None:
    """Needs are 0.75/1.5 = 0.5 (heavy), 1.8/3 = 0.6 and 0.9/3 = 0.3 (light), 0.5/1 (alone), and
    GPUs are taken in the order slow, fast, slow. Job 1 (0.6) takes a slow GPU. Job 0 (0.5) is too
    much beside it and takes the fast one. Job 3 runs on no slow GPU, and beside nobody: it waits.
    Job 2 (0.3) leaves least beside job 1, but two light jobs do not fit on a slow GPU: it joins
    job 0."""
    seen = observed((HEAVY, 0.75), (LIGHT, 1.8), (LIGHT, 0.9), (ALONE, 0.5))
    known = MeanThroughputs()
    known.learn(seen)
    placed = packed(seen, known, [SLOW, FAST, SLOW], 1.0)
    assert table(placed) == {(SLOW, 1, -1), (FAST, 0, 2)}
    # With less room on a GPU, job 2 takes the other slow GPU.
    placed = packed(seen, known, [SLOW, FAST, SLOW], 0.7)
    assert table(placed) == {(SLOW, 1, -1), (FAST, 0, -1), (SLOW, 2, -1)}


def test_round_robin_by_hand() -> None:
    """GPUs come in the order fast, slow, slow: jobs 0 to 2 take them. Job 3 fits beside nobody and
    waits; job 4, a light one, joins the first that it fits beside, the heavy one."""
    seen = observed((HEAVY, 0.5), (LIGHT, 1.0), (LIGHT, 1.0), (ALONE, 0.5), (LIGHT, 1.0))
    assert in_turn([1, 2]) == [FAST, SLOW, SLOW]
    known = MeanThroughputs()
    known.learn(seen)
    act = RoundRobin().actor(np.random.default_rng(0))
    assert table(act(seen)) == {(FAST, 0, 4), (SLOW, 1, -1), (SLOW, 2, -1)}


def test_a_gang_takes_gpus_of_one_type_alone() -> None:
    """It needs two GPUs of one type, which only the slow ones are; with them gone, it waits."""
    act = RoundRobin().actor(np.random.default_rng(0))
    assert table(act(observed((GANG, 1.0), (LIGHT, 1.0)))) == {(SLOW, 0, -1), (FAST, 1, -1)}
    two = act(observed((LIGHT, 1.0), (LIGHT, 1.0), (GANG, 1.0)))
    assert table(two) == {(FAST, 0, -1), (SLOW, 1, -1)}
