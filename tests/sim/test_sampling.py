"""Randomised rules: what is promised of samples, and that they find known optima."""

from __future__ import annotations

import numpy as np
import pytest

import optbench as ob
from optbench.api import load_target
from optbench.model.instance import Instance
from optbench.model.verify import verify
from optbench.plugins.discovery import load_solver
from optbench.plugins.policy import Policy
from optbench.sim.kernel import sampling as kernel
from optbench.sim.sampling import Sampler, features_of, pool_loads, reversed_instance

from ..reference.brute_force import brute_force
from ..reference.mixed_instances import mixed_instance
from ..reference.random_instances import tiny_instance


def policy() -> Policy:
    _, solver = load_solver("random_rules", {"k": 30})
    assert isinstance(solver, Policy)
    return solver


@pytest.mark.parametrize(
    "spec", ["jobshop:jobs=6,machines=5", "flexible_jobshop", "rcpsp", "gpu_dag:tasks=20"]
)
def test_portions_do_not_matter(spec: str) -> None:
    instance = load_target(spec, 1)
    whole, portions = Sampler(instance, 5), Sampler(instance, 5)
    whole.sample(200)
    for count in (1, 49, 50, 100):
        portions.sample(count)
    assert np.array_equal(whole.search.value, portions.search.value)
    for mine, theirs in zip(whole.best, portions.best, strict=True):
        assert np.array_equal(mine, theirs)


@pytest.mark.parametrize(
    "spec", ["jobshop:jobs=6,machines=5", "flexible_jobshop", "rcpsp", "gpu_dag:tasks=20"]
)
def test_more_samples_are_never_worse(spec: str) -> None:
    instance = load_target(spec, 2)
    runs = [
        ob.solve(instance, "random_rules", work_limit=k, seed=3, bound=False)
        for k in (1, 10, 100, 400)
    ]
    objectives = [run.objective for run in runs if isinstance(run.objective, float)]
    assert len(objectives) == 4 and objectives == sorted(objectives, reverse=True)


@pytest.mark.parametrize("seed", range(40))
def test_the_rule_of_the_best_sample_makes_it_again(seed: int) -> None:
    """What the search says it is worth is what the verifier says of the schedule that the rule
    makes.
    """
    instance = mixed_instance(seed)
    sampler = Sampler(instance, seed)
    if instance.preemptive or not sampler.sample(80):
        return
    schedule = sampler.schedule()
    assert schedule is not None
    verdict, value = verify(instance, schedule), sampler.search.value
    assert verdict.feasible == (value[kernel.TOP_EXCESS] == 0.0), verdict.violations
    if verdict.feasible:
        assert value[kernel.TOP] == pytest.approx(verdict.objectives[0], rel=1e-9)


@pytest.mark.parametrize("seed", range(0, 120, 4))
def test_no_sample_beats_the_optimum(seed: int) -> None:
    instance = tiny_instance(seed)
    if not instance.features <= policy().supports:
        return
    result = ob.solve(instance, "random_rules", work_limit=300, bound=False)
    best = brute_force(instance)
    if result.verified:
        assert best is not None and isinstance(result.objective, float)
        assert result.objective >= best.objective - 1e-6 * max(1.0, abs(best.objective))


def test_a_small_shop_is_solved() -> None:
    """Two jobs, x then y for 3 and 2, y then x for 2 and 4: x is busy for 7 and nothing can come
    before: 7 is reached.
    """
    m = ob.Model("two jobs")
    x, y = m.pool("x"), m.pool("y")
    a = m.task("a", modes=[m.mode(x, time_s=3)])
    m.task("b", modes=[m.mode(y, time_s=2)], after=a)
    c = m.task("c", modes=[m.mode(y, time_s=2)])
    m.task("d", modes=[m.mode(x, time_s=4)], after=c)
    m.minimize(makespan=1.0)
    assert ob.solve(m.build(), "random_rules", work_limit=50).status == "optimal"


def test_a_limit_ranks_first() -> None:
    """At most 80 J: the slow mode, which no objective of time would choose, is found because the
    fast one breaks the limit.
    """
    m = ob.Model("budget")
    gpu = m.pool("gpu", idle_w=5)
    m.task("work", modes=[m.mode(gpu, time_s=2, energy_j=100), m.mode(gpu, time_s=4, energy_j=60)])
    m.limit(energy_j=80)
    m.minimize(makespan=1.0)
    assert ob.solve(m.build(), "random_rules", work_limit=300).objective == 4.0


def test_the_policy_plays_what_the_solver_finds() -> None:
    instance = load_target("jobshop:jobs=5,machines=4", 4)
    trace = policy().play(instance, np.random.default_rng(1))
    sampler = Sampler(instance, int(np.random.default_rng(1).integers(2**31)))
    sampler.sample(30)
    schedule = sampler.schedule()
    assert trace.schedule is not None and schedule is not None
    assert np.array_equal(trace.schedule.start, schedule.start)


def test_a_warm_start_is_only_improved() -> None:
    instance = load_target("jobshop:jobs=8,machines=5", 6)
    first = ob.solve(instance, "random_rules", work_limit=500, seed=1, bound=False)
    again = ob.solve(
        instance, "random_rules", work_limit=5, seed=2, bound=False, warm_start=first.schedule
    )
    assert (
        isinstance(first.objective, float)
        and isinstance(again.objective, float)
        and again.objective <= first.objective
    )


def reversible() -> Instance:
    """a before b, released at 5, in one of two modes of 1 and 3 s on x; b takes x and two devices
    of y.
    """
    m = ob.Model("reversible")
    x, y = m.pool("x"), m.pool("y", count=4)
    a = m.task("a", modes=[m.mode(x, time_s=1), m.mode(x, time_s=3)], release_s=5)
    m.task("b", modes=[m.mode({x: 1, y: 2}, time_s=6)], after=a, weight=2)
    m.minimize(makespan=1.0)
    return m.build()


def test_the_first_samples_stay_around_the_schedule_where_none_is_fresh() -> None:
    """Fresh samples move the weights of features; those around a schedule leave them."""
    instance = load_target("jobshop:jobs=6,machines=5", 1)
    start = ob.solve(instance, "heft", bound=False)
    assert start.schedule is not None and isinstance(start.objective, float)
    drawn = {}
    for fresh in (True, False):
        sampler = Sampler(instance, 3)
        sampler.begin_with(start.schedule, start.objective, fresh)
        before = sampler.search.drawn.copy()
        sampler.sample(1)
        drawn[fresh] = not np.array_equal(sampler.search.drawn, before)
    assert drawn == {True: True, False: False}


def test_time_backwards() -> None:
    back = reversed_instance(reversible())
    assert (
        back.edges.source.tolist(),
        back.edges.target.tolist(),
        back.tasks.release.tolist(),
    ) == ([1], [0], [0, 0])


def test_loads_are_work_per_device() -> None:
    """x: (1 + 3) / 2 + 6 = 8; y: 2 · 6 / 4 = 3."""
    assert pool_loads(reversible()).tolist() == [1.0, 3 / 8]


def test_features_are_scaled() -> None:
    """The longest path from a is 1 + 6, from b 6; features lie in [-1, 1]."""
    from optbench.model.windows import windows

    rows = features_of(reversible(), windows(reversible()))
    assert rows[0].tolist() == [1.0, 6 / 7] and float(np.abs(rows).max()) == 1.0
