"""Prices at the duals, insertions and exchanges: what re-allocation is made of."""

from __future__ import annotations

import numpy as np
import pytest

from optbench.shapes.epoch_allocation.dual_prices import DualPrices
from optbench.shapes.epoch_allocation.epoch_allocation_shape import EpochAllocationShape
from optbench.shapes.epoch_allocation.epoch_demand import EpochDemand
from optbench.shapes.epoch_allocation.epoch_rows import EpochRows
from optbench.shapes.epoch_allocation.insertion import inserted
from optbench.shapes.epoch_allocation.pattern_program import pattern_program
from optbench.shapes.epoch_allocation.pattern_relaxation import PatternRelaxation
from optbench.shapes.epoch_allocation.pattern_solver import SearchLimits, fewest_waiting
from optbench.shapes.epoch_allocation.row_exchange import exchanged
from tests.shapes.epoch_allocation.test_epoch_allocation import demand_by_hand
from tests.shapes.epoch_allocation.test_reallocation import of_problem, with_some_jobs
from tests.shapes.epoch_allocation.tiny_demands import Enumeration, tiny_demand

SHAPE = EpochAllocationShape()


def surrogate_w(demand: EpochDemand, rows: EpochRows) -> float:
    found = SHAPE.verify(demand, rows)
    assert not found.violations
    return found.metrics["surrogate_w"]


@pytest.mark.parametrize("seed", range(700, 730))
def test_no_column_is_cheaper_than_its_jobs_and_gpus(seed: int) -> None:
    """The prices are a dual solution of the programme over columns of jobs, of the same value."""
    demand = tiny_demand(seed, migration=seed % 2 == 0)
    program = pattern_program(demand)
    prices = DualPrices.of(program, PatternRelaxation(program).solve())
    every = Enumeration(demand)
    columns = [row for row in every.columns if demand.counts[row[0]] >= every.gang[row[1]]]
    if columns:
        rows = EpochRows.of(columns)
        assert prices.reduced_w(rows).min() >= -1e-6
    assert (prices.job_w <= demand.shortfall_mw / 1000.0 + 1e-6).all()
    total = float(prices.job_w.sum() + (demand.counts * prices.gpu_w).sum())
    assert total == pytest.approx(prices.bound_mw / 1000.0, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_moved_prices_bound_the_new_demand(seed: int) -> None:
    whole = of_problem("jobs=31,gpus=16,requirement=tight", seed)
    whole = with_some_jobs(whole, np.arange(31))
    before = with_some_jobs(whole, np.arange(30))
    program = pattern_program(before)
    prices = DualPrices.of(program, PatternRelaxation(program).solve())
    moved = prices.moved(whole, np.append(np.arange(30), -1))
    assert moved is not None
    exact = PatternRelaxation(pattern_program(whole)).solve().plain_mw
    # The duals of the smaller demand are feasible for the larger one: no more than its relaxation.
    assert moved.bound_mw <= exact + 1e-3
    assert moved.bound_mw == pytest.approx(prices.bound_mw + 1000.0 * float(moved.job_w[30]))


def test_an_insertion_by_hand() -> None:
    # One job stands alone on the second GPU type, 42 W. The other one beside it, both with half of
    # their throughput, adds nothing; alone on the first it would add 70.
    demand = demand_by_hand()
    rows = inserted(demand, EpochRows.of([(1, 0, -1)]), 1)
    assert surrogate_w(demand, rows) == 42.0 and rows.num_rows == 1
    # 2.5 per second are not met beside each other on the second: 30 more, for both on the first,
    # is not reached by moving one job, and 70 for the free GPU is left.
    higher = demand_by_hand(jobs_required_per_s=np.array([2.5, 2.5]))
    assert surrogate_w(higher, inserted(higher, EpochRows.of([(1, 0, -1)]), 1)) == 112.0
    # A job with nowhere to go waits.
    highest = demand_by_hand(jobs_required_per_s=np.array([9.0, 9.0]))
    assert inserted(highest, EpochRows.of([(0, 0, -1)]), 1).num_rows == 1


def test_an_exchange_by_hand() -> None:
    # Alone on both GPU types, 112 W; both on the second are 42. The row that is left empty goes.
    demand = demand_by_hand()
    rows = exchanged(demand, EpochRows.of([(0, 0, -1), (1, 1, -1)]), 0, 3)
    assert surrogate_w(demand, rows) == 42.0 and rows.num_rows == 1
    assert rows.gpu_type.tolist() == [1]


@pytest.mark.parametrize("seed", range(20))
def test_exchanges_never_raise_the_surrogate(seed: int) -> None:
    demand = of_problem("jobs=20,gpus=12,migration_w=10", seed)
    rng = np.random.default_rng(seed)
    rows = EpochRows.of([])
    for job in rng.permutation(20).tolist():
        rows = inserted(demand, rows, job)
    before = surrogate_w(demand, rows)
    for row in range(rows.num_rows):
        if row < rows.num_rows:
            rows = exchanged(demand, rows, row, 4)
    assert surrogate_w(demand, rows) <= before


def test_the_fewest_waiting_jobs_by_hand() -> None:
    # Three jobs on one GPU of the second type, two fit: one waits. On both types none waits.
    three = {
        "jobs_job_type": np.zeros(3, dtype=np.int64),
        "jobs_required_per_s": np.full(3, 2.0),
        "jobs_is_service": np.zeros(3, dtype=bool),
        "jobs_replicas": np.ones(3, dtype=np.int64),
        "jobs_price_j": np.zeros(3),
        "jobs_before": np.full(3, -2),
        "jobs_shortfall_w": None,
    }
    for counts, waiting in (((0, 1), 1.0), ((1, 1), 0.0)):
        demand = demand_by_hand(**three, counts=np.array(counts))
        program = pattern_program(demand)
        number, point = fewest_waiting(program, SearchLimits())
        assert number == waiting and point is not None
        relaxation = PatternRelaxation(program)
        plain = relaxation.solve()
        assert relaxation.with_waiting(plain, number).bound_mw >= plain.plain_mw
