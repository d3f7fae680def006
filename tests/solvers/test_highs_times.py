"""HiGHS with many ticks: memory, sizes, and bounds that hold."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import optbench as ob
from optbench.errors import UnsupportedError
from optbench.plugins.solvers.highs import Highs
from optbench.views.milp import formulate
from optbench.views.milp.occupancy_rows import busy_ticks
from tests.reference.second_agreement import drawn
from tests.reference.two_verifiers import instance_of
from tests.second_verifier.generator import SCALES
from tests.solvers.highs_shops import solved

from ..reference.random_instances import in_fine_ticks, tiny_instance


@pytest.mark.parametrize("priced", [False, True])
def test_a_billion_ticks_in_which_nothing_runs_take_no_memory(priced: bool) -> None:
    """Four tasks of no length released at 1e9 ticks: one column per task, and rows over no tick (15
    GB before).
    """
    m = ob.Model("zero", tick_s=1e-9)
    gpu = m.pool("gpu", 2, idle_w=3.0)
    for _ in range(4):
        m.task(modes=[m.mode(gpu, 0.0, 5.0, power_w=1.0)], release_s=1.0)
    m.limit(power_w=50.0)
    if priced:
        m.tariff(price_usd_per_kwh=[1.0, 2.0], times_s=[0, 0.5])
        m.minimize(cost_usd=1.0)
    else:
        m.minimize(energy_j=1.0)
    instance = m.build()
    tracemalloc.start()
    run = solved(instance, Highs("time_indexed", first=False))
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()
    # 4 · 5 J and 6 W for a second; at 2 USD/kWh from half a second on, 20 J there and 3 J at each
    # price.
    assert run.objective == pytest.approx((20 * 2 + 3 + 3 * 2) / 3.6e6 if priced else 26.0)


def test_ticks_are_counted_before_anything_is_built() -> None:
    """A tariff that varies, paid until completion, has one column per tick between the critical
    path and the end.
    """
    m = ob.Model("long", tick_s=1e-6)
    gpu = m.pool("gpu", idle_w=3.0)
    for _ in range(2):
        m.task(modes=[m.mode(gpu, 100.0, 5.0)])
    m.tariff(price_usd_per_kwh=[1.0, 2.0], times_s=[0, 50])
    m.minimize(cost_usd=1.0)
    with pytest.raises(UnsupportedError, match="time_indexed MILP of"):
        formulate(m.build())


def test_busy_ticks_by_hand() -> None:
    # [5, 8) and [7, 9) join to 5..8; [20, 22) follows; the empty range counts nothing.
    begin, ticks = busy_ticks(np.array([20, 5, 7, 3]), np.array([2, 3, 2, 0]))
    assert ticks.tolist() == [5, 6, 7, 8, 20, 21]
    assert begin.tolist()[:3] == [4, 0, 2]


@pytest.mark.parametrize("factor", [1e9, 1e12])
def test_bounds_hold_in_fine_ticks(factor: float) -> None:
    """Seed 29 in ticks of 1e-9: with times of 1e10 in its rows HiGHS proved 11.25 where the optimum
    is 10.21.
    """
    for seed in (29, 87, 124):
        both = in_fine_ticks(tiny_instance(seed), factor)
        if both is None or "tariffs" in both[1].features:
            continue
        best, run = (
            solved(both[0], Highs("disjunctive", first=False)),
            solved(both[1], Highs("disjunctive", first=False)),
        )
        assert run.objective == pytest.approx(best.objective, rel=1e-7)
        assert run.bound is not None and best.objective is not None
        assert best.objective * (1 - 1e-6) <= run.bound <= best.objective * (1 + 1e-9)


def test_limits_of_tiny_numbers_hold() -> None:
    """Seed 671 of the second verifier: a level held at 5.9e-10 g is below what HiGHS sees
    of a row.
    """
    scale = next(scale for scale in SCALES if scale.name == "1 tick")
    result = ob.solve(instance_of(drawn(671, scale)), "highs", time_limit_s=10)
    assert isinstance(result.objective, tuple) and result.objective[2] == pytest.approx(
        7.35133, rel=1e-9
    )
