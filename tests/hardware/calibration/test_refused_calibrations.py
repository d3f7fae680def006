"""Calibrations that fail: a clear message, clocks reset, no process left, nothing half-written."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Outcome
from tests.hardware.calibration.gpu_calibrations import (
    PROFILE,
    calibrated,
    nothing_written,
    profile_of,
    script,
    started,
)
from tests.hardware.conftest import MachineMaker
from tests.hardware.gpu_machine import GpuMachine


def refused(machine: GpuMachine, done: Outcome, *said: str) -> None:
    """Exit code 2, the message, and a machine as it was before."""
    assert done.code == 2, done
    for words in said:
        assert words in done.err, done.err
    assert nothing_written(machine)
    assert all(machine.locked(k) is None for k in range(machine.state.num_devices))
    assert not list((machine.folder / "state").glob("*.journal"))


def test_a_throttled_clock_is_left_out_on_request(gpu_machines: MachineMaker) -> None:
    """A thermal cap of 1200 MHz: the clocks below it are held, 1410 MHz is not."""
    machine = gpu_machines()
    machine.throttle(1200)
    words = ("--clocks", "360,720,900,1065,1410", "--leave-out", "--retries", "0")
    done = calibrated(machine, *words)
    assert done.code == 0, done.err
    assert "left out: 1410 MHz on 1 device: throttled" in done.out
    found = profile_of(machine)
    assert found["clocks"][-1] == pytest.approx(1065 / 1410, abs=1e-6)
    assert found["laws"]["training"]["alpha_p"] == pytest.approx(150, rel=0.03)
    (reason,) = found["measurement"]["training"]["left_out"]
    assert "hardware thermal slowdown" in reason


def test_a_power_limit_below_the_law_is_a_throttle_too(gpu_machines: MachineMaker) -> None:
    machine = gpu_machines(power_limit_w=200.0)
    done = calibrated(machine, "--retries", "0")
    said = "1410 MHz on 1 device: throttled by power cap in 100 %"
    refused(machine, done, "no law is fitted: 1 point was refused", said, "--leave-out")
    assert "1065 MHz on 1 device: throttled" not in done.err


def test_noise_is_refused(gpu_machines: MachineMaker) -> None:
    machine = gpu_machines(has_counter=0, noise=0.6)
    done = calibrated(machine, "--retries", "0", "--idle", "400ms")
    assert done.code == 2 and "noisy: the power in blocks of" in done.err, done.err
    assert nothing_written(machine)


def test_without_permission_nothing_is_measured(gpu_machines: MachineMaker) -> None:
    machine = gpu_machines(deny_clocks=1)
    began_s = time.monotonic()
    done = calibrated(machine, "--idle", "60s")
    refused(machine, done, "nvmlDeviceSetGpuLockedClocks", "no permission", "sudo")
    assert time.monotonic() - began_s < 50


def test_a_device_in_mig_mode_and_an_old_driver(gpu_machines: MachineMaker) -> None:
    refused(machine := gpu_machines(mig=1), calibrated(machine), "MIG", "-mig 0")
    machine = gpu_machines(old_driver=True)
    refused(machine, calibrated(machine), "nvmlDeviceSetGpuLockedClocks", "too old")


def test_a_device_in_use_has_no_idle_power(gpu_machine: GpuMachine) -> None:
    other = gpu_machine.load([0], seconds=60)
    done = calibrated(gpu_machine)
    other.kill()
    other.communicate()
    refused(gpu_machine, done, "is in use: 100 % busy without our load")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("echo no memory left >&2; exit 9", "ended with exit code 9; it said: no memory left"),
        ("sleep 0.05; echo units=10 seconds=0.04", "too short for 0.25 s of steady power"),
        ("sleep 30", "still runs after 1 s"),
    ],
)
def test_a_workload_that_is_of_no_use(gpu_machine: GpuMachine, text: str, said: str) -> None:
    load = script(gpu_machine.folder, text)
    done = calibrated(gpu_machine, "--run-limit", "1s", "--retries", "0", load=load)
    refused(gpu_machine, done, said)


@pytest.mark.slow
def test_a_load_on_another_device_is_noticed(gpu_machines: MachineMaker) -> None:
    machine = gpu_machines(num_devices=2)
    load = script(machine.folder, f"exec {machine.libraries.load_program} 1 1000 --seconds $3")
    done = calibrated(machine, "--measure", "2s", "--retries", "0", load=load)
    refused(machine, done, "only 0 % busy: the load does not use {device}")


def test_a_workload_that_is_not_there(gpu_machine: GpuMachine) -> None:
    done = calibrated(gpu_machine, load="./no-such-program {device}")
    refused(gpu_machine, done, "cannot be started", "no-such-program")


def test_a_device_lost_within_the_sweep_is_named(gpu_machine: GpuMachine) -> None:
    """Its clocks cannot be reset: the journal stays for `gpu restore`."""
    process = started(gpu_machine)
    until_locked(gpu_machine, process)
    gpu_machine.lose()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2 and "the GPU is lost" in err, (out, err)
    assert nothing_written(gpu_machine)
    assert "journal" in err and list((gpu_machine.folder / "state").glob("*.journal"))


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        pytest.param(signal.SIGINT, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
    ],
)
def test_a_signal_resets_the_clocks(gpu_machine: GpuMachine, number: signal.Signals) -> None:
    process = started(gpu_machine)
    until_locked(gpu_machine, process)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted" in err
    assert nothing_written(gpu_machine) and gpu_machine.locked() is None
    assert loads(gpu_machine) == []


def test_a_killed_calibration_is_restored_by_the_watchdog(gpu_machine: GpuMachine) -> None:
    """While it lives, a second one is refused. Its load runs within a shell."""
    program = gpu_machine.libraries.load_program
    load = script(gpu_machine.folder, f"{program} $1 $2 --seconds $3\nexit $?\n")
    process = started(gpu_machine, "--measure", "30s", load=load)
    until_locked(gpu_machine, process)
    second = calibrated(gpu_machine)
    assert second.code == 2 and "calibrating" in second.err, second.err
    assert gpu_machine.locked() is not None
    process.kill()
    process.communicate(timeout=60)
    until = time.monotonic() + 30
    while gpu_machine.locked() is not None and time.monotonic() < until:
        time.sleep(0.02)
    assert gpu_machine.locked() is None and nothing_written(gpu_machine)
    # Its load has ended with it.
    while loads(gpu_machine) and time.monotonic() < until:
        time.sleep(0.02)
    assert loads(gpu_machine) == []


def test_an_older_profile_survives_a_failure(gpu_machine: GpuMachine) -> None:
    old = gpu_machine.folder / PROFILE
    old.write_text('{"mine": 1}')
    load = script(gpu_machine.folder, "exit 1")
    assert calibrated(gpu_machine, load=load).code == 2
    assert old.read_text() == '{"mine": 1}'
    done = calibrated(gpu_machine, "--merge")
    assert done.code == 2 and "key 'mine'" in done.err
    assert gpu_machine.calls()[-1].kind == "reset"


def until_locked(machine: GpuMachine, process: subprocess.Popen[str]) -> None:
    """Wait until the first run works at a locked clock."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if machine.locked() is not None and loads(machine):
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)
    raise AssertionError("no clock was locked within a minute")


def loads(machine: GpuMachine) -> list[int]:
    """Load programs that work on the machine now."""
    with machine.changing() as current:
        return [each.pid for each in current.loads if each.active and alive(each.pid)]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
