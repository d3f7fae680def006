"""hgnn_lns: what is freed, what an attempt may change, and that runs repeat.

The network stands aside (``weights=none``: the rule at its plain values), so that no checkpoint is
needed.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import optbench as ob
from optbench.errors import ParameterError
from optbench.model.instance import Instance
from optbench.model.verify import verify
from optbench.plugins.discovery import load_problem
from optbench.plugins.solvers.hgnn import Hgnn
from optbench.plugins.solvers.hgnn.milestone_rule import RuleNumbers
from optbench.plugins.solvers.hgnn.situation import situation_of
from optbench.plugins.solvers.hgnn_lns import DRAWS, HgnnLns, NeighbourhoodSearch
from optbench.plugins.solvers.hgnn_lns.freed_search import FreedSearch
from optbench.plugins.solvers.hgnn_lns.neighbourhood_ranking import (
    FEATURES,
    OF_NETWORK,
    columns_of,
    fit,
    shipped_weights,
)
from optbench.plugins.solvers.hgnn_lns.neighbourhoods import (
    SELECTORS,
    PointView,
    jobs_of,
    select,
    surroundings_of_tasks,
)
from optbench.plugins.solvers.hgnn_lns.network_scores import NetworkScores, scores_of
from optbench.plugins.solvers.hgnn_lns.starting_point import NetworkStart, start_of

SPEC = "gpu_cluster:nodes=4,tasks=60"
PLAIN = "hgnn_lns:weights=none,steps=50,freed=15"


def instance_of(seed: int = 20) -> Instance:
    made: Instance = load_problem(SPEC).instance(seed)
    return made


def begun(instance: Instance) -> NetworkStart:
    found = start_of(instance, Hgnn(weights="none"), 1, 0, lambda: math.inf)
    assert found is not None
    return found


def view_of(start: NetworkStart) -> PointView:
    search = FreedSearch(start.finder)
    return PointView(start.surroundings, search.mode, search.start, search.end)


def slow_or_fast() -> Instance:
    """Three tasks: 2 s and 100 J or 10 s and 20 J on one device, of which the first two tasks share
    a pool; the third follows the first.
    """
    m = ob.Model("slow or fast")
    first, second = m.pool("gpu0"), m.pool("gpu1")
    tasks = []
    for pool, after in ((first, ()), (first, ()), (second, (0,))):
        modes = [m.mode(pool, time_s=2, energy_j=100), m.mode(pool, time_s=10, energy_j=20)]
        tasks.append(m.task(modes=modes, after=tuple(tasks[k] for k in after)))
    m.minimize(energy_j=1.0, makespan_s=6.0)
    return m.build()


def scores(instance: Instance, due: float, late_price: float, pool_cost: float) -> NetworkScores:
    n, found = instance.num_tasks, situation_of(instance)
    sets = int(np.diff(found.tables.view.kind_ptr)[instance.tasks.kind].sum())
    cost = np.full(instance.num_pools, pool_cost)
    numbers = RuleNumbers(
        np.zeros(n), np.full(n, due), np.full(n, late_price), cost, np.zeros(sets), 6.0, 0.0, 1.0
    )
    return scores_of(instance, numbers)


def test_the_loss_is_what_the_chosen_set_costs_above_the_cheapest() -> None:
    """At 6 per second the fast mode costs 100 + 12, the slow one 20 + 60: the fast one loses 32. At
    1 more per device-second they cost 114 and 90. Due after 5 s at 10 per second, the slow mode is
    5 s late from time 0, 130 in all: it loses 18. From time 4 on, the fast one is 1 s late, 122,
    and the slow one 9 s, 170.
    """
    instance = slow_or_fast()
    fast, slow = (instance.modes.kind_ptr[instance.tasks.kind] + k for k in (0, 1))
    start = np.zeros(3)
    plain = scores(instance, math.inf, 0.0, 0.0)
    assert plain.loss(fast, start) == pytest.approx([32.0] * 3)
    assert plain.loss(slow, start) == pytest.approx([0.0] * 3)
    assert scores(instance, math.inf, 0.0, 1.0).loss(fast, start) == pytest.approx([24.0] * 3)
    late = scores(instance, 5.0, 10.0, 0.0)
    assert late.loss(slow, start) == pytest.approx([18.0] * 3)
    assert late.loss(slow, np.array([0.0, 4.0, 4.0])) == pytest.approx([18.0, 48.0, 48.0])


def test_a_task_waits_for_its_last_predecessor_or_for_its_device() -> None:
    """The first task runs from 0 to 2 s, the second on the same device until 4 s, the third after
    the first from 2 s on.
    """
    instance = slow_or_fast()
    around = surroundings_of_tasks(
        instance, situation_of(instance), scores(instance, math.inf, 0.0, 0.0)
    )
    fast = instance.modes.kind_ptr[instance.tasks.kind]
    view = PointView(around, fast, np.array([0.0, 2.0, 2.0]), np.array([2.0, 4.0, 4.0]))
    assert view.waits_for.tolist() == [-1, 0, 0]
    assert jobs_of(instance).tolist() == [0, 1, 0]


@pytest.mark.parametrize("name", SELECTORS)
def test_selectors_free_different_tasks_and_repeat(name: str) -> None:
    view = view_of(begun(instance_of()))
    freed = select(name, view, 15, np.random.default_rng(1))
    assert 0 < len(freed) <= 15
    assert (np.diff(freed) > 0).all() and freed[0] >= 0 and freed[-1] < 60
    assert (select(name, view, 15, np.random.default_rng(1)) == freed).all()
    drawn = {select(name, view, 15, np.random.default_rng(k)).tobytes() for k in range(8)}
    assert len(drawn) > 1
    assert len(select(name, view, 1000, np.random.default_rng(1))) <= 60


def test_an_attempt_changes_freed_tasks_alone_and_knows_its_value() -> None:
    start = begun(instance_of())
    search, freed = FreedSearch(start.finder), np.arange(5, 25)
    before, found = search.point, search.attempt(freed, 400)
    kept = np.setdiff1d(np.arange(60), freed)
    assert found.value < before.value
    assert (found.mode[kept] == before.mode[kept]).all()
    assert (found.key[kept] == before.key[kept]).all()
    assert (found.mode[freed] != before.mode[freed]).any()
    search.move_to(found)
    schedule = start.finder.best_schedule()
    assert schedule is not None
    assert verify(search.instance, schedule).objective == pytest.approx(found.value, rel=1e-12)


def test_an_attempt_that_finds_nothing_leaves_the_point() -> None:
    search = FreedSearch(begun(instance_of()).finder)
    for _ in range(20):
        search.move_to(search.attempt(np.arange(60), 200))
    before = search.point
    assert search.attempt(np.array([0]), 1).value <= before.value
    assert search.point is before and search.steps == 20 * 200 + 1


@pytest.mark.parametrize("chosen_by", ["hgnn", "random", "window", "critical", "mixed"])
def test_the_same_seed_and_work_give_the_same_schedule(chosen_by: str) -> None:
    instance = instance_of()
    solver = f"{PLAIN},select={chosen_by}"
    one, two = (ob.solve(instance, solver, seed=3, work_limit=0.6, bound=False) for _ in range(2))
    assert one.schedule is not None and two.schedule is not None
    assert (one.schedule.mode == two.schedule.mode).all()
    assert (one.schedule.start == two.schedule.start).all()
    assert one.termination == "work_limit"
    assert one.info["neighbourhoods"].startswith("12 rounds")
    start = ob.solve(instance, "hgnn:weights=none", bound=False)
    assert isinstance(one.objective, float) and isinstance(start.objective, float)
    assert one.objective < start.objective
    assert len(one.trajectory) > 1


def test_the_model_chooses_the_neighbourhood_of_the_highest_expected_gain() -> None:
    search = NeighbourhoodSearch(begun(instance_of()), HgnnLns(weights="none", freed=15), 0)
    chosen = [search.chosen() for _ in range(4)]
    twin = np.random.default_rng((0, 1))
    view, weights = view_of(search.begun), np.array(shipped_weights())
    for freed in chosen:
        if twin.random() < 0.1:
            expected = select(SELECTORS[int(twin.integers(8))], view, 15, twin)
        else:
            columns = columns_of(view, np.zeros(60))
            made = [(name, select(name, view, 15, twin)) for name in SELECTORS * DRAWS]
            best = max(made, key=lambda each: float(columns.features(*each) @ weights))
            expected = best[1]
        assert (freed == expected).all()


def test_the_fit_finds_which_feature_pays() -> None:
    """Gains are twice a feature plus what is equal in a round: 2 / (1 + ridge) is left of it."""
    rng, k = np.random.default_rng(0), FEATURES.index("loss")
    rounds = []
    for level in (0.0, 5.0, 9.0, 2.0):
        table = np.zeros((8, len(FEATURES)))
        table[:, k] = rng.normal(size=8)
        rounds.append((table, level + 2.0 * table[:, k]))
    weights = fit(rounds, 0.25)
    assert weights[k] == pytest.approx(1.6)
    assert np.delete(weights, k) == pytest.approx(np.zeros(len(FEATURES) - 1))
    assert not fit(rounds, 0.25, OF_NETWORK).any()


def test_the_shipped_model_has_a_weight_for_every_feature() -> None:
    weights = shipped_weights()
    assert len(weights) == len(FEATURES) and np.isfinite(weights).all() and any(weights)


@pytest.mark.parametrize(
    ("setting", "allowed"),
    [("freed=0", "at least 1"), ("steps=-3", "at least 1"), ("samples=0", "at least 1")],
)
def test_wrong_numbers_are_named(setting: str, allowed: str) -> None:
    with pytest.raises(ParameterError, match=allowed):
        ob.solve(slow_or_fast(), f"hgnn_lns:{setting}", bound=False)


def test_a_wrong_choice_is_named() -> None:
    with pytest.raises(ParameterError, match="worst"):
        HgnnLns(select="worst")  # type: ignore[arg-type]
