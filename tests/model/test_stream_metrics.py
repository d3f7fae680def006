"""Metrics of arriving work, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from optbench.model.builder import Model
from optbench.model.instance import Instance
from optbench.model.objective import Objective
from optbench.model.schedule import Schedule
from optbench.model.stream_metrics import logged_units, queue_counts
from optbench.model.streams import with_stream
from optbench.model.verify import verify
from optbench.units import DAY_S


def two_days() -> Instance:
    """One device of 100 W at work and 10 W at rest, a unit a second, watched from 100 s to the end
    of the second day.
    """
    m = Model("two days", time="seconds", horizon_s=2 * DAY_S)
    pool = m.pool("gpu", 1, idle_w=10.0)
    m.tasks(
        np.array([50_000.0, 50_000.0, 100_000.0, 10.0]),
        kind=m.kind(modes=[m.mode({pool: 1}, 1.0, 100.0, power_w=100.0)]),
        release_s=np.array([100.0, 200.0, 300.0, 172_000.0]),
    )
    m.minimize(energy_j=1.0)
    built = m.build()
    return with_stream(built, opens=int(built.to_ticks(100.0))).with_objective(
        Objective.weighted({"j_per_unit": 1.0})
    )


def one_after_the_other() -> Schedule:
    """The first ends at 50,100 s, the second at 100,100 s, the third is cut at the horizon; the
    fourth never begins.
    """
    start, end = np.array([100.0, 50_100.0, 100_100.0]), np.array([50_100.0, 100_100.0, 2 * DAY_S])
    to_ticks = two_days().to_ticks
    return Schedule(np.arange(3), np.zeros(3, dtype=np.int64), to_ticks(start), to_ticks(end))


def test_units_as_the_simulator_logs_them() -> None:
    instance, schedule = two_days(), one_after_the_other()
    metrics = verify(instance, schedule).metrics
    # Samples every 20 s: at 100, 120, ..., 50,080 the first adds 20 each (2,500 of them), at its
    # end 50,100 mod 20 = 0 more; the second likewise; the third at 100,100, 100,120, ..., 172,800,
    # which are 3,636.
    assert metrics["j_per_unit_logged"] == pytest.approx(
        metrics["energy_j"] / (2 * 50_000 + 3636 * 20), rel=1e-12
    )
    assert metrics["units_done"] == pytest.approx(2 * 50_000 + 72_700)
    assert metrics["j_per_unit"] == pytest.approx(100.0)


def test_a_log_in_ticks_longer_than_its_samples() -> None:
    # Ticks of 60 s are sampled one by one: 3 units of a minute from tick 1 to 4 are seen at 1, 2
    # and 3.
    m = Model("minutes", tick_s=60.0)
    m.task(units=3, modes=[m.mode(m.pool("gpu"), 60.0)])
    m.minimize(makespan=1.0)
    instance = m.build()
    assert logged_units(instance, Schedule.of(instance, [0], [1])) == pytest.approx(3.0)


def test_who_waits_at_the_end_of_each_day() -> None:
    instance, schedule = two_days(), one_after_the_other()
    metrics = verify(instance, schedule).metrics
    # At 86,400 s the second runs and the third waits; at the horizon the third runs and the fourth
    # waits.
    assert (metrics["queue_day1"], metrics["queue_day2"]) == (1.0, 1.0)
    assert "queue_day3" not in metrics
    assert metrics["queue_end"] == metrics["queue_day2"]
    times = np.array([50.0, 150.0, 250.0, 60_000.0, 120_000.0]) / instance.tick_s
    assert queue_counts(instance, schedule, times).tolist() == [0, 0, 1, 1, 0]
