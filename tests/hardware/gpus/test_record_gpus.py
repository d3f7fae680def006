"""``optbench gpu record``: what is in the file, its energies, and what ends it early."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from optbench.errors import FileFormatError
from optbench.hardware.gpus.recording_file import GpuRecording, read_recording
from tests.hardware.conftest import MachineMaker
from tests.hardware.gpu_machine import GpuMachine

RECORD = ("gpu", "record", "-o", "power.parquet", "--every", "20ms")


def recorded(machine: GpuMachine, *words: str, code: int = 0) -> GpuRecording:
    """Record under load for 1.2 seconds or as the words say."""
    load = machine.load([0], seconds=60)
    done = machine.run([*RECORD, *(words or ("--seconds", "1.2"))])
    load.kill()
    load.communicate()
    assert done.code == code, done.err
    return read_recording(machine.folder / "power.parquet")


def test_integral_and_counter_agree_without_spikes(gpu_machines: MachineMaker) -> None:
    # 250 W with 0.2 % noise for 1.2 s at 20 ms, 61 readings: the integral is off by 0.03 %.
    machine = gpu_machines(num_devices=2, noise=0.002)
    found = recorded(machine, "--seconds", "1.2", "--plot", "power.svg")
    energies = [gpu.energy for gpu in found.info.gpus]
    assert [each["agrees"] for each in energies] == [True, True]
    assert energies[0]["source"] == "counter"
    assert energies[0]["energy_j"] == pytest.approx(250 * energies[0]["span_s"], rel=0.01)
    assert energies[0]["integral_j"] == pytest.approx(energies[0]["counter_j"], rel=0.005)
    columns = found.of(1)
    assert columns["power_w"] == pytest.approx(40, rel=0.012) and set(columns["gpu"]) == {1}
    assert np.all(np.diff(columns["t_s"]) > 0) and set(columns["throttle_reasons"]) == {"idle"}
    assert columns["clock_mhz"][0] == 210 and columns["utilisation"][-1] == 0
    assert "<svg" in (machine.folder / "power.svg").read_text()
    assert found.info.gpus[0].uuid == machine.uuid(0) and found.info.period_s == 0.02
    assert {"optbench", "nvidia-ml-py", "pyarrow"} <= set(found.info.versions)


def test_with_short_spikes_the_counter_is_the_figure(gpu_machines: MachineMaker) -> None:
    # 100 kW more for 20 us in every 10 ms, which is 200 W in the mean: readings at every 20 ms
    # hardly meet any, and one that they meet would count for 20 ms, which is 2000 J.
    machine = gpu_machines(spike_w=1e5, spike_width_ns=20_000, spike_period_ns=10_000_000)
    (gpu,) = recorded(machine).info.gpus
    energy = gpu.energy
    assert energy["source"] == "counter" and energy["agrees"] is False
    # 450 W in the mean; one spike of 2 J more or less, and 450 W for some milliseconds.
    assert abs(energy["energy_j"] - 450 * energy["span_s"]) < 8.0
    assert energy["difference"] == pytest.approx(250 / 450 - 1, abs=0.02) or (
        energy["difference"] > 1
    )


def test_without_a_counter_it_is_the_integral_with_its_error(gpu_machines: MachineMaker) -> None:
    machine = gpu_machines(noise=0.01, has_counter=0)
    (gpu,) = recorded(machine).info.gpus
    energy = gpu.energy
    assert energy["source"] == "integral" and "does not support it" in energy["without_counter"]
    # Two standard errors of 250 W x 1 % x 20 ms x sqrt(60) are 0.77 J; more if ticks are missed.
    assert 0.5 < energy["error_j"] < 8
    assert abs(energy["energy_j"] - 250 * energy["span_s"]) <= 1.5 * energy["error_j"]


def test_an_old_driver_is_recorded_with_its_window(gpu_machines: MachineMaker) -> None:
    machine = gpu_machines(old_driver=True, name=b"NVIDIA A40")
    found = recorded(machine, "--seconds", "400ms")
    (gpu,) = found.info.gpus
    assert gpu.power_window_s == gpu.energy["power_window_s"] == 1.0
    assert "too old" in gpu.energy["without_counter"]
    assert np.all(np.isnan(found.columns["energy_j"]))


def test_a_device_lost_on_the_way_leaves_a_whole_file(gpu_machines: MachineMaker) -> None:
    machine = gpu_machines(num_devices=2)
    process = machine.start([*RECORD, "--json"])
    wait_for_rows(machine.folder, process)
    wait_for_readings(machine, process, 1)
    machine.lose(1)
    wait_for_readings(machine, process)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    first, second = json.loads(out)["gpus"]
    assert first["lost"] is None and "the GPU is lost" in second["lost"]
    found = read_recording(machine.folder / "power.parquet")
    assert found.info.ended == "interrupted" and found.info.gpus[1].lost == second["lost"]
    assert 2 < len(found.of(1)["t_s"]) < len(found.of(0)["t_s"]) == found.info.ticks
    process = machine.start([*RECORD, "--seconds", "600"])
    wait_for_rows(machine.folder, process)
    wait_for_readings(machine, process)
    machine.lose(0)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2 and "the GPU is lost" in out and "is kept" in out
    assert "the GPU is lost" in err
    assert read_recording(machine.folder / "power.parquet").info.ended == "lost"


def test_a_device_lost_before_the_first_reading_leaves_no_file(gpu_machine: GpuMachine) -> None:
    gpu_machine.lose()
    done = gpu_machine.run([*RECORD, "--seconds", "1"])
    assert done.code == 2 and "no GPU answers" in done.err and "the GPU is lost" in done.err
    assert list(gpu_machine.folder.glob("*power*")) == []


@pytest.mark.parametrize(("words", "code"), [((), 0), (("--seconds", "600"), 130)])
def test_ctrl_c_keeps_what_was_recorded(
    gpu_machine: GpuMachine, words: tuple[str, ...], code: int
) -> None:
    process = gpu_machine.start([*RECORD, *words])
    wait_for_rows(gpu_machine.folder, process)
    wait_for_readings(gpu_machine, process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code and "is kept" in out and "stopping" in err
    found = read_recording(gpu_machine.folder / "power.parquet")
    assert found.info.ended == "interrupted" and len(found.columns["t_s"]) == found.info.ticks


SPIKES = {"spike_w": 400.0, "spike_width_ns": 5_000_000, "spike_period_ns": 100_000_000}


def test_spikes_in_step_with_the_period_are_within_the_stated_error(
    gpu_machines: MachineMaker,
) -> None:
    """Idle 40 W and 400 W more for 5 ms of every 100 ms: 60 W in the mean. Readings on a grid of
    20 ms meet all spikes, each for 20 ms, or none: 120 or 40 W.
    """
    machine = gpu_machines(has_counter=0, **SPIKES)
    done = machine.run([*RECORD, "--seconds", "3", "--json"])
    energy = done.json["gpus"][0]["energy"]
    assert energy["source"] == "integral" and energy["error_j"] > 0
    # A spike of 2 J more or less is within 3 s.
    assert abs(energy["energy_j"] - 60 * energy["span_s"]) <= energy["error_j"] + 2.0


def test_a_killed_recording_leaves_no_half_file(gpu_machine: GpuMachine) -> None:
    (gpu_machine.folder / "power.parquet").write_text("an older file")
    process = gpu_machine.start([*RECORD, "--seconds", "600"])
    wait_for_rows(gpu_machine.folder, process)
    process.kill()
    process.communicate()
    assert (gpu_machine.folder / "power.parquet").read_text() == "an older file"
    # The next recording removes what is left, but nothing of one that runs.
    (left,) = gpu_machine.folder.glob(".power.parquet.*")
    other = gpu_machine.start([*RECORD, "--seconds", "600"])
    wait_for_rows(gpu_machine.folder, other, left)
    assert not left.exists()
    (running,) = gpu_machine.folder.glob(".power.parquet.*")
    assert gpu_machine.run([*RECORD, "--seconds", "40ms"]).code == 0 and running.exists()
    other.send_signal(signal.SIGINT)
    other.communicate(timeout=60)
    assert not running.exists()


def test_a_hang_up_keeps_what_was_recorded(gpu_machine: GpuMachine) -> None:
    """The terminal goes, and the kernel tells its session."""
    pid, terminal = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.chdir(gpu_machine.folder)
        words = [sys.executable, "-m", "optbench.cli.main", *RECORD, "--seconds", "600"]
        os.execve(words[0], words, {**gpu_machine.environment(TERM="xterm"), "COLUMNS": "120"})
    while not list(gpu_machine.folder.glob(".power.parquet.*")):
        time.sleep(0.01)
    time.sleep(0.3)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 130
    found = read_recording(gpu_machine.folder / "power.parquet")
    assert found.info.ended == "interrupted" and len(found.columns["t_s"]) == found.info.ticks
    assert not list(gpu_machine.folder.glob(".power.parquet.*"))


def test_an_ignored_hang_up_ends_nothing(gpu_machine: GpuMachine) -> None:
    """As under nohup: the signal arrives in the middle, and the recording has its whole length."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = gpu_machine.start([*RECORD, "--seconds", "600ms"])
    finally:
        signal.signal(signal.SIGHUP, before)
    wait_for_rows(gpu_machine.folder, process)
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=60)
    assert process.returncode == 0
    info = read_recording(gpu_machine.folder / "power.parquet").info
    assert info.ended == "finished" and info.span_s >= 0.58


def wait_for_rows(folder: Path, process: subprocess.Popen[str], *others: Path) -> None:
    """Wait until the recording has begun: its file has a name of its own until the end."""
    while set(folder.glob(".power.parquet.*")) <= set(others):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def wait_for_readings(machine: GpuMachine, process: subprocess.Popen[str], device: int = 0) -> None:
    """Wait until a device has been read twelve times more, however long that takes."""
    wanted = machine.device(device).num_readings + 12
    while machine.device(device).num_readings < wanted:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def test_other_files_are_no_recordings(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow.parquet import write_table

    (tmp_path / "text.parquet").write_text("no Parquet")
    with pytest.raises(FileFormatError, match=r"text\.parquet is no Parquet file"):
        read_recording(tmp_path / "text.parquet")
    write_table(pa.table({"x": [1]}), tmp_path / "other.parquet")
    with pytest.raises(FileFormatError, match=r"other\.parquet has no metadata"):
        read_recording(tmp_path / "other.parquet")
