"""A made-up machine with GPUs: a C library with NVML's soname over one memory-mapped file.

    machine = GpuMachine(libraries, folder, num_devices=2)
    with machine.changing() as state:          # bytes for names, ints and floats for the rest
        state.devices[0].noise = 0.01
    machine.run(["gpu", "list", "--json"])     # optbench in a process that finds the library
    machine.load([0], size=1000, seconds=2)    # a program that makes devices busy; a Popen
    machine.calls()                            # what was locked and reset, by which process

The library is reached through ``LD_LIBRARY_PATH`` of subprocesses alone: the process of the tests
loads the state's functions, never something that is called libnvidia-ml.so.1.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cli.conftest import Outcome, environment
from tests.hardware.gpu_state import MAX_CALLS, DeviceState, MachineState

STUB = Path(__file__).parent / "nvml_stub"
ROOT = Path(__file__).parents[2]
SONAME = "libnvidia-ml.so.1"
FLAGS = ("-O1", "-Wall", "-Wextra", "-Werror")
CALL_KINDS = {1: "lock", 2: "reset"}
TIMEOUT_S = 120
# The made-up device: clocks of 210 to 1410 MHz in steps of 15, an A100's coefficients in round
# numbers. As on the newest GPUs, and not on an A100, nvmlDeviceGetPowerUsage is a mean: Hopper.
CLOCKS_MHZ = range(210, 1411, 15)
DEFAULTS: Mapping[str, float | bytes] = {
    "name": b"NVIDIA A100-PCIE-40GB",
    "architecture": 9,
    "mean_power": 1,
    "memory_clock_mhz": 1215,
    "application_clock_mhz": 1410,
    "instant_power": 1,
    "has_counter": 1,
    "has_power": 1,
    "memory_gb": 40.0,
    "power_limit_w": 400.0,
    "alpha_p": 150.0,
    "beta_p": 50.0,
    "gamma_p": 50.0,
    "idle_w": 40.0,
    "alpha_t": 0.002,
    "beta_t": 0.008,
    "gamma_t": 0.0005,
}


@dataclass(frozen=True)
class StubLibraries:
    """The compiled programs: NVML's stub as it is now and of an old driver, the load, the state."""

    folder: Path

    @property
    def load_program(self) -> Path:
        return self.folder / "gpu_load"

    def library_folder(self, old_driver: bool) -> Path:
        return self.folder / ("old" if old_driver else "new")

    @classmethod
    def compile(cls, folder: Path) -> StubLibraries:
        out = cls(folder)
        for old in (False, True):
            out.library_folder(old).mkdir(parents=True)
            target = out.library_folder(old) / SONAME
            more = ("-DOLD_DRIVER",) if old else ()
            _gcc(target, "nvml.c", "-shared", "-fPIC", f"-Wl,-soname,{SONAME}", *more)
        _gcc(folder / "libgpustate.so", "gpu_state.c", "-shared", "-fPIC")
        _gcc(out.load_program, "gpu_load.c")
        return out


def _gcc(target: Path, source: str, *more: str) -> None:
    sources = dict.fromkeys((str(STUB / source), str(STUB / "gpu_state.c")))
    words = ["gcc", *FLAGS, *more, "-o", str(target), *sources, "-lm", "-lpthread"]
    subprocess.run(words, check=True, timeout=TIMEOUT_S)


@dataclass(frozen=True)
class ClockCall:
    """A call that set clocks (``lock``) or reset them, and NVML's result (0: done)."""

    pid: int
    device: int
    kind: str
    low_mhz: int
    high_mhz: int
    result: int
    at_s: float


class GpuMachine:
    """The machine of one test; several processes see it, and it outlives any of them."""

    def __init__(
        self,
        libraries: StubLibraries,
        folder: Path,
        num_devices: int = 1,
        old_driver: bool = False,
        **settings: float | bytes,
    ) -> None:
        self.libraries, self.folder, self.old_driver = libraries, folder, old_driver
        self.path = folder / "gpus.state"
        self._control = _control(libraries.folder / "libgpustate.so")
        if self._control.machine_create(str(self.path).encode(), num_devices) != 0:
            raise OSError(f"the machine {self.path} could not be made")
        with self.path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)
        self.state = MachineState.from_buffer(self._memory)
        assert self._control.machine_size() == ctypes.sizeof(MachineState) == self.state.size
        self.state.driver = b"575.57.08"
        for k in range(num_devices):
            self._prepare(k, settings)
        self._opened = self._control.machine_open(str(self.path).encode())

    def _prepare(self, k: int, settings: Mapping[str, float | bytes]) -> None:
        device = self.state.devices[k]
        device.uuid = f"GPU-{k:08x}-1111-2222-3333-444455556666".encode()
        device.num_clocks = len(CLOCKS_MHZ)
        device.clocks_mhz[: len(CLOCKS_MHZ)] = list(CLOCKS_MHZ)
        for name, value in {**DEFAULTS, **settings}.items():
            assert hasattr(device, name), name
            setattr(device, name, value)

    @contextmanager
    def changing(self) -> Iterator[MachineState]:
        """The state, brought to the present, under its lock."""
        self._control.machine_lock(self._opened)
        try:
            yield self.state
        finally:
            self._control.machine_unlock(self._opened)

    def set(self, device: int = 0, **settings: float | bytes) -> None:
        with self.changing() as state:
            for name, value in settings.items():
                assert hasattr(state.devices[device], name), name
                setattr(state.devices[device], name, value)

    def lose(self, device: int = 0, after_s: float = 0.0) -> None:
        """Let a device fall off the bus, now or later."""
        with self.changing() as state:
            state.devices[device].lost_from_ns = state.now_ns + int(after_s * 1e9)

    def throttle(
        self, mhz: int, reasons: int = 0x40, device: int = 0, after_s: float = 0.0
    ) -> None:
        """Cap the clock under load; by default for a hardware thermal slowdown."""
        with self.changing() as state:
            one = state.devices[device]
            one.cap_mhz, one.cap_reasons, one.cap_until_ns = mhz, reasons, 0
            one.cap_from_ns = state.now_ns + int(after_s * 1e9)

    def device(self, device: int = 0) -> DeviceState:
        """A copy of a device's state at this moment."""
        with self.changing() as state:
            return DeviceState.from_buffer_copy(state.devices[device])

    def uuid(self, device: int = 0) -> str:
        return str(self.state.devices[device].uuid.decode())

    def locked(self, device: int = 0) -> tuple[int, int] | None:
        found = self.device(device)
        return (found.locked_low_mhz, found.locked_high_mhz) if found.locked_high_mhz else None

    def calls(self) -> list[ClockCall]:
        """The last calls that set clocks or reset them, in their order."""
        with self.changing() as state:
            first = max(0, state.num_calls - MAX_CALLS)
            found = [state.calls[i % MAX_CALLS] for i in range(first, state.num_calls)]
            return [
                ClockCall(
                    each.pid,
                    each.device,
                    CALL_KINDS[each.kind],
                    each.low_mhz,
                    each.high_mhz,
                    each.result,
                    each.at_ns * 1e-9,
                )
                for each in found
            ]

    def environment(self, **variables: str) -> dict[str, str]:
        """Variables of a process that finds this machine's library and our code."""
        library = str(self.libraries.library_folder(self.old_driver))
        found = {**environment(), "PYTHONPATH": str(ROOT), "LD_LIBRARY_PATH": library}
        return {**found, "NVML_STUB_STATE": str(self.path), **variables}

    def start(self, words: Sequence[str | Path], **variables: str) -> subprocess.Popen[str]:
        """Start ``optbench WORDS`` in the machine's folder."""
        return self._popen([sys.executable, "-m", "optbench.cli.main", *words], variables)

    def run(self, words: Sequence[str | Path], **variables: str) -> Outcome:
        """Run ``optbench WORDS`` and check that no traceback was printed."""
        return self._finish(self.start(words, **variables))

    def python(self, code: str, **variables: str) -> Outcome:
        """Run Python code in a process that finds the library."""
        return self._finish(self.start_python(code, **variables))

    def start_python(self, code: str, **variables: str) -> subprocess.Popen[str]:
        return self._popen([sys.executable, "-c", code], variables)

    def load(
        self,
        devices: Sequence[int],
        size: float = 1.0,
        units: float | None = None,
        seconds: float | None = None,
    ) -> subprocess.Popen[str]:
        """Start the load program, and return once the devices are busy."""
        words = [str(self.libraries.load_program), ",".join(map(str, devices)), f"{size!r}"]
        words += ["--units", repr(units)] if units is not None else ["--seconds", f"{seconds or 1}"]
        process = self._popen(words, {})
        while process.poll() is None and not self._is_working(process.pid):
            time.sleep(0.001)
        return process

    def adopt(self, pid: int, devices: Sequence[int], seconds: float = 60.0) -> None:
        """Let devices be busy for a process that is not the load program: one in a sandbox, which
        cannot open the machine's file itself.
        """
        with self.changing() as state:
            free = next(each for each in state.loads if not each.active and each.pid == 0)
            free.pid, free.size, free.num_devices = pid, 1.0, len(devices)
            free.devices[: len(devices)] = list(devices)
            free.began_ns = state.now_ns
            free.until_ns = state.now_ns + int(seconds * 1e9)
            free.active = 1

    def _is_working(self, pid: int) -> bool:
        with self.changing() as state:
            return any(each.pid == pid for each in state.loads)

    def _popen(
        self, words: Sequence[str | Path], variables: Mapping[str, str]
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            list(map(str, words)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            cwd=self.folder,
            env=self.environment(**variables),
            preexec_fn=heed_interrupts,
        )

    def _finish(self, process: subprocess.Popen[str]) -> Outcome:
        out, err = process.communicate(timeout=TIMEOUT_S)
        assert "Traceback" not in err, err
        return Outcome(process.returncode, out, err)


def heed_interrupts() -> None:
    """Undo what a shell in the background leaves to the tests: that SIGINT is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _control(path: Path) -> ctypes.CDLL:
    """The functions of the state itself."""
    library = ctypes.CDLL(os.fspath(path))
    library.machine_open.restype = ctypes.c_void_p
    library.machine_open.argtypes = [ctypes.c_char_p]
    library.machine_create.argtypes = [ctypes.c_char_p, ctypes.c_int]
    library.machine_lock.argtypes = library.machine_unlock.argtypes = [ctypes.c_void_p]
    library.machine_lock.restype = library.machine_unlock.restype = None
    library.machine_size.restype = ctypes.c_uint64
    return library
