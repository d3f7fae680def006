"""The offline bound: hand-derived optima, random decisions, enumeration, and false certificates."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from optbench.errors import ModelError, OptbenchError
from optbench.model.result import Bound
from optbench.shapes.colocation.allocations import Allocation
from optbench.shapes.colocation.colocation_data import Colocation, GpuType, Outage
from optbench.shapes.colocation.colocation_shape import metrics_of
from optbench.shapes.colocation.offline_bound import offline_bounds, prove_offline
from optbench.shapes.colocation.offline_certificate import (
    OfflineCertificate,
    read_certificate,
    write_certificate,
)
from optbench.shapes.colocation.offline_demand import even_edges
from optbench.shapes.colocation.offline_proof import Multipliers
from optbench.shapes.colocation.trace_replay import replay
from tests.shapes.colocation.enumerated_traces import all_outcomes, enumerable_trace
from tests.shapes.colocation.random_play import played, random_cluster
from tests.shapes.colocation.small_traces import random_decision, small_trace
from tests.shapes.colocation.two_gpus import ALONE, FAST, GANG, HEAVY, LIGHT, SLOW, cluster

FREE, HELD = "offline_lp", "offline_lp_held"
# Sleep of one fast and two slow GPUs over 8 epochs of 100 s: (10 + 2 × 5) W × 800 s.
ASLEEP_J = 16_000.0


def by_source(data: Colocation, held_s: float | None, **settings: Any) -> dict[str, Bound]:
    found = offline_bounds(data, 1, held_s, 20.0, **settings)
    return {each.source: each for each in found}


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


def slow_is_cheap() -> Colocation:
    """300 units at 35 J on the fast GPU at 2 per second, or at 25 J on a slow one at 1 per second,
    where the requirement of 1.5 lacks a third: 20 + 0.5 × 20 − 5 = 25 W."""
    data = cluster([(HEAVY, 0.0, 1.5, 300.0, 0.0)])
    fast, slow = data.gpu_types
    return replace(data, gpu_types=(fast, replace(slow, full_w=40.0)))


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
    assert least_shortfall_s(cluster(jobs)) == 80.0


def test_shortfall_where_gpus_do_not_suffice() -> None:
    # Two services that run on the one fast GPU only, and share it with nobody, for 100 s each.
    data = cluster([(ALONE, 0.0, 1.0, 0.0, 100.0)] * 2)
    assert least_shortfall_s(data) == pytest.approx(100, rel=1e-7)


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


def test_a_certificate_proves_the_bound_again() -> None:
    data = slow_is_cheap()
    for bound in offline_bounds(data, 1, 50.0, 20.0):
        assert bound.certificate is not None
        again = prove_offline(data, 1, 50.0, bound.certificate)
        assert (again.value, again.source, again.proof) == (bound.value, bound.source, "exact-lp")


def test_a_held_value_proves_nothing_of_a_larger_one() -> None:
    data = slow_is_cheap()
    certificate = by_source(data, 50.0)[HELD].certificate or ""
    assert prove_offline(data, 1, 20.0, certificate).value <= ASLEEP_J + 9_000
    with pytest.raises(OptbenchError, match=r"holds shortfall_s at 50\.0; the instance at 50\.1"):
        prove_offline(data, 1, 50.1, certificate)
    with pytest.raises(OptbenchError, match="the instance does not hold it"):
        prove_offline(data, 1, None, certificate)
    with pytest.raises(OptbenchError, match="is of level 1; the instance is at 0"):
        prove_offline(data, 0, None, certificate)


def test_a_free_certificate_holds_whatever_is_held() -> None:
    data = slow_is_cheap()
    bound = by_source(data, None)[FREE]
    again = prove_offline(data, 1, 3.0, bound.certificate or "")
    assert (again.value, again.source) == (bound.value, FREE)


def test_any_multipliers_prove_a_bound_that_holds() -> None:
    # Held at 50 s the optimum of the LP is 9,000 J beyond sleep; at level 0 it is 0.
    data = slow_is_cheap()
    edges = even_edges(data, 5)
    b = len(edges) - 1
    rng = np.random.default_rng(3)
    for trial in range(200):
        shapes = ((1, b), (1,), (1, b), (1, b), (1, b), (1, b))
        kept = rng.random(len(shapes)) < 0.6
        given = Multipliers(
            *(
                keep * rng.exponential(10.0 ** rng.integers(-2, 3), shape)
                for keep, shape in zip(kept, shapes, strict=True)
            )
        )
        level, held_s = (0, None) if trial % 2 else (1, 50.0)
        text = write_certificate(OfflineCertificate(level, held_s, 1, edges, given))
        proven = prove_offline(data, level, held_s, text).value
        assert proven <= (0.0 if level == 0 else ASLEEP_J + 9_000)


def test_multipliers_that_price_shortfall_need_a_held_value() -> None:
    data = slow_is_cheap()
    held = read_certificate(by_source(data, 50.0)[HELD].certificate or "", data)
    text = write_certificate(replace(held, held_shortfall_s=None))
    with pytest.raises(OptbenchError, match="prices shortfall, and none is held"):
        prove_offline(data, 1, None, text)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"method": "other"}, "its method is 'other'"),
        ({"level": 2}, "level 2"),
        ({"level": True}, "level True"),
        ({"groups": 0}, "groups 0"),
        ({"held": -1.0}, r"held at -1\.0"),
        ({"held": float("nan")}, "held at nan"),
        ({"edges": [0, 8, 4]}, "edges of bins must rise"),
        ({"edges": [0, 4]}, "from at most 0 to 8"),
        ({"edges": [1, 8]}, "from at most 0 to 8"),
        ({"edges": [0.0, 8.0]}, "whole numbers"),
        ({"edges": list(range(1000))}, "999 bins"),
        ({"edges": [0, 8]}, "multipliers of 1"),
        ({"multipliers": "AAAA"}, "cannot be read"),
        ({"multipliers": 3}, "cannot be read"),
    ],
)
def test_what_is_no_certificate_is_refused(change: dict[str, Any], words: str) -> None:
    data = slow_is_cheap()
    text = json.loads(by_source(data, 50.0)[HELD].certificate or "")
    with pytest.raises((OptbenchError, ModelError), match=words):
        prove_offline(data, 1, 50.0, json.dumps(text | change))


@pytest.mark.parametrize("text", ["", "[]", "null", "{}", "[" * 100_000, '{"method":1}'])
def test_what_is_no_document_is_refused(text: str) -> None:
    with pytest.raises(OptbenchError, match="cannot be read"):
        prove_offline(slow_is_cheap(), 1, 50.0, text)


def test_no_time_proves_sleep_and_waiting() -> None:
    data = slow_is_cheap()
    assert offline_bounds(data, 1, None, 0.0)[0].value == pytest.approx(ASLEEP_J, rel=1e-8)
    assert offline_bounds(data, 0, None, 0.0)[0].value == 0.0
