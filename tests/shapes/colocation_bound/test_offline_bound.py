"""The offline bound: optima derived by hand, random decisions, and enumeration."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from optbench.errors import ModelError
from optbench.shapes.colocation.allocations import Allocation
from optbench.shapes.colocation.colocation_data import Colocation, GpuType, Outage
from optbench.shapes.colocation.colocation_shape import metrics_of
from optbench.shapes.colocation.trace_replay import replay
from optbench.shapes.colocation_bound.offline_bound import offline_bounds
from tests.shapes.colocation.random_play import played, random_cluster
from tests.shapes.colocation.two_gpus import ALONE, FAST, GANG, HEAVY, LIGHT, SLOW, cluster, rows
from tests.shapes.colocation_bound.bounded_traces import (
    ASLEEP_J,
    FREE,
    HELD,
    by_source,
    slow_is_cheap,
)
from tests.shapes.colocation_bound.enumerated_traces import all_outcomes, enumerable_trace
from tests.shapes.colocation_bound.small_traces import random_decision, small_trace


def busy_j(data: Colocation, held_s: float, source: str = HELD) -> float:
    """The bound on energy beyond sleep."""
    sleep = sum(each.count * each.sleep_w for each in data.gpu_types)
    asleep = sleep * data.horizon_epochs * data.epoch_s
    return by_source(data, held_s)[source].value - asleep


def least_shortfall_s(data: Colocation) -> float:
    (bound,) = offline_bounds(data, 0, None, 20.0)
    assert bound.proof == "exact-lp"
    return bound.value


# Power beyond sleep at utilisation 0.5: fast 30 + 50 − 10 = 70 W, slow 20 + 20 − 5 = 35 W.


def test_a_job_alone_costs_its_own_energy() -> None:
    # Type `alone` runs on the fast GPU only, at 1 per second: 150 s × 70 W.
    data = cluster([(ALONE, 0.0, 0.5, 150.0, 0.0)])
    bounds = by_source(data, 0.0)
    assert bounds[HELD].value == pytest.approx(ASLEEP_J + 10_500, rel=1e-8)
    assert bounds[FREE].value == pytest.approx(ASLEEP_J + 10_500, rel=1e-8)
    assert bounds[FREE].proof == bounds[HELD].proof == "exact-lp"


@pytest.mark.parametrize(
    ("held_s", "expected_j"),
    [
        # On the fast GPU: 150 s × 70 W.
        (0.0, 10_500.0),
        # A slow GPU for 150 s, which lacks 50 s, and the fast one for 75 s: 3,750 + 5,250.
        (50.0, 9_000.0),
        # A slow one for all 300 s, which lacks 100 s.
        (100.0, 7_500.0),
        (500.0, 7_500.0),
    ],
)
def test_less_energy_is_proved_where_more_shortfall_is_held(
    held_s: float, expected_j: float
) -> None:
    assert busy_j(slow_is_cheap(), held_s) == pytest.approx(expected_j, rel=1e-7)
    assert busy_j(slow_is_cheap(), held_s, FREE) == pytest.approx(7_500, rel=1e-7)


def test_services_earn_nothing_above_their_rate() -> None:
    # At 1 per second: full use of 0.5 on a slow GPU, 35 W, and half of it on the fast one,
    # 30 + 25 − 10 = 45 W. Three of them need all three GPUs for 200 s; without held shortfall none.
    data = cluster([(HEAVY, 0.0, 1.0, 0.0, 200.0)] * 3)
    assert busy_j(data, 0.0) == pytest.approx((35 + 35 + 45) * 200, rel=1e-7)
    assert busy_j(data, 0.0, FREE) == pytest.approx(0, abs=1e-6)


def test_a_pair_where_there_is_one_gpu() -> None:
    # The service takes the fast GPU for 200 s at 3 per second; beside it the training job makes 1
    # per second, just enough. Use 0.5 × 3/4 + 0.5 × 1/2 = 0.625: 30 + 62.5 − 10 = 82.5 W.
    data = cluster([(HEAVY, 0.0, 1.0, 200.0, 0.0), (LIGHT, 0.0, 3.0, 0.0, 200.0)])
    data = replace(data, gpu_types=(data.gpu_types[FAST], replace(data.gpu_types[SLOW], count=0)))
    assert busy_j(data, 0.0) == pytest.approx(82.5 * 200, rel=1e-7)


def test_a_gang_does_not_run_on_fewer_gpus() -> None:
    # 250 units at 2.5 per second on two slow GPUs of 35 W; one fast GPU would be cheaper, at 30 W.
    data = cluster([(GANG, 0.0, 1.0, 250.0, 0.0)])
    fast, slow = data.gpu_types
    data = replace(data, gpu_types=(replace(fast, full_w=50.0), slow))
    assert busy_j(data, 0.0) == pytest.approx(100 * 2 * 35, rel=1e-7)


def test_failed_gpus_are_not_there() -> None:
    # One of the two slow GPUs is out: the second service needs the fast one.
    services = [(HEAVY, 0.0, 1.0, 0.0, 200.0)] * 2
    data = cluster(services, outages=(Outage(SLOW, 1, 0, 8),))
    assert busy_j(data, 0.0) == pytest.approx((35 + 45) * 200, rel=1e-7)


def test_replicas_add_up() -> None:
    # 3 per second: 2 from the fast GPU and 1 from a slow one, both at full rate.
    data = cluster([(HEAVY, 0.0, 3.0, 0.0, 100.0, 2)])
    assert busy_j(data, 0.0) == pytest.approx((70 + 35) * 100, rel=1e-7)


def test_shortfall_is_at_least_the_wait_for_an_epoch() -> None:
    # Arrivals at 30 and 110 s wait for 100 and 200 s; the service leaves at 120 s.
    jobs = [(HEAVY, 30.0, 1.0, 100.0, 0.0), (HEAVY, 110.0, 1.0, 0.0, 10.0)]
    assert least_shortfall_s(cluster(jobs)) == pytest.approx(80, rel=1e-12)


def test_shortfall_where_gpus_do_not_suffice() -> None:
    # Two services that run on the one fast GPU only, and share it with nobody, for 100 s each.
    data = cluster([(ALONE, 0.0, 1.0, 0.0, 100.0)] * 2)
    assert least_shortfall_s(data) == pytest.approx(100, rel=1e-7)


def test_jobs_of_any_rate_wait_for_the_only_gpu_that_they_fit() -> None:
    # Two jobs of 400 units, 2 per second on the fast GPU, required 1. In bins of one epoch the
    # fast GPU does 200 units, a quarter of both jobs. Presence less service, at the end of the
    # epochs: 200 − 50 − 50 = 100, 200 − 100 − 50 = 50, 200 − 150 − 50 = 0. (In truth one waits for
    # 200 s.)
    data = cluster([(HEAVY, 0.0, 1.0, 400.0, 0.0)] * 2)
    data = replace(data, gpu_types=(data.gpu_types[FAST], replace(data.gpu_types[SLOW], count=0)))
    (bound,) = offline_bounds(data, 0, None, 20.0, num_bins=4)
    assert bound.value == pytest.approx(150, rel=1e-7)


def test_a_partner_goes_on_at_the_rate_of_the_pair() -> None:
    # The service leaves after 10 s of the epoch; beside it the training job makes 2 per second for
    # all of it, twice as much as alone: full use, 30 + 100 − 10 = 120 W for 100 s. Alone, 1 per
    # second, it would need 70 W for 200 s.
    data = cluster([(ALONE, 0.0, 1.0, 200.0, 0.0), (LIGHT, 0.0, 1.0, 0.0, 10.0)])
    beside = data.beside_per_s.copy()
    beside[FAST, ALONE, LIGHT], beside[FAST, LIGHT, ALONE] = 2.0, 4.0
    data = replace(data, beside_per_s=beside)
    assert check_decision(data, rows((0, FAST, 0, 1)), 8, 9)
    assert busy_j(data, 0.0) == pytest.approx(12_000, rel=1e-2)


def test_a_pair_of_a_job_that_never_ran_alone_uses_its_full_share() -> None:
    # On a slow GPU type `alone` runs beside the service only, at 1 per second, which counts as full
    # use of its 0.5; the service makes 1 of 2 per second: 20 + 0.75 × 40 − 5 = 45 W for 100 s.
    data = cluster([(ALONE, 0.0, 0.5, 100.0, 0.0), (LIGHT, 0.0, 1.0, 0.0, 100.0)])
    beside = data.beside_per_s.copy()
    beside[SLOW, ALONE, LIGHT] = beside[SLOW, LIGHT, ALONE] = 1.0
    fast, slow = data.gpu_types
    none = (replace(fast, count=0), replace(slow, count=1))
    assert busy_j(replace(data, beside_per_s=beside, gpu_types=none), 0.0) == pytest.approx(
        4_500, rel=1e-7
    )


def test_two_slow_replicas_lack_nothing() -> None:
    # Each of them makes two thirds of the requirement: 50 s on two slow GPUs of 25 W for 100 units.
    data = slow_is_cheap()
    jobs = replace(data.jobs, replicas=np.array([2]), work=np.array([100.0]))
    assert busy_j(replace(data, jobs=jobs), 0.0) == pytest.approx(2_500, rel=1e-7)


def test_classes_hold_jobs_of_several_requirements() -> None:
    # As in slow_is_cheap, and a job that the slow GPU serves: 150 s × 70 W + 300 s × 25 W. In one
    # class the requirement of both counts as 1 in rates, and as its own over time.
    data = cluster([(HEAVY, 0.0, 1.5, 300.0, 0.0), (HEAVY, 0.0, 1.0, 300.0, 0.0)])
    fast, slow = data.gpu_types
    data = replace(data, gpu_types=(fast, replace(slow, full_w=40.0)))
    decision = rows(*((e, SLOW, 1) for e in range(3)), (0, FAST, 0), (1, FAST, 0))
    for groups in (1, 2):
        assert check_decision(data, decision, 8, groups)
    assert busy_j(data, 0.0) == pytest.approx(18_000, rel=1e-7)


def test_classes_hold_services_of_several_requirements() -> None:
    # At 2 per second on the fast GPU, 70 W, and at 1 on a slow one, 35 W, for 200 s each.
    data = cluster([(HEAVY, 0.0, 2.0, 0.0, 200.0), (HEAVY, 0.0, 1.0, 0.0, 200.0)])
    decision = rows(*((e, g, g) for e in range(2) for g in (FAST, SLOW)))
    for groups in (1, 2):
        assert check_decision(data, decision, 8, groups)
    assert busy_j(data, 0.0) == pytest.approx((70 + 35) * 200, rel=1e-7)


def test_energy_follows_power() -> None:
    data = slow_is_cheap()
    doubled = tuple(
        GpuType(g.name, g.count, 2 * g.sleep_w, 2 * g.idle_w, 2 * g.full_w) for g in data.gpu_types
    )
    twice = by_source(replace(data, gpu_types=doubled), 50.0)
    for source, bound in by_source(data, 50.0).items():
        assert twice[source].value == pytest.approx(2 * bound.value, rel=1e-6)


def check_decision(data: Colocation, decision: Allocation, num_bins: int, groups: int) -> bool:
    """Whether a decision is feasible; no bound may lie above its shortfall or energy."""
    found = replay(data, decision)
    if found.violations:
        return False
    metrics = metrics_of(data, decision, found)
    shortfall_s, energy_j = metrics["shortfall_s"], metrics["energy_j"]
    settings: dict[str, Any] = {"num_bins": num_bins, "groups": groups}
    assert offline_bounds(data, 0, None, 20.0, **settings)[0].value <= shortfall_s
    bounds = by_source(data, shortfall_s, **settings)
    assert bounds[FREE].value <= energy_j
    assert bounds[HELD].value <= energy_j
    return True


def check_random_decisions(seeds: range) -> int:
    found = 0
    for seed in seeds:
        data = small_trace(seed)
        num_bins, groups = ((4, 1), (12, 99), (7, 2))[seed % 3]
        for k, lazy in enumerate((0.0, 0.3)):
            decision = random_decision(data, 10 * seed + k, lazy)
            found += check_decision(data, decision, num_bins, groups)
        if seed % 4 == 0:
            busy = random_cluster(seed)
            found += check_decision(busy, played(busy, seed)[0], num_bins, groups)
    return found


def test_random_decisions_do_not_lie_below() -> None:
    assert check_random_decisions(range(60)) > 100


@pytest.mark.slow
def test_many_random_decisions_do_not_lie_below() -> None:
    assert check_random_decisions(range(60, 900)) > 1300


def check_enumerated(seeds: range) -> tuple[int, int]:
    """How many bounds were compared with the optimum of an enumeration, and how many meet it."""
    compared = met = 0
    for seed in seeds:
        try:
            data = enumerable_trace(seed)
        except ModelError:  # a type that runs on no GPU, or nothing that serves a job
            continue
        outcomes = all_outcomes(data)
        if not outcomes:
            continue
        least_s = min(shortfall_s for shortfall_s, _ in outcomes)
        least_j = min(energy_j for _, energy_j in outcomes)
        num_bins, groups = ((1, 99), (3, 99), (2, 1))[seed % 3]
        settings: dict[str, Any] = {"num_bins": num_bins, "groups": groups}
        assert offline_bounds(data, 0, None, 20.0, **settings)[0].value <= least_s + 1e-12
        for held_s in (least_s, 1.2 * least_s + 1, 2 * least_s + 3):
            best_j = min(energy_j for shortfall_s, energy_j in outcomes if shortfall_s <= held_s)
            bounds = by_source(data, held_s, **settings)
            assert bounds[FREE].value <= least_j * (1 + 1e-14)
            assert bounds[HELD].value <= best_j * (1 + 1e-14)
            compared += 1
            met += bounds[HELD].value > best_j * (1 - 1e-6)
    return compared, met


def test_no_bound_exceeds_the_optimum_by_enumeration() -> None:
    compared, met = check_enumerated(range(14))
    assert compared > 30
    assert met > 3


@pytest.mark.slow
def test_no_bound_exceeds_many_optima_by_enumeration() -> None:
    compared, met = check_enumerated(range(14, 240))
    assert compared > 500
    assert met > 50


def test_no_time_proves_sleep_and_waiting() -> None:
    data = slow_is_cheap()
    assert offline_bounds(data, 1, None, 0.0)[0].value == pytest.approx(ASLEEP_J, rel=1e-8)
    assert offline_bounds(data, 0, None, 0.0)[0].value == 0.0
