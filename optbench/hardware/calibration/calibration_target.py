"""What a calibration can measure: devices of one model with readings, and clocks that it may set.

GPUs and packages of processors are targets (``gpu_target``, ``cpu_target``).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class DeviceSample:
    """One reading of one device; None where the machine does not say."""

    t_s: float  # time.monotonic
    power_w: float | None = None
    energy_j: float | None = None
    clock_mhz: float | None = None
    throttled: tuple[str, ...] = ()  # reasons why the clock is below the one that was set
    utilisation: float | None = None  # 0 to 1
    temperature_c: float | None = None


@dataclass(frozen=True)
class DeviceIdentity:
    """A device as a profile file records it."""

    name: str
    uuid: str
    place: str  # what the workload is given for it
    missing: tuple[str, ...] = ()  # what the device or its driver does not say


class ClockHolder(Protocol):
    """Sets clocks; all that it set is reset when its context ends."""

    def hold(self, count: int, clock_mhz: int) -> None:
        """Lock the clock of the first ``count`` devices."""

    def release(self) -> None:
        """Reset every clock that was set."""


class CalibrationTarget(Protocol):
    """Devices of one model."""

    model: str
    devices: tuple[DeviceIdentity, ...]
    driver: str
    levels_mhz: tuple[int, ...]  # clocks that can be set, ascending; empty where none can
    fixed_clock: str  # why no clock can be set; empty where they can
    window_s: float  # over which a reading of power is a mean
    power_limit_w: float | None
    memory_gb: float | None

    def read(self, device: int) -> DeviceSample:
        """The state of one device, by its place in ``devices``."""

    def clocks(self) -> AbstractContextManager[ClockHolder]:
        """Hold clocks; they are reset at the end, after an error too."""

    def environment(self) -> Mapping[str, str]:
        """Variables for the workload, beside those of this process."""

    def placed(self, count: int) -> AbstractContextManager[None]:
        """Processors on which a program may run that is started within the context."""
