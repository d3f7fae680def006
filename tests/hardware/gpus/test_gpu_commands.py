"""``optbench gpu list`` and ``watch``, and ``doctor``, on machines with made-up GPUs."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time

import pytest

from tests.hardware.conftest import MachineMaker
from tests.hardware.gpu_machine import GpuMachine


def test_list_shows_what_a_device_says(gpu_machine: GpuMachine) -> None:
    # P(1) = 150 + 50 + 50 = 250 W at the highest clock, 1410 MHz.
    load = gpu_machine.load([0], seconds=60)
    (found,) = gpu_machine.run(["gpu", "list", "--json"]).json["devices"]
    shown = gpu_machine.run(["gpu", "list"]).out
    load.kill()
    load.communicate()
    assert found["uuid"] == gpu_machine.uuid() and found["missing"] == {}
    assert found["clocks_mhz"] == list(range(210, 1411, 15))
    assert (found["now"]["power_w"], found["now"]["power_window_s"]) == (250.0, 0.0)
    assert (found["now"]["clock_mhz"], found["now"]["utilisation"]) == (1410, 1.0)
    assert found["locked_clocks"]["state"] == "not locked"
    assert "1,410 MHz" in shown and "250 W" in shown and "not locked (inferred)" in shown


@pytest.mark.parametrize("words", [["gpu", "list"], ["gpu", "list", "--json"]])
def test_the_list_is_empty_without_a_driver(gpu_machine: GpuMachine, words: list[str]) -> None:
    done = gpu_machine.run(words, LD_LIBRARY_PATH="")
    assert done.code == 0 and "libnvidia-ml.so.1 not found" in done.out
    if "--json" in words:
        assert done.json["devices"] == [] and done.json["driver"] is None


def test_list_names_lost_devices_and_what_others_lack(gpu_machines: MachineMaker) -> None:
    machine = gpu_machines(num_devices=2, has_counter=0)
    machine.lose(1)
    document = machine.run(["gpu", "list", "--json"]).json
    (found,), (lost,) = document["devices"], document["unreadable"]
    assert found["index"] == 0 and found["now"]["energy_j"] is None
    assert "the GPU is lost" in lost["reason"] and lost["device"].startswith("GPU 1")
    shown = machine.run(["gpu", "list"])
    assert shown.code == 0 and "no energy counter: " in shown.out and "GPU is lost" in shown.out


def test_a_driver_without_a_gpu_is_no_error(gpu_machines: MachineMaker) -> None:
    machine = gpu_machines(num_devices=0)
    document = machine.run(["gpu", "list", "--json"]).json
    assert document["devices"] == [] and "there is no GPU" in document["reason"]
    refused = machine.run(["gpu", "record", "-o", "a.parquet", "--seconds", "1"])
    assert refused.code == 2 and "there is no GPU" in refused.err


@pytest.mark.parametrize("verb", [["watch"], ["record", "-o", "a.parquet"]])
def test_what_must_measure_says_that_there_is_no_driver(
    gpu_machine: GpuMachine, verb: list[str]
) -> None:
    done = gpu_machine.run(["gpu", *verb, "--seconds", "1"], LD_LIBRARY_PATH="")
    assert done.code == 2 and "libnvidia-ml.so.1 not found" in done.err


def test_watch_prints_lines_where_there_is_no_terminal(gpu_machines: MachineMaker) -> None:
    machine = gpu_machines(num_devices=2)
    process = machine.start(["gpu", "watch", "--every", "100ms"])
    assert process.stdout is not None
    first = [process.stdout.readline() for _ in range(2)]
    for k, line in enumerate(first):  # the first look may take a moment
        assert re.search(rf" \d+\.\d s  GPU {k} NVIDIA A100-PCIE-40GB  40\.0 W", line)
    machine.lose(1)
    while "the GPU is lost" not in process.stdout.readline():
        assert process.poll() is None
    assert "GPU 0 NVIDIA A100-PCIE-40GB  40.0 W" in process.stdout.readline()
    assert "GPU 0 NVIDIA A100-PCIE-40GB  40.0 W" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2 and "nvmlDeviceGetFieldValues: the GPU is lost" in err
    document = gpu_machines().run(["gpu", "watch", "--seconds", "300ms", "--json"]).json
    assert document["ended"] == "finished"
    energy = document["gpus"][0]["energy"]
    assert energy["span_s"] > 0
    assert energy["energy_j"] == pytest.approx(40 * energy["span_s"], rel=0.02)


def test_watch_refreshes_a_table_and_ends_well_with_ctrl_c(gpu_machine: GpuMachine) -> None:
    master, terminal = pty.openpty()
    environment = gpu_machine.environment(TERM="xterm", COLUMNS="150")
    words = [sys.executable, "-m", "optbench.cli.main", "gpu", "watch"]
    process = subprocess.Popen(
        words, stdin=terminal, stdout=terminal, stderr=terminal, env=environment
    )
    os.close(terminal)
    shown = b""
    while b"1 s watched; Ctrl-C ends it" not in shown:
        shown += os.read(master, 65536)
    process.send_signal(signal.SIGINT)
    try:
        while True:
            shown += os.read(master, 65536)
    except OSError:  # the other end is closed
        pass
    os.close(master)
    assert process.wait(timeout=60) == 0
    assert "Traceback" not in shown.decode() and "█" in shown.decode()
    assert "by the counter" in shown.decode().rpartition("\x1b[2K")[2]


def test_doctor_names_the_gpus(gpu_machines: MachineMaker) -> None:
    machine = gpu_machines(num_devices=2)
    code = "from optbench.environment_report import _gpus\nprint(*_gpus(), sep='|')"
    assert machine.python(code).out == "ok|NVIDIA A100-PCIE-40GB, NVIDIA A100-PCIE-40GB|None\n"
    machine.lose(1)
    assert machine.python(code).out.startswith("problem|NVIDIA A100-PCIE-40GB; GPU 1: ")
    absent = "note|no NVIDIA driver (libnvidia-ml.so.1 not found)|needed only to"
    assert machine.python(code, LD_LIBRARY_PATH="").out.startswith(absent)


def test_devices_are_chosen_and_periods_checked(gpu_machines: MachineMaker) -> None:
    machine = gpu_machines(num_devices=2)
    begin = time.monotonic()
    words = ["gpu", "watch", "--seconds", "200ms", "--every", "50ms", "--json"]
    found = machine.run([*words, "--devices", f"1,{machine.uuid(1)}"]).json["gpus"]
    assert [each["index"] for each in found] == [1]
    assert time.monotonic() - begin < 60
    refused = machine.run([*words, "--devices", "5"])
    assert refused.code == 2 and "unknown GPU '5'" in refused.err
    refused = machine.run(["gpu", "watch", "--every", "1ms"])
    assert refused.code == 2 and "'1ms' is too short" in refused.err
