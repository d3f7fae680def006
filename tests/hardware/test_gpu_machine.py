"""The made-up machine obeys its laws, and a killed process does it no harm."""

from __future__ import annotations

import time

import pytest

from tests.hardware.conftest import MachineMaker
from tests.hardware.gpu_machine import GpuMachine


def printed(line: str) -> list[float]:
    """What the load program prints: ``units=U seconds=S``."""
    return [float(word.partition("=")[2]) for word in line.split()]


def test_the_load_takes_time_and_draws_power_by_the_laws(gpu_machine: GpuMachine) -> None:
    # f = 705 / 1410 = 1/2: T = 0.002 + 0.008 / f = 0.018 s per unit, 20 units take 0.36 s;
    # P = 150/8 + 50/2 + 50 = 93.75 W, so 33.75 J, and 40 W for the rest of the time.
    gpu_machine.set(0, locked_low_mhz=705, locked_high_mhz=705)
    out, _ = gpu_machine.load([0], units=20).communicate()
    assert printed(out) == pytest.approx([20, 0.36], abs=1e-7)
    with gpu_machine.changing() as state:
        total_s = (state.now_ns - state.began_ns) * 1e-9
        assert state.devices[0].energy_j == pytest.approx(33.75 + 40 * (total_s - 0.36), rel=1e-6)


def test_two_devices_pay_for_synchronising(gpu_machines: MachineMaker) -> None:
    # T(2, 1) = (0.002 + 0.008 + 0.0005 x 2) / 2 = 0.0055 s: in 0.11 s, 20 units.
    out, _ = gpu_machines(num_devices=2).load([0, 1], seconds=0.11).communicate()
    assert printed(out) == pytest.approx([20, 0.11], abs=1e-6)


def test_the_power_limit_and_a_cap_lower_the_clock(gpu_machine: GpuMachine) -> None:
    code = (
        "from optbench.hardware.gpus.nvml_session import gpu_session\n"
        "with gpu_session() as gpus:\n"
        "    now = gpus.read(gpus.devices()[0])\n"
        "    print(now.clock_mhz, ', '.join(now.throttle_reasons))\n"
    )
    load = gpu_machine.load([0], seconds=60)
    # P(f) <= 93.75 W up to f = 1/2, which is 705 MHz.
    gpu_machine.set(0, power_limit_w=93.75)
    assert gpu_machine.python(code).out == "705 power cap\n"
    gpu_machine.set(0, power_limit_w=400.0)
    gpu_machine.throttle(900, reasons=0x20)
    assert gpu_machine.python(code).out == "900 software thermal slowdown\n"
    load.kill()
    load.communicate()


def test_a_killed_load_draws_no_power_any_more(gpu_machine: GpuMachine) -> None:
    load = gpu_machine.load([0], seconds=60)
    load.kill()
    load.communicate()
    time.sleep(0.06)  # the machine looks every 50 ms
    gpu_machine.device()
    before = gpu_machine.device()
    time.sleep(0.05)
    after = gpu_machine.device()
    assert before.segments[before.num_segments - 1].watts == 40.0 and after.energy_j > 0


def test_the_lock_survives_who_held_it(gpu_machine: GpuMachine) -> None:
    # A process takes the lock of the state and dies with it.
    library = gpu_machine.libraries.folder / "libgpustate.so"
    code = (
        "import ctypes, os, signal\n"
        f"state = ctypes.CDLL({str(library)!r})\n"
        "state.machine_open.restype = ctypes.c_void_p\n"
        "state.machine_lock.argtypes = [ctypes.c_void_p]\n"
        f"state.machine_lock(state.machine_open({str(gpu_machine.path).encode()!r}))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert gpu_machine.python(code).code == -9
    assert gpu_machine.device().num_clocks == 81


def test_the_stub_is_found_by_nobody_else() -> None:
    import pynvml

    with pytest.raises(pynvml.NVMLError_LibraryNotFound):
        pynvml.nvmlInit()
