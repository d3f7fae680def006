"""The energy of a run by made-up counters, processor times and a made-up clock: every figure is
derived by hand.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from optbench.hardware.cpu_energy.processor_time import PackageTime
from optbench.hardware.cpu_run_meter import CpuRunMeter
from tests.hardware.made_up_powercap import MadeUpPowercap

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class MadeUpMachine:
    """One package of 100 W whose processors, counters and clock a test advances."""

    def __init__(self, folder: Path, range_j: float = 65_536.0) -> None:
        self.folder, self.now_s, self.busy_ticks = folder, 0.0, 0
        self.tree = MadeUpPowercap(folder / "powercap", range_j=range_j)
        place = folder / "cpu" / "cpu0" / "topology"
        place.mkdir(parents=True)
        (place / "physical_package_id").write_text("0")
        self.pass_time(0.0, 0.0)
        busy = PackageTime([0], folder / "stat", folder / "cpu")
        self.meter = CpuRunMeter(None, self.tree.root, busy, clock=lambda: self.now_s)

    def pass_time(self, seconds: float, busy_s: float, watts: float = 100.0) -> None:
        self.now_s += seconds
        self.busy_ticks += round(busy_s * TICKS_PER_S)
        (self.folder / "stat").write_text(f"cpu0 {self.busy_ticks} 0 0 0 0 0 0 0 0 0\n")
        self.tree.add("package-0", seconds * watts)


@pytest.fixture
def made_up(tmp_path: Path) -> MadeUpMachine:
    return MadeUpMachine(tmp_path)


def test_a_run_that_is_alone_is_charged_all(made_up: MadeUpMachine) -> None:
    made_up.pass_time(5.0, 3.0)
    made_up.meter.begin()
    made_up.pass_time(2.0, 1.0)
    made_up.tree.add("package-0 dram", 7.0)
    found = made_up.meter.so_far(1.0)
    # 2 s at 100 W and 7 J of memory; what was drawn before does not count. Half a second of
    # sleeping is charged as well: nobody else used the package.
    assert (found.cpu_j, found.cpu_source, found.cpu_s) == (207.0, "powercap", 1.0)
    assert (found.cpu_share, found.cpu_shared, found.estimated) == (1.0, False, False)
    assert found.notes == ()


def test_a_run_that_sleeps_is_charged_nothing_of_an_idle_package(made_up: MadeUpMachine) -> None:
    """Several may sleep at the same time: each would be charged the whole."""
    made_up.meter.begin()
    made_up.pass_time(2.0, 0.0)
    found = made_up.meter.so_far(0.0)
    assert (found.cpu_j, found.cpu_share, found.cpu_shared) == (0.0, 0.0, False)
    made_up.meter.begin()
    made_up.pass_time(1.0, 0.0)
    # 2 ms, of which the kernel saw no tick: within the 10 ms of one others may have had 8 ms.
    found = made_up.meter.so_far(0.002)
    assert found.cpu_j == pytest.approx(100.0 * 0.002 * TICKS_PER_S) and not found.cpu_shared


def test_a_shared_package_is_split_by_processor_time_second_by_second(
    made_up: MadeUpMachine,
) -> None:
    made_up.meter.begin()
    made_up.pass_time(1.0, 1.0)  # alone
    made_up.meter.tick(1.0)
    made_up.pass_time(1.0, 4.0, watts=200.0)  # beside others, who have three quarters
    made_up.meter.tick(2.0)
    found = made_up.meter.so_far(2.0)
    # 100 J + 200 J / 4 of 300 J; by the sums of processor time alone it would be 300 J × 2 / 5.
    assert found.cpu_j == pytest.approx(150.0)
    assert found.cpu_share == pytest.approx(0.5) and found.cpu_shared


def test_shares_of_two_runs_add_up_to_the_package(made_up: MadeUpMachine) -> None:
    other = CpuRunMeter(None, made_up.tree.root, made_up.meter.busy, lambda: made_up.now_s)
    made_up.meter.begin()
    other.begin()
    for second in range(1, 6):
        made_up.pass_time(1.0, 1.5)
        made_up.meter.tick(1.0 * second)
        other.tick(0.5 * second)
    one, two = made_up.meter.so_far(5.0), other.so_far(2.5)
    assert one.cpu_j == pytest.approx(2 * two.cpu_j)
    assert one.cpu_j + two.cpu_j == pytest.approx(500.0)


def test_a_tick_of_the_kernel_is_not_another_process(made_up: MadeUpMachine) -> None:
    made_up.meter.begin()
    made_up.pass_time(0.2, 0.11)
    found = made_up.meter.so_far(0.1)
    # 10 ms of others are within the resolution: not called shared; the share is 10/11 all the same.
    assert not found.cpu_shared and found.cpu_j == pytest.approx(20.0 * 10 / 11)


def test_ticks_are_often_enough_for_a_small_counter(tmp_path: Path) -> None:
    """A range of 100 J, which lasts 0.05 s at 2,000 W, at 1,500 W for two seconds: 30 wraps."""
    made_up = MadeUpMachine(tmp_path, range_j=100.0)
    made_up.meter.begin()
    assert made_up.meter.every_s == pytest.approx(0.025)
    for step in range(1, 101):
        made_up.pass_time(0.02, 0.0, watts=1500.0)
        made_up.pass_time(0.01, 0.0, watts=0.0)
        made_up.meter.tick(0.01 * step)
    found = made_up.meter.so_far(1.0)
    assert found.cpu_j == pytest.approx(3000.0) and found.notes == ()
    made_up.pass_time(1.0, 0.0, watts=150.0)
    assert found.complete
    found = made_up.meter.so_far(1.0)
    (note,) = found.notes
    assert "a lower bound: 1 s passed" in note and not found.complete


def test_without_a_tree_it_is_processor_time_at_a_stated_power(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPTBENCH_CPU_WATTS", "10")
    meter = CpuRunMeter(root=tmp_path / "none")
    meter.begin()
    meter.tick(0.5)
    found = meter.so_far(2.5)
    assert (found.cpu_j, found.cpu_source, found.assumed_w) == (25.0, "estimate", 10.0)
    assert found.estimated and found.cpu_share is None and found.complete
    assert found.notes == (f"estimated, processors: there is no folder {tmp_path / 'none'}",)


def test_a_tree_that_vanishes_leaves_an_estimate(made_up: MadeUpMachine) -> None:
    made_up.meter.begin()
    (made_up.tree.zones["package-0"] / "energy_uj").unlink()
    found = made_up.meter.so_far(2.0)
    assert found.estimated and found.cpu_j == 24.0
    assert "energy_uj cannot be read" in found.notes[0]
