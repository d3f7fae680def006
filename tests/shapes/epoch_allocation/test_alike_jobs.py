"""Which jobs count as alike: those whose exchange changes neither feasibility nor price."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from optbench.shapes.epoch_allocation.demand_groups import group_jobs
from optbench.shapes.epoch_allocation.epoch_allocator import allocate
from optbench.shapes.epoch_allocation.epoch_rows import EpochRows
from optbench.shapes.epoch_allocation.pattern_program import pattern_program
from optbench.shapes.epoch_allocation.pattern_solution import point_of, rows_of
from optbench.shapes.epoch_allocation.row_prices import is_column, lacks_mw, row_prices_mw
from tests.shapes.epoch_allocation.test_epoch_allocation import demand_by_hand, of_seed
from tests.shapes.epoch_allocation.tiny_demands import Enumeration, tiny_demand


def classes_of(**changed: Any) -> list[int]:
    out: list[int] = group_jobs(demand_by_hand(**changed)).class_of_job.tolist()
    return out


def test_training_jobs_with_one_feasibility_are_alike() -> None:
    # Throughputs are 10 and 4 alone, 8 and 2 beside each other: 2.5 and 3.9 lie between 2 and 4.
    assert classes_of(jobs_required_per_s=np.array([2.5, 3.9])) == [0, 0]
    assert classes_of(jobs_required_per_s=np.array([2.5, 4.1])) == [0, 1]
    # A throughput meets the requirement that equals it.
    assert classes_of(jobs_required_per_s=np.array([2.1, 4.0])) == [0, 0]


def test_services_with_other_rates_differ_in_power() -> None:
    # 2.5 and 3.9 are feasible in the same columns; alone on the first GPU type the services cost
    # 20 + 100 × 0.5 × 0.25 = 32.5 W and 20 + 100 × 0.5 × 0.39 = 39.5 W.
    services = {
        "jobs_is_service": np.array([True, True]),
        "jobs_required_per_s": np.array([2.5, 3.9]),
    }
    assert classes_of(**services) == [0, 1]
    demand = demand_by_hand(**services)
    zero, nobody = np.array([0, 0]), np.array([-1, -1])
    prices = row_prices_mw(demand, zero, np.array([0, 1]), nobody)
    assert prices.tolist() == [32_500, 39_500]
    # One on each GPU type. The second one, 4 per second, is 10 + 40 × 0.8 × share: 2.5 there and
    # 3.9 on the first cost 30 + 39.5 = 69.5, the other way 41.2 + 32.5 = 73.7; both on the first
    # cost 20 + 50 × (0.25 + 0.39) = 52.
    best = allocate(demand).surrogate_w
    assert best == Enumeration(demand).best_mw() / 1000.0 == 52.0
    apart = demand_by_hand(**services, beside_per_s=np.zeros((2, 1, 1)))
    assert allocate(apart).surrogate_w == 69.5


def test_other_prices_of_progress_waiting_and_migration_differ() -> None:
    assert classes_of(jobs_price_j=np.array([1.0, 2.0])) == [0, 1]
    assert classes_of(jobs_shortfall_w=np.array([400.0, 500.0])) == [0, 1]
    before = {"jobs_before": np.array([0, 1])}
    assert classes_of(**before) == [0, 0]
    assert classes_of(**before, migration_price_w=5.0) == [0, 1]


@pytest.mark.parametrize("seed", range(500, 560))
def test_jobs_of_a_class_have_equal_columns(seed: int) -> None:
    """Every job of a class has the feasibility and the price of every other one in each column."""
    demand = of_seed(seed)
    groups = group_jobs(demand)
    jobs = np.arange(demand.jobs.count)
    fixed = demand.several | demand.below
    for cls in range(len(groups.class_group)):
        members = jobs[groups.class_of_job == cls]
        assert len(members) == 1 or not fixed[members].any()
        for partner in (-1, *jobs[~np.isin(jobs, members)].tolist()):
            for g in range(demand.num_gpu_types):
                where = np.full(len(members), g), members, np.full(len(members), partner)
                if len(members) > 1 and (partner < 0 or not fixed[partner]):
                    allowed = is_column(demand, *where)
                    assert len(set(allowed.tolist())) == 1
                    if allowed[0]:
                        assert len(set(row_prices_mw(demand, *where).tolist())) == 1
        assert len(set(demand.shortfall_mw[members].tolist())) == 1


@pytest.mark.parametrize("seed", range(600, 640))
def test_rows_and_points_stand_for_each_other(seed: int) -> None:
    """Every allowed allocation is a point of the programme with the same value, and back."""
    demand = of_seed(seed)
    program = pattern_program(demand)
    enumeration = Enumeration(demand)
    rng = np.random.default_rng(seed)
    every = list(enumeration.allocations())
    for k in rng.choice(len(every), min(20, len(every)), replace=False).tolist():
        rows = EpochRows.of(list(every[k]))
        point = point_of(program, rows)
        column = np.repeat(np.arange(program.num_columns), np.diff(program.start))
        sums = np.bincount(program.index, program.value * point[column], program.num_rows)
        assert (sums >= program.row_lower - 1e-9).all()
        assert (sums <= program.row_upper + 1e-9).all()
        assert (point >= 0).all() and (point <= program.upper).all()
        value = int((program.cost_mw * point).sum()) + program.constant_mw
        assert value == enumeration.value_mw(every[k])
        again = rows_of(program, point)
        prices = row_prices_mw(demand, again.gpu_type, again.first, again.second)
        lacks = lacks_mw(demand, again.gpu_type, again.first, again.second)
        assert int(prices.sum() + lacks.sum()) == value


def test_the_order_of_jobs_does_not_matter() -> None:
    demand = tiny_demand(7, jobs=6, gpus=4)
    best = allocate(demand).surrogate_w
    order = np.array([3, 1, 5, 0, 4, 2])
    given = demand.jobs
    shuffled = replace(
        given,
        **{
            name: getattr(given, name)[order]
            for name in (
                *("job_type", "required_per_s", "is_service", "replicas", "price_j", "before"),
                *(() if given.shortfall_w is None else ("shortfall_w",)),
            )
        },
    )
    assert allocate(replace(demand, jobs=shuffled)).surrogate_w == best
