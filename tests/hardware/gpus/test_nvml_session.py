"""The session with NVML against a made-up machine: what it reads, and what it says of errors."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest

from tests.hardware.conftest import MachineMaker
from tests.hardware.gpu_machine import GpuMachine

HEAD = """
import json
from dataclasses import asdict
from optbench.errors import OptbenchError
from optbench.hardware.gpus.nvml_session import gpu_session
with gpu_session() as gpus:
    device = gpus.devices()[0]
"""


def printed(machine: GpuMachine, *lines: str) -> Any:
    """What a few lines with ``gpus`` and ``device`` print as JSON."""
    code = HEAD + "".join(f"    {line}\n" for line in lines)
    done = machine.python(code)
    assert done.code == 0, done.err
    return json.loads(done.out)


def refused(machine: GpuMachine, call: str) -> str:
    """The message of a call that must fail."""
    lines = ("try:", f"    {call}", "    print('null')", "except OptbenchError as error:")
    return str(printed(machine, *lines, "    print(json.dumps(str(error)))"))


def test_power_is_that_of_the_moment_or_a_mean_over_a_second(gpu_machines: MachineMaker) -> None:
    # Idle 40 W and 100 W more in every other 5 ms: 40 or 140 W at a moment, 90 W over a second.
    spikes = {"spike_w": 100.0, "spike_width_ns": 5_000_000, "spike_period_ns": 10_000_000}
    line = "print(json.dumps([asdict(gpus.read(device)) for _ in range(50)]))"
    machines = {instant: gpu_machines(instant_power=instant, **spikes) for instant in (1, 0)}
    time.sleep(1.05)  # a second for the mean
    for instant, machine in machines.items():
        found = printed(machine, line)
        powers = {round(each["power_w"]) for each in found}
        assert powers <= {40, 140} if instant else powers == {90}
        assert {each["power_window_s"] for each in found} == {0.0 if instant else 1.0}


@pytest.mark.parametrize(
    ("name", "architecture", "is_mean"),
    [
        (b"Tesla V100-SXM2-32GB", 5, 0),
        (b"NVIDIA T4", 6, 0),
        (b"NVIDIA A100-SXM4-80GB", 7, 0),
        (b"NVIDIA A800 40GB Active", 7, 0),
        (b"NVIDIA A30", 7, 0),
        (b"NVIDIA RTX A3000 Laptop GPU", 7, 1),
        (b"NVIDIA A40", 7, 1),
        (b"NVIDIA H100 PCIe", 9, 1),
        # The architecture is not said: by the name, or taken for a mean.
        (b"NVIDIA A100-PCIE-40GB", 0, 0),
        (b"NVIDIA A40", 0, 1),
    ],
)
def test_ordinary_power_is_a_mean_from_ampere_on_but_not_on_ga100(
    gpu_machines: MachineMaker, name: bytes, architecture: int, is_mean: int
) -> None:
    """40 W and 100 W more in every other 5 ms, as above: a mean is 90 W, also over less than a
    second. The device answers as its kind does, and the window says which."""
    spikes = {"spike_w": 100.0, "spike_width_ns": 5_000_000, "spike_period_ns": 10_000_000}
    kind = {"name": name, "architecture": architecture, "mean_power": is_mean}
    machine = gpu_machines(instant_power=0, **kind, **spikes)
    found = printed(machine, "print(json.dumps([asdict(gpus.read(device)) for _ in range(20)]))")
    assert {each["power_window_s"] for each in found} == {1.0 if is_mean else 0.0}
    powers = {round(each["power_w"]) for each in found}
    assert powers <= {40, 140} or is_mean
    assert not is_mean or powers.isdisjoint({40, 140})


def test_the_counter_may_take_a_call_of_its_own(gpu_machine: GpuMachine) -> None:
    line = "print(json.dumps([gpus.read(device).energy_j for _ in range(2)]))"
    for kind in (1, 2):
        gpu_machine.set(0, has_counter=kind)
        before_j = gpu_machine.device().energy_j
        first, second = printed(gpu_machine, line)
        assert before_j - 1e-3 <= first <= second <= gpu_machine.device().energy_j


def test_clocks_are_locked_and_reset(gpu_machine: GpuMachine) -> None:
    printed(gpu_machine, "gpus.lock_clocks(device, 600, 900)", "print('0')")
    assert gpu_machine.locked() == (600, 900)
    printed(gpu_machine, "gpus.reset_clocks(device)", "print('0')")
    assert gpu_machine.locked() is None
    found = [(each.kind, each.low_mhz, each.high_mhz, each.result) for each in gpu_machine.calls()]
    assert found == [("lock", 600, 900, 0), ("reset", 0, 0, 0)]
    assert printed(gpu_machine, "print(gpus.application_clock_mhz(device))") == 1410


def test_devices_are_found_by_index_and_uuid(gpu_machines: MachineMaker) -> None:
    machine = gpu_machines(num_devices=2)
    words = ["1", machine.uuid(0), "GPU-00000001"]
    line = f"print(json.dumps([gpus.find(word).index for word in {words!r}]))"
    assert printed(machine, line) == [1, 0, 1]
    assert "unknown GPU 'GPU-0000000'" in refused(machine, "gpus.find('GPU-0000000')")
    assert "unknown GPU '7'" in refused(machine, "gpus.find('7')")


def test_no_permission_names_the_remedy(gpu_machine: GpuMachine) -> None:
    gpu_machine.set(0, deny_clocks=1)
    said = refused(gpu_machine, "gpus.lock_clocks(device, 600, 600)")
    assert gpu_machine.uuid() in said and "nvmlDeviceSetGpuLockedClocks: no permission" in said
    assert "as root" in said and "CAP_SYS_ADMIN" in said


def test_an_old_driver_says_what_it_lacks(gpu_machines: MachineMaker) -> None:
    machine = gpu_machines(old_driver=True, name=b"NVIDIA A40")
    found = printed(machine, "print(json.dumps(asdict(device)))")
    assert set(found["missing"]) == {"instant_power", "energy_counter", "clock_lock"}
    assert "the driver 575.57.08 is too old" in found["missing"]["energy_counter"]
    now = printed(machine, "print(json.dumps(asdict(gpus.read(device))))")
    assert (now["power_w"], now["power_window_s"], now["energy_j"]) == (40.0, 1.0, None)
    assert now["throttle_reasons"] == ["idle"]
    said = refused(machine, "gpus.lock_clocks(device, 600, 600)")
    assert "nvmlDeviceSetGpuLockedClocks: the driver 575.57.08 is too old" in said


def test_a_device_with_mig_has_no_clock_control(gpu_machine: GpuMachine) -> None:
    gpu_machine.set(0, mig=1)
    found = printed(gpu_machine, "print(json.dumps(asdict(device)))")
    assert found["mig"] and {"clock_lock", "own_power", "utilisation"} == set(found["missing"])
    said = refused(gpu_machine, "gpus.lock_clocks(device, 600, 600)")
    assert "while MIG is enabled" in said and "nvidia-smi -i 0 -mig 0" in said


def test_a_device_from_before_mig_has_all_else(gpu_machine: GpuMachine) -> None:
    gpu_machine.set(0, mig=-1, has_power=0, has_counter=0, power_limit_w=0.0)
    found = printed(gpu_machine, "print(json.dumps(asdict(device)))")
    assert not found["mig"] and found["power_limit_w"] is None
    assert set(found["missing"]) == {"power", "instant_power", "energy_counter", "power_limit"}
    assert "this GPU does not support it" in found["missing"]["power"]
    assert printed(gpu_machine, "print(json.dumps(gpus.read(device).power_w))") is None


def test_a_lost_device_is_named_and_the_others_answer(gpu_machines: MachineMaker) -> None:
    machine = gpu_machines(num_devices=2)
    machine.lose(0)
    line = "print(json.dumps([device.index, *map(str, gpus.unreadable)]))"
    index, said = printed(machine, line)
    assert (
        index == 1
        and said.startswith("GPU 0: nvmlDeviceGetHandleByIndex")
        and "the GPU is lost" in said
    )
    other = gpu_machines()
    loop = ("gpus.reset_clocks(device)", "while True: gpus.read(device)")
    lines = ("try:", *(f"    {each}" for each in loop), "except OptbenchError as error:")
    code = HEAD + "".join(f"    {line}\n" for line in (*lines, "    print(error)"))
    process = other.start_python(code)
    while not other.calls():
        assert process.poll() is None
        time.sleep(0.01)
    other.lose()
    said, _ = process.communicate(timeout=60)
    assert other.uuid() in said and re.search(r"nvmlDeviceGet\w+: the GPU is lost", said)


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (9, "not loaded; load it with `modprobe nvidia`"),
        (18, "different versions; restart the host"),
        (999, "`nvidia-smi` should run"),
    ],
)
def test_a_driver_that_does_not_begin_says_why(
    gpu_machine: GpuMachine, result: int, words: str
) -> None:
    with gpu_machine.changing() as state:
        state.init_result = result
    code = (
        "from optbench.hardware.gpus.nvml_session import GpuUnavailableError, gpu_session\n"
        "try:\n    with gpu_session(): pass\n"
        "except GpuUnavailableError as error:\n    print(error.reason)\n"
    )
    assert words in gpu_machine.python(code).out
