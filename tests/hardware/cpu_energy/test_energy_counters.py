"""Joules from counters that wrap around, over a made-up powercap tree."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from optbench.hardware.cpu_energy.energy_counters import CpuEnergyCounters
from tests.hardware.made_up_powercap import MadeUpPowercap


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_energy_counts_from_the_first_reading(tmp_path: Path) -> None:
    tree = MadeUpPowercap(tmp_path)
    tree.add("package-0", 7.0)
    counters = CpuEnergyCounters(tmp_path)
    assert counters.read().energy_j == 0
    tree.add("package-0", 2.5)
    tree.add("package-0 dram", 0.25)
    tree.add("package-0 core", 2.0)
    tree.add("psys", 9.0)
    reading = counters.read()
    assert reading.zone_j == {"package-0": 2.5, "package-0 dram": 0.25}
    assert reading.energy_j == 2.75 and reading.doubt == ""


def test_only_the_packages_asked_for(tmp_path: Path) -> None:
    tree = MadeUpPowercap(tmp_path, packages=2)
    counters = CpuEnergyCounters(tmp_path, packages=[1])
    tree.add("package-0", 3.0)
    tree.add("package-1", 4.0)
    assert counters.read().zone_j == {"package-1": 4.0, "package-1 dram": 0.0}


def test_a_counter_that_wraps_around_again_and_again(tmp_path: Path) -> None:
    """A range of 10 J at 60 J in steps of 7 J: six wraps, each between two readings."""
    tree, clock = MadeUpPowercap(tmp_path, range_j=10.0), Clock()
    counters = CpuEnergyCounters(tmp_path, highest_w=2.0, clock=clock)
    # 10 J last at least 5 s at 2 W, so that readings have to follow within 2.5 s.
    assert (counters.wraps_within_s, counters.every_s) == (5.0, 2.5)
    total_j = 0.0
    for _ in range(9):
        tree.add("package-0", 7.0)
        clock.now_s += 3.5
        total_j += 7.0
        assert counters.is_due()
        assert counters.read().energy_j == pytest.approx(total_j, abs=1e-9)
    assert counters.read().doubt == ""


def test_a_gap_in_which_a_counter_may_wrap_twice_is_stated(tmp_path: Path) -> None:
    tree, clock = MadeUpPowercap(tmp_path, range_j=10.0), Clock()
    counters = CpuEnergyCounters(tmp_path, highest_w=2.0, clock=clock)
    tree.add("package-0", 12.0)
    clock.now_s += 6.0
    reading = counters.read()
    # 12 J in a range of 10 J: the counter shows 2 J, and nothing shows that it wrapped.
    assert reading.energy_j == pytest.approx(2.0)
    assert "a lower bound: 6 s passed between two readings of package-0" in reading.doubt
    clock.now_s += 1.0
    assert counters.read().doubt == reading.doubt


def test_a_process_that_advances_the_counters_is_measured(tmp_path: Path) -> None:
    """200 W over a range of 20 J wrap ten times a second; half the shortest time is 25 ms."""
    tree = MadeUpPowercap(tmp_path, range_j=20.0)
    with tree.drawing({"package-0": 200.0}):
        counters = CpuEnergyCounters(tmp_path, highest_w=400.0)
        began_s = time.monotonic()
        while time.monotonic() - began_s < 0.3:
            counters.read()
            time.sleep(counters.every_s / 10)
        reading = counters.read()
    watts = reading.energy_j / (reading.t_s - began_s)
    assert reading.energy_j > 2 * 20.0
    # A reader that waits for the processor longer than a wrap lasts must say so.
    assert reading.doubt or watts == pytest.approx(200.0, rel=0.2)
