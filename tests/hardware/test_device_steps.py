"""What a GPU drew between readings and for whom, by readings of made-up moments."""

from __future__ import annotations

import math

import pytest

from optbench.hardware.device_steps import DeviceUse, WatchedDevice
from optbench.hardware.gpus.gpu_device import GpuDevice, GpuReading

ONE, BOTH = DeviceUse(frozenset({"one"})), DeviceUse(frozenset({"one", "two"}))


def joules(device: WatchedDevice, run: str, began_s: float, ended_s: float) -> float:
    steps = device.steps_between(began_s, ended_s)
    return sum(step.energy_j * step.share_of(run, began_s, ended_s) for step in steps)


def test_a_long_run_keeps_its_beginning() -> None:
    """3,000 readings at 100 W, a second apart; another run is on the device from 1,000 s to
    1,500 s, so that 250 s × 100 W are not the first's. Ended runs count by their number.
    """
    device = WatchedDevice(device_of_100_w(), reading_at(0.0), ONE)
    for second in range(1, 3001):
        use = BOTH if 1000 <= second <= 1499 else ONE
        device.add(reading_at(float(second)), use, {"one"}, since_s=0.0)
    assert len(device.steps) < 1300
    # The step from 999 s and that to 1,500 s are shared as well: 501 s.
    assert joules(device, "one", 0.5, 2999.5) == pytest.approx(100.0 * (2999.0 - 250.5))
    assert joules(device, "one", 1000.0, 1500.0) == pytest.approx(25_000.0)
    assert joules(device, "two", 0.0, 2999.0) == 0.0  # it has ended, and nobody asks
    for second in range(3001, 5000):
        device.add(reading_at(float(second)), ONE, {"one"}, since_s=4900.0)
    assert device.steps[0].began_s > 3000.0


def test_a_run_that_had_ended_leaves_its_part_to_the_others() -> None:
    """Two runs were given a device of 100 W for 10 s; of the second it turns out at the end that
    its process was there from 2.5 s to 6.5 s only.
    """
    device = WatchedDevice(device_of_100_w(), reading_at(0.0), BOTH)
    for second in range(1, 11):
        device.add(reading_at(float(second)), BOTH, {"one", "two"}, since_s=0.0)
    assert joules(device, "two", 2.5, 6.5) == pytest.approx(200.0)
    device.give_back("two", 0.0, 2.5)
    device.give_back("two", 6.5, math.inf)
    # 6 s alone at 100 W and half of 4 s.
    assert joules(device, "one", 0.0, 10.0) == pytest.approx(800.0)
    assert sum(each.energy_j for each in device.steps) == pytest.approx(1000.0)


def test_a_process_counts_from_the_reading_before_it_to_the_one_after_it() -> None:
    device = WatchedDevice(device_of_100_w(), reading_at(0.0))
    for second, use in enumerate((DeviceUse(), ONE, DeviceUse(), DeviceUse()), start=1):
        device.add(reading_at(float(second)), use, {"one"}, since_s=0.0)
    assert joules(device, "one", 0.0, 4.0) == pytest.approx(200.0)  # from 1 s to 3 s


def test_processes_are_hidden_where_none_is_seen_on_a_busy_device() -> None:
    device = WatchedDevice(device_of_100_w(), reading_at(0.0))
    assert device.hides_processes(reading_at(1.0), None)
    assert device.hides_processes(reading_at(2.0), ())
    assert not device.hides_processes(reading_at(3.0), (17,))
    # Utilisation is one of the last second: of a process that has just ended.
    assert not device.hides_processes(reading_at(3.5), ())
    assert device.hides_processes(reading_at(4.5), ())


def device_of_100_w() -> GpuDevice:
    return GpuDevice(0, "GPU-a", "made up", "1", None, None, (), False, {})


def reading_at(t_s: float) -> GpuReading:
    return GpuReading(t_s, 100.0, 0.0, 100.0 * t_s, None, None, None, 1.0, ())
