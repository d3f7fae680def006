"""Arriving work as it looks in operation, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from optbench.model.builder import Model
from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.model.stream_metrics import routing_shares
from optbench.model.streams import with_stream
from optbench.report.operation_figures import operation


def two_sites() -> tuple[Instance, Schedule]:
    """Two ingresses, two devices of different watts, a hundred seconds; three of four tasks begin,
    one of them is cut.
    """
    m = Model("two sites", time="seconds", horizon_s=100.0)
    a, b = m.pool("a", 1, idle_w=10.0), m.pool("b", 1, idle_w=0.0)
    modes = [m.mode({a: 1}, 1.0, 100.0, power_w=100.0), m.mode({b: 1}, 1.0, 50.0, power_w=50.0)]
    m.tasks(
        np.array([20.0, 30.0, 80.0, 10.0]),
        kind=m.kind(modes=modes),
        release_s=np.array([0.0, 10.0, 40.0, 90.0]),
    )
    m.minimize(energy_j=1.0)
    instance = with_stream(
        m.build(),
        ingress=[0, 0, 1, 1],
        latency_s=np.zeros((2, 2)),
        opens=0,
        ingress_names=("left", "right"),
    )
    start, end = instance.to_ticks([0, 10, 50]), instance.to_ticks([20, 40, 100])
    return instance, Schedule(np.arange(3), np.array([0, 1, 0]), start, end)


def test_mean_power_of_each_part() -> None:
    instance, schedule = two_sites()
    found = operation(instance, schedule, bins=4)
    assert found.edges_s.tolist() == [0.0, 25.0, 50.0, 75.0, 100.0]
    # a is at work for 20 s of the first 25, b for 15; of the next 25 b for 15; from 50 on a all the
    # time.
    first, second = (20 * 100 + 5 * 10 + 15 * 50) / 25, (25 * 10 + 15 * 50) / 25
    assert found.watts.tolist() == pytest.approx([first, second, 100.0, 100.0])


def test_times_in_the_system_are_those_of_what_is_done() -> None:
    found = operation(*two_sites())
    assert (
        found.sojourn_s.tolist() == pytest.approx([20.0, 30.0], rel=1e-15) and found.arrivals == 4
    )


def test_shares_are_of_what_began() -> None:
    instance, schedule = two_sites()
    assert routing_shares(instance, schedule).tolist() == [[0.5, 0.5], [1.0, 0.0]]
    nobody = Schedule(schedule.task[:2], schedule.mode[:2], schedule.start[:2], schedule.end[:2])
    assert np.isnan(routing_shares(instance, nobody)[1]).all()


def test_an_interrupted_task_counts_where_it_began() -> None:
    instance, _ = two_sites()
    parts = Schedule(
        np.zeros(2, dtype=np.int64),
        np.array([0, 1]),
        instance.to_ticks([60, 0]),
        instance.to_ticks([70, 10]),
    )
    assert routing_shares(instance, parts)[0].tolist() == [0.0, 1.0]
