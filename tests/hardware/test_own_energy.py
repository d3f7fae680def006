"""The energy of work that a process does itself, over a made-up powercap tree."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from optbench.cli.terminal.metering import metered, processor_s
from optbench.hardware.own_energy import OwnEnergy
from optbench.hardware.run_energy import RunEnergy
from tests.hardware.made_up_powercap import MadeUpPowercap


def work(seconds: float) -> None:
    end_s = processor_s() + seconds
    while processor_s() < end_s:
        sum(range(1000))


def test_work_is_measured_and_told_while_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A range of 2,000 J lasts a second at 2,000 W: it is read twice a second."""
    tree = MadeUpPowercap(tmp_path, range_j=2000.0)
    monkeypatch.setenv("OPTBENCH_POWERCAP_ROOT", str(tmp_path))
    told: list[RunEnergy] = []
    with tree.drawing({"package-0": 200.0}), OwnEnergy(processor_s, told.append, 0.0) as meter:
        began_s = time.monotonic()
        while not told:
            work(0.05)
        lasted_s = time.monotonic() - began_s
    found = meter.so_far()
    assert found.cpu_source == "powercap" and found.cpu_s >= 0.05
    assert 0 < told[0].cpu_j <= found.cpu_j
    # 200 W, of which others may have had a share.
    assert found.cpu_share is not None
    assert found.cpu_j == pytest.approx(200.0 * lasted_s * found.cpu_share, rel=0.2)
    assert meter.so_far() is found


def test_processes_below_count_while_they_live_and_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPTBENCH_POWERCAP_ROOT", str(tmp_path / "none"))
    monkeypatch.setenv("OPTBENCH_CPU_WATTS", "10")
    with metered() as meter:
        work(0.1)
    found = meter.so_far()
    assert found.estimated and found.cpu_s >= 0.1
    assert found.cpu_j == pytest.approx(10.0 * found.cpu_s)
