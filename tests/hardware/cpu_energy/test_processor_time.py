"""Processor time of packages, from made-up files of the kernel."""

from __future__ import annotations

import os
from pathlib import Path

from optbench.hardware.cpu_energy.processor_time import PackageTime

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
# user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice
STAT = """cpu  9999 0 0 0 0 0 0 0 0 0
cpu0 100 20 30 4000 500 6 4 70 80 0
cpu1 200 0 0 4000 500 0 0 70 80 0
cpu2 1000 0 0 4000 500 0 0 70 80 0
intr 22448763 0 0 0
ctxt 26780339
"""


def machine(folder: Path, packages: tuple[int, ...] = (0, 0, 1)) -> tuple[Path, Path]:
    """Three processors on two packages; a fourth is switched off and has no package."""
    for index, package in enumerate(packages):
        place = folder / "cpu" / f"cpu{index}" / "topology"
        place.mkdir(parents=True)
        (place / "physical_package_id").write_text(f"{package}\n")
    (folder / "cpu" / "cpu3").mkdir(parents=True)
    (folder / "stat").write_text(STAT)
    return folder / "stat", folder / "cpu"


def test_only_the_processors_of_a_runs_packages_count(tmp_path: Path) -> None:
    stat, topology = machine(tmp_path)
    first, second = PackageTime([1], stat, topology), PackageTime([2], stat, topology)
    # cpu0: 100 + 20 + 30 + 6 + 4 ticks, neither idle, waiting, stolen nor guests; cpu1: 200
    assert first.packages == {0} and first.busy_s() == 360 / TICKS_PER_S
    assert second.packages == {1} and second.busy_s() == 1000 / TICKS_PER_S
    both = PackageTime([0, 2], stat, topology)
    assert both.packages == {0, 1} and both.busy_s() == 1360 / TICKS_PER_S


def test_without_packages_the_whole_machine_counts(tmp_path: Path) -> None:
    stat, topology = machine(tmp_path, packages=())
    found = PackageTime([0], stat, topology)
    assert found.packages == frozenset() and found.busy_s() == 9999 / TICKS_PER_S


def test_where_the_kernel_says_nothing_the_time_is_unknown(tmp_path: Path) -> None:
    assert PackageTime([0], tmp_path / "none", tmp_path).busy_s() is None


def test_this_machines_processors_have_been_busy() -> None:
    found = PackageTime()
    before_s = found.busy_s()
    if before_s is not None:
        sum(range(3_000_000))
        after_s = found.busy_s()
        assert after_s is not None and after_s >= before_s > 0
