"""A session with NVML: the devices, their readings, and locking their clocks.

    with gpu_session() as gpus:
        for device in gpus.devices():
            reading = gpus.read(device)

Power is read as NVML_FI_DEV_POWER_INSTANT where the driver has it. Elsewhere it is
nvmlDeviceGetPowerUsage, which on recent GPUs is the mean over the last second: the averaging window
is a part of each reading. What a device or its driver does not say is None in the readings, and
``GpuDevice.missing`` says why.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from optbench.errors import UnknownNameError
from optbench.hardware.gpus.device_probe import probed
from optbench.hardware.gpus.device_reader import DeviceReader
from optbench.hardware.gpus.gpu_device import GpuDevice, GpuReading, reason_words
from optbench.hardware.gpus.nvml_calls import called
from optbench.hardware.gpus.nvml_errors import (
    FUNCTION_NOT_FOUND,
    NO_GPU,
    NOT_SUPPORTED,
    GpuError,
    GpuUnavailableError,
    unavailable,
)

# Results that say that a device or its driver cannot answer, ever.
CANNOT = (NOT_SUPPORTED, FUNCTION_NOT_FOUND)


@contextmanager
def gpu_session() -> Iterator[GpuSession]:
    """NVML from nvmlInit to nvmlShutdown; raise GpuUnavailableError where there is no driver."""
    import pynvml

    with _beginning(pynvml):
        pynvml.nvmlInit()
    try:
        with _beginning(pynvml):
            session = GpuSession(pynvml)
        yield session
    finally:
        with suppress(pynvml.NVMLError):  # what was read counts
            pynvml.nvmlShutdown()


@contextmanager
def _beginning(nvml: Any) -> Iterator[None]:
    """Errors of NVML mean that there is no session."""
    try:
        yield
    except nvml.NVMLError as error:
        raise unavailable(error.value, str(error)) from None


class _UnknownGpuError(UnknownNameError):
    """A device that nothing answers to; it may be one of those that do not answer at all."""

    def __init__(self, name: str, known: list[str], unreadable: tuple[GpuError, ...]) -> None:
        super().__init__("GPU", name, known)
        silent = "".join(f"; it may be one that does not answer: {error}" for error in unreadable)
        self.args = (f"{self.args[0]}{silent}",)


class GpuSession:
    """The devices of this host as long as the session lasts."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self._readers: dict[str, DeviceReader] = {}
        self._devices: tuple[GpuDevice, ...] | None = None
        # Devices that NVML counts and that did not answer.
        self.unreadable: tuple[GpuError, ...] = ()
        self.driver = str(nvml.nvmlSystemGetDriverVersion())
        self._count: int = nvml.nvmlDeviceGetCount()

    def devices(self) -> tuple[GpuDevice, ...]:
        """The devices that answer; the others are in ``unreadable``."""
        if self._devices is None:
            found, failed = [], []
            for index in range(self._count):
                try:
                    device, handle = probed(self._nvml, index, self.driver)
                except GpuError as error:
                    failed.append(error)
                else:
                    found.append(device)
                    self._readers[device.uuid] = DeviceReader(self._nvml, device, handle)
            self._devices, self.unreadable = tuple(found), tuple(failed)
        return self._devices

    def find(self, uuid_or_index: str) -> GpuDevice:
        """A device by its index, its UUID or a unique beginning of the UUID."""
        devices, word = self.devices(), uuid_or_index.strip()
        exact = [each for each in devices if word in (str(each.index), each.uuid)]
        fits = exact or [each for each in devices if word and each.uuid.startswith(word)]
        if len(fits) != 1:
            known = [name for each in devices for name in (str(each.index), each.uuid)]
            raise _UnknownGpuError(uuid_or_index, known, () if fits else self.unreadable)
        return fits[0]

    def reader(self, device: GpuDevice) -> DeviceReader:
        """What reads a device many times a second."""
        self.devices()
        return self._readers[device.uuid]

    def read(self, device: GpuDevice) -> GpuReading:
        """Read everything that the device offers."""
        reader = self.reader(device)
        now, slow = reader.moment(), reader.slow_values()
        return GpuReading(
            now.t_s,
            _said(now.power_w),
            reader.power_window_s,
            _said(now.energy_j),
            _whole(now.clock_mhz),
            _whole(slow.memory_clock_mhz),
            _said(slow.temperature_c),
            _said(slow.utilisation),
            reason_words(now.reasons),
        )

    def lock_clocks(self, device: GpuDevice, low_mhz: int, high_mhz: int) -> None:
        """Keep the graphics clock between two clocks; NVML cannot say later what was set."""
        handle = self.reader(device).handle
        called(
            self._nvml, device, self._nvml.nvmlDeviceSetGpuLockedClocks, handle, low_mhz, high_mhz
        )

    def reset_clocks(self, device: GpuDevice) -> None:
        """Undo every lock of the graphics clock."""
        handle = self.reader(device).handle
        called(self._nvml, device, self._nvml.nvmlDeviceResetGpuLockedClocks, handle)

    def application_clock_mhz(self, device: GpuDevice) -> int | None:
        """The application clock that is set for graphics; None where there is none."""
        nvml, handle = self._nvml, self.reader(device).handle
        kind = nvml.NVML_CLOCK_GRAPHICS
        try:
            return int(called(nvml, device, nvml.nvmlDeviceGetApplicationsClock, handle, kind))
        except GpuError as error:
            if error.code in CANNOT:
                return None
            raise


def _said(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _whole(value: float) -> int | None:
    return None if math.isnan(value) else int(value)


__all__ = [
    "NO_GPU",
    "GpuDevice",
    "GpuError",
    "GpuReading",
    "GpuSession",
    "GpuUnavailableError",
    "gpu_session",
    "reason_words",
]
