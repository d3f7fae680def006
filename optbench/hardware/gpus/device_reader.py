"""Readings of one device, cheap enough for fifty a second on eight devices.

What changes quickly is power, energy counter, clock and the reasons for it. Where the driver has
the power of the moment, power and counter come from one call: calls are what sampling costs, since
one of a real driver takes longer than everything around it. Temperature, memory clock and
utilisation change slowly (NVML forms utilisation over a sixth of a second or longer).
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from optbench.hardware.gpus.gpu_device import GpuDevice
from optbench.hardware.gpus.nvml_calls import explained, field_value, reasons_function

# The window of nvmlDeviceGetPowerUsage by the documentation of NVML, on Ampere and newer. Older
# GPUs answer with the power of the moment, and so does GA100, the Ampere of these boards.
AVERAGING_WINDOW_S = 1.0
GA100_BOARDS = re.compile(r"\b(A100X?|A30X?|A800|CMP 170HX|PG506|PG199)\b")
# A call took long if it took that many times the shortest one and that much more.
LONG_CALLS, LONG_CALL_S, MOST_TRIES = 5.0, 0.0005, 3


class QuickValues(NamedTuple):
    """What changes quickly; NaN where the driver does not say."""

    t_s: float  # time.monotonic() in the middle of the call for power
    power_w: float
    energy_j: float
    clock_mhz: float
    reasons: int


class SlowValues(NamedTuple):
    """What changes slowly; NaN where the driver does not say."""

    memory_clock_mhz: float
    temperature_c: float
    utilisation: float


class DeviceReader:
    """Reads one device; what it does not offer is not asked for again."""

    def __init__(self, nvml: Any, device: GpuDevice, handle: Any) -> None:
        self.nvml, self.device, self.handle = nvml, device, handle
        missing = device.missing
        self.has_instant = "instant_power" not in missing
        self.power_window_s = 0.0 if self.has_instant else self._usage_window_s()
        self._fields = [nvml.NVML_FI_DEV_POWER_INSTANT]
        if "energy_counter" not in missing and self._has_energy_field():
            self._fields.append(nvml.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION)
        self._power = self._whether("power", nvml.nvmlDeviceGetPowerUsage)
        self._energy = self._whether("energy_counter", nvml.nvmlDeviceGetTotalEnergyConsumption)
        self._clock = self._whether("clock", nvml.nvmlDeviceGetClockInfo)
        self._reasons = self._whether("throttle_reasons", reasons_function(nvml))
        self._memory_clock = self._whether("memory_clock", nvml.nvmlDeviceGetClockInfo)
        self._temperature = self._whether("temperature", nvml.nvmlDeviceGetTemperature)
        self._utilisation = self._whether("utilisation", nvml.nvmlDeviceGetUtilizationRates)
        self._graphics, self._memory = nvml.NVML_CLOCK_GRAPHICS, nvml.NVML_CLOCK_MEM
        self._sensor, self._error = nvml.NVML_TEMPERATURE_GPU, nvml.NVMLError
        self._shortest_s = math.inf
        self._calling: Callable[..., Any] = nvml.nvmlDeviceGetPowerUsage

    def _whether(self, capability: str, call: Callable[..., Any]) -> Callable[..., Any] | None:
        return None if capability in self.device.missing else call

    def _usage_window_s(self) -> float:
        """The averaging window of nvmlDeviceGetPowerUsage. Where the driver does not say the
        architecture, the board's name alone is known, and others are taken for means."""
        nvml, architecture = self.nvml, None
        with suppress(nvml.NVMLError):
            architecture = nvml.nvmlDeviceGetArchitecture(self.handle)
        is_older = architecture is not None and architecture < nvml.NVML_DEVICE_ARCH_AMPERE
        is_ga100 = architecture in (None, nvml.NVML_DEVICE_ARCH_AMPERE) and GA100_BOARDS.search(
            self.device.name
        )
        return 0.0 if is_older or is_ga100 else AVERAGING_WINDOW_S

    def _has_energy_field(self) -> bool:
        """Whether the counter comes with the power; else it takes a call of its own."""
        nvml, field = self.nvml, self.nvml.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION
        try:
            field_value(nvml, nvml.nvmlDeviceGetFieldValues(self.handle, [field])[0])
        except nvml.NVMLError:
            return False
        return True

    def moment(self) -> QuickValues:
        """Read what changes quickly."""
        return QuickValues(*self.power(), *self.clock())

    def power(self) -> tuple[float, float, float]:
        """The moment, watts and joules; one call of NVML where the driver has field values.

        A call in which the process had to wait for a processor says little of when its value was
        true: it is repeated.
        """
        best_s, best = math.inf, (math.nan, math.nan, math.nan)
        try:
            for _ in range(MOST_TRIES):
                began_s = time.monotonic()
                power_w, energy_j = self._power_and_energy()
                ended_s = time.monotonic()
                took_s = ended_s - began_s
                if took_s < best_s:
                    best_s, best = took_s, (0.5 * (began_s + ended_s), power_w, energy_j)
                self._shortest_s = min(self._shortest_s, took_s)
                if took_s <= LONG_CALLS * self._shortest_s + LONG_CALL_S:
                    break
            return best
        except self._error as error:
            raise explained(self.device, self._calling.__name__, error) from None

    def clock(self) -> tuple[float, int]:
        """MHz, and the bits of the reasons why it is not higher."""
        try:
            clock_mhz = self._value(self._clock, self._graphics)
            return clock_mhz, int(self._value(self._reasons, missing=0))
        except self._error as error:
            raise explained(self.device, self._calling.__name__, error) from None

    def slow_values(self) -> SlowValues:
        """Read what changes slowly."""
        try:
            rates = self._value(self._utilisation, missing=None)
            return SlowValues(
                self._value(self._memory_clock, self._memory),
                self._value(self._temperature, self._sensor),
                math.nan if rates is None else rates.gpu / 100.0,
            )
        except self._error as error:
            raise explained(self.device, self._calling.__name__, error) from None

    def _value(self, call: Callable[..., Any] | None, *words: Any, missing: Any = math.nan) -> Any:
        if call is None:
            return missing
        self._calling = call
        return call(self.handle, *words)

    def _power_and_energy(self) -> tuple[float, float]:
        """Watts and joules."""
        if not self.has_instant:
            return self._value(self._power) / 1e3, self._value(self._energy) / 1e3
        self._calling = self.nvml.nvmlDeviceGetFieldValues
        found = self._calling(self.handle, self._fields)
        power_w = field_value(self.nvml, found[0]) / 1e3
        if len(self._fields) > 1:
            return power_w, field_value(self.nvml, found[1]) / 1e3
        return power_w, self._value(self._energy) / 1e3
