"""Devices that sleep and wake: energy, power and constraints by hand; the rows that save most."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.errors import FileFormatError, ModelError, ParameterError
from optbench.model.content_hash import LATER_COLUMNS
from optbench.model.instance import Instance
from optbench.model.measures import metric_scale
from optbench.model.metrics import power_trace
from optbench.model.schedule import Schedule, Sleep
from optbench.model.sleeping import kept_awake, sleep_rows, wake_ticks, with_sleep

Row = tuple[int, int, int, int]


def station(count: int = 1, **options: Any) -> Instance:
    """Two tasks of 10 s at 100 W, the second from 40 s on; devices draw 50 W idle, 10 W asleep, and
    wake in 3 s with 100 J.
    """
    waking = {"wake_s": 3.0, "wake_j": 100.0, "sleeps": True, **options.pop("waking", {})}
    cap, cool = options.pop("cap", None), options.pop("cool", None)
    price = options.pop("price", None)
    m = ob.Model("station", **options)
    gpu = m.pool("gpu", count=count, idle_w=50, sleep_w=10, **waking)
    for release_s in (0, 40):
        m.task(modes=[m.mode(gpu, time_s=10, energy_j=1000)], release_s=release_s)
    m.minimize(energy_j=1.0)
    if cap is not None:
        m.limit(power_w=cap)
    if cool is not None:
        m.cool(ambient_c=20, c_per_w=0.5, time_constant_s=1e-3, limit_c=cool)
    if price is not None:
        m.tariff(price_usd_per_kwh=price, every_s=20)
    return m.build()


def at(instance: Instance, starts: list[int], *rows: Row) -> Schedule:
    made = Schedule.of(instance, [0] * len(starts), starts)
    return replace(made, sleep=rows_of(*rows)) if rows else made


def rows_of(*rows: Row) -> Sleep:
    return Sleep(*np.array(rows, dtype=np.int64).reshape(-1, 4).T)


def metrics(instance: Instance, *rows: Row, starts: tuple[int, ...] = (0, 40)) -> dict[str, float]:
    verdict = ob.verify(instance, at(instance, list(starts), *rows))
    assert verdict.feasible, verdict.violations
    return verdict.metrics


def broken(instance: Instance, *rows: Row, starts: tuple[int, ...] = (0, 40)) -> list[str]:
    verdict = ob.verify(instance, at(instance, list(starts), *rows))
    return [each.constraint for each in verdict.violations]


def test_without_rows_devices_idle() -> None:
    """30 s at 50 W between two tasks of 1,000 J."""
    found = metrics(station())
    assert (found["rest_energy_j"], found["wake_energy_j"]) == (1500.0, 0.0)
    assert found["energy_j"] == 3500.0


def test_sleep_and_wake_by_hand() -> None:
    """Asleep from 10 to 37: 27 s at 10 W, 3 s at 50 W, and 100 J."""
    found = metrics(station(), (0, 1, 10, 37))
    assert (found["rest_energy_j"], found["wake_energy_j"]) == (420.0, 100.0)
    assert found["energy_j"] == 2520.0
    # Twice for 10 s: 20 s at 10 W, 10 s at 50 W, 200 J.
    found = metrics(station(), (0, 1, 10, 20), (0, 1, 25, 35))
    assert (found["rest_energy_j"], found["wake_energy_j"]) == (700.0, 200.0)


def test_who_sleeps_to_the_end_does_not_wake() -> None:
    """To a horizon of 100 s: 30 s at 50 W, then 50 s at 10 W, or 49 s, 1 s at 50 W and 100 J."""
    made = station(horizon_s=100)
    assert metrics(made, (0, 1, 50, 100))["rest_energy_j"] == 2000.0
    found = metrics(made, (0, 1, 50, 99))
    assert (found["rest_energy_j"], found["wake_energy_j"]) == (2040.0, 100.0)
    # Without a horizon the end is that of the last task, at 50 s, and later rows count to there.
    two = station(count=2)
    assert metrics(two, (0, 1, 0, 90))["rest_energy_j"] == 500.0 + 1500.0
    assert metrics(two, (0, 1, 0, 50))["wake_energy_j"] == 0.0


def test_a_device_that_sleeps_or_wakes_does_no_work() -> None:
    """The device wakes from b to b + 3, and is needed from 40 on."""
    assert broken(station(), (0, 1, 10, 37)) == []
    assert broken(station(), (0, 1, 10, 38)) == ["awake"]
    assert broken(station(), (0, 1, 9, 20)) == ["awake"]
    assert broken(station(count=2), (0, 1, 9, 38)) == []
    assert broken(station(count=2), (0, 2, 9, 38)) == ["awake"]
    # Awake again at 23: from 20 on it cannot sleep once more.
    assert broken(station(), (0, 1, 10, 20), (0, 1, 20, 30)) == ["awake"]
    assert broken(station(), (0, 1, 10, 20), (0, 1, 23, 30)) == []


def test_rows_that_say_nothing_sensible_are_named() -> None:
    for row in ((0, 0, 10, 20), (0, 1, 20, 20), (0, 1, -5, 0), (0, -1, 10, 20)):
        assert broken(station(), row) == ["sleep"]
    assert broken(station(horizon_s=60), (0, 1, 50, 61)) == ["sleep"]
    # Without time or energy to wake, devices sleep by themselves, or not at all.
    free = station(waking={"wake_s": 0.0, "wake_j": 0.0})
    assert broken(free, (0, 1, 10, 20)) == ["sleep"] and metrics(free)["rest_energy_j"] == 300.0
    assert "wake_energy_j" not in metrics(free) and "waking" not in free.features
    assert broken(station(), (1, 1, 10, 20)) == ["form"]
    bad = replace(at(station(), [0, 40]), sleep=Sleep(*np.zeros((4, 1))))
    assert ob.verify(station(), bad).violations[0].message.startswith("column 'sleep.pool' holds")


def test_what_sleeps_leaves_room_under_a_cap() -> None:
    """Two devices, one of them working: 150 W with the other idle, 110 W with it asleep."""
    made = station(count=2, cap=120.0)
    assert broken(made) == ["power_cap"]
    assert broken(made, (0, 1, 0, 90)) == []
    assert broken(made, (0, 1, 0, 49)) == ["power_cap"]
    # The peak counts all devices awake and at rest, as they may be before anything happens.
    assert metrics(made, (0, 1, 0, 90))["peak_power_w"] == 110.0
    assert metrics(station(count=3), (0, 2, 0, 90))["peak_power_w"] == 150.0


def test_what_sleeps_heats_less() -> None:
    """Settles at 20 °C + 0.5 °C/W within a few ms: at 150 W to 95 °C, at 110 W to 75 °C."""
    made = station(count=2, cool=80.0)
    assert broken(made) == ["temperature"] and broken(made, (0, 1, 0, 90)) == []
    found = metrics(made, (0, 1, 0, 90))
    assert found["peak_temperature_c"] == pytest.approx(75.0, abs=1e-6)


def test_sleep_is_priced_when_it_happens() -> None:
    """0.36 USD per kWh is 1e-7 USD per J; from 20 s to 40 s it is twice that. 10 s at 10 W, then 17
    s at 10 W and 3 s at 50 W and the 100 J at double price; 2,000 J at the single price.
    """
    found = metrics(station(price=[0.36, 0.72, 0.36]), (0, 1, 10, 37))
    assert found["cost_usd"] == pytest.approx(1e-7 * (100 + 2 * (170 + 150 + 100) + 2000))


def test_power_over_time_adds_up_to_the_energy() -> None:
    made = station(horizon_s=100)
    schedule = at(made, [0, 40], (0, 1, 10, 37), (0, 1, 52, 100))
    energy_j = ob.verify(made, schedule).metrics["energy_j"]
    # 2,000 J, 100 J, 27 s and 48 s at 10 W, 3 s and 2 s at 50 W.
    assert power_trace(made, schedule).energy_j(made.tick_s) == energy_j == 3100.0


def test_a_bound_holds_for_devices_that_sleep() -> None:
    """Nothing is cheaper than 30 s at 10 W: 2,300 J."""
    made = station()
    bounds = ob.bound(made)
    assert max(each.value for each in bounds) == pytest.approx(2300.0)
    with pytest.raises(ob.UnsupportedError, match="waking: devices that sleep, and take time"):
        ob.solve(made, "cpsat")
    with pytest.raises(ob.UnsupportedError, match="explain it without wake_s and wake_j"):
        ob.explain(made, at(made, [0, 40]))


def test_the_rows_that_save_most_by_hand() -> None:
    """40 W less for 27 s save more than 100 J; of a gap of 5 s only 2 s would be slept."""
    made = station()
    assert list(sleep_rows(with_sleep(made, at(made, [0, 40])))) == [(0, 1, 10, 37)]
    assert list(sleep_rows(with_sleep(made, at(made, [35, 50])))) == [(0, 1, 0, 32)]
    two = station(count=2, horizon_s=100)
    # The device that never works sleeps for ever; the stack gives both tasks to the other one.
    rows = [(0, 1, 0, 100), (0, 1, 10, 37), (0, 1, 50, 100)]
    assert list(sleep_rows(with_sleep(two, at(two, [0, 40])))) == rows


@pytest.mark.parametrize("seed", range(8))
def test_no_rows_save_more(seed: int) -> None:
    """Against all sets of up to three rows that begin when something ends and wake in time."""
    rng = np.random.default_rng(seed)
    m = ob.Model("gaps", horizon_s=int(rng.integers(24, 30)) if seed % 2 else None)
    waking: dict[str, Any] = {"wake_s": int(rng.integers(0, 3)), "wake_j": int(rng.integers(1, 60))}
    gpu = m.pool("gpu", count=2, idle_w=20, sleep_w=5, sleeps=True, **waking)
    starts, now = [], 0
    for _ in range(3):
        now += int(rng.integers(0, 9))
        m.task(modes=[m.mode(gpu, time_s=int(rng.integers(1, 6)), energy_j=1)])
        starts.append(now)
    m.minimize(energy_j=1.0)
    made = m.build()
    plain = Schedule.of(made, made.tasks.kind, starts)
    if not ob.verify(made, plain).feasible:
        plain = Schedule.of(made, made.tasks.kind, [0, 6, 12])
    slept = with_sleep(made, plain)
    found = ob.verify(made, slept)
    assert found.feasible
    end = int(plain.end.max()) if made.horizon is None else made.horizon
    begins = sorted({0, *plain.end.tolist()})
    ends = sorted({end, *(plain.start - int(wake_ticks(made)[0])).tolist()})
    rows = [(0, 1, a, b) for a in begins for b in ends if a < b]
    best = ob.verify(made, plain).metrics["energy_j"]
    for size in (1, 2, 3):
        for some in itertools.combinations_with_replacement(rows, size):
            verdict = ob.verify(made, replace(plain, sleep=rows_of(*some)))
            if verdict.feasible:
                best = min(best, verdict.metrics["energy_j"])
    assert found.metrics["energy_j"] <= best + 1e-9
    if sum(devices for _, devices, _, _ in sleep_rows(slept)) <= 3:
        assert found.metrics["energy_j"] == pytest.approx(best)


@pytest.mark.parametrize(
    ("waking", "message"),
    [
        ({"sleeps": False}, "wake_s of pool 'gpu' is 3.0; it must be 0 in a pool that does not"),
        ({"sleep_w": 60}, "sleep_w of pool 'gpu' is 60.0; it must be at most idle_w where waking"),
        ({"wake_s": -1.0}, "wake_s of pool 'gpu' is -1.0; it must be a non-negative"),
        ({"wake_j": float("inf")}, "wake_j of pool 'gpu' is inf"),
    ],
)
def test_what_is_refused(waking: dict[str, Any], message: str) -> None:
    m = ob.Model("bad")
    given = {"idle_w": 50, "sleep_w": 10, "sleeps": True, "wake_s": 3.0, **waking}
    m.task(modes=[m.mode(m.pool("gpu", **given), time_s=1)])
    m.minimize(energy_j=1.0)
    with pytest.raises(ModelError, match=message):
        m.build()


def test_places_that_are_too_warm_with_all_awake_are_refused() -> None:
    with pytest.raises(ModelError, match="resting devices alone settle at 45 °C"):
        station(cool=44.0)


def test_files_hold_them_and_hashes_count_them(tmp_path: Path) -> None:
    made, path, rows = station(), tmp_path / "station.json", tmp_path / "schedule.json"
    ob.write_instance(made, path)
    back = ob.read_instance(path)
    assert isinstance(back, Instance) and back.hash == made.hash
    schedule = at(made, [0, 40], (0, 1, 10, 37))
    ob.write_schedule(schedule, rows, made)
    data = json.loads(rows.read_text())
    assert data["sleep"] == {"pool": [0], "devices": [1], "start": [10], "end": [37]}
    again = ob.read_schedule(rows, back)
    assert again.sleep is not None and ob.verify(back, again) == ob.verify(made, schedule)
    data["sleep"]["pool"] = [1]
    rows.write_text(json.dumps(data))
    with pytest.raises(FileFormatError, match=r"sleep.pool\[0\] is 1"):
        ob.read_schedule(rows, back)
    plain = station(waking={"wake_s": None, "wake_j": None})
    hashes = {made.hash, plain.hash, station(waking={"wake_s": 4.0}).hash}
    assert len(hashes | {station(waking={"wake_j": 50.0}).hash}) == 4
    ob.write_instance(plain, path)
    assert not LATER_COLUMNS & {*json.loads(path.read_text())["pools"]}
    ob.write_schedule(at(plain, [0, 40]), rows, plain)
    assert "sleep" not in json.loads(rows.read_text())


def test_without_such_pools_nothing_is_another_instance() -> None:
    plain = station(waking={"wake_s": None, "wake_j": None})
    assert kept_awake(plain) is plain and "waking" not in plain.features
    awake = kept_awake(station())
    assert awake.pools.rest_w.tolist() == [50.0] and kept_awake(awake) is awake


def test_rows_need_a_schedule_that_keeps_capacity() -> None:
    """Both tasks run on the only device at 40 s."""
    with pytest.raises(ParameterError, match="pool gpu has more busy devices than it has at 40 s"):
        with_sleep(station(), at(station(), [40, 40]))


def test_the_scale_of_energy_holds_devices_that_idle_and_wake() -> None:
    """The tolerance is a share of it: 30 s at 50 W, 2,000 J of work, 100 J to wake."""
    assert metric_scale(station(), "energy_j") >= 2000 + 30 * 50 + 100
