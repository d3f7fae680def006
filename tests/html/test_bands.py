"""Pages of thousands of tasks: bands and averages with the areas of the schedule, and a page that
stays small.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import optbench as ob
from optbench.html import bands, schedule_page
from optbench.model.instance import Instance
from optbench.model.metrics import power_trace
from optbench.model.schedule import Schedule
from tests.html.html_pages import outline
from tests.html.test_schedule_page import cluster, result_of, serial


def crowd(tasks: int = 5000) -> tuple[Instance, Schedule]:
    """Tasks of three kinds on 40 devices, most of them starting at any time at all (capacity is not
    looked at).
    """
    m = ob.Model("crowd")
    gpu = m.pool("gpu", count=40, idle_w=10)
    lone = m.pool("lone", count=1)
    rng = np.random.default_rng(3)
    modes = [m.mode({gpu: n}, time_s=float(7 * n), energy_j=500.0 * n) for n in (1, 2, 3)]
    for i in range(tasks):
        m.task(
            f"{'abc'[i % 3]}{i}",
            modes=[modes[i % 3]] if i else [m.mode(lone, time_s=50, energy_j=4)],
        )
    m.minimize(energy_j=1.0)
    instance = m.build()
    start = rng.integers(0, 3000, tasks)
    return instance, Schedule.of(instance, instance.pairs.mode, start)


def test_bands_hold_the_device_time_of_the_schedule() -> None:
    instance, schedule = crowd()
    group = np.arange(instance.num_tasks) % 3
    edges = np.linspace(0.0, 3100.0, 41)
    held = bands.occupancy(instance, schedule, group, edges)
    length = (schedule.end - schedule.start).astype(float)
    devices = instance.modes.devices[schedule.mode]
    for g in range(3):
        here = (group == g) & (np.arange(instance.num_tasks) > 0)
        assert held[0, g].sum() * (edges[1] - edges[0]) == pytest.approx(
            float((length * devices)[here].sum()), rel=1e-12
        )
    assert held[1, 0].sum() * (edges[1] - edges[0]) == pytest.approx(50.0, rel=1e-12)
    # By brute force: the mean number of devices held in one column.
    seconds = np.arange(1550, 1628)  # edges are 77.5 s apart; the 21st column is [1550, 1627.5)
    busy = [
        int(
            devices[
                (schedule.start <= t) & (t < schedule.end) & (np.arange(instance.num_tasks) > 0)
            ].sum()
        )
        for t in seconds
    ]
    assert held[0, :, 20].sum() == pytest.approx((sum(busy[:-1]) + busy[-1] / 2) / 77.5, rel=1e-9)


def test_the_averaged_power_has_the_energy_of_the_schedule() -> None:
    instance, schedule = crowd()
    trace = power_trace(instance, schedule)
    less = bands.coarse(trace)
    assert len(less.t) <= bands.COLUMNS + 1 < len(trace.t)
    assert less.energy_j(instance.tick_s) == pytest.approx(
        trace.energy_j(instance.tick_s), rel=1e-12
    )
    for watts, means in ((trace.busy_w, less.busy_w), (trace.rest_w, less.rest_w)):
        assert (means * np.diff(less.t)).sum(axis=1) == pytest.approx(
            (watts * np.diff(trace.t)).sum(axis=1), rel=1e-9
        )


def test_a_trace_of_few_steps_is_left_as_it_is() -> None:
    instance = cluster()
    trace = power_trace(instance, serial(instance))
    assert bands.coarse(trace) is trace


def test_a_page_of_thousands_of_tasks_is_small_and_says_what_it_draws() -> None:
    instance, schedule = crowd()
    html = schedule_page.render(
        instance, [replace(result_of(instance, schedule), violations=(), verified=True)]
    )
    outline(html)
    assert len(html.encode()) < 200_000
    assert html.count('class="band"') == 4 and 'class="bar"' not in html
    assert "too many tasks for bars" in html
    assert re.search(r"<title>b\ngpu", html)


def test_peaks_are_the_most_devices_at_once() -> None:
    m = ob.Model("peaks")
    gpu, unused = m.pool("gpu", count=9), m.pool("unused", count=2)
    for n in (1, 2, 4):
        m.task(modes=[m.mode({gpu: n}, time_s=10), m.mode(unused, time_s=10)])
    m.minimize(makespan_s=1.0)
    instance = m.build()
    modes = [int(instance.pairs.mode[instance.pairs.ptr[i]]) for i in range(3)]
    assert bands.peaks(instance, Schedule.of(instance, modes, [0, 5, 10])) == {0: 6}
