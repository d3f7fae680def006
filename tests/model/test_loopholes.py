"""What once earned a schedule more than it did (faults 2, 4 to 7 and 24 of issue 11): each is named
now, or paid for.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import optbench as ob
from optbench.errors import ModelError
from optbench.model.instance import Instance
from optbench.model.metrics import power_trace
from optbench.model.objective import Objective
from optbench.model.schedule import Schedule
from optbench.model.streams import with_stream
from optbench.model.timegrid import HORIZON_TICKS
from optbench.model.validate import validate
from optbench.model.verify import Verdict, verify


def named(verdict: Verdict) -> list[str]:
    return [violation.constraint for violation in verdict.violations]


def rows(*segments: tuple[int, int, int, int]) -> Schedule:
    return Schedule(*np.array(segments, dtype=np.int64).reshape(-1, 4).T)


def priced() -> Instance:
    """1 kWh in an hour, for 0.10 in the first hour and 300 from then on."""
    m = ob.Model(tick_s=3600.0)
    m.task(modes=[m.mode(m.pool("gpu"), time_s=3600, energy_j=3.6e6)])
    m.tariff(price_usd_per_kwh=[0.1, 300.0], every_s=3600)
    m.minimize(cost_usd=1.0)
    return m.build()


@pytest.mark.parametrize("start", [-1, -5])
def test_a_start_before_time_0_is_named_and_read_at_no_last_price(start: int) -> None:
    """Fault 2: at −1e-10 s the tariff was read at its period −1, and the cost was negative."""
    verdict = verify(priced(), Schedule.of(priced(), [0], [start]))
    assert named(verdict) == ["release"] and verdict.violations[0].amount == -start
    assert 0 <= verdict.metrics["cost_usd"] <= 0.1


def sliced(pieces: int) -> tuple[Instance, Schedule]:
    """Two tasks of 100 W side by side under a cap of 100 W, each in so many pieces of a tick."""
    m = ob.Model(tick_s=1e-9, preemptive=True)
    gpu = m.pool("gpu", count=2)
    for _ in range(2):
        m.task(modes=[m.mode(gpu, time_s=pieces * 1e-9, power_w=100)])
    m.limit(power_w=100)
    m.minimize(makespan=1.0)
    start = np.tile(np.arange(pieces), 2)
    task = np.repeat([0, 1], pieces)
    return m.build(), Schedule(task, np.zeros(2 * pieces, dtype=np.int64), start, start + 1)


def test_a_cap_holds_however_thin_the_slices_are() -> None:
    """Fault 4: every slice lost the tolerance at its end, and 120,000 of them drew 0 W."""
    verdict = verify(*sliced(3000))
    assert named(verdict) == ["power_cap"] and verdict.metrics["peak_power_w"] == 200
    assert "draws 200 W at 0 s, the cap is 100 W" in verdict.violations[0].message


def test_slices_one_after_the_other_keep_the_cap() -> None:
    instance, schedule = sliced(500)
    start = np.concatenate((2 * np.arange(500), 2 * np.arange(500) + 1))
    verdict = verify(instance, replace(schedule, start=start, end=start + 1))
    assert verdict.feasible and verdict.metrics["peak_power_w"] == 100


def tiny_work() -> Instance:
    """1e-10 units, of 1e14 J and 1,000 s each: 10,000 J in 100 ns."""
    m = ob.Model(time="seconds", preemptive=True)
    m.task(units=1e-10, modes=[m.mode(m.pool("gpu"), time_s=1000.0, energy_j=1e14)])
    m.minimize(energy_j=1.0)
    return m.build()


@pytest.mark.parametrize(
    ("segments", "constraint"),
    [
        ([(0, 0, 0, 50), (0, 0, 60, 109)], "assignment"),
        ([(0, 0, 0, 1), (0, 0, 5, 6)], "assignment"),
        ([(0, 0, 0, 100), (0, 0, 200, 200)], "duration"),
        ([(0, 0, 0, 0), (0, 0, 5, 5)], "duration"),
    ],
)
def test_small_work_has_to_be_done_too(
    segments: list[tuple[int, int, int, int]], constraint: str
) -> None:
    """Fault 5: a task of two segments was done to within 1e-9 units, all of this one and more."""
    assert constraint in named(verify(tiny_work(), rows(*segments)))


def test_small_work_costs_what_it_costs() -> None:
    halves = verify(tiny_work(), rows((0, 0, 0, 50), (0, 0, 60, 110)))
    assert halves.feasible and halves.objective == pytest.approx(1e4, rel=1e-12)
    twice = verify(tiny_work(), rows((0, 0, 0, 100), (0, 0, 200, 300)))
    assert twice.feasible and twice.objective == pytest.approx(2e4, rel=1e-12), (
        "work done twice is paid for twice"
    )


def in_no_time(is_open: bool) -> Instance:
    """Three tasks of 0 s and 5 J, released at 1, 2 and 3."""
    m = ob.Model(time="seconds", horizon_s=10.0)
    m.tasks(
        [1.0, 1.0, 1.0],
        modes=[m.mode(m.pool("gpu", idle_w=1.0), time_s=0.0, energy_j=5.0)],
        release_s=[1.0, 2.0, 3.0],
    )
    m.minimize(energy_j=1.0)
    made = with_stream(m.build(), opens=0 if is_open else None)
    return made.with_objective(Objective.weighted({"j_per_unit": 1.0})) if is_open else made


@pytest.mark.parametrize("is_open", [False, True])
def test_work_in_no_time_is_feasible_and_so_is_fcfs_on_it(is_open: bool) -> None:
    """Fault 6: 0/0 in ``j_per_unit_logged`` made it infeasible without a violation, and ``fcfs``
    died of an IndexError.
    """
    instance = in_no_time(is_open)
    at = instance.tasks.release
    verdict = verify(instance, Schedule.of(instance, [0, 0, 0], at))
    assert verdict.feasible and verdict.metrics["energy_j"] == pytest.approx(25.0)
    assert verdict.metrics["j_per_unit_logged"] == pytest.approx(25.0 / 3)
    result = ob.solve(instance, "fcfs", bound=False)
    assert result.verified and result.metrics["energy_j"] == pytest.approx(25.0)


def test_without_any_work_there_is_a_named_violation() -> None:
    verdict = verify(in_no_time(is_open=True), rows())
    assert not verdict.feasible and named(verdict) == ["assignment"]


def opens_late() -> Instance:
    """A day of work at 100 W from tick 0 on, on one of 3 devices of 10 W at rest; watched from 10
    to 20.
    """
    m = ob.Model(horizon_s=20, preemptive=True)
    gpu = m.pool("gpu", count=3, idle_w=10)
    m.tasks([12.0, 30.0], kind=m.kind(modes=[m.mode(gpu, time_s=1, energy_j=100)]))
    m.minimize(energy_j=1.0)
    return with_stream(m.build(), opens=10).with_objective(Objective.weighted({"j_per_unit": 1.0}))


def test_work_before_a_stream_opens_saves_no_rest() -> None:
    """Fault 7: devices at work before 10 reduced a rest that is paid from 10 on only, down to
    −89,000 J.
    """
    instance = opens_late()
    early = verify(instance, rows((0, 0, 0, 9)))
    assert early.feasible and early.metrics["rest_energy_j"] == 3 * 10 * 10
    assert early.metrics["energy_j"] == 300 + 900
    # From 0 to 12, and from 5 to 20: 2 and 10 device-seconds of the 30 after the opening are at
    # work.
    across = rows((0, 0, 0, 12), (1, 0, 5, 20))
    verdict = verify(instance, across)
    assert verdict.feasible and verdict.metrics["rest_energy_j"] == 10 * (30 - 2 - 10)
    for schedule in (rows((0, 0, 0, 9)), across):
        trace, energy_j = (
            power_trace(instance, schedule),
            verify(instance, schedule).metrics["energy_j"],
        )
        assert (trace.rest_w >= 0).all() and trace.energy_j(instance.tick_s) == pytest.approx(
            energy_j, rel=1e-12
        )


def test_full_pools_before_the_opening_leave_no_negative_rest() -> None:
    instance = opens_late()
    full = rows((0, 0, 0, 10), (1, 0, 0, 10))
    both = verify(instance, full).metrics
    assert both["rest_energy_j"] == 300 and both["energy_j"] == 2300


def sender_of_data(j_per_gb: float = 1e6) -> Instance:
    """a runs on x or y and sends 1 GB to b on y, at 1e6 J from x to y: together on y it costs
    nothing, but a is slow there.
    """
    m = ob.Model(time="seconds", preemptive=True)
    x, y = m.pool("x"), m.pool("y")
    m.link(x, y, energy_j_per_gb=j_per_gb)
    a = m.task("a", modes=[m.mode(x, time_s=1, energy_j=10), m.mode(y, time_s=100, energy_j=1000)])
    m.task("b", modes=[m.mode(y, time_s=1, energy_j=10)], data_gb={a: 1.0})
    m.minimize(energy_j=1.0)
    return m.build()


def test_a_sliver_elsewhere_makes_no_transfer_free() -> None:
    """Fault 24: all of a on x but for the last billionth, which stands on y, from where nothing has
    to be sent.
    """
    instance, s = sender_of_data(), 10**9
    whole = verify(instance, rows((0, 0, 0, s), (1, 2, s, 2 * s)))
    assert whole.feasible and whole.objective == 1e6 + 20
    sliver = verify(instance, rows((0, 0, 0, s - 1), (0, 1, s, s + 100), (1, 2, 2 * s, 3 * s)))
    assert named(sliver) == ["one_pool"]
    assert "task a sends or receives data, and goes from x to y" in sliver.violations[0].message
    without_data = replace(instance, edges=replace(instance.edges, data_gb=np.zeros(1)))
    assert verify(
        without_data, rows((0, 0, 0, s - 1), (0, 1, s, s + 100), (1, 2, 2 * s, 3 * s))
    ).feasible


def lamps(cap_w: float, power_w: float = 0.1, count: int = 3) -> Verdict:
    """So many tasks of so many watts at once."""
    m = ob.Model()
    m.tasks(np.ones(count), modes=[m.mode(m.pool("lamp", count=count), time_s=1, power_w=power_w)])
    m.limit(power_w=cap_w)
    m.minimize(makespan=1.0)
    instance = m.build()
    return verify(instance, Schedule.of(instance, [0] * count, [0] * count))


def test_three_tenths_of_a_watt_keep_a_cap_of_three_tenths() -> None:
    verdict = lamps(0.3)
    assert (
        0.1 + 0.1 + 0.1 > 0.3
        and verdict.feasible
        and verdict.metrics["peak_power_w"] == 0.30000000000000004
    )


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_more_than_the_relative_tolerance_breaks_a_cap_at_any_scale(scale: float) -> None:
    step = 2.0**-40
    assert lamps(0.3 * scale * (1 - 0.99 * step), 0.1 * scale).feasible
    assert named(lamps(0.3 * scale * (1 - 1.01 * step), 0.1 * scale)) == ["power_cap"]


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_limits_on_sums_have_the_same_tolerance(scale: float) -> None:
    m = ob.Model()
    m.tasks(np.ones(10), modes=[m.mode(m.pool("gpu", count=10), time_s=1, energy_j=0.1 * scale)])
    m.minimize(makespan=1.0)
    instance = m.build()
    at_once = Schedule.of(instance, [0] * 10, [0] * 10)
    assert verify(instance.with_limits(energy_j=scale * (1 - 0.99 * 2.0**-40)), at_once).feasible
    assert named(verify(instance.with_limits(energy_j=scale * (1 - 1.01 * 2.0**-40)), at_once)) == [
        "limit:energy_j"
    ]


@pytest.mark.parametrize(
    ("name", "limit", "kept"),
    [
        ("makespan", 1e15, True), ("makespan", 1e15 + 0.5, True), ("makespan_s", 1e6, True),
        ("makespan", 1e15 - 1, False), ("makespan", 1e15 - 0.125, False),
        ("makespan_s", 1e6 - 1e-9, False),
    ],
)  # fmt: skip
def test_limits_on_the_makespan_are_exact(name: str, limit: float, kept: bool) -> None:
    """1e15 ticks, of which 2^-40 are 909. Between two ticks a limit is rounded down."""
    m = ob.Model(time="seconds")
    m.task(modes=[m.mode(m.pool("gpu"), time_s=1.0)])
    m.minimize(makespan_s=1.0)
    instance = m.build()
    late = Schedule.of(instance, [0], [10**15 - 10**9])
    assert named(verify(instance.with_limits(**{name: limit}), late)) == (
        [] if kept else [f"limit:{name}"]
    )


def test_2_to_the_52_is_a_horizon_of_every_instance() -> None:
    m = ob.Model()
    m.task(modes=[m.mode(m.pool("gpu"), time_s=5)])
    m.minimize(makespan=1.0)
    instance = m.build()
    assert instance.horizon is None
    last = verify(instance, Schedule.of(instance, [0], [HORIZON_TICKS - 5]))
    assert last.feasible and last.objective == 2.0**52
    beyond = verify(instance, Schedule.of(instance, [0], [HORIZON_TICKS - 4]))
    assert named(beyond) == ["horizon"] and beyond.violations[0].amount == 1
    with pytest.raises(
        ModelError, match=r"horizon is 4503599627370497; it must be at most 2\^52 ticks"
    ):
        validate(replace(instance, horizon=HORIZON_TICKS + 1))


def test_columns_of_small_or_unsigned_integers_do_not_wrap_around() -> None:
    m = ob.Model()
    m.tasks(np.ones(2), modes=[m.mode(m.pool("gpu"), time_s=200)])
    m.minimize(makespan=1.0)
    instance = m.build()
    good = Schedule.of(instance, [0, 0], [0, 200])
    for dtype in (np.uint16, np.uint64, np.int32):
        small = Schedule(
            *(getattr(good, name).astype(dtype) for name in ("task", "mode", "start", "end"))
        )
        assert verify(instance, small).metrics == verify(instance, good).metrics
        swapped = replace(small, start=small.end, end=small.start)
        assert "duration" in named(verify(instance, swapped))


def test_a_fraction_of_a_tick_is_no_start() -> None:
    instance = sender_of_data()
    assert Schedule.of(instance, [0, 2], [0.0, 5e9]).start.tolist() == [0, 5 * 10**9]
    with pytest.raises(ModelError, match=r"start\[1\] is 1\.5; it must be whole ticks"):
        Schedule.of(instance, [0, 2], [0.0, 1.5])
    with pytest.raises(ModelError, match=r"start\[0\] is nan"), np.errstate(invalid="ignore"):
        Schedule.of(instance, [0, 2], [np.nan, 0.0])
