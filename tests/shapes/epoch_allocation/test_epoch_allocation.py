"""The allocation of an epoch: every method meets enumeration, and the optimum derived by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.shapes.epoch_allocation.epoch_allocation_shape import EpochAllocationShape
from optbench.shapes.epoch_allocation.epoch_allocator import allocate
from optbench.shapes.epoch_allocation.epoch_demand import EpochDemand, JobDemands
from optbench.shapes.epoch_allocation.epoch_rows import EpochRows
from tests.shapes.epoch_allocation.tiny_demands import Enumeration, tiny_demand

SHAPE = EpochAllocationShape()
KINDS: tuple[dict[str, Any], ...] = (
    {},
    {"migration": True},
    {"best_effort": True},
    {"replicas": 2, "jobs": 4},
    {"migration": True, "best_effort": True, "replicas": 2, "jobs": 4},
    {"jobs": 6, "gpus": 4},
)


def of_seed(seed: int) -> EpochDemand:
    return tiny_demand(seed, **KINDS[seed % len(KINDS)])


def all_methods_agree(seed: int) -> None:
    demand = of_seed(seed)
    best_w = Enumeration(demand).best_mw() / 1000.0
    found = allocate(demand)
    assert found.surrogate_w == best_w and found.bound_w == pytest.approx(best_w, abs=1e-3)
    instance = SHAPE.instance(f"tiny-{seed}", demand)
    for solver in ("highs", "cpsat", "column_generation"):
        result = ob.solve(instance, solver, time_limit_s=20)
        assert (result.status, result.objective) == ("optimal", best_w), solver


@pytest.mark.parametrize("seed", range(24))
def test_all_methods_meet_enumeration(seed: int) -> None:
    all_methods_agree(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24, 224))
def test_all_methods_meet_enumeration_on_two_hundred_more(seed: int) -> None:
    all_methods_agree(seed)


@pytest.mark.parametrize("seed", range(300, 420))
def test_the_allocator_meets_enumeration(seed: int) -> None:
    demand = of_seed(seed)
    found = allocate(demand)
    verdict = SHAPE.verify(demand, found.rows)
    assert not verdict.violations
    assert (
        verdict.metrics["surrogate_w"] == found.surrogate_w == Enumeration(demand).best_mw() / 1e3
    )


def demand_by_hand(**changed: Any) -> EpochDemand:
    """Two GPU types with one GPU each, one job type: 10 per second on the first, 4 on the second;
    8 and 2 beside another one. Power 20 W asleep, 40 idle and 140 full, and 10, 20 and 60.
    """
    jobs = {
        "job_type": np.array([0, 0]),
        "required_per_s": np.array([2.0, 2.0]),
        "is_service": np.array([False, False]),
        "replicas": np.array([1, 1]),
        "price_j": np.array([0.0, 0.0]),
        "before": np.array([-2, -2]),
        "shortfall_w": np.array([500.0, 500.0]),
    }
    jobs |= {name[5:]: value for name, value in changed.items() if name.startswith("jobs_")}
    rest: dict[str, Any] = {
        "counts": np.array([1, 1]),
        "sleep_w": np.array([20.0, 10.0]),
        "idle_w": np.array([40.0, 20.0]),
        "full_w": np.array([140.0, 60.0]),
        "gangs": np.array([1]),
        "alone_per_s": np.array([[10.0], [4.0]]),
        "beside_per_s": np.array([[[8.0]], [[2.0]]]),
        "utilisation": np.array([[0.5], [0.8]]),
        "jobs": JobDemands(**jobs),
    }
    rest |= {name: value for name, value in changed.items() if not name.startswith("jobs_")}
    return EpochDemand(**rest)


def surrogate_w(demand: EpochDemand, rows: list[tuple[int, int, int]]) -> float:
    found = SHAPE.verify(demand, EpochRows.of(rows))
    assert not found.violations
    return found.metrics["surrogate_w"]


def test_prices_by_hand() -> None:
    training = demand_by_hand()
    # Alone on the first type: 20 idle beyond sleep, and 100 × 0.5. On the second: 10 + 40 × 0.8.
    assert surrogate_w(training, [(0, 0, -1), (1, 1, -1)]) == 70.0 + 42.0
    # Both on the second, each with half of its throughput alone: 10 + 40 × (0.8 / 2 + 0.8 / 2).
    assert surrogate_w(training, [(1, 0, 1)]) == 42.0
    # On the first 0.5 × 0.8 twice: 20 + 100 × 0.8. One alone, the other one waits.
    assert surrogate_w(training, [(0, 0, 1)]) == 100.0
    assert surrogate_w(training, [(1, 1, -1)]) == 542.0
    # A service does 2 per second: alone on the first type 20 + 100 × 0.5 × 2 / 10.
    service = demand_by_hand(jobs_is_service=np.array([True, False]))
    assert surrogate_w(service, [(0, 0, -1), (1, 1, -1)]) == 30.0 + 42.0
    # Beside each other on the first type: 20 + 100 × (0.5 × 0.2 + 0.5 × 0.8).
    assert surrogate_w(service, [(0, 0, 1)]) == 70.0
    # A unit of progress is worth 3 J: 8 per second.
    worth = demand_by_hand(jobs_price_j=np.array([3.0, 0.0]))
    assert surrogate_w(worth, [(0, 0, 1)]) == 100.0 - 24.0
    # Power is not above that of full use: 0.9 + 0.9 of the second GPU type's 40 W.
    full = demand_by_hand(
        utilisation=np.array([[0.5], [0.9]]), beside_per_s=np.array([[[8.0]], [[4.0]]])
    )
    assert surrogate_w(full, [(1, 0, 1)]) == 50.0


def test_extra_prices_by_hand() -> None:
    priced = demand_by_hand(
        alone_price_w=np.array([[1.5], [0.0]]), pair_price_w=np.array([[[0.0]], [[-7.25]]])
    )
    assert surrogate_w(priced, [(0, 0, -1), (1, 1, -1)]) == 70.0 + 1.5 + 42.0
    assert surrogate_w(priced, [(1, 0, 1)]) == 42.0 - 7.25


def test_the_optimum_by_hand() -> None:
    # Both on the second GPU type is cheapest, 42 W; a requirement of 2.5 there is met alone only,
    # so that the first GPU type is needed: 70 + 42, or both on it, 100.
    assert allocate(demand_by_hand()).surrogate_w == 42.0
    higher = demand_by_hand(jobs_required_per_s=np.array([2.5, 2.5]))
    found = allocate(higher)
    assert found.surrogate_w == 100.0 and found.rows.num_rows == 1
    # 9 per second: one job is alone on the first GPU type, the other one waits.
    highest = allocate(demand_by_hand(jobs_required_per_s=np.array([9.0, 9.0])))
    assert highest.surrogate_w == 570.0 and len(highest.waiting) == 1


def test_migration_by_hand() -> None:
    # Both ran on the first GPU type. Moving both costs 2 × 40 W: 42 + 80 is more than 100.
    moving = demand_by_hand(jobs_before=np.array([0, 0]), migration_price_w=40.0)
    assert allocate(moving).surrogate_w == 100.0
    assert surrogate_w(moving, [(1, 0, 1)]) == 122.0
    # A job that waited pays too, one that has never run does not.
    resumed = demand_by_hand(jobs_before=np.array([-1, -2]), migration_price_w=40.0)
    assert surrogate_w(resumed, [(1, 0, 1)]) == 82.0
    assert SHAPE.verify(resumed, EpochRows.of([(1, 0, 1)])).metrics["moves"] == 1.0


def test_replicas_by_hand() -> None:
    # 12 per second are 10 alone on the first GPU type and 2 beside the other job on the second: 70
    # and 42. (Beside the other job on the first, 8, and 4 alone on the second cost 100 and 42.)
    several = {"jobs_required_per_s": np.array([12.0, 2.0]), "jobs_replicas": np.array([2, 1])}
    found = allocate(demand_by_hand(**several))
    assert found.surrogate_w == 112.0 and not len(found.waiting)
    assert surrogate_w(demand_by_hand(**several), [(0, 0, 1), (1, 0, -1)]) == 142.0
    # 14 are both GPUs alone, and the other job waits: 612. It is cheaper if the job itself waits.
    alone = demand_by_hand(**several | {"jobs_required_per_s": np.array([14.0, 2.0])})
    assert surrogate_w(alone, [(0, 0, -1), (1, 0, -1)]) == 112.0 + 500.0
    assert allocate(alone).surrogate_w == 500.0 + 42.0
    single = demand_by_hand(**several | {"jobs_replicas": np.array([1, 1])})
    assert allocate(single).surrogate_w == 500.0 + 42.0


def test_gangs_by_hand() -> None:
    # A gang of two on two GPUs of the second type: 2 × (10 + 40 × 0.8); the other job on the first.
    gang = demand_by_hand(
        counts=np.array([1, 2]),
        gangs=np.array([1, 2]),
        alone_per_s=np.array([[10.0, 0.0], [4.0, 6.0]]),
        beside_per_s=np.zeros((2, 2, 2)),
        utilisation=np.array([[0.5, 0.5], [0.8, 0.8]]),
        jobs_job_type=np.array([0, 1]),
        jobs_required_per_s=np.array([5.0, 6.0]),
    )
    found = allocate(gang)
    assert found.surrogate_w == 70.0 + 84.0
    assert SHAPE.verify(gang, found.rows).metrics["gpus"] == 3.0


def test_best_effort_by_hand() -> None:
    # 20 per second are nowhere: on the first GPU type it lacks half, 500 × 0.5, and costs 70 W.
    lacking = demand_by_hand(jobs_required_per_s=np.array([20.0, 2.0]), best_effort=True)
    assert surrogate_w(lacking, [(0, 0, -1), (1, 1, -1)]) == 250.0 + 70.0 + 42.0
    assert allocate(lacking).surrogate_w == 362.0
    # Two replicas get 14 of 40 on both GPU types, and the other job waits: that is dearer than half
    # of 20 alone on the first, which is 10 of 40, with the other job on the second.
    both = demand_by_hand(
        jobs_required_per_s=np.array([40.0, 2.0]),
        jobs_replicas=np.array([2, 1]),
        best_effort=True,
    )
    assert surrogate_w(both, [(0, 0, -1), (1, 0, -1)]) == 500.0 * 0.65 + 112.0 + 500.0
    assert allocate(both).surrogate_w == 500.0 * 0.75 + 70.0 + 42.0
    strict = demand_by_hand(jobs_required_per_s=np.array([20.0, 2.0]))
    assert allocate(strict).surrogate_w == 500.0 + 42.0


def test_waiting_comes_first_by_default() -> None:
    # Progress is worth far more than any power, and alone on the first type it is fastest; still
    # no job waits where both can be placed.
    eager = demand_by_hand(
        counts=np.array([1, 0]),
        jobs_price_j=np.array([1000.0, 0.0]),
        jobs_shortfall_w=None,
    )
    found = allocate(eager)
    assert not len(found.waiting)
    # The gain of 2 per second at 1000 J is 2000 W: a smaller price of waiting would be paid.
    cheap = demand_by_hand(
        counts=np.array([1, 0]),
        jobs_price_j=np.array([1000.0, 0.0]),
        jobs_shortfall_w=np.array([1900.0, 1900.0]),
    )
    assert len(allocate(cheap).waiting) == 1


def test_nobody_is_there() -> None:
    none = JobDemands(
        np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=bool),
        np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=np.int64),
    )  # fmt: skip
    found = allocate(demand_by_hand(jobs=none))
    assert found.rows.num_rows == 0 and found.surrogate_w == 0.0 and found.state is None


def test_no_gpu_is_there() -> None:
    found = allocate(demand_by_hand(counts=np.array([0, 0])))
    assert found.rows.num_rows == 0 and found.surrogate_w == found.bound_w == 1000.0
