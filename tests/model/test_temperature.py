"""Cooled places: temperatures by hand, what is refused, files, and who leaves them out."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.bounds.auto import lower_bounds
from optbench.errors import ModelError, UnsupportedError
from optbench.model.cooling import Cooling
from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.model.temperature import can_run_alone, rise_c
from optbench.views.milp.choose import formulate

COOL: dict[str, float] = {
    "ambient_c": 20.0,
    "c_per_w": 0.5,
    "time_constant_s": 20.0,
    "limit_c": 80.0,
}


def warm(tasks: int = 2, horizon_s: float | None = None, **cooling: Any) -> Instance:
    """Tasks of 30 s at 100 W on two devices that idle at 10 W: alone they settle at 20 + 0.5 · 110
    = 75 °C, two at a time at 120 °C, none at 30 °C.
    """
    m = ob.Model("warm", horizon_s=horizon_s)
    node = m.place("node")
    gpu = m.pool("gpu", count=2, idle_w=10, at=node)
    for _ in range(tasks):
        m.task(modes=[m.mode(gpu, time_s=30, energy_j=3000, power_w=140)])
    m.minimize(makespan_s=1.0)
    m.cool(node, **(COOL | cooling))
    return m.build()


def peak(instance: Instance, starts: list[int]) -> float:
    found = ob.verify(instance, Schedule.of(instance, [0] * len(starts), starts)).metrics
    return found["peak_temperature_c"]


def test_a_temperature_by_hand() -> None:
    """From 20 °C towards 75 °C for 30 s, then back towards 30 °C; the second task heats on from
    there.
    """
    first = 75.0 - 55.0 * math.exp(-1.5)
    assert peak(warm(1), [0]) == pytest.approx(first, rel=1e-12)
    second = 75.0 - (75.0 - first) * math.exp(-1.5)
    assert peak(warm(), [0, 30]) == pytest.approx(second, rel=1e-12)
    cooled = 30.0 + (first - 30.0) * math.exp(-0.5)
    late = 75.0 - (75.0 - cooled) * math.exp(-1.5)
    assert peak(warm(), [0, 40]) == pytest.approx(late, rel=1e-12) and late < second


def test_power_is_that_of_the_energy_not_the_highest_one() -> None:
    """3000 J in 30 s are 100 W, whatever the mode draws at most."""
    assert rise_c(warm(), warm().cooling).tolist() == [[0.5 * (100.0 - 10.0)]]  # type: ignore[arg-type]


def test_two_at_a_time_break_the_limit_and_one_after_another_do_not() -> None:
    both = Schedule.of(warm(), [0, 0], [0, 0])
    (violation,) = ob.verify(warm(), both).violations
    # 120 − 100 e^(−1.5) = 97.7 °C at 30 s.
    assert violation.constraint == "temperature"
    assert violation.message.startswith("node reaches 97.68") and "at 30" in violation.message
    assert violation.amount == pytest.approx(40.0 - 100.0 * math.exp(-1.5), rel=1e-12)
    assert ob.verify(warm(), Schedule.of(warm(), [0, 0], [0, 30])).feasible


def test_a_short_burst_may_use_more_than_settles_within_the_limit() -> None:
    """With a time constant of 60 s, 30 s towards 120 °C reach 59.3 °C."""
    assert peak(warm(time_constant_s=60.0), [0, 0]) == pytest.approx(120 - 100 * math.exp(-0.5))
    assert ob.verify(warm(time_constant_s=60.0), Schedule.of(warm(), [0, 0], [0, 0])).feasible


def test_a_warm_start_counts_and_the_rest_until_the_horizon() -> None:
    """At rest the place moves from its 25 °C towards 30 °C; after 35 s, 20 are left of the
    horizon.
    """
    assert peak(warm(1, start_c=79.0), [0]) == 79.0
    reached = 75.0 - 55.0 * math.exp(-1.5)
    assert peak(warm(1, horizon_s=55), [5]) < reached + 4.0
    m = ob.Model("rest", horizon_s=40)
    m.task(modes=[m.mode(m.pool("gpu", idle_w=100), time_s=1, energy_j=0.0)])
    m.minimize(makespan_s=1.0)
    m.cool(**(COOL | {"c_per_w": 0.1}))
    # 1 s without power, then 39 s towards 30 °C.
    assert peak(m.build(), [0]) == pytest.approx(30.0 - 10.0 * math.exp(-39 / 20), rel=1e-12)


def test_no_metric_and_no_feature_without_cooling() -> None:
    plain = replace(warm(), cooling=None)
    verdict = ob.verify(plain, Schedule.of(plain, [0, 0], [0, 0]))
    assert verdict.feasible and "peak_temperature_c" not in verdict.metrics
    assert "cooling" in warm().features and "cooling" not in plain.features
    assert plain.hash != warm().hash


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"c_per_w": 0.0}, "c_per_w is 0.0; it must be a positive finite number"),
        ({"time_constant_s": -1.0}, "time_constant_s is -1.0; it must be a positive"),
        ({"ambient_c": math.nan}, "ambient_c is nan; it must be a finite number"),
        ({"start_c": 81.0}, "start_c is 81; it must be at most limit_c, 80"),
        ({"limit_c": 29.0}, "resting devices alone settle at 30 °C, above 29 °C"),
    ],
)
def test_bad_values_are_refused(change: dict[str, float], message: str) -> None:
    with pytest.raises(ModelError, match=message.replace("(", "\\(")):
        warm(**change)


def test_a_place_is_cooled_once_and_is_known() -> None:
    m = ob.Model("twice")
    m.task(modes=[m.mode(m.pool("gpu"), time_s=1)])
    m.minimize(makespan=1.0)
    m.cool(**COOL)
    m.cool(**COOL)
    with pytest.raises(ModelError, match="cooling of 'cluster' is given twice"):
        m.build()
    made = warm()
    assert made.cooling is not None
    far = replace(made, cooling=replace(made.cooling, place=np.array([7])))
    with pytest.raises(ModelError, match="place is 7; it must be a known place, 0 to 1"):
        ob.model.validate.validate(far)  # type: ignore[attr-defined]


def test_files_hold_it_bit_for_bit(tmp_path: Path) -> None:
    made, path = warm(limit_c=80.1), tmp_path / "warm.json"
    ob.write_instance(made, path)
    back = ob.read_instance(path)
    assert isinstance(back, Instance) and back.hash == made.hash
    assert isinstance(back.cooling, Cooling) and back.cooling.limit_c.tolist() == [80.1]
    plain = replace(made, cooling=None)
    ob.write_instance(plain, path)
    assert "cooling" not in path.read_text()


@pytest.mark.parametrize("solver", ["cpsat", "highs"])
def test_exact_solvers_refuse_it_by_name(solver: str) -> None:
    with pytest.raises(UnsupportedError, match="cooling"):
        ob.solve(warm(), solver, time_limit_s=1)
    with pytest.raises(UnsupportedError, match="expresses cooling"):
        formulate(warm())


def test_published_formats_refuse_it(tmp_path: Path) -> None:
    ob.write_instance(warm(), tmp_path / "warm.json")
    with pytest.raises(UnsupportedError, match="cooled places"):
        ob.convert(tmp_path / "warm.json", tmp_path / "warm.sm", to="psplib")


def test_bounds_leave_it_out_and_stay_bounds() -> None:
    """Without the limit both tasks end at 30 s; with it one has to wait."""
    bounds = lower_bounds(warm(), "auto", 2.0)
    assert bounds and max(bound.value for bound in bounds) == pytest.approx(30.0)


def test_which_modes_may_run_for_ever() -> None:
    assert can_run_alone(warm()).tolist() == [True]
    assert can_run_alone(warm(limit_c=74.0)).tolist() == [False]
    assert can_run_alone(replace(warm(), cooling=None)).tolist() == [True]
