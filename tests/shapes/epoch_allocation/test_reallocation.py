"""Allocations of a hundred GPUs: bounds, repairs, and jobs that come and go."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from optbench.plugins.discovery import load_problem
from optbench.shapes.colocation.colocation_data import Ints
from optbench.shapes.epoch_allocation.epoch_allocation_shape import EpochAllocationShape
from optbench.shapes.epoch_allocation.epoch_allocator import AllocationFound, allocate
from optbench.shapes.epoch_allocation.epoch_demand import EpochDemand
from optbench.shapes.epoch_allocation.epoch_rows import EpochRows
from optbench.shapes.epoch_allocation.reallocation import carried_rows, reallocate
from tests.shapes.epoch_allocation.test_epoch_allocation import demand_by_hand

SHAPE = EpochAllocationShape()


@cache
def of_problem(spec: str, seed: int = 0) -> EpochDemand:
    made: EpochDemand = load_problem(f"epoch_allocation:{spec}").instance(seed).data
    return made


def with_some_jobs(demand: EpochDemand, jobs: Ints) -> EpochDemand:
    """Return the demand of some of its jobs, at the same price of waiting."""
    names = ("job_type", "required_per_s", "is_service", "replicas", "price_j", "before")
    some = {name: getattr(demand.jobs, name)[jobs] for name in names}
    return replace(
        demand,
        jobs=replace(demand.jobs, **some, shortfall_w=demand.shortfall_mw[jobs] / 1000.0),
    )


def checked(demand: EpochDemand, found: AllocationFound) -> AllocationFound:
    """Verify the rows, and that value, waiting jobs and bound are what they are said to be."""
    verdict = SHAPE.verify(demand, found.rows)
    assert not verdict.violations
    assert verdict.metrics["surrogate_w"] == found.surrogate_w
    assert verdict.metrics["waiting"] == len(found.waiting)
    assert found.bound_w <= found.surrogate_w
    return found


@pytest.mark.parametrize(
    "spec",
    [
        "jobs=140,gpus=100",
        "jobs=140,gpus=100,migration_w=20",
        "jobs=140,gpus=100,requirement=tight,tables=gavel",
        "jobs=120,gpus=50",
    ],
)
def test_a_gap_is_kept(spec: str) -> None:
    demand = of_problem(spec)
    exact = checked(demand, allocate(demand, 20.0))
    assert exact.gap_w == 0.0
    near = checked(demand, allocate(demand, 20.0, gap=1e-3))
    gpus = near.rows.gpu_type
    power = float((demand.full_w - demand.sleep_w)[gpus].sum())
    assert near.gap_w <= 1e-3 * power and near.bound_w <= exact.surrogate_w
    quick = checked(demand, allocate(demand, 20.0, gap=1e-3, prove=False))
    assert quick.bound_w <= exact.surrogate_w


@pytest.mark.parametrize("spec", ["jobs=41,gpus=30", "jobs=41,gpus=30,migration_w=20"])
@pytest.mark.parametrize("seed", [0, 1])
def test_jobs_that_come_and_go(spec: str, seed: int) -> None:
    demand = of_problem(spec, seed)
    demand = with_some_jobs(demand, np.arange(41))
    before = with_some_jobs(demand, np.arange(40))
    first = allocate(before, 20.0)
    assert first.state is not None
    came = checked(demand, reallocate(first.state, demand, np.append(np.arange(40), -1)))
    exact = allocate(demand, 20.0)
    # Without a gap the optimum is proven, from the bound that moved or from scratch.
    assert came.surrogate_w == exact.surrogate_w and came.gap_w == 0.0
    near = reallocate(first.state, demand, np.append(np.arange(40), -1), gap=0.02, prove=False)
    assert checked(demand, near).bound_w <= exact.surrogate_w
    stay = np.delete(np.arange(40), [3, 17])
    fewer = with_some_jobs(before, stay)
    gone = checked(fewer, reallocate(first.state, fewer, stay, gap=0.02, prove=False))
    assert gone.bound_w <= allocate(fewer, 20.0).surrogate_w
    # The state of a re-allocation serves the next one.
    assert near.state is not None
    was = np.delete(np.arange(41), 5)
    last = with_some_jobs(demand, was)
    again = checked(last, reallocate(near.state, last, was, gap=0.02, prove=False))
    assert again.bound_w <= allocate(last, 20.0).surrogate_w


def test_other_tables_are_allocated_from_scratch() -> None:
    demand = of_problem("jobs=14,gpus=10")
    found = allocate(demand)
    assert found.state is not None
    faster = replace(demand, alone_per_s=demand.alone_per_s * 1.1)
    again = reallocate(found.state, faster, np.arange(14))
    assert checked(faster, again).surrogate_w == allocate(faster).surrogate_w


def test_rows_are_carried_by_hand() -> None:
    # Jobs 0 to 3 become 0, gone, 1, 2. The partner of job 1, job 0, has lost its row.
    rows = EpochRows.of([(0, 0, 1), (1, 2, 3)])
    demand = demand_by_hand(
        jobs_job_type=np.zeros(3, dtype=np.int64),
        jobs_required_per_s=np.ones(3),
        jobs_is_service=np.zeros(3, dtype=bool),
        jobs_replicas=np.ones(3, dtype=np.int64),
        jobs_price_j=np.zeros(3),
        jobs_before=np.zeros(3, dtype=np.int64),
        jobs_shortfall_w=np.full(3, 500.0),
    )
    kept, lost = carried_rows(rows, demand, np.array([0, 2, 3]))
    assert (kept.gpu_type.tolist(), kept.first.tolist(), kept.second.tolist()) == ([1], [1], [2])
    assert lost.tolist() == [0]


def test_many_job_types_are_priced_in_rounds() -> None:
    """With more patterns than are taken at once, columns are generated; the bound is the same."""
    from optbench.shapes.epoch_allocation import pattern_relaxation as module
    from optbench.shapes.epoch_allocation.pattern_program import pattern_program

    program = pattern_program(of_problem("jobs=60,gpus=40,job_types=60"))
    whole = module.PatternRelaxation(program).solve()
    some = module.PatternRelaxation(program, at_once=10).solve()
    assert whole.rounds == 1 < some.rounds
    assert some.plain_mw == pytest.approx(whole.plain_mw, rel=1e-9)


def test_another_number_of_threads_before_does_not_matter() -> None:
    """HiGHS has one pool of threads per process."""
    import highspy

    other = highspy.Highs()
    other.silent()
    other.setOptionValue("threads", 2)
    x = [other.addIntegral(0, 10, obj=-k - 1) for k in range(30)]
    other.addConstr(sum(x) <= 50)
    other.run()
    assert allocate(of_problem("jobs=14,gpus=10")).gap_w == 0.0
