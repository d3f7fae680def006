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

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from optbench.errors import UnknownNameError
from optbench.hardware.gpus.nvml_errors import (
    FUNCTION_NOT_FOUND,
    NOT_SUPPORTED,
    GpuError,
    GpuUnavailableError,
    remedy,
    unavailable,
)

T = TypeVar("T")
# The window of nvmlDeviceGetPowerUsage, by the documentation of NVML (Ampere and newer).
AVERAGING_WINDOW_S = 1.0
# Bits of nvmlDeviceGetCurrentClocksEventReasons.
THROTTLE_REASONS: Mapping[int, str] = {
    0x1: "idle",
    0x2: "applications clocks",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
    0x100: "display clock",
    0x200: "board limit",
    0x400: "reliability",
}
# Results that say that a device or its driver cannot answer, ever.
CANNOT = (NOT_SUPPORTED, FUNCTION_NOT_FOUND)


@dataclass(frozen=True)
class GpuDevice:
    """What does not change of a device while it is there."""

    index: int
    uuid: str
    name: str
    driver: str
    memory_gb: float | None
    power_limit_w: float | None
    # Supported graphics clocks, ascending; empty where the driver does not say.
    clocks_mhz: tuple[int, ...]
    # MIG is enabled: no clock control, and power is that of all instances together.
    mig: bool
    # Capability, such as "energy_counter" or "clock_lock", to the reason why it is missing.
    missing: Mapping[str, str]

    @property
    def title(self) -> str:
        """How messages name the device."""
        return f"GPU {self.index} ({self.name}, {self.uuid})"


@dataclass(frozen=True)
class GpuReading:
    """What a device says at a moment; None where the driver does not say."""

    t_s: float  # time.monotonic()
    power_w: float | None
    power_window_s: float  # 0: the power of the moment
    energy_j: float | None  # NVML's counter
    clock_mhz: int | None
    memory_clock_mhz: int | None
    temperature_c: float | None
    utilisation: float | None  # 0 to 1
    throttle_reasons: tuple[str, ...]


@contextmanager
def gpu_session() -> Iterator[GpuSession]:
    """NVML from nvmlInit to nvmlShutdown; raise GpuUnavailableError where there is no driver."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise unavailable(error.value, str(error)) from None
    try:
        yield GpuSession(pynvml)
    finally:
        pynvml.nvmlShutdown()


class GpuSession:
    """The devices of this host as long as the session lasts."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self._handles: dict[str, Any] = {}
        self._devices: tuple[GpuDevice, ...] | None = None
        # Devices that NVML counts and that did not answer.
        self.unreadable: tuple[GpuError, ...] = ()

    @property
    def driver(self) -> str:
        return str(self._nvml.nvmlSystemGetDriverVersion())

    def devices(self) -> tuple[GpuDevice, ...]:
        """The devices that answer; the others are in ``unreadable``."""
        if self._devices is None:
            found, failed = [], []
            for index in range(self._nvml.nvmlDeviceGetCount()):
                try:
                    found.append(self._device(index))
                except GpuError as error:
                    failed.append(error)
            self._devices, self.unreadable = tuple(found), tuple(failed)
        return self._devices

    def find(self, uuid_or_index: str) -> GpuDevice:
        """A device by its index, its UUID or a unique beginning of the UUID."""
        devices = self.devices()
        word = uuid_or_index.strip()
        fits = [
            device
            for device in devices
            if word == str(device.index) or (word and device.uuid.startswith(word))
        ]
        exact = [device for device in fits if word in (str(device.index), device.uuid)]
        if len(exact or fits) != 1:
            known = [name for each in devices for name in (str(each.index), each.uuid)]
            raise UnknownNameError("GPU", uuid_or_index, known)
        return (exact or fits)[0]

    def read(self, device: GpuDevice) -> GpuReading:
        """Read everything that the device offers."""
        nvml, handle = self._nvml, self._handles[device.uuid]
        missing = device.missing

        def value(capability: str, call: Callable[..., T], *words: Any) -> T | None:
            if capability in missing:
                return None
            return self._call(device, call, handle, *words)

        t_s = time.monotonic()
        power_w, energy_j, window_s = self._power(device, handle)
        reasons = value("throttle_reasons", self._reasons_function(device))
        clock = value("clock", nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_GRAPHICS)
        memory = value("memory_clock", nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_MEM)
        sensor = nvml.NVML_TEMPERATURE_GPU
        temperature = value("temperature", nvml.nvmlDeviceGetTemperature, sensor)
        rates = value("utilisation", nvml.nvmlDeviceGetUtilizationRates)
        return GpuReading(
            t_s,
            power_w,
            window_s,
            energy_j,
            None if clock is None else int(clock),
            None if memory is None else int(memory),
            None if temperature is None else float(temperature),
            None if rates is None else rates.gpu / 100.0,
            reason_words(reasons or 0),
        )

    def lock_clocks(self, device: GpuDevice, low_mhz: int, high_mhz: int) -> None:
        """Keep the graphics clock between two clocks; NVML cannot say later what was set."""
        call = self._nvml.nvmlDeviceSetGpuLockedClocks
        self._call(device, call, self._handles[device.uuid], low_mhz, high_mhz)

    def reset_clocks(self, device: GpuDevice) -> None:
        """Undo every lock of the graphics clock."""
        call = self._nvml.nvmlDeviceResetGpuLockedClocks
        self._call(device, call, self._handles[device.uuid])

    def application_clock_mhz(self, device: GpuDevice) -> int | None:
        """The application clock that is set for graphics; None where there is none."""
        call, kind = self._nvml.nvmlDeviceGetApplicationsClock, self._nvml.NVML_CLOCK_GRAPHICS
        try:
            return int(self._call(device, call, self._handles[device.uuid], kind))
        except GpuError as error:
            if error.code in CANNOT:
                return None
            raise

    def _power(self, device: GpuDevice, handle: Any) -> tuple[float | None, float | None, float]:
        """Watts, joules of the counter, and the averaging window."""
        nvml, missing = self._nvml, device.missing
        power_w = energy_j = None
        window_s = AVERAGING_WINDOW_S
        if "instant_power" not in missing:
            fields = [nvml.NVML_FI_DEV_POWER_INSTANT]
            (found,) = self._call(device, nvml.nvmlDeviceGetFieldValues, handle, fields)
            self._check(device, "nvmlDeviceGetFieldValues", found.nvmlReturn)
            power_w, window_s = found.value.uiVal / 1e3, 0.0
        elif "power" not in missing:
            power_w = self._call(device, nvml.nvmlDeviceGetPowerUsage, handle) / 1e3
        if "energy_counter" not in missing:
            energy_j = self._call(device, nvml.nvmlDeviceGetTotalEnergyConsumption, handle) / 1e3
        return power_w, energy_j, window_s

    def _reasons_function(self, device: GpuDevice) -> Callable[..., Any]:
        newer, older = (
            self._nvml.nvmlDeviceGetCurrentClocksEventReasons,
            self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons,
        )
        return newer if self._has("nvmlDeviceGetCurrentClocksEventReasons") else older

    def _has(self, function: str) -> bool:
        """Whether the driver's library has a function at all."""
        return hasattr(self._nvml.nvmlLib, function)

    def _device(self, index: int) -> GpuDevice:
        """What there is of the device ``index``, every capability tried once."""
        nvml = self._nvml
        bare = GpuDevice(
            index, "UUID unknown", "name unknown", self.driver, None, None, (), False, {}
        )
        handle = self._call(bare, nvml.nvmlDeviceGetHandleByIndex, index)
        uuid = str(self._call(bare, nvml.nvmlDeviceGetUUID, handle))
        name = str(self._call(bare, nvml.nvmlDeviceGetName, handle))
        bare = GpuDevice(index, uuid, name, bare.driver, None, None, (), False, {})
        missing: dict[str, str] = {}

        def tried(
            device: GpuDevice, capability: str, call: Callable[..., T], *words: Any
        ) -> T | None:
            try:
                return self._call(device, call, handle, *words)
            except GpuError as error:
                if error.is_gone:
                    raise
                missing[capability] = f"{error.call}: {error.words}"
                return None

        modes = tried(bare, "mig", nvml.nvmlDeviceGetMigMode)
        mig = modes is not None and modes[0] == 1
        bare = GpuDevice(index, uuid, name, bare.driver, None, None, (), mig, {})
        memory = tried(bare, "memory", nvml.nvmlDeviceGetMemoryInfo)
        limit = tried(bare, "power_limit", nvml.nvmlDeviceGetEnforcedPowerLimit)
        clocks = tried(bare, "clocks", self._supported_clocks)
        tried(bare, "power", nvml.nvmlDeviceGetPowerUsage)
        tried(bare, "instant_power", self._instant_power)
        tried(bare, "energy_counter", nvml.nvmlDeviceGetTotalEnergyConsumption)
        tried(bare, "clock", nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_GRAPHICS)
        tried(bare, "memory_clock", nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_MEM)
        tried(bare, "temperature", nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU)
        tried(bare, "utilisation", nvml.nvmlDeviceGetUtilizationRates)
        tried(bare, "throttle_reasons", self._reasons_function(bare))
        missing |= self._missing_control(bare)
        self._handles[uuid] = handle
        return GpuDevice(
            index,
            uuid,
            name,
            bare.driver,
            None if memory is None else memory.total / 1e9,
            None if limit is None else limit / 1e3,
            clocks or (),
            mig,
            missing,
        )

    def _missing_control(self, device: GpuDevice) -> dict[str, str]:
        """Whether clocks can be locked, as far as it shows without trying."""
        missing, call = {}, "nvmlDeviceSetGpuLockedClocks"
        if device.mig:
            words = remedy(NOT_SUPPORTED, "", device.driver, device.index, True)
            missing["clock_lock"] = f"{call}: {words}"
            missing["own_power"] = (
                "MIG is enabled: power and energy are those of the whole GPU, not of an instance"
            )
        elif not self._has(call):
            words = remedy(FUNCTION_NOT_FOUND, "", device.driver, device.index, False)
            missing["clock_lock"] = f"{call}: {words}"
        return missing

    def _supported_clocks(self, handle: Any) -> tuple[int, ...]:
        """Graphics clocks at the highest memory clock, ascending."""
        memory = max(self._nvml.nvmlDeviceGetSupportedMemoryClocks(handle))
        found = self._nvml.nvmlDeviceGetSupportedGraphicsClocks(handle, memory)
        return tuple(sorted(map(int, found)))

    def _instant_power(self, handle: Any) -> None:
        nvml = self._nvml
        (found,) = nvml.nvmlDeviceGetFieldValues(handle, [nvml.NVML_FI_DEV_POWER_INSTANT])
        if found.nvmlReturn != nvml.NVML_SUCCESS:
            raise nvml.NVMLError(found.nvmlReturn)

    def _check(self, device: GpuDevice, call: str, code: int) -> None:
        if code != self._nvml.NVML_SUCCESS:
            raise self._explained(device, call, self._nvml.NVMLError(code))

    def _call(self, device: GpuDevice, call: Callable[..., T], *words: Any) -> T:
        try:
            return call(*words)
        except self._nvml.NVMLError as error:
            name = CALL_NAMES.get(call.__name__, call.__name__)
            raise self._explained(device, name, error) from None

    def _explained(self, device: GpuDevice, call: str, error: Any) -> GpuError:
        words = remedy(error.value, str(error), device.driver, device.index, device.mig)
        return GpuError(device.title, call, error.value, words)


# What our own functions call of NVML.
CALL_NAMES = {
    "_supported_clocks": "nvmlDeviceGetSupportedGraphicsClocks",
    "_instant_power": "nvmlDeviceGetFieldValues",
}


def reason_words(bits: int) -> tuple[str, ...]:
    """The reasons why a clock is not higher, in words."""
    return tuple(words for bit, words in THROTTLE_REASONS.items() if bits & bit)


__all__ = [
    "GpuDevice",
    "GpuError",
    "GpuReading",
    "GpuSession",
    "GpuUnavailableError",
    "gpu_session",
    "reason_words",
]
