"""Ranges of cpufreq after a killed calibration: they come back by the journal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from optbench.hardware.calibration import cpufreq_journal
from optbench.hardware.calibration.clock_sweep import ending_signals
from optbench.hardware.calibration.cpu_target import CpuTarget
from optbench.hardware.calibration.cpufreq_journal import restore_cpu_clocks
from optbench.hardware.calibration.cpufreq_levels import ClockPolicy, CpuClockError, put_back
from optbench.hardware.clock_control.device_lock import DeviceBusyError
from tests.cli.conftest import environment
from tests.hardware.calibration.made_up_cpus import MadeUpCpus

RANGE = {("800000", "2000000")}
LOCKED = {("1200000", "1200000")}
HOLD = """
import sys, time
from optbench.hardware.calibration.cpu_target import CpuTarget
with CpuTarget().clocks() as clocks:
    clocks.hold(1, 1200)
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def cpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MadeUpCpus:
    found = MadeUpCpus(tmp_path)
    for name, value in found.variables.items():
        monkeypatch.setenv(name, value)
    return found


def holding(cpus: MadeUpCpus) -> subprocess.Popen[str]:
    """A process that has set all clocks to 1200 MHz."""
    words = [sys.executable, "-c", HOLD]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment())
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    assert cpus.ranges() == LOCKED
    return process


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate(timeout=60)


def journal(cpus: MadeUpCpus) -> Path:
    (found,) = cpus.state.glob("*.ranges")
    return found


def restored(code: int = 0) -> str:
    """What ``optbench gpu restore`` says."""
    words = [sys.executable, "-m", "optbench.cli.main", "gpu", "restore", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment())
    assert done.returncode == code, done.stderr
    (found,) = json.loads(done.stdout)["devices"]
    return str(found["state"])


def test_restore_puts_back_what_a_killed_calibration_left(cpus: MadeUpCpus) -> None:
    process = holding(cpus)
    assert restored() == "held" and cpus.ranges() == LOCKED
    with pytest.raises(DeviceBusyError, match="calibrating processors"), CpuTarget().clocks():
        pass
    kill(process)
    assert cpus.ranges() == LOCKED
    assert restored() == "restored" and cpus.ranges() == RANGE
    assert not list(cpus.state.glob("*.ranges")) and restore_cpu_clocks(cpus.state, cpus.cpus) == ()


def test_the_next_calibration_does_not_adopt_the_locked_range(cpus: MadeUpCpus) -> None:
    kill(holding(cpus))
    target = CpuTarget()
    assert target.levels_mhz == (800, 1200, 1600, 2000) and cpus.ranges() == LOCKED
    with target.clocks() as clocks:
        assert cpus.ranges() == RANGE
        clocks.hold(1, 1600)
        assert journal(cpus).exists()
    assert cpus.ranges() == RANGE and not list(cpus.state.glob("*.ranges"))


def test_the_range_is_written_before_the_first_clock(cpus: MadeUpCpus) -> None:
    with CpuTarget().clocks():
        document = json.loads(journal(cpus).read_text())
        assert cpus.ranges() == RANGE
    kept = [800_000, 2_000_000]
    assert document["ranges"] == {"cpufreq/policy0": kept, "cpufreq/policy1": kept}


def test_a_restart_of_the_host_has_ended_all_locks(cpus: MadeUpCpus) -> None:
    """The range of the new start is not touched."""
    kill(holding(cpus))
    path = journal(cpus)
    path.write_text(json.dumps({**json.loads(path.read_text()), "boot_id": "another"}))
    assert restored() == "untouched" and cpus.ranges() == LOCKED and not path.exists()


@pytest.mark.parametrize("content", ["{", "[]", '{"format": "optbench-cpu-clocks-1"}'])
def test_a_damaged_journal_is_kept_and_named(cpus: MadeUpCpus, content: str) -> None:
    kill(holding(cpus))
    journal(cpus).write_text(content)
    assert restored(code=2) == "kept" and journal(cpus).exists()
    with pytest.raises(CpuClockError, match=r"\.ranges of the ranges of .* is damaged"):
        CpuTarget()


def test_a_range_that_cannot_be_put_back_keeps_the_journal(cpus: MadeUpCpus) -> None:
    kill(holding(cpus))
    target = cpus.cpus / "cpufreq" / "policy1" / "scaling_max_freq"
    target.unlink()
    target.mkdir()
    (outcome,) = restore_cpu_clocks(cpus.state, cpus.cpus)
    assert outcome.kept and "cpufreq/policy1 is not there" in outcome.words
    assert journal(cpus).exists()


def test_a_termination_puts_the_range_back(cpus: MadeUpCpus, tmp_path: Path) -> None:
    """The whole command, while its load works at a clock that it has set."""
    words = ("gpu", "calibrate", "--device", "cpu", "-o", "cpu.json", "--workload", cpus.load)
    process = subprocess.Popen(
        [sys.executable, "-m", "optbench.cli.main", *words, "--idle", "100ms"],
        cwd=tmp_path,
        env=environment(),
        stderr=subprocess.PIPE,
    )
    with cpus.tree.drawing({"package-0 dram": 4.0}):
        while cpus.ranges() == RANGE:
            assert process.poll() is None, process.communicate()
            time.sleep(0.001)
        os.kill(process.pid, signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 130 and cpus.ranges() == RANGE
    assert not list(cpus.state.glob("*.ranges"))


def test_a_termination_waits_for_the_range_to_be_put_back(
    cpus: MadeUpCpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    def terminated(policies: tuple[ClockPolicy, ...]) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        put_back(policies)

    with ending_signals(), pytest.raises(KeyboardInterrupt), CpuTarget().clocks() as clocks:
        clocks.hold(1, 1200)
        monkeypatch.setattr(cpufreq_journal, "put_back", terminated)
    assert cpus.ranges() == RANGE and not list(cpus.state.glob("*.ranges"))
