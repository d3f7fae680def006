"""Fronts whose points are known by hand, or by brute force."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.errors import ParameterError, UnknownNameError
from optbench.fronts import front_search
from optbench.fronts.front_search import pareto
from optbench.fronts.points import Front, FrontProgress
from optbench.model.instance import Instance
from optbench.model.objective import Objective
from optbench.model.result import Result
from optbench.model.verify import verify
from tests.reference.brute_force import brute_force
from tests.reference.random_instances import tiny_instance


def one_task(
    *modes: tuple[float, float],
    idle_w: float = 0.0,
    others: int = 0,
    horizon_s: float | None = None,
) -> Instance:
    """One task with modes (seconds, joules) on a device that may idle, beside ``others`` that
    always do.
    """
    m = ob.Model("one task", horizon_s=horizon_s)
    gpu = m.pool("gpu", idle_w=idle_w)
    if others:
        m.pool("others", count=others, idle_w=idle_w)
    m.task("a", modes=[m.mode(gpu, time_s, energy_j) for time_s, energy_j in modes])
    m.minimize(energy_j=1.0)
    return m.build()


def xy(front: Front) -> list[tuple[float, float]]:
    return [(point.x, point.y) for point in front.points]


def test_a_point_that_no_weights_reach() -> None:
    # (10, 100), (15, 90), (20, 20): the line from the first to the last is at 60 when x is 15,
    # below 90. With weights (w, 1), the middle costs 15 w + 90, the ends 10 w + 100 and 20 w + 20:
    # it beats the first for w < 2, the last for w > 14.
    instance = one_task((10, 100), (15, 90), (20, 20))
    front = pareto(instance, points=3, time_limit_s=5)
    assert xy(front) == [(10, 100), (15, 90), (20, 20)]
    assert front.proven == 3 and all(point.efficient for point in front.points)
    reached = set()
    for weight in np.geomspace(0.01, 1000, 60).tolist():
        result = ob.solve(
            instance.with_objective(Objective.weighted({"makespan_s": weight, "energy_j": 1.0})),
            time_limit_s=5,
        )
        reached.add((result.metrics["makespan_s"], result.metrics["energy_j"]))
    assert reached == {(10, 100), (20, 20)}


def test_another_solver_draws_the_same_front() -> None:
    instance = one_task((10, 100), (15, 90), (20, 20), idle_w=1, others=2)
    by_cpsat, by_highs = (
        pareto(instance, solver, points=3, time_limit_s=20) for solver in ("cpsat", "highs")
    )
    assert by_highs.solver == "highs" and by_highs.proven == 3
    assert xy(by_cpsat) == pytest.approx(np.asarray(xy(by_highs)))


def test_with_rest_until_completion_the_front_collapses() -> None:
    # Fast: 10 s, 1000 J; slow: 20 s, 600 J; three others idle at 20 W. Until completion the fast
    # mode costs 1000 + 10 * 60 = 1600 J, the slow one 600 + 20 * 60 = 1800 J: one point. With a
    # horizon of 20 s everything rests that long: fast 1000 + 20 * 60 + 10 * 20 (its own device,
    # once done) = 2400 J, slow 600 + 20 * 60 = 1800 J.
    instance = one_task((10, 1000), (20, 600), idle_w=20, others=3)
    collapsed = pareto(instance, points=4, time_limit_s=5, horizon_s="completion")
    assert xy(collapsed) == [(10, 1600)]
    assert (collapsed.horizon_s, collapsed.horizon_from) == (None, "completion")
    front = pareto(instance, points=2, time_limit_s=5)
    assert xy(front) == [(10, 2400), (20, 1800)]
    assert (front.horizon_s, front.horizon_from, front.rest_energy) == (
        20,
        "cheapest_modes",
        "idle",
    )
    # Asleep (0 W, as no sleeping power is declared) only the modes' own energy is left.
    assert xy(pareto(instance, points=2, time_limit_s=5, asleep=True)) == [(10, 1000), (20, 600)]


def test_the_constant_is_what_no_schedule_avoids() -> None:
    front = pareto(one_task((10, 1000), (20, 600), idle_w=20, others=3), points=2, time_limit_s=5)
    assert front.constant == pytest.approx(1800) and front.constant <= 1800
    assert [point.gap_above for point in front.points] == [0.0, 0.0]


def test_more_points_are_looked_for_where_limits_meet_the_same_one() -> None:
    # Limits 10, 40, 70, 100: nothing between 10 and 100 but the modes of 12 and 14 s, which are
    # found on the way.
    front = pareto(one_task((10, 100), (12, 90), (14, 80), (100, 20)), points=4, time_limit_s=5)
    assert xy(front) == [(10, 100), (12, 90), (14, 80), (100, 20)]


def priced(usd_per_j: float) -> Instance:
    """One task that takes 10, 15 or 20 s with 100, 90 or 20 J, at this price."""
    m = ob.Model("priced", horizon_s=200)
    gpu = m.pool("gpu")
    m.tariff(price_usd_per_kwh=[3.6e6 * usd_per_j])
    m.task("a", modes=[m.mode(gpu, 10, 100), m.mode(gpu, 15, 90), m.mode(gpu, 20, 20)])
    m.minimize(cost_usd=1.0)
    return m.build()


@pytest.mark.parametrize("usd_per_j", [1.0, 1e-9, 1e-18])
@pytest.mark.parametrize(("x", "y"), [("cost_usd", "flow_time_s"), ("makespan_s", "cost_usd")])
def test_fronts_are_the_same_at_every_magnitude(usd_per_j: float, x: str, y: str) -> None:
    """Below 1e-9 USD every point was as good as every other, and an end of the front was lost."""
    front = pareto(priced(usd_per_j), x=x, y=y, points=3, time_limit_s=5)
    cost = [100 * usd_per_j, 90 * usd_per_j, 20 * usd_per_j]
    points = list(zip([10.0, 15.0, 20.0], cost, strict=True))
    expected = points if y == "cost_usd" else [(b, a) for a, b in reversed(points)]
    assert np.asarray(xy(front)) == pytest.approx(np.asarray(expected), rel=1e-9, abs=0)
    assert front.proven == 3 and all(point.efficient for point in front.points)


def test_a_front_with_fewer_points_than_asked_for_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps between costs were halved for ever (464 searches in 30 s): the least cost with less
    time settles a step.
    """
    calls = []

    def counted(*args: Any, **kwargs: Any) -> Result:
        calls.append(args)
        return ob.solve(*args, **kwargs)

    monkeypatch.setattr(front_search, "solve", counted)
    front = pareto(priced(1e-3), x="cost_usd", y="flow_time_s", points=10, time_limit_s=5)
    assert [point.y for point in front.points] == [20, 15, 10] and front.termination == "finished"
    assert len(calls) <= 30
    # Proven between the points too: what is left open is what a proof leaves open of each step.
    assert front.undecided_share < 1e-5


@pytest.mark.parametrize("usd_per_j", [1.0, 1e-9, 1e-15])
def test_levels_are_held_at_every_magnitude(usd_per_j: float) -> None:
    """Least cost, then least time at it: at 8e-8 USD the second level gave 1 to 39 % of the first
    away.
    """
    m = ob.Model("levels", horizon_s=200)
    gpu = m.pool("gpu")
    m.tariff(price_usd_per_kwh=[3.6e6 * usd_per_j])
    for _ in range(2):
        m.task(modes=[m.mode(gpu, 10, 80.4), m.mode(gpu, 20, 80.0)])
    m.minimize_in_order("cost_usd", "makespan_s")
    result = ob.solve(m.build(), time_limit_s=20)
    assert result.status == "optimal"
    assert result.objective == pytest.approx((160.0 * usd_per_j, 40.0), rel=1e-9, abs=0)


@pytest.mark.parametrize("seed", [s for s in range(60) if tiny_instance(s).num_tasks >= 3][:12])
def test_points_and_floor_against_brute_force(seed: int) -> None:
    instance = tiny_instance(seed)
    front = pareto(
        instance, x="makespan", y="energy_j", points=3, time_limit_s=10, horizon_s="completion"
    )
    energy = replace(instance, horizon=None, objective=Objective.weighted({"energy_j": 1.0}))
    if brute_force(energy) is None:
        assert front.infeasible and front.points == ()
        return
    assert front.proven == len(front.points) > 0
    for point in front.points:
        best = brute_force(energy.with_limits(makespan=point.limit))
        assert best is not None and point.y == pytest.approx(best.objective, rel=1e-6)
        assert point.schedule is not None and verify(energy, point.schedule).feasible
    for limit, low in front.floor:
        best = brute_force(energy.with_limits(makespan=limit))
        assert best is None or low <= best.objective * (1 + 1e-9)


def test_progress_names_point_and_limit() -> None:
    seen: list[FrontProgress] = []
    pareto(
        one_task((10, 100), (15, 90), (20, 20)), points=3, time_limit_s=5, on_progress=seen.append
    )
    done = [(p.number, p.points, p.limit, p.objective) for p in seen if p.finished]
    assert done == [(1, 3, 10, 100), (2, 3, None, 20), (3, 3, 15, 90)]


def test_a_stop_keeps_what_was_found() -> None:
    stop = threading.Event()

    def after_the_first_point(progress: FrontProgress) -> None:
        if progress.finished:
            stop.set()

    instance = one_task((10, 100), (15, 90), (20, 20))
    front = pareto(instance, points=3, time_limit_s=5, on_progress=after_the_first_point, stop=stop)
    assert front.termination == "interrupted"
    assert xy(front)[0] == (10, 100) and len(front.points) < 3


def test_an_infeasible_instance_has_no_points() -> None:
    m = ob.Model("late")
    gpu = m.pool("gpu")
    m.task("a", modes=[m.mode(gpu, 10, 100)], deadline_s=5)
    m.minimize(energy_j=1.0)
    front = pareto(m.build(), points=3, time_limit_s=5)
    assert front.infeasible and front.points == () and front.undecided == 0


@pytest.mark.parametrize(
    ("options", "culprit"),
    [
        ({"x": "makspan_s"}, "makspan_s"),
        ({"x": "energy_j"}, "energy_j and energy_j"),
        ({"x": "makespan", "y": "makespan_s"}, "makespan and makespan_s"),
        ({"points": 1}, "points is 1"),
        ({"time_limit_s": 0}, "time_limit_s is 0"),
        ({"horizon_s": -3}, "horizon_s is -3"),
        ({"horizon_s": "never"}, "'never'"),
    ],
)
def test_refusals(options: dict[str, object], culprit: str) -> None:
    with pytest.raises(ParameterError, match=culprit):
        pareto(one_task((10, 100)), **options)  # type: ignore[arg-type]


def test_an_unknown_solver_is_named() -> None:
    with pytest.raises(UnknownNameError, match="'cpsta'"):
        pareto(one_task((10, 100)), "cpsta")
