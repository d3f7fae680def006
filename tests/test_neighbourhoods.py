"""The parts of ``benchmarks/neighbourhood_oracle.py``: what selectors free, and that nothing else
changes.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import optbench as ob
from benchmarks._freed_annealing import FreedSearch
from benchmarks._neighbourhoods import SELECTORS, PointView, select
from benchmarks.neighbourhood_oracle import Beginning, beginning_of
from optbench.bounds.milestones import find_milestones
from optbench.plugins.solvers._lp_search import value_now

SPEC = "gpu_cluster:nodes=2,tasks=40"


@pytest.fixture(scope="module")
def begun() -> Beginning:
    return beginning_of(SPEC, 1000, "milestones")


@pytest.fixture(scope="module")
def search(begun: Beginning) -> FreedSearch:
    return FreedSearch(begun.finder.twin(0), 0)


def view_of(begun: Beginning, search: FreedSearch) -> PointView:
    return PointView(begun.instance, begun.known, search.mode, search.start, search.end)


@pytest.mark.parametrize("name", SELECTORS)
def test_selectors_return_different_tasks_in_rising_order(
    name: str, begun: Beginning, search: FreedSearch
) -> None:
    rng = np.random.default_rng(0)
    sizes = []
    for _ in range(5):
        freed = select(name, view_of(begun, search), 8, rng)
        assert (np.diff(freed) > 0).all()
        assert freed.min() >= 0 and freed.max() < begun.instance.num_tasks
        sizes.append(len(freed))
    # One class of devices may run fewer tasks than that.
    assert max(sizes) <= 8 and (name == "class" or min(sizes) == 8)


def test_an_attempt_changes_freed_tasks_alone_and_is_never_worse(
    begun: Beginning, search: FreedSearch
) -> None:
    before = search.point
    freed = np.array([3, 7, 11, 20])
    found = search.attempt(freed, 400)
    kept = np.ones(begun.instance.num_tasks, dtype=bool)
    kept[freed] = False
    assert (found.mode == before.mode)[kept].all() and (found.key == before.key)[kept].all()
    assert found.value <= before.value < math.inf
    search.move_to(found)
    assert value_now(*search.finder.rows) == found.value


def test_a_schedule_waits_for_predecessors_and_for_devices() -> None:
    # One device: a (0 to 2), b (2 to 5) waits for the device, c follows b and waits for it.
    model = ob.Model("three in a row")
    pool = model.pool("gpu", count=1)
    model.task("a", modes=[model.mode(pool, 2.0)])
    b = model.task("b", modes=[model.mode(pool, 3.0)])
    model.task("c", modes=[model.mode(pool, 1.0)], after=b)
    model.minimize(makespan_s=1.0)
    instance = model.build()
    known = find_milestones(instance)
    assert known is not None
    start, end = np.array([0.0, 2.0, 5.0]), np.array([2.0, 5.0, 6.0])
    view = PointView(instance, known, np.array([0, 1, 2]), start, end)
    assert view.waits_for.tolist() == [-1, 0, 1]
    # Tasks that are connected make one job, named by the least of them.
    assert view.job.tolist() == [0, 1, 1]
    # Behind by nothing: ends are compared with milestones stretched to the makespan of 6.
    exact = replace(known, end=end, makespan=6.0)
    assert PointView(instance, exact, view.mode, start, end).behind.tolist() == [0, 0, 0]
    halved = replace(known, end=np.array([1.0, 1.0, 3.0]), makespan=3.0)
    assert PointView(instance, halved, view.mode, start, end).behind.tolist() == [0, 3, 0]
