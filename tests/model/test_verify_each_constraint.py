"""Each constraint broken once, by one edit of a feasible schedule: the verifier names exactly that
one.

The schedule and its instance are those of ``verified_by_hand``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from optbench.model.builder import Model
from optbench.model.busy_devices import missing_devices
from optbench.model.cooling import Cooling
from optbench.model.instance import Instance
from optbench.model.objective import METRICS
from optbench.model.schedule import Schedule, Sleep
from optbench.model.streams import Outages, with_stream
from optbench.model.verify import CONSTRAINTS, verify
from tests.model.verified_by_hand import BOTH_A, ON_A, ON_B, floats, instance, ints, schedule

Broken = tuple[Instance, Schedule]
Edit = Callable[[Instance, Schedule], Broken]


def moved(task: int, start: int) -> Edit:
    """The task at another start, its length kept."""

    def edit(problem: Instance, s: Schedule) -> Broken:
        starts = s.start.copy()
        starts[task] = start
        return problem, replace(s, start=starts, end=starts + (s.end - s.start))

    return edit


def with_mode(task: int, mode: int, start: int) -> Edit:
    """The task in another mode, at another start."""

    def edit(problem: Instance, s: Schedule) -> Broken:
        modes, starts = s.mode.copy(), s.start.copy()
        modes[task], starts[task] = mode, start
        return problem, Schedule.of(problem, modes, starts)

    return edit


def wrong_kind(problem: Instance, s: Schedule) -> Broken:
    """t2 in the mode of kind 1, on both devices of a from 4 to 8: everything else holds."""
    return with_mode(2, BOTH_A, 4)(problem, s)


def longer(problem: Instance, s: Schedule) -> Broken:
    ends = s.end.copy()
    ends[2] += 1
    return problem, replace(s, end=ends)


def half(problem: Instance, s: Schedule) -> Broken:
    """t2 may be interrupted and stops after one of its two seconds."""
    ends = s.end.copy()
    ends[2] = 6
    return replace(problem, preemptive=True), replace(s, end=ends)


def in_two(
    problem: Instance,
    s: Schedule,
    first: tuple[int, int, int],
    second: tuple[int, int, int],
    t2: int,
) -> Broken:
    """t0 in two segments of (mode, start, end); t2 moves to where it can begin after them."""
    _, s = moved(2, t2)(problem, s)
    columns = [
        np.append(column, value)
        for column, value in zip((s.task, s.mode, s.start, s.end), (0, *second), strict=True)
    ]
    for column, value in zip(columns[1:], first, strict=True):
        column[0] = value
    return problem, Schedule(*columns)


def two_segments(problem: Instance, s: Schedule) -> Broken:
    """t0 twice, from 0 to 3 and from 4 to 7; t2 moves to 9, when the data is there."""
    return in_two(problem, s, (ON_A, 0, 3), (ON_A, 4, 7), 9)


def overlapping_segments(problem: Instance, s: Schedule) -> Broken:
    """Two thirds from 4 to 6 and from 5 to 7, on the two devices of a, which are free then; t2
    moves to 9.
    """
    return in_two(replace(problem, preemptive=True), s, (ON_A, 4, 6), (ON_A, 5, 7), 9)


def on_two_pools(problem: Instance, s: Schedule) -> Broken:
    """t0, which sends data, does a half on b from 0 to 1 and two thirds on a from 2 to 4; its data
    is at b at 6.
    """
    return in_two(replace(problem, preemptive=True), s, (ON_B, 0, 1), (ON_A, 2, 4), 6)


def too_large_a_sum(problem: Instance, s: Schedule) -> Broken:
    """Flow times of 3, 3, 7 and 16 s at a weight of 1e308."""
    return replace(problem, tasks=replace(problem.tasks, weight=np.full(4, 1e308))), s


def fractional_start(problem: Instance, s: Schedule) -> Broken:
    return problem, replace(
        s, start=s.start + np.array([0, 0, 0.5, 0]), end=s.end + np.array([0, 0, 0.5, 0])
    )


def hotter(problem: Instance, s: Schedule) -> Broken:
    """t2 (150 W) beside t3 (250 W) from 13 on: 400 W at the cluster."""
    return moved(2, 13)(problem, s)


def cooled(problem: Instance, s: Schedule) -> Broken:
    """The node settles within a few ms at 20 °C + 0.5 °C/W: at 200 W to 120 °C, by t3 to 145 °C."""
    row = (floats(value) for value in (20.0, 0.5, 0.001, 140.0, 20.0))
    return replace(problem, cooling=Cooling(ints(1), *row)), s


def from_afar(problem: Instance, s: Schedule) -> Broken:
    """t1, released at 1, takes 1 s to pool a and starts at 1."""
    latency_s = np.array([[0.0, 0.0], [1.0, 0.0]])
    return with_stream(
        problem, ingress=ints(0, 1, 0, 0), latency_s=latency_s, ingress_names=("near", "far")
    ), s


def asleep(pool: int, start: int, end: int) -> Edit:
    """Devices of b take 2 s to wake; one of a pool sleeps."""

    def edit(problem: Instance, s: Schedule) -> Broken:
        gated = np.array([False, True])
        pools = replace(problem.pools, gated=gated, wake_s=floats(0, 2))
        rows = Sleep(ints(pool), ints(1), ints(start), ints(end))
        return replace(problem, pools=pools), replace(s, sleep=rows)

    return edit


def tighter_limit(metric: str, value: float) -> Edit:
    def edit(problem: Instance, s: Schedule) -> Broken:
        return problem.with_limits(**{metric: value}), s

    return edit


BREAKS: dict[str, Edit] = {
    "form": fractional_start,
    "assignment": half,
    "single_segment": two_segments,
    "one_pool": on_two_pools,
    "mode": wrong_kind,
    # b has 8 GB.
    "memory": lambda problem, s: (
        replace(problem, tasks=replace(problem.tasks, memory_gb=floats(0, 0, 9, 16))),
        s,
    ),
    "duration": longer,
    "release": moved(1, 0),
    "access": from_afar,
    # From 13 to 17: within the horizon.
    "deadline": moved(3, 13),
    # From 17 to 19, after t3.
    "horizon": moved(2, 17),
    # t0 ends at 3, its data arrives at 5: from 2 on t2 is too early for both, and only precedence
    # is named.
    "precedence": moved(2, 2),
    "transfer": moved(2, 4),
    # t0 on b from 0 to 2, t2 on a: there is no link from b to a.
    "link": lambda problem, s: with_mode(2, ON_A, 4)(*with_mode(0, ON_B, 0)(problem, s)),
    # t3 takes both devices of a from 4 to 8, beside t0 from 2 to 5 (350 W); t2 waits for the data
    # until 8.
    "capacity": lambda problem, s: moved(2, 8)(*moved(0, 2)(*moved(3, 4)(problem, s))),
    "self_overlap": overlapping_segments,
    # Devices of a sleep as their pool says, not by rows.
    "sleep": asleep(0, 4, 6),
    # The device of b wakes until 6, and t2 runs there from 5 to 7.
    "awake": asleep(1, 0, 4),
    "power_cap": hotter,
    "temperature": cooled,
    # 300 + 300 + 300 + 1000 J are drawn.
    "limit": tighter_limit("energy_j", 1899.0),
    "finite": too_large_a_sum,
}


def test_every_constraint_is_broken_here() -> None:
    assert set(BREAKS) == set(CONSTRAINTS)


def test_the_schedule_is_feasible_before_it_is_edited() -> None:
    problem = instance()
    verdict = verify(problem, schedule(problem))
    assert verdict.violations == ()
    assert verdict.objectives == (16.0,)
    assert verdict.metrics["energy_j"] == 1900.0


@pytest.mark.parametrize("constraint", BREAKS)
def test_the_verifier_names_exactly_the_broken_constraint(constraint: str) -> None:
    problem = instance()
    verdict = verify(*BREAKS[constraint](problem, schedule(problem)))
    named = [violation.constraint for violation in verdict.violations]
    assert named == ["limit:energy_j" if constraint == "limit" else constraint]
    assert not verdict.feasible
    assert verdict.objective is None


# The message and the amount of each; the times follow from the docstrings above.
SAID: dict[str, tuple[str, float]] = {
    "form": ("column 'start' holds float64, expected whole numbers", 0.0),
    # It works for 1 s of 2.
    "assignment": ("task t2 is done to 50 % in 1 segments", 0.5),
    "single_segment": ("task t0 has 2 segments", 2.0),
    "one_pool": ("task t0 sends or receives data, and goes from b to a at 2", 1.0),
    "mode": ("task t2 runs in mode 2, which is not of its kind", 1.0),
    "memory": ("task t2 needs 9 GB, mode 1 has 8 GB", 1.0),
    "duration": ("task t2 runs from 5 to 8, in mode 1 it takes 2", 1.0),
    "release": ("task t1 starts at 0, released at 1", 1.0),
    "access": ("task t1 starts in a at 1, and is there at 2", 1.0),
    "deadline": ("task t3 ends at 17, its deadline is 16", 1.0),
    "horizon": ("task t2 ends at 19, the horizon is 18", 1.0),
    "precedence": ("task t2 starts at 2, before t0 ends at 3", 1.0),
    # t0 ends at 3 and the transfer takes 2 s: t2 starts at 4 instead of 5.
    "transfer": ("data of t0 reaches t2 1 too late", 1.0),
    "link": ("t0 to t2: no link from b to a", 1.0),
    "capacity": ("pool a has 3 busy devices of 2 at 4", 1.0),
    "self_overlap": ("task t0 runs twice at 5", 1.0),
    "sleep": (
        "1 devices of pool a sleep from 4 to 6, where devices do not wake by rows of a schedule",
        1.0,
    ),
    "awake": ("pool b has 2 devices of 1 that are busy, gone, asleep or waking at 5", 1.0),
    # 150 W + 250 W.
    "power_cap": ("cluster draws 400 W at 13, the cap is 350 W", 50.0),
    # t3 draws 250 W from 12 to 16.
    "temperature": ("node reaches 145 °C at 16, its limit is 140 °C", 5.0),
    "limit": ("energy_j is 1900, the limit 1899", 1.0),
    "finite": ("flow_time_s is inf: its terms are too large to add up", 0.0),
}


@pytest.mark.parametrize("constraint", BREAKS)
def test_a_violation_says_where_and_by_how_much(constraint: str) -> None:
    problem = instance()
    (violation,) = verify(*BREAKS[constraint](problem, schedule(problem))).violations
    assert (violation.message, violation.amount) == SAID[constraint]
    assert violation.count == 1


def test_of_many_broken_rows_three_are_described_and_the_worst_counts() -> None:
    # t0, t1 and t2 are released at 5 and start at 0, 1 and -2: 5, 4 and 7 too early. t3 is released
    # at 14 and starts at 12.
    problem = instance()
    late = replace(problem, tasks=replace(problem.tasks, release=ints(5, 5, 5, 14)))
    starts = np.array([0, 1, -2, 12])
    given = schedule(problem)
    given = replace(given, start=starts, end=starts + (given.end - given.start))
    early = next(each for each in verify(late, given).violations if each.constraint == "release")
    assert (early.amount, early.count) == (7.0, 4)
    assert early.message == (
        "task t0 starts at 0, released at 5; task t1 starts at 1, released at 5; "
        "task t2 starts at -2, released at 5; and 1 more"
    )


def test_messages_show_seconds_where_a_tick_is_not_one_second() -> None:
    # The task needs 8 ticks of 0.25 s and runs for 10, from tick 3 on.
    m = Model(tick_s=0.25)
    m.task("x", modes=[m.mode(m.pool("p"), time_s=2)])
    m.minimize(makespan=1)
    made = m.build()
    (violation,) = verify(made, Schedule(ints(0), ints(0), ints(3), ints(13))).violations
    assert violation.message == "task x runs from 0.75 s to 3.25 s, in mode 0 it takes 2 s"
    assert violation.amount == 2.0


def test_outages_are_spans_of_missing_devices() -> None:
    # Pool a loses two devices at 3, one by one, and has both back at 5; pool b loses one at 4 for
    # good.
    problem = replace(instance(), preemptive=True)
    announced = np.zeros(4, dtype=bool)
    outages = Outages(ints(3, 3, 4, 5), ints(0, 0, 1, 0), ints(1, 1, 1, -2), announced)
    spans = zip(*missing_devices(with_stream(problem, outages=outages)), strict=True)
    assert list(spans) == [(0, 3.0, 5.0, 2), (1, 4.0, np.inf, 1)]


@pytest.mark.parametrize("metric", METRICS)
def test_a_limit_on_every_metric_is_checked_and_named(metric: str) -> None:
    problem = instance()
    value = verify(problem, schedule(problem)).metrics[metric]
    assert verify(problem.with_limits(**{metric: value}), schedule(problem)).feasible
    if value > 0:
        verdict = verify(problem.with_limits(**{metric: value - 0.5}), schedule(problem))
        assert [violation.constraint for violation in verdict.violations] == [f"limit:{metric}"]
