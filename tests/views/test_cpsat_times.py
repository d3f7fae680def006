"""The CP view with many ticks: coarser ticks that lose nothing, and coarse relaxations whose bounds
hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from ortools.sat.python import cp_model

import optbench as ob
from optbench.api import solve
from optbench.errors import UnsupportedError
from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.model.verify import verify
from optbench.views.cpsat import build, cpsat_view, draft
from optbench.views.cpsat.grain import in_grains
from tests.reference.brute_force import brute_force
from tests.reference.random_instances import in_fine_ticks, tiny_instance, tiny_with_ways
from tests.solvers.test_cpsat_proofs import capped


def shop(tick_s: float, longer_s: float = 0.0) -> Instance:
    """Jobs of two operations on two machines, 3 s then 2 s: 11 s; the last job's second one may
    take a little longer."""
    m = ob.Model("shop", tick_s=tick_s)
    first, second = m.pool("m0"), m.pool("m1")
    for k in range(3):
        m.task(
            modes=[m.mode(second, 2.0 + longer_s * (k == 2))],
            after=m.task(modes=[m.mode(first, 3.0)]),
        )
    m.minimize(makespan_s=1.0)
    return m.build()


def test_whole_seconds_in_nanoseconds_are_seconds_again() -> None:
    coarse, grain = in_grains(shop(1e-9))
    assert grain == 10**9 and coarse.tick_s == 1.0
    assert coarse.pairs.duration.tolist() == [3, 2, 3, 2, 3, 2]
    assert in_grains(shop(1e-9, longer_s=1e-9))[1] == 1
    result = solve(shop(1e-9), "cpsat", time_limit_s=20, bound=False)
    assert result.status == "optimal" and result.objective == pytest.approx(11.0)


@pytest.mark.parametrize("seed", range(24))
def test_fine_ticks_have_the_optimum_of_coarse_ones(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = in_fine_ticks(tiny_instance(seed))
    if both is None:
        return
    best = brute_force(both[0])
    for grains in (in_grains, lambda instance: (instance, 1)):
        if "tariffs" in both[1].features and (
            grains is not in_grains or in_grains(both[1])[1] == 1
        ):
            continue  # refused: see below
        monkeypatch.setattr(cpsat_view, "in_grains", grains)
        result = solve(both[1], "cpsat", time_limit_s=20, bound=False)
        if best is None:
            assert result.status == "infeasible"
        else:
            assert result.objective == pytest.approx(best.objective, rel=1e-6)
            assert isinstance(result.bound, float) and result.bound <= best.objective * (1 + 1e-9)


@pytest.mark.parametrize("make", [tiny_instance, tiny_with_ways, capped])
@pytest.mark.parametrize("exponent", [1, 2, 3])
def test_a_coarse_relaxation_holds_every_schedule(
    make: Callable[[int], Instance], exponent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most 2 to 8 ticks: the optimum is a solution of the model, and its bound is below it."""
    monkeypatch.setattr(draft, "MAX_TICKS_EXPONENT", exponent)
    monkeypatch.setattr(cpsat_view, "in_grains", lambda instance: (instance, 1))
    held = decoded = 0
    for seed in range(12):
        instance = make(seed)
        best = brute_force(instance)
        if "tariffs" in instance.features or best is None:
            continue
        made, solver = build(instance), cp_model.CpSolver()
        solver.parameters.num_workers = 1
        assert solver.solve(made.model) == cp_model.OPTIMAL
        assert made.reached(solver.value) <= best.objective * (1 + 1e-9)
        decoded += verify(instance, made.schedule(solver.value)).feasible
        made.hint(Schedule.of(instance, best.mode, best.start))
        solver.parameters.fix_variables_to_their_hinted_value = True
        assert solver.solve(made.model) == cp_model.OPTIMAL
        held += made.draft.coarse > 1
    assert held > 0 and decoded > 0


def test_times_near_the_horizon_of_every_instance() -> None:
    """Odd durations of 2^48 ticks: the bound loses no more than a few coarse ticks, the schedule is
    one of whole fine ticks."""
    m = ob.Model("long", tick_s=1e-9)
    gpu = m.pool("gpu", 2)
    for k in range(4):
        m.task(modes=[m.mode(gpu, 2.0**48 * 1e-9 * (1 + k / 7))])
    m.minimize(makespan_s=1.0)
    instance = m.build()
    result = solve(instance, "cpsat", time_limit_s=20, bound=False)
    # Two at a time: the longest with the shortest, (1 + 10/7) 2^48 against (8/7 + 9/7) 2^48: 17/7
    # both.
    assert result.objective == pytest.approx(17 / 7 * 2.0**48 * 1e-9, rel=1e-12)
    assert isinstance(result.objective, float) and isinstance(result.bound, float)
    assert result.objective * (1 - 1e-8) <= result.bound <= result.objective


def test_products_of_coefficients_stay_within_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seed 105 in ticks of 2e-14: with durations of 2^39 ticks the bound was 29.53, the optimum is
    27.66.
    """
    monkeypatch.setattr(cpsat_view, "in_grains", lambda instance: (instance, 1))
    both = in_fine_ticks(tiny_with_ways(105), 5e13)
    assert both is not None
    result = solve(both[1], "cpsat", time_limit_s=20, bound=False)
    assert result.objective == pytest.approx(27.65625, rel=1e-6)
    assert isinstance(result.bound, float) and result.bound <= 27.65625


def test_varying_prices_are_not_coarsened() -> None:
    m = ob.Model("priced", tick_s=1e-9)
    gpu = m.pool("gpu")
    for k in range(2):
        m.task(modes=[m.mode(gpu, 2.0**46 * 1e-9 + k * 1e-9, 5.0)])
    m.tariff(price_usd_per_kwh=[1.0, 2.0], times_s=[0, 50])
    m.minimize(cost_usd=1.0)
    with pytest.raises(UnsupportedError, match="prices that vary cannot be coarsened"):
        build(m.build())


def test_a_limit_on_a_sum_keeps_fine_ticks_where_prices_vary() -> None:
    m = ob.Model("priced", tick_s=1e-9)
    m.task(modes=[m.mode(m.pool("gpu"), 10.0, 5.0)])
    m.tariff(price_usd_per_kwh=[1.0, 2.0], times_s=[0, 5])
    m.minimize(cost_usd=1.0)
    instance = m.build()
    assert in_grains(instance)[1] == 5 * 10**9
    assert in_grains(instance.with_limits(flow_time_s=12.0))[1] == 1
    assert (
        in_grains(
            replace(instance, tasks=replace(instance.tasks, release=np.array([3], dtype=np.int64)))
        )[1]
        == 1
    )
