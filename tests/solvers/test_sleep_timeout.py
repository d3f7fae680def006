"""sleep_timeout by hand; what it decides depends on nothing later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import optbench as ob
from optbench.errors import ParameterError, UnsupportedError
from optbench.model.sleeping import sleep_rows
from optbench.plugins.discovery import load_problem
from tests.model.test_sleeping import station


def test_a_device_sleeps_when_that_would_have_been_cheaper() -> None:
    """100 J / 40 W + 3 s = 5.5 s, 6 whole ones: asleep from 16 to 40, awake at 43. 6 and 3 s at 50
    W, 24 s at 10 W, 100 J and 2,000 J.
    """
    found = ob.simulate(station(), "sleep_timeout:policy=fcfs", bound=False)
    assert list(sleep_rows(found.schedule)) == [(0, 1, 16, 40)]
    assert found.schedule.start.tolist() == [0, 43] and found.verified
    assert found.energy_j == 300 + 150 + 240 + 100 + 2000 and found.now_s == 53.0
    assert found.latency_s["sojourn"]["mean"] == (10 + 13) / 2


@pytest.mark.parametrize(
    ("idle_s", "rows", "start"),
    [(0.0, [(0, 1, 10, 40)], 43), (29.0, [(0, 1, 39, 40)], 43), (30.0, [], 40), (200.0, [], 40)],
)
def test_the_timeout_is_a_parameter(idle_s: float, rows: list[tuple[int, ...]], start: int) -> None:
    """After 30 s without work the next task is there: a device that is asked then is awake."""
    found = ob.solve(station(), "sleep_timeout", policy="fcfs", idle_s=idle_s)
    assert found.schedule is not None and list(sleep_rows(found.schedule)) == rows
    assert found.schedule.start.tolist() == [0, start]


def test_devices_that_are_used_last_work_first() -> None:
    """Both tasks on one device; the other sleeps from 6 to the end, at 53."""
    found = ob.solve(station(count=2), "sleep_timeout", policy="fcfs")
    assert found.schedule is not None
    rows = [(0, 1, 6, 53), (0, 1, 16, 40)]
    assert list(sleep_rows(found.schedule)) == rows


def test_a_delay_moves_what_comes_after() -> None:
    """b follows a after 20 s of transfer from x to y; y sleeps from 0 on and wakes from 22 to 25; c
    follows b.
    """
    m = ob.Model("chain")
    x = m.pool("x")
    y = m.pool("y", idle_w=50, sleep_w=10, sleeps=True, wake_s=3)
    m.link(x, y, bandwidth_gbit_s=8)
    a = m.task("a", modes=[m.mode(x, time_s=2)])
    b = m.task("b", modes=[m.mode(y, time_s=4)], data_gb={a: 20.0})
    m.task("c", modes=[m.mode(y, time_s=5)], after=b)
    m.minimize(energy_j=1.0)
    found = ob.solve(m.build(), "sleep_timeout", policy="fcfs", idle_s=0)
    assert found.schedule is not None and found.schedule.start.tolist() == [0, 25, 29]
    assert list(sleep_rows(found.schedule)) == [(1, 1, 0, 22)]


def test_ahead_starts_stay_and_devices_wake_in_time() -> None:
    found = ob.solve(station(), "sleep_timeout", policy="fcfs", ahead=True)
    assert found.objective == 2520.0 and found.schedule is not None
    assert list(sleep_rows(found.schedule)) == [(0, 1, 10, 37)]
    with pytest.raises(UnsupportedError, match="ahead=yes wakes devices for starts that are not"):
        ob.simulate(station(), "sleep_timeout:ahead=yes")


def test_without_such_pools_it_is_the_other_policy() -> None:
    made = station(waking={"wake_s": None, "wake_j": None})
    mine, other = (ob.solve(made, name) for name in ("sleep_timeout:policy=heft", "heft"))
    assert mine.objective == other.objective == 2300.0


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("sleep_timeout:policy=cpsat", "policy is 'cpsat', which does not decide online"),
        ("sleep_timeout:policy=random_rules", "'random_rules', which does not decide online"),
        ("sleep_timeout:policy=sleep_timeout", "policy is 'sleep_timeout'; it must be another"),
        ("sleep_timeout:idle_s=-1", "idle_s is -1.0; it must be none, or at least 0"),
    ],
)
def test_what_is_refused(spec: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        ob.solve(station(), spec)


def test_faults_and_horizons_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="follows a whole run without faults"):
        ob.simulate(station(), "sleep_timeout", faults=[ob.Fault(1.0, 0, 1), ob.Fault(2.0, 0, -1)])
    with pytest.raises(UnsupportedError, match="leave out faults and horizon_s"):
        ob.simulate(station(), "sleep_timeout", horizon_s=20)


def arriving(seed: int, tasks: int = 40) -> ob.Instance:
    made: ob.Instance = load_problem(
        f"gpu_cluster:nodes=3,tasks={tasks},types=3,gpus=2,load=0.2,sleeps=yes,wake_s=4"
    ).instance(seed)
    return made


@pytest.mark.parametrize("idle_s", [None, 0.0, 5.0])
@pytest.mark.parametrize("seed", range(4))
def test_clusters_are_feasible_and_bounded(seed: int, idle_s: float | None) -> None:
    made = arriving(seed)
    done = ob.solve(made, "sleep_timeout", idle_s=idle_s)
    assert done.status == "feasible" and done.schedule is not None
    assert done.bound is not None and done.bound <= done.objective  # type: ignore[operator]
    awake = ob.solve(made, "tuned_rule")
    assert list(sleep_rows(done.schedule)) and awake.metrics["wake_energy_j"] == 0.0
    if idle_s is None:
        assert done.metrics["energy_j"] < awake.metrics["energy_j"]


@pytest.mark.parametrize("seed", range(3))
def test_no_decision_depends_on_what_comes_later(seed: int) -> None:
    """Later jobs are twice as large: whatever starts, sleeps or wakes before stays."""
    made = arriving(seed, 80)
    now = int(np.quantile(made.tasks.release, 0.6))
    later = made.tasks.release > now
    units = np.where(later, 2.0, 1.0) * made.tasks.units
    other = replace(made, tasks=replace(made.tasks, units=units))
    seen = []
    for each in (made, other):
        schedule = ob.simulate(each, "sleep_timeout:idle_s=2", bound=False).schedule
        early = schedule.start <= now
        columns = (schedule.task[early], schedule.mode[early], schedule.start[early])
        begun = sorted(zip(*(column.tolist() for column in columns), strict=True))
        naps = [row[:3] for row in sleep_rows(schedule) if row[2] <= now]
        ended = [row for row in sleep_rows(schedule) if row[3] <= now]
        seen.append((begun, sorted(expanded(naps)), sorted(expanded(ended))))
    assert seen[0] == seen[1] and seen[0][0] and seen[0][1]


def expanded(rows: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """A row per device."""
    return [(pool, *times) for pool, devices, *times in rows for _ in range(devices)]
