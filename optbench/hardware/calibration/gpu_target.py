"""GPUs as the target of a calibration; the journal and the watchdog of ``clock_control`` restore
their clocks however this process ends.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from optbench.errors import ParameterError, UnsupportedError
from optbench.hardware.calibration.calibration_target import (
    ClockHolder,
    DeviceIdentity,
    DeviceSample,
)
from optbench.hardware.clock_control.controlled_clocks import (
    ClockControl,
    check_controllable,
    controlled_clocks,
)
from optbench.hardware.gpus.nvml_session import GpuDevice, GpuSession, reason_words

# Reasons for a clock that do not mean that the device fell behind the clock that was set.
HARMLESS = frozenset({"idle", "applications clocks", "display clock"})
# Where no clock is set, the power limit decides the clock of a busy device in its ordinary state.
HARMLESS_UNSET = HARMLESS | {"power cap"}
UNSET = "the device chose it, because no clock was to be set (--current-clock)"
PURPOSE = "calibrating"
# Temperature and utilisation change slowly.
SLOW_EVERY_S = 0.25

Say = Callable[[str], None]


@dataclass(frozen=True)
class GpuClocks:
    """Locks the clocks of the first devices."""

    control: ClockControl
    gpus: Sequence[GpuDevice]

    def hold(self, count: int, clock_mhz: int) -> None:
        for device in self.gpus[:count]:
            self.control.lock(device, clock_mhz, clock_mhz)

    def release(self) -> None:
        for device in self.gpus:
            self.control.release(device)


class NoClocks:
    """Sets nothing."""

    def hold(self, count: int, clock_mhz: int) -> None:
        raise UnsupportedError(f"{clock_mhz} MHz on {count} devices: no clock is to be set")

    def release(self) -> None:
        pass


class GpuTarget:
    """GPUs of one model in a session with NVML."""

    def __init__(
        self,
        session: GpuSession,
        gpus: Sequence[GpuDevice],
        say: Say = lambda words: None,
        set_clocks: bool = True,
    ) -> None:
        self._session, self._gpus, self._say = session, tuple(gpus), say
        self._harmless = HARMLESS if set_clocks else HARMLESS_UNSET
        first = self._gpus[0]
        for device in self._gpus:
            if set_clocks:
                check_controllable(device)
            _check(device, first)
        self.model, self.driver = first.name, f"NVIDIA {first.driver}"
        self.devices = tuple(
            DeviceIdentity(device.name, device.uuid, str(device.index), tuple(device.missing))
            for device in self._gpus
        )
        self.levels_mhz = first.clocks_mhz if set_clocks else ()
        self.fixed_clock = "" if set_clocks else UNSET
        self._readers = [session.reader(device) for device in self._gpus]
        self._slow = [reader.slow_values() for reader in self._readers]
        self._slow_s = [time.monotonic()] * len(self._gpus)
        self.window_s = self._readers[0].power_window_s
        limits = [d.power_limit_w for d in self._gpus if d.power_limit_w is not None]
        self.power_limit_w = min(limits, default=None)
        self.memory_gb = first.memory_gb

    def read(self, device: int) -> DeviceSample:
        reader = self._readers[device]
        now = reader.moment()
        if now.t_s - self._slow_s[device] > SLOW_EVERY_S:
            self._slow_s[device], self._slow[device] = now.t_s, reader.slow_values()
        slow = self._slow[device]
        reasons = reason_words(now.reasons) if now.reasons else ()
        return DeviceSample(
            now.t_s,
            _said(now.power_w),
            _said(now.energy_j),
            _said(now.clock_mhz),
            tuple(reason for reason in reasons if reason not in self._harmless),
            _said(slow.utilisation),
            _said(slow.temperature_c),
        )

    @contextmanager
    def clocks(self) -> Iterator[ClockHolder]:
        if self.fixed_clock:
            yield NoClocks()
            return
        with controlled_clocks(self._session, self._gpus, PURPOSE, say=self._say) as control:
            yield GpuClocks(control, self._gpus)

    def environment(self) -> Mapping[str, str]:
        # CUDA then counts devices in the order of NVML, so that {device} means the same to both.
        return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}

    @contextmanager
    def placed(self, count: int) -> Iterator[None]:
        del count
        yield


def chosen_gpus(session: GpuSession, wanted: Sequence[str]) -> tuple[GpuDevice, ...]:
    """The devices that were named, or the first one."""
    if wanted:
        found = [session.find(word) for word in wanted]
        if len({device.uuid for device in found}) < len(found):
            raise ParameterError(f"--device {','.join(wanted)} names a device twice")
        return tuple(found)
    return session.devices()[:1]


def _check(device: GpuDevice, first: GpuDevice) -> None:
    if device.name != first.name or device.clocks_mhz != first.clocks_mhz:
        raise ParameterError(
            f"{device.title} is not like {first.title}; a profile is of one model: calibrate the "
            "two one after the other"
        )
    if {"power", "instant_power", "energy_counter"} <= set(device.missing):
        raise UnsupportedError(
            f"{device.title} says neither power nor energy: {device.missing['power']}"
        )


def _said(value: float) -> float | None:
    return None if math.isnan(value) else value
