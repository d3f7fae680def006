"""What changes while it runs, on cases solved by hand: urgent work, elastic work, power caps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.model.instance import Instance, Limits
from optbench.model.schedule import Schedule
from optbench.model.streams import with_stream
from optbench.model.verify import verify
from optbench.sim.kernel.sites.moves import ELASTIC, SINGLY, UNIFORM, URGENT
from optbench.sim.sites.routes import play_routes, routes_of
from optbench.sim.sites.sites import grid_of

# Ticks of a second.
NS = 10**9
Row = tuple[int, int, float, float]


def played(instance: Instance, how: int, **options: Any) -> Schedule:
    grid = grid_of(instance, capped=True)
    schedule = play_routes(grid, routes_of(grid, **options), how=how).schedule
    assert schedule is not None
    assert verify(instance, schedule).violations == ()
    return schedule


def rows(instance: Instance, schedule: Schedule) -> list[Row]:
    """(task, devices, start, end) in order of start, times in seconds."""
    order = np.lexsort((schedule.task, schedule.start))
    devices = instance.modes.devices[schedule.mode]
    columns = (schedule.task, devices, schedule.start / NS, schedule.end / NS)
    return [tuple(column[k].item() for column in columns) for k in order.tolist()]


def site(
    devices: int, long: Sequence[float], short: Sequence[float] = (), *, preemptive: bool = True
) -> Instance:
    """Long work takes 12 s on one device, 6 on two, 3 on four; short work one device and a second.
    They come at these times.
    """
    m = ob.Model("one site", time="seconds", preemptive=preemptive)
    pool = m.pool("site", count=devices, idle_w=0.0)
    modes = [m.mode({pool: n}, 12.0 / n, 10.0) for n in (1, 2, 4) if n <= devices]
    m.tasks(np.ones(len(long)), kind=m.kind(modes=modes), release_s=np.array(long))
    if short:
        m.tasks(
            np.ones(len(short)),
            kind=m.kind(modes=[m.mode({pool: 1}, 1.0, 1.0)]),
            release_s=np.array(short),
        )
    m.minimize(energy_j=1.0)
    return with_stream(m.build(), ingress_names=("door",))


def test_urgent_work_interrupts_and_the_rest_is_done_later() -> None:
    instance = site(1, [0.0], [5.0])
    assert rows(instance, played(instance, URGENT)) == [
        (0, 1, 0.0, 5.0),
        (1, 1, 5.0, 6.0),
        (0, 1, 6.0, 13.0),
    ]


@pytest.mark.parametrize(("how", "preemptive"), [(0, True), (URGENT, False)])
def test_without_leave_it_waits(how: int, preemptive: bool) -> None:
    instance = site(1, [0.0], [5.0], preemptive=preemptive)
    assert rows(instance, played(instance, how)) == [(0, 1, 0.0, 12.0), (1, 1, 12.0, 13.0)]


def test_urgent_work_does_not_interrupt_its_like() -> None:
    instance = site(1, [0.0], [5.0, 5.5])
    done = rows(instance, played(instance, URGENT))
    assert done == [(0, 1, 0.0, 5.0), (1, 1, 5.0, 6.0), (2, 1, 6.0, 7.0), (0, 1, 7.0, 14.0)]


def test_elastic_work_shrinks_and_grows() -> None:
    """Four devices until 1, then two each; the first has 2/3 left and ends at 5, the second then
    1/3, and four devices.
    """
    instance = site(4, [0.0, 1.0])
    done = rows(instance, played(instance, ELASTIC, time_w=1e3))
    assert done == [(0, 4, 0.0, 1.0), (0, 2, 1.0, 5.0), (1, 2, 1.0, 5.0), (1, 4, 5.0, 6.0)]


def capped(cap_w: float, releases: list[float], *, preemptive: bool = True) -> Instance:
    """Jobs of 10 s at 100 W, or 20 s at 40 W at half the clock; a cap on the whole."""
    m = ob.Model("capped", time="seconds", preemptive=preemptive)
    pool = m.pool("site", count=4, idle_w=0.0)
    modes = [m.mode({pool: 1}, 10.0, 1000.0, clock=1.0), m.mode({pool: 1}, 20.0, 800.0, clock=0.5)]
    m.tasks(np.ones(len(releases)), kind=m.kind(modes=modes), release_s=np.array(releases))
    m.minimize(energy_j=1.0)
    return replace(
        with_stream(m.build(), ingress_names=("door",)),
        limits=Limits(np.array([0]), np.array([cap_w])),
    )


@pytest.mark.parametrize("how", [UNIFORM, SINGLY])
def test_under_a_cap_what_begins_runs_slower(how: int) -> None:
    """At 150 W the first runs at 100 W, and 40 W are left for the second."""
    instance = capped(150.0, [0.0, 1.0], preemptive=False)
    done = played(instance, how, time_w=1e3)
    assert instance.modes.clock[done.mode[np.argsort(done.task)]].tolist() == [1.0, 0.5]


@pytest.mark.parametrize("how", [UNIFORM, SINGLY])
def test_what_does_not_fit_waits(how: int) -> None:
    """At 120 W the second fits at no clock until the first ends at 10."""
    instance = capped(120.0, [0.0, 1.0], preemptive=False)
    assert played(instance, how, time_w=1e3).start.tolist() == [0, 10 * NS]


def test_a_ceiling_slows_all_of_a_site_down() -> None:
    """At 130 W both run at 40 W from 1 on: the first has 0.9 left (18 s)."""
    instance = capped(130.0, [0.0, 1.0])
    done = rows(instance, played(instance, UNIFORM, time_w=1e3))
    # From 19 on the second is alone and goes back up: 0.1 are left of it, 1 s.
    assert done == [(0, 1, 0.0, 1.0), (0, 1, 1.0, 19.0), (1, 1, 1.0, 19.0), (1, 1, 19.0, 20.0)]


def test_single_jobs_slow_down_one_by_one() -> None:
    """At 150 W one at 100 and one at 40 leave no room for a third at 40: the fast one slows
    down.
    """
    instance = capped(150.0, [0.0, 1.0, 2.0])
    done = played(instance, SINGLY, time_w=1e3)
    clock = instance.modes.clock[done.mode]
    running = (done.start <= 2.5 * NS) & (done.end > 2.5 * NS)
    assert sorted(clock[running].tolist()) == [0.5, 0.5, 0.5]  # 120 W of 150


def test_alone_a_job_runs_as_the_cap_allows() -> None:
    assert capped(90.0, [0.0]).modes.clock[
        played(capped(90.0, [0.0]), SINGLY, time_w=1e3).mode
    ].tolist() == [0.5]
