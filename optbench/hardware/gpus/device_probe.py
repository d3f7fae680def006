"""What a device and its driver offer: each capability is tried once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from optbench.hardware.gpus.gpu_device import GpuDevice
from optbench.hardware.gpus.nvml_calls import called, field_value, has_function, reasons_function
from optbench.hardware.gpus.nvml_errors import FUNCTION_NOT_FOUND, NOT_SUPPORTED, GpuError, remedy

T = TypeVar("T")
LOCK = "nvmlDeviceSetGpuLockedClocks"


def probed(nvml: Any, index: int, driver: str) -> tuple[GpuDevice, Any]:
    """The device ``index`` with what is missing, and its handle."""
    bare = GpuDevice(index, "", "", driver, None, None, (), False, {})
    handle = called(nvml, bare, nvml.nvmlDeviceGetHandleByIndex, index)
    uuid = str(called(nvml, bare, nvml.nvmlDeviceGetUUID, handle))
    name = str(called(nvml, bare, nvml.nvmlDeviceGetName, handle))
    probe = Probe(nvml, replace(bare, uuid=uuid, name=name), handle)
    modes = probe.tried("mig", nvml.nvmlDeviceGetMigMode)
    mig = modes is not None and modes[0] == nvml.NVML_DEVICE_MIG_ENABLE
    if modes is None:
        del probe.missing["mig"]  # a device or driver from before MIG, which has none
    probe.device = replace(probe.device, mig=mig)
    memory = probe.tried("memory", nvml.nvmlDeviceGetMemoryInfo)
    limit_mw = probe.tried("power_limit", nvml.nvmlDeviceGetEnforcedPowerLimit)
    clocks_mhz = probe.supported_clocks() or ()
    probe.try_readings()
    probe.look_for_clock_control()
    found = replace(
        probe.device,
        memory_gb=None if memory is None else memory.total / 1e9,
        power_limit_w=None if limit_mw is None else limit_mw / 1e3,
        clocks_mhz=clocks_mhz,
        missing=probe.missing,
    )
    return found, handle


class Probe:
    """Tries capabilities of a device and notes what is missing."""

    def __init__(self, nvml: Any, device: GpuDevice, handle: Any) -> None:
        self.nvml, self.device, self.handle = nvml, device, handle
        self.missing: dict[str, str] = {}

    def tried(self, capability: str, call: Callable[..., T], *words: Any) -> T | None:
        """What a call returns; None where it fails, unless the device is lost."""
        try:
            return called(self.nvml, self.device, call, self.handle, *words)
        except GpuError as error:
            if error.is_gone:
                raise
            self.missing[capability] = f"{error.call}: {error.words}"
            return None

    def supported_clocks(self) -> tuple[int, ...] | None:
        """Graphics clocks at the highest memory clock, ascending."""
        nvml = self.nvml
        memory_mhz = self.tried("clocks", nvml.nvmlDeviceGetSupportedMemoryClocks)
        if not memory_mhz:
            return None
        most = max(memory_mhz)
        found = self.tried("clocks", nvml.nvmlDeviceGetSupportedGraphicsClocks, most)
        return None if found is None else tuple(sorted(map(int, found)))

    def try_readings(self) -> None:
        """Everything that a reading consists of."""
        nvml = self.nvml
        self.tried("power", nvml.nvmlDeviceGetPowerUsage)
        self.try_instant_power()
        self.tried("energy_counter", nvml.nvmlDeviceGetTotalEnergyConsumption)
        self.tried("clock", nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_GRAPHICS)
        self.tried("memory_clock", nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_MEM)
        self.tried("temperature", nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU)
        self.tried("utilisation", nvml.nvmlDeviceGetUtilizationRates)
        self.tried("throttle_reasons", reasons_function(nvml))

    def try_instant_power(self) -> None:
        nvml, fields = self.nvml, [self.nvml.NVML_FI_DEV_POWER_INSTANT]

        def nvmlDeviceGetFieldValues(handle: Any) -> Any:  # errors show the name
            return field_value(nvml, nvml.nvmlDeviceGetFieldValues(handle, fields)[0])

        if self.tried("instant_power", nvmlDeviceGetFieldValues) is not None:
            self.missing.pop("power", None)

    def look_for_clock_control(self) -> None:
        """Whether clocks can be locked, as far as it shows without trying."""
        device = self.device
        if device.mig:
            words = remedy(NOT_SUPPORTED, "", device.driver, device.index, mig=True)
            self.missing["clock_lock"] = f"{LOCK}: {words}"
            self.missing["own_power"] = (
                "MIG is enabled: power and energy are those of the whole GPU, not of an instance"
            )
        elif not has_function(self.nvml, LOCK):
            words = remedy(FUNCTION_NOT_FOUND, "", device.driver, device.index, mig=False)
            self.missing["clock_lock"] = f"{LOCK}: {words}"
