"""Repair of decisions that are off by rounding: 1 µs or one tick mends them, and nothing beyond
that is touched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import optbench as ob
from optbench.model.instance import Floats, Instance, Ints
from optbench.model.repair import on_grid, reach_of, verified_or_repaired
from optbench.model.schedule import Schedule
from optbench.model.streams import with_stream
from optbench.model.verify import verify
from tests.model.test_metamorphic import in_fine_ticks, in_pieces, one_by_one
from tests.reference.random_instances import tiny_instance

US = 1000
# Sevenths of a second, on the grid one after the other.
SEVENTH = 142_857_143


def line(number: int = 4, **options: float) -> Instance:
    """So many tasks of a seventh of a second, each after the one before it, on one device; ticks of
    1 ns.
    """
    m = ob.Model(time="seconds", **options)  # type: ignore[arg-type]
    gpu, before = m.pool("gpu", idle_w=1.0), None
    for _ in range(number):
        task = m.task(
            modes=[m.mode(gpu, time_s=1 / 7, energy_j=10)], after=[] if before is None else before
        )
        before = task
    m.minimize(makespan_s=1.0)
    return m.build()


def in_seconds(instance: Instance, start_s: Floats, end_s: Floats) -> Schedule:
    """A decision as a file or a solver gives it: times in seconds, as floats."""
    n = len(start_s)
    return on_grid(
        np.arange(n),
        np.zeros(n),
        np.asarray(start_s) / instance.tick_s,
        np.asarray(end_s) / instance.tick_s,
    )


def test_floats_go_to_the_nearest_tick() -> None:
    schedule = on_grid([0.0, 1.0], [0, 0], [1.4999, 2.5001], [2e15 + 0.25, -0.4])
    assert (schedule.start.tolist(), schedule.end.tolist()) == ([1, 3], [2 * 10**15, 0])
    assert all(
        column.dtype == np.int64
        for column in (schedule.task, schedule.mode, schedule.start, schedule.end)
    )


@pytest.mark.parametrize(
    ("tick_s", "reach"),
    [(1e-9, 1000), (1e-7, 10), (1e-6, 1), (6e-7, 1), (3e-7, 3), (1e-3, 1), (3600.0, 1)],
)
def test_the_reach_is_a_microsecond_or_a_tick(tick_s: float, reach: int) -> None:
    assert reach_of(replace(line(), tick_s=tick_s)) == reach


def test_rounded_floats_are_repaired() -> None:
    """k / 7 s go to the nearest nanosecond: 428,571,429 of the third is 1 before it may begin,
    three times 142,857,143.
    """
    instance = line()
    times = np.arange(5) / 7
    given = in_seconds(instance, times[:-1], times[1:])
    assert [violation.constraint for violation in verify(instance, given).violations] == [
        "duration"
    ]
    found = verified_or_repaired(instance, given)
    assert found.verdict.feasible and found.schedule.start.tolist() == [
        k * SEVENTH for k in range(4)
    ]
    assert found.verdict.objective == pytest.approx(4 * SEVENTH * 1e-9, rel=1e-15)
    # Given: 0, 142857143, 285714286, 428571429, 571428571.
    assert (found.segments_moved, found.largest_move) == (1, 1)
    assert found.to_dict(instance) == {"segments": 1, "largest_move_s": 1e-9}


def test_what_is_feasible_is_left_alone() -> None:
    instance = line()
    given = Schedule.of(instance, [0] * 4, [k * 2 * SEVENTH + 5 for k in range(4)])
    found = verified_or_repaired(instance, given)
    assert found.schedule is given and found.verdict.feasible
    assert (found.segments_moved, found.largest_move, found.to_dict(instance)) == (0, 0, None)


def overlapping(by: int, number: int = 2) -> tuple[Instance, Schedule]:
    """Each begins so many ticks before the one in front of it ends."""
    instance = line(number)
    return instance, Schedule.of(
        instance, [0] * number, [k * (SEVENTH - by) for k in range(number)]
    )


@pytest.mark.parametrize(
    ("by", "mended"), [(1, True), (US, True), (US + 1, False), (10 * US, False)]
)
def test_a_microsecond_is_mended_and_no_more(by: int, mended: bool) -> None:
    instance, given = overlapping(by)
    found = verified_or_repaired(instance, given)
    assert found.verdict.feasible == mended
    if mended:
        assert (found.segments_moved, found.largest_move) == (1, by)
    else:
        assert (
            found.schedule is given
            and found.verdict == verify(instance, given)
            and found.segments_moved == 0
        )


def test_moves_that_add_up_beyond_the_reach_are_none() -> None:
    """Three tasks that each need 400 ns more: the last would have to move by 1.2 µs."""
    assert verified_or_repaired(*overlapping(400, number=3)).largest_move == 800
    instance, given = overlapping(400, number=4)
    assert not verified_or_repaired(instance, given).verdict.feasible


@pytest.mark.parametrize(
    ("tick_s", "by", "mended"), [(1.0, 1, True), (1.0, 2, False), (1e-6, 1, True), (1e-6, 2, False)]
)
def test_coarse_ticks_are_mended_by_one(tick_s: float, by: int, mended: bool) -> None:
    m = ob.Model(tick_s=tick_s)
    m.tasks(np.ones(2), modes=[m.mode(m.pool("gpu"), time_s=10 * tick_s)])
    m.minimize(makespan=1.0)
    instance = m.build()
    found = verified_or_repaired(instance, Schedule.of(instance, [0, 0], [0, 10 - by]))
    assert found.verdict.feasible == mended and found.largest_move == (by if mended else 0)


def test_a_start_before_time_0_and_an_end_after_the_horizon() -> None:
    """Of 2 tasks in exactly their time: −0.5 µs moves to 0; where the last ends 0.5 µs late,
    everything moves there earlier.
    """
    m = ob.Model(time="seconds", horizon_s=2.0)
    m.tasks(np.ones(2), modes=[m.mode(m.pool("gpu"), time_s=1.0)])
    m.minimize(makespan_s=1.0)
    instance, s = m.build(), 10**9
    early = verified_or_repaired(instance, Schedule.of(instance, [0, 0], [-500, s]))
    assert (
        early.verdict.feasible
        and early.schedule.start.tolist() == [0, s]
        and early.largest_move == 500
    )
    late = verified_or_repaired(instance, Schedule.of(instance, [0, 0], [500, s + 500]))
    assert late.verdict.feasible and late.schedule.end.tolist() == [s, 2 * s]
    assert (late.segments_moved, late.largest_move) == (2, 500)
    too_late = Schedule.of(instance, [0, 0], [0, s + 1001])
    assert not verified_or_repaired(instance, too_late).verdict.feasible


def test_releases_ways_in_and_data_are_waited_for() -> None:
    m = ob.Model(time="seconds")
    a, b = m.pool("a"), m.pool("b")
    m.link(a, b, bandwidth_gbit_s=8, latency_ms=1 / 7)
    first = m.task("first", modes=[m.mode(a, time_s=1.0)], release_s=1 / 3)
    m.task("second", modes=[m.mode(b, time_s=1.0)], data_gb={first: 1 / 9})
    m.minimize(makespan_s=1.0)
    instance = with_stream(m.build(), latency_s=[[1 / 7, 1 / 7]])
    begins = 1 / 3 + 1 / 7
    there = begins + 1.0 + 1 / 7000 + 1 / 9
    given = on_grid(
        [0, 1], [0, 1], np.array([begins, there]) * 1e9, np.array([begins, there]) * 1e9 + 1e9
    )
    found = verified_or_repaired(instance, given)
    assert {violation.constraint for violation in verify(instance, given).violations} == {
        "access",
        "transfer",
    }
    assert found.verdict.feasible and found.segments_moved == 2 and 0 < found.largest_move <= 3
    assert found.schedule.start[0] == 333_333_334 + 142_857_143


def test_the_last_part_makes_up_for_what_the_others_fall_short_of() -> None:
    """Thirds in modes of 1 s and of 3 s, rounded down: one tick of the last is missing."""
    m = ob.Model(time="seconds", preemptive=True)
    gpu = m.pool("gpu")
    m.task(modes=[m.mode(gpu, time_s=1.0, energy_j=3), m.mode(gpu, time_s=3.0, energy_j=6)])
    m.minimize(energy_j=1.0)
    instance, third = m.build(), 333_333_333
    given = Schedule(
        *np.array([[0, 0, 0, third], [0, 0, 10**9, 10**9 + third], [0, 1, 2 * 10**9, 3 * 10**9]]).T
    )
    assert [violation.constraint for violation in verify(instance, given).violations] == [
        "assignment"
    ]
    found = verified_or_repaired(instance, given)
    # 2/3 of a tick of 1 s are missing: 2 ticks of 3 s.
    assert found.verdict.feasible and found.schedule.end.tolist() == [
        third,
        10**9 + third,
        3 * 10**9 + 2,
    ]
    assert (found.segments_moved, found.largest_move) == (1, 2)
    short = replace(given, end=given.end - np.array([0, 0, 3 * US]))
    assert not verified_or_repaired(instance, short).verdict.feasible


def coarse(preemptive: bool = False, **options: Any) -> Instance:
    """Two tasks of 10 ticks of 1 s on two devices: the reach is one tick."""
    m = ob.Model(preemptive=preemptive, **options)
    m.tasks(np.ones(2), modes=[m.mode(m.pool("gpu", count=2), time_s=10)])
    m.minimize(makespan=1.0)
    return m.build()


def test_what_the_horizon_cuts_off_keeps_its_length() -> None:
    # The horizon at 20 cuts the second task off after 5 of its 10 ticks; the first lacks one tick.
    instance = with_stream(coarse(horizon_s=20), opens=0)
    given = Schedule(*np.array([[0, 0, 0, 9], [1, 0, 15, 20]]).T)
    found = verified_or_repaired(instance, given)
    assert found.verdict.feasible and found.schedule.end.tolist() == [10, 20]
    assert (found.segments_moved, found.largest_move) == (1, 1)


def test_parts_of_work_that_may_stay_undone_are_not_made_longer() -> None:
    # The first task is half done at the horizon; the second starts a tick before time 0.
    instance = with_stream(coarse(preemptive=True, horizon_s=20), opens=0)
    given = Schedule(*np.array([[0, 0, 15, 20], [1, 0, -1, 9]]).T)
    found = verified_or_repaired(instance, given)
    assert found.verdict.feasible and found.schedule.start.tolist() == [15, 0]
    assert found.schedule.end.tolist() == [20, 10]


def test_a_limit_on_a_metric_is_not_repaired() -> None:
    # A tick earlier, the second task would end at 20; only times that are broken are moved.
    instance = coarse().with_limits(makespan=20.0)
    given = Schedule(*np.array([[0, 0, -1, 9], [1, 0, 11, 21]]).T)
    found = verified_or_repaired(instance, given)
    assert found.schedule is given and not found.verdict.feasible


@pytest.mark.parametrize(("end", "mended"), [(13, False), (14, True), (15, True)])
def test_a_part_may_grow_by_twice_the_reach(end: int, mended: bool) -> None:
    # The first part does 4 of 10 ticks, so that the second one needs 6. One of 5 ticks ends a tick
    # later; one of 4 begins a tick earlier too, at 9; one of 3 would have to move farther.
    instance = coarse(preemptive=True)
    given = Schedule(*np.array([[0, 0, 0, 4], [0, 0, 10, end], [1, 0, 0, 10]]).T)
    found = verified_or_repaired(instance, given)
    assert found.verdict.feasible == mended
    last = found.schedule.start[1], found.schedule.end[1]
    assert last == ((9, 15) if end == 14 else (10, 16) if mended else (10, end))


@pytest.mark.parametrize(("start", "mended"), [(0, False), (5, True)])
def test_neither_start_nor_end_moves_beyond_the_reach(start: int, mended: bool) -> None:
    # A task that lacks 2 of 10 ticks grows by one at each side, which is impossible at time 0.
    instance = coarse()
    given = Schedule(*np.array([[0, 0, start, start + 8], [1, 0, 5, 15]]).T)
    found = verified_or_repaired(instance, given)
    assert found.verdict.feasible == mended
    assert found.schedule.start[0] == (start - 1 if mended else start)
    assert found.schedule.end[0] == (start + 9 if mended else start + 8)


Break = Callable[[Schedule], Schedule]


@pytest.mark.parametrize(
    ("edit", "constraint"),
    [
        (lambda s: replace(s, task=s.task[:-1]), "form"),
        (lambda s: replace(s, start=s.start + 0.5), "form"),
        (lambda s: replace(s, mode=np.full(4, 9)), "form"),
        (
            lambda s: Schedule(*(column[:-1] for column in (s.task, s.mode, s.start, s.end))),
            "assignment",
        ),
        (lambda s: replace(s, start=s.start[::-1].copy(), end=s.end[::-1].copy()), "precedence"),
    ],
)
def test_what_is_wrong_in_another_way_is_left_as_it_is(edit: Break, constraint: str) -> None:
    instance = line()
    given = edit(Schedule.of(instance, [0] * 4, [k * SEVENTH for k in range(4)]))
    found = verified_or_repaired(instance, given)
    assert found.schedule is given and found.verdict.violations[0].constraint == constraint
    assert (found.segments_moved, found.largest_move) == (0, 0)


def loosened(instance: Instance) -> Instance:
    """Ticks of 10 ns, the same numbers of ticks, and nothing that a schedule of one task after the
    other breaks.
    """
    modes, links, limits = instance.modes, instance.links, instance.limits
    faster = 1e-8 / instance.tick_s
    return replace(
        instance,
        tick_s=1e-8,
        horizon=None,
        tasks=replace(instance.tasks, deadline_hard=np.zeros(instance.num_tasks, dtype=bool)),
        modes=replace(modes, time_per_unit_s=faster * modes.time_per_unit_s),
        links=replace(links, latency_s=faster * links.latency_s, s_per_gb=faster * links.s_per_gb),
        limits=replace(
            limits, cap_place=limits.cap_place[:0], cap_w=limits.cap_w[:0], metric_max={}
        ),
    )


def blurred(schedule: Schedule, by: Ints) -> Schedule:
    """Starts and ends moved by up to 50 ticks each."""
    return replace(schedule, start=schedule.start + by[0], end=schedule.end + by[1])


@given(st.integers(0, 100_000), st.booleans())
def test_random_schedules_that_were_blurred_are_repaired_or_left(seed: int, pieces: bool) -> None:
    """Tasks of about a thousand ticks: what comes out feasible has moved no farther than told,
    within the reach.
    """
    instance = replace(loosened(in_fine_ticks(tiny_instance(seed))), preemptive=pieces)
    if pieces:
        instance = replace(
            instance, edges=replace(instance.edges, data_gb=0 * instance.edges.data_gb)
        )
    whole = one_by_one(instance, seed)
    schedule = in_pieces(instance, whole, seed) if pieces else whole
    assume(verify(instance, schedule).feasible)
    rng = np.random.default_rng(seed)
    given = blurred(schedule, rng.integers(-50, 51, (2, schedule.num_segments)))
    found = verified_or_repaired(instance, given)
    moved = np.maximum(
        np.abs(found.schedule.start - given.start), np.abs(found.schedule.end - given.end)
    )
    assert found.largest_move == moved.max() <= reach_of(instance)
    assert found.segments_moved == (moved > 0).sum()
    assert found.verdict == verify(instance, found.schedule)
    # Of whole tasks, the schedule 50 ticks later is feasible, and no farther than the reach of 100
    # from what was given.
    assert found.verdict.feasible or (pieces and found.schedule is given)


def test_most_blurred_schedules_are_repaired() -> None:
    """A chain with pauses of 0 to 3 ticks, and 40 ns of noise on every start and end."""
    instance, mended = line(20), 0
    rng = np.random.default_rng(0)
    for _ in range(40):
        start = np.arange(20) * SEVENTH + np.cumsum(rng.integers(0, 4, 20))
        given = blurred(Schedule.of(instance, [0] * 20, start), rng.integers(-20, 21, (2, 20)))
        mended += verified_or_repaired(instance, given).verdict.feasible
    assert mended == 40
