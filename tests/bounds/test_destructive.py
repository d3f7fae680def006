"""Destructive bounds: a published optimum, and never above a brute-force optimum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import optbench as ob
from optbench.bounds.combinatorial import destructive
from optbench.bounds.combinatorial.combinatorial_bound import combinatorial_bounds
from optbench.bounds.combinatorial.relaxation import relax
from optbench.model.instance import Instance
from optbench.model.metrics import mode_uses
from optbench.model.objective import Objective
from tests.bounds.shops import FT06, shop
from tests.reference.brute_force import brute_force
from tests.reference.random_instances import tiny_instance


def test_the_search_asks_nothing_twice_and_ends_where_it_must() -> None:
    for least in range(3, 21):
        asked: list[int] = []

        def refutes(makespan: int, least: int = least, asked: list[int] = asked) -> bool:
            assert makespan not in asked and 3 <= makespan < 20
            asked.append(makespan)
            return makespan < least

        assert destructive._search(refutes, 3, 20, np.inf) == least
    assert destructive._search(refutes, 20, 20, np.inf) == 20


def test_the_search_doubles_its_steps_and_halves_what_is_left() -> None:
    asked: list[int] = []

    def refutes(makespan: int) -> bool:
        asked.append(makespan)
        return makespan < 50

    assert destructive._search(refutes, 0, 100, np.inf) == 50
    # Steps of 1, 2, 4, 8, 16, 32; then from 31 on half of the 32 up to 62, from 47 on 32 but below
    # 62, half of 15 up to 61, half of 7 up to 53, from 50 on 6 but below 53, half of 3 up to 52.
    assert asked == [0, 2, 6, 14, 30, 62, 46, 61, 53, 49, 52, 50]


def test_the_optimum_of_ft06_is_proved() -> None:
    best = combinatorial_bounds(shop(FT06, [1] * 6), time_limit_s=60)[0]
    assert (best.value, best.source, best.proof) == (55, "destructive", "combinatorial")


def test_tasks_that_exclude_each_other_form_a_clique() -> None:
    # Each needs 2 of 3 devices: one after the other, although the load is only (4 + 4 + 4) · 2 / 3
    # = 8.
    instance = shop([[(0, 4)]] * 3, [3])
    instance = replace(
        instance, modes=replace(instance.modes, req_count=instance.modes.req_count * 2)
    )
    values = {
        bound.source: bound.value for bound in combinatorial_bounds(instance, time_limit_s=60)
    }
    assert values["pool_load:m0"] == 8
    assert values["destructive"] == 12


def test_no_makespan_below_the_optimum_is_all_that_is_refuted() -> None:
    # 2440: a task whose shorter mode needs more devices; shaving by the shorter length alone would
    # refute its optimum.
    checked = improved = 0
    for seed in (*range(150), 2440):
        instance = tiny_instance(seed).with_objective(Objective.weighted({"makespan": 1.0}))
        optimum = brute_force(instance)
        if optimum is not None:
            bounds = combinatorial_bounds(instance, time_limit_s=60)
            assert bounds[0].value <= optimum.objective, (seed, bounds)
            checked, improved = checked + 1, improved + (bounds[0].source == "destructive")
    assert checked > 80
    assert improved > 5


def test_deductions_in_small_portions_reach_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = destructive.trial_of(relax(shop(FT06, [1] * 6)))

    def answers(deadline: float) -> list[bool]:
        return [
            destructive._refutes(trial, makespan, True, False, deadline)
            for makespan in range(45, 56)
        ]

    whole = answers(np.inf)
    assert any(whole)
    assert not all(whole)
    monkeypatch.setattr(destructive, "CHUNK", 1)
    assert answers(np.inf) == whole
    # A portion is too small to refute anything; time is up after the first.
    assert not any(answers(0.0)[4:])


def test_an_infeasible_deadline_is_refuted_whatever_the_makespan() -> None:
    # Three tasks of 5 on one machine, all due at 7: every makespan up to the sum of everything is
    # refuted.
    instance = shop([[(0, 5)]] * 3, [1])
    tasks = replace(instance.tasks, deadline=np.full(3, 7.0), deadline_hard=np.ones(3, dtype=bool))
    best = combinatorial_bounds(replace(instance, tasks=tasks), time_limit_s=60)[0]
    assert best.source == "destructive"
    assert best.value > 15


def long_days(devices: int) -> Instance:
    """31 days of work, of one day each, for two pools."""
    m = ob.Model(time="seconds")
    a, b = m.pool("a", count=devices), m.pool("b", count=devices)
    for _ in range(31):
        m.task(modes=[m.mode({a: devices}, time_s=86400.0), m.mode({b: devices}, time_s=86400.0)])
    m.minimize(makespan_s=1.0)
    return m.build()


def test_no_end_is_refuted_because_it_is_late() -> None:
    """Without deadlines every task was taken to end by tick 2^50, 13 days in ns: 31 days were
    proved where 16 suffice.
    """
    day = int(86400e9)
    relaxation = relax(long_days(1))
    assert relaxation.instance.tick_s == 1e-9
    found = destructive.destructive_bound(relaxation, 15.5 * day, 5.0)
    assert 15.5 * day <= found <= 16 * day
    assert not destructive.is_refuted(relaxation, 16 * day, 5.0)


def test_what_64_bits_do_not_hold_is_left_to_other_bounds() -> None:
    # Two pools of 1,000 devices for 31 days: 5.4e18 device-nanoseconds, beyond 2^60.
    relaxation = relax(long_days(1000))
    assert destructive.destructive_bound(relaxation, 7.0, 5.0) == 7.0
    assert not destructive.is_refuted(relaxation, 7, 5.0)


def test_whole_pools_exclude_each_other() -> None:
    # Two tasks take both devices, the third one of them: no two fit beside one another.
    m = ob.Model()
    gpu = m.pool("gpu", count=2)
    for count in (2, 2, 1):
        m.task(modes=[m.mode({gpu: count}, time_s=4)])
    m.minimize(makespan=1.0)
    instance = m.build()
    (clique,) = destructive._cliques(instance, mode_uses(instance))
    assert clique.tolist() == [0, 1, 2]


def test_each_resource_of_a_task_is_listed_once() -> None:
    m = ob.Model()
    a, b = m.pool("a"), m.pool("b")
    m.task(modes=[m.mode(a, time_s=4), m.mode(a, time_s=5), m.mode(b, time_s=6)])
    m.task(modes=[m.mode(b, time_s=4)])
    m.minimize(makespan=1.0)
    relaxation = relax(m.build())
    # Nothing must run on a; b has one device, both together two.
    assert [pools.name for pools in relaxation.sets] == ["b", "all"]
    columns = [column.tolist() for column in destructive._resources(relaxation)]
    capacity, ptr, task, pair, use, of_ptr, of = columns
    assert capacity == [1, 2]
    # On b the last mode of the first task and that of the second, on both pools every mode.
    assert (ptr, task, pair, use) == ([0, 2, 6], [0, 1, 0, 0, 0, 1], [2, 3, 0, 1, 2, 3], [1] * 6)
    # Both tasks use both, however many of their modes do.
    assert (of_ptr, of) == ([0, 2, 4], [0, 1, 0, 1])


@pytest.mark.parametrize(("found", "refuted"), [([1], True), ([-1], True), ([0, 0, 0], False)])
def test_a_shaved_window_refutes_where_it_contradicts(
    found: list[int], refuted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Propagation refutes nothing before the first cut, and everything after it."""
    trial = destructive.trial_of(relax(shop([[(0, 4)]] * 3, [1])))
    cuts = iter(found)
    told = iter([True, False])
    monkeypatch.setattr("optbench.bounds.combinatorial.propagate.propagate", lambda *_: next(told))
    monkeypatch.setattr("optbench.bounds.combinatorial.propagate.shave", lambda *_: next(cuts))
    assert destructive._refutes(trial, 12, False, True, np.inf) is refuted
