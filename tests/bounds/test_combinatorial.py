"""Combinatorial bounds: values derived by hand, and never above a brute-force optimum."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import optbench as ob
from optbench.bounds.auto import lower_bounds
from optbench.bounds.combinatorial import tariff_floor
from optbench.bounds.combinatorial.combinatorial_bound import combinatorial_bounds
from optbench.bounds.combinatorial.makespan import jackson
from optbench.errors import UnknownNameError
from optbench.model.instance import Instance
from optbench.model.objective import Objective
from optbench.model.schedule import Schedule
from optbench.model.verify import verify
from tests.bounds.shops import shop
from tests.reference.brute_force import brute_force
from tests.reference.random_instances import tiny_instance


def by_source(instance: Instance) -> dict[str, float]:
    return {bound.source: bound.value for bound in combinatorial_bounds(instance)}


def test_critical_path_takes_the_fastest_modes() -> None:
    # 3 (the faster of 3 and 5), then 4.
    assert by_source(shop([[[(0, 3), (1, 5)], (1, 4)]], [1, 1]))["critical_path"] == 7


def test_jackson_adds_the_smallest_head_and_tail() -> None:
    # Machine 1 runs 4 + 5 + 6 = 15; no operation reaches it before 2, and 3 must follow whichever
    # is last.
    jobs = [[(0, 2), (1, d), (2, 3)] for d in (4, 5, 6)]
    assert by_source(shop(jobs, [1, 1, 1]))["jackson:m1"] == 2 + 15 + 3


def test_a_pool_load_is_rounded_up_in_ticks() -> None:
    # Five unit tasks on two devices take three ticks.
    assert by_source(shop([[(0, 1)]] * 5, [2]))["pool_load:m0"] == 3


def test_tasks_that_choose_among_pools_load_them_together() -> None:
    # Four tasks of 3 on machine 0 or 1 make 12 / 2; the one on machine 2 is another set.
    jobs = [[[(0, 3), (1, 3)]] for _ in range(4)] + [[(2, 1)]]
    bounds = by_source(shop(jobs, [1, 1, 1]))
    assert bounds["pool_load:m0+m1"] == 6
    assert combinatorial_bounds(shop(jobs, [1, 1, 1]))[0].value == 6


def test_jackson_equals_the_maximum_over_all_sets() -> None:
    rng = np.random.default_rng(3)
    for _ in range(30):
        head, length, tail = rng.integers(0, 20, (3, 7)).astype(float)
        sets = (list(s) for k in range(1, 8) for s in itertools.combinations(range(7), k))
        assert jackson(head, length, tail) == max(
            head[s].min() + length[s].sum() + tail[s].min() for s in sets
        )


def energy_instance(scale: float = 1.0, horizon_s: float | None = None) -> Instance:
    m = ob.Model("energy", horizon_s=horizon_s)
    gpu = m.pool("gpu", count=2, idle_w=10 * scale)
    modes = [
        m.mode(gpu, time_s=4, energy_j=400 * scale),
        m.mode(gpu, time_s=10, energy_j=300 * scale),
    ]
    for _ in range(3):
        m.task(modes=modes)
    m.minimize(energy_j=1.0)
    return m.build()


def test_energy_is_netted_with_the_rest_it_replaces() -> None:
    # Net of 10 W rest: 400 − 40 = 360 or 300 − 100 = 200. Work 12 on 2 devices: makespan at least
    # 6, rest 2 · 10 · 6.
    assert combinatorial_bounds(energy_instance())[0].value == pytest.approx(3 * 200 + 120)
    # Over a fixed horizon of 50 s: 2 · 10 · 50.
    assert combinatorial_bounds(energy_instance(horizon_s=50))[0].value == pytest.approx(
        3 * 200 + 1000
    )


@pytest.mark.parametrize("method", ["combinatorial", "fluid"])
def test_doubling_all_powers_doubles_the_energy_bound(method: str) -> None:
    once, twice = (lower_bounds(energy_instance(scale), method)[0].value for scale in (1.0, 2.0))
    assert twice == pytest.approx(2 * once, rel=1e-9)


def test_flow_time_uses_mean_busy_times() -> None:
    # 1, 2, 3 on one machine in that order end at 1, 3, 6: exact for one machine.
    assert combinatorial_bounds(shop([[(0, d)] for d in (3, 1, 2)], [1], flow_time_s=1.0))[
        0
    ].value == pytest.approx(10)


def test_tardiness_counts_what_is_late_alone() -> None:
    m = ob.Model()
    gpu = m.pool("gpu")
    m.task(modes=[m.mode(gpu, time_s=5)], deadline_s=3, hard=False, weight=2)
    m.minimize(tardiness_s=1.0)
    assert combinatorial_bounds(m.build())[0].value == pytest.approx(4)


def test_cost_waits_for_the_cheap_hour() -> None:
    # 1 kWh over one hour: 0.30 USD until 7,200 s, 0.10 after; a horizon of three hours allows to
    # wait.
    m = ob.Model(tick_s=60, horizon_s=3 * 3600)
    gpu = m.pool("gpu")
    m.task(modes=[m.mode(gpu, time_s=3600, energy_j=3.6e6)])
    m.tariff(price_usd_per_kwh=(0.3, 0.1), times_s=(0, 7200))
    m.minimize(cost_usd=1.0)
    assert combinatorial_bounds(m.build())[0].value == pytest.approx(0.1)


def test_many_tariff_periods_are_bounded_by_their_least_rate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Two hours at 0.2 and 0.4 USD are 0.6 USD for 2 kWh; at the least rate throughout they would be
    # 0.4.
    m = ob.Model(tick_s=3600, horizon_s=2 * 3600)
    gpu = m.pool("gpu")
    m.task(modes=[m.mode(gpu, time_s=7200, energy_j=7.2e6)])
    m.tariff(price_usd_per_kwh=(0.2, 0.4))
    m.minimize(cost_usd=1.0)
    assert combinatorial_bounds(m.build())[0].value == pytest.approx(0.6)
    monkeypatch.setattr(tariff_floor, "MAX_CANDIDATES", 0)
    assert combinatorial_bounds(m.build())[0].value == pytest.approx(0.4)


def test_no_bound_exceeds_the_optimum() -> None:
    checked = 0
    for seed in range(150):
        instance = tiny_instance(seed)
        optimum = brute_force(instance)
        if optimum is not None:
            checked += 1
            for bound in combinatorial_bounds(instance):
                assert bound.value <= optimum.objective + 1e-9 * max(1, abs(optimum.objective)), (
                    seed,
                    bound,
                )
    assert checked > 80


def test_an_unknown_method_is_named() -> None:
    with pytest.raises(
        UnknownNameError, match="unknown bounding method 'fluidd'; did you mean 'fluid'"
    ):
        lower_bounds(energy_instance(), "fluidd")


def test_bounds_come_best_first_and_scaled_by_the_weight() -> None:
    instance = shop([[(0, 3), (1, 4)], [(0, 2)]], [1, 1]).with_objective(
        Objective.weighted({"makespan_s": 2.5})
    )
    values = [bound.value for bound in lower_bounds(instance, time_limit_s=0.3)]
    assert values == sorted(values, reverse=True)
    # Machine 0: 3 + 2 with nothing behind the second; 3 + 4 on the chain; 2 before a chain of 7
    # need not be.
    assert values[0] == 2.5 * 7


def test_a_makespan_in_seconds_is_ticks_of_their_length() -> None:
    # Two ticks of 60 s, at 2.5 a second.
    m = ob.Model(tick_s=60)
    m.task(modes=[m.mode(m.pool("gpu"), time_s=120)])
    m.minimize(makespan_s=2.5)
    assert combinatorial_bounds(m.build())[0].value == 300


@pytest.mark.parametrize("length_s", [1.5e-6, 4e-5, 1e-3])
def test_short_tasks_late_in_a_week_cost_no_more_than_they_do(length_s: float) -> None:
    """A difference of two integrals over the week was 2e-5 too much: a certified bound above a
    verified schedule.
    """
    week, rng = 168, np.random.default_rng(3)
    for _ in range(10):
        m, release_s = (
            ob.Model(tick_s=1e-9, horizon_s=week * 3600.0),
            3600.0 * (week - 2) + float(rng.uniform(0, 3000)),
        )
        m.tariff(price_usd_per_kwh=rng.random(week).tolist())
        task = {"release_s": release_s, "deadline_s": release_s + 2 * length_s, "hard": True}
        m.task(modes=[m.mode(m.pool("gpu"), time_s=length_s, energy_j=1.0)], **task)  # type: ignore[arg-type]
        m.minimize(cost_usd=1.0)
        instance = m.build()
        objective = verify(
            instance, Schedule.of(instance, [0], [int(instance.tasks.release[0])])
        ).objectives[0]
        bound = combinatorial_bounds(instance)[0].value
        assert objective * (1 - 1e-9) <= bound <= objective
