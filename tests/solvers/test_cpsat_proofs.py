"""What ``cpsat`` may call proven: bounds that nobody proved, models of tight caps, objectives whose
times are wide."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import optbench as ob
from optbench.api import solve
from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.plugins.protocol import Run
from optbench.plugins.solvers.cpsat import CpSat
from tests.reference.brute_force import brute_force
from tests.reference.random_instances import tiny_instance
from tests.reference.second_agreement import drawn
from tests.reference.two_verifiers import instance_of
from tests.second_verifier.generator import SCALES


def cooler_at_work() -> Instance:
    """Two tasks of 10 s that draw 10 W on devices that rest at 1 kW; prices 0.2, 1.0, 0.1 USD/kWh
    from 0, 10, 20 s on."""
    m = ob.Model("cooler at work", horizon_s=60.0)
    gpu = m.pool("gpu", count=2, idle_w=1000.0)
    for name in ("a", "b"):
        m.task(name, modes=[m.mode(gpu, 10, 100.0)])
    m.tariff(price_usd_per_kwh=[0.2, 1.0, 0.1], times_s=[0, 10, 20])
    m.minimize(cost_usd=1.0)
    return m.build()


def test_nothing_is_proved_where_nothing_was_searched() -> None:
    """CP-SAT returns 0 as its bound of a search that has not begun; the least integer objective is
    far below that."""
    instance = cooler_at_work()
    # Rest over 60 s: 2 kW · (10 · 0.2 + 10 · 1.0 + 40 · 0.1) s USD/kWh = 32,000 / 3.6e6. Each task
    # spares 990 W for 10 s: at 10 s (1.0 USD/kWh) both spare 19,800 / 3.6e6, at 0 s a fifth of
    # that.
    start = Schedule.of(instance, np.array([0, 0]), np.array([0, 0]))
    early, optimum = (32_000 - 3_960) / 3.6e6, (32_000 - 19_800) / 3.6e6
    unsearched = solve(instance, "cpsat", time_limit_s=1e-6, warm_start=start)
    assert isinstance(unsearched.bound, float) and unsearched.bound <= optimum * (1 + 1e-12)
    # A microsecond is mostly too short for CP-SAT's presolve, which may find something better, or
    # the optimum.
    assert isinstance(unsearched.objective, float) and optimum * (
        1 - 1e-12
    ) <= unsearched.objective <= early * (1 + 1e-12)
    assert unsearched.status == "feasible" or unsearched.objective == pytest.approx(optimum)
    found = solve(instance, "cpsat", time_limit_s=20, warm_start=start)
    assert found.status == "optimal" and found.objective == pytest.approx(optimum) == found.bound


def capped(seed: int) -> Instance:
    """Tasks that draw less than the rest they displace, under a cap and deadlines that few
    schedules keep."""
    rng = np.random.default_rng(seed)
    m = ob.Model(f"capped {seed}")
    pools = [
        m.pool(f"p{k}", int(rng.integers(1, 3)), idle_w=float(rng.choice([0, 10, 30, 100])))
        for k in range(2)
    ]
    for i in range(int(rng.integers(2, 4))):
        chosen = [
            m.mode(
                pools[rng.integers(2)],
                int(rng.integers(1, 4)),
                20.0,
                power_w=float(rng.choice([0, 2, 7.5, 20, 50])),
            )
            for _ in range(rng.integers(1, 4))
        ]
        due = int(rng.integers(1, 6)) if rng.random() < 0.5 else None
        m.task(f"t{i}", modes=chosen, deadline_s=due, hard=True)
    m.limit(power_w=float(sum(p.count * p.idle_w for p in m.pools) * rng.uniform(0.6, 1.3) + 0.1))
    m.minimize(makespan_s=1.0)
    return m.build()


@pytest.mark.parametrize(("lengths", "optimum"), [((5, 2), 2.0), ((5,), None)])
def test_a_mode_that_does_not_fit_before_the_end_makes_no_invalid_model(
    lengths: tuple[int, ...], optimum: float | None
) -> None:
    """An interval from the end of the task to the end of time had a negative length ("model
    invalid")."""
    m = ob.Model("slow and cool")
    gpu = m.pool("gpu", idle_w=10.0)
    m.task(modes=[m.mode(gpu, length, 10.0, power_w=2.0) for length in lengths])
    m.limit(power_w=30.0, makespan=3.0)
    m.minimize(makespan_s=1.0)
    result = solve(m.build(), "cpsat", time_limit_s=30, bound=False)
    assert (
        result.status == ("infeasible" if optimum is None else "optimal")
        and result.objective == optimum
    )


@pytest.mark.parametrize("seed", range(40))
def test_tight_caps_with_modes_that_draw_less_than_rest(seed: int) -> None:
    instance = capped(seed)
    best = brute_force(instance)
    run = Run(instance, time_limit_s=30.0)
    CpSat().solve(instance, run)
    assert run.proven_infeasible == (best is None)
    assert best is None or run.objective == pytest.approx(best.objective)


def finer(instance: Instance, factor: float) -> Instance:
    """The same instance in ticks that are shorter by a factor: where durations are whole, its
    optimum is the same."""
    tasks, tariffs = instance.tasks, instance.tariffs
    limits = {
        name: value * (factor if name == "makespan" else 1.0)
        for name, value in instance.limits.metric_max.items()
    }
    return replace(
        instance,
        tick_s=instance.tick_s / factor,
        horizon=None if instance.horizon is None else int(instance.horizon * factor),
        tasks=replace(tasks, release=tasks.release * int(factor), deadline=tasks.deadline * factor),
        tariffs=None if tariffs is None else replace(tariffs, times=tariffs.times * int(factor)),
        limits=replace(instance.limits, metric_max=limits),
    )


@pytest.mark.parametrize("seed", [2, 5, 7, 11, 14, 17, 20, 23])
def test_a_finished_search_of_ten_million_ticks_closes_the_gap(seed: int) -> None:
    """Sums of 1e8 ticks were scaled until coefficients were rounded to a few bits, or to none: gaps
    up to 28 %."""
    result = solve(finer(tiny_instance(seed), 1e7), "cpsat", time_limit_s=30, bound=False)
    assert result.status in ("optimal", "infeasible")
    if isinstance(result.objective, float) and isinstance(result.bound, float):
        assert result.objective - result.bound <= 1e-11 * result.objective + result.info.get(
            "scaling_error", 0.0
        )


def weights_of_no_scale() -> Instance:
    """Two devices, six tasks of 1e7 ticks and more, whose weights have no common measure."""
    m = ob.Model("weights", tick_s=1e-6)
    gpu = m.pool("gpu", count=2)
    for k in range(6):
        m.task(modes=[m.mode(gpu, 10.0 + k)], weight=float(np.pi**k))
    m.minimize(flow_time_s=1.0)
    return m.build()


def test_where_no_scale_is_exact_the_error_is_stated_and_small() -> None:
    result = solve(weights_of_no_scale(), "cpsat", time_limit_s=30, bound=False)
    assert isinstance(result.objective, float) and isinstance(result.bound, float)
    assert result.status == "optimal" and result.termination == "finished"
    error = result.info.get("scaling_error", 0.0)
    assert 0 <= result.objective - result.bound <= error + 2.0**-40 * result.objective
    assert error <= 1e-6 * result.objective


def test_a_known_bound_cuts_nothing_off_in_coarse_ticks() -> None:
    """Seed 118 of the second verifier at 1e9 ticks: the floor of a bound proved before left only
    sums above the optimum.
    """
    scale = next(scale for scale in SCALES if scale.name == "1e9 ticks")
    instance = instance_of(drawn(118, scale))
    result = ob.solve(instance, "cpsat", time_limit_s=5)
    assert isinstance(result.objective, tuple) and isinstance(result.bound, tuple)
    assert result.objective[2] == 1241666666.9 >= result.bound[2]
