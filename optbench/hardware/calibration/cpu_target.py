"""Packages of processors as the target of a calibration, where RAPL exposes their energy.

A device is a package with its memory. The load runs on the cores of the first packages. Clocks are
set through cpufreq where its files may be written; else there is one clock, at which the law holds.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from optbench.hardware.calibration.calibration_target import DeviceIdentity, DeviceSample
from optbench.hardware.calibration.cpufreq_journal import journalled_ranges, with_kept_ranges
from optbench.hardware.calibration.cpufreq_levels import (
    ClockPolicy,
    clock_levels_mhz,
    cpu_root,
    current_mhz,
    find_policies,
    put_back,
    set_clock,
    why_fixed,
)
from optbench.hardware.clock_control.state_folder import state_folder
from optbench.hardware.cpu_energy.energy_counters import CpuEnergyCounters
from optbench.hardware.cpu_energy.powercap_zones import UJ_PER_J, find_zones
from optbench.hardware.cpu_energy.processor_time import packages_by_processor
from optbench.hardware.cpu_model import cpu_model

# The first constraint of a package is its long-term limit.
LIMIT = "constraint_0_power_limit_uw"


@dataclass(frozen=True)
class CpuClocks:
    """Sets the clocks of all cores: a clock of some packages alone would not be a level of the
    whole machine."""

    policies: tuple[ClockPolicy, ...]

    def hold(self, count: int, clock_mhz: int) -> None:
        del count
        set_clock(self.policies, clock_mhz)

    def release(self) -> None:
        put_back(self.policies)


class CpuTarget:
    """All packages of the machine; raises CpuEnergyError where their energy cannot be read."""

    def __init__(self, powercap: Path | None = None, cpus: Path | None = None) -> None:
        zones = find_zones(powercap)
        self._packages = sorted({zone.package for zone in zones})
        self._counters = [CpuEnergyCounters(powercap, [number]) for number in self._packages]
        self._cpus = cpu_root() if cpus is None else cpus
        self._state = state_folder()
        self._policies = with_kept_ranges(self._state, self._cpus, find_policies(self._cpus))
        self.model = cpu_model()
        self.driver = f"{platform.system()} {platform.release()}, powercap"
        self.devices = tuple(
            DeviceIdentity(self.model, f"{platform.node()} package-{number}", "cpu")
            for number in self._packages
        )
        self.fixed_clock = why_fixed(self._policies, self._cpus)
        self.levels_mhz: tuple[int, ...] = (
            () if self.fixed_clock else clock_levels_mhz(self._policies)
        )
        self.window_s = 0.0
        limits = [_limit_w(zone.counter.parent) for zone in zones if "dram" not in zone.label]
        known = [limit for limit in limits if limit is not None]
        self.power_limit_w = min(known, default=None)
        self.memory_gb: float | None = _memory_gb() / len(self._packages)

    def read(self, device: int) -> DeviceSample:
        reading = self._counters[device].read()
        return DeviceSample(
            reading.t_s,
            energy_j=reading.energy_j,
            clock_mhz=current_mhz(self._policies) if self.levels_mhz else None,
        )

    @contextmanager
    def clocks(self) -> Iterator[CpuClocks]:
        if not self.levels_mhz:
            yield CpuClocks(())
            return
        with journalled_ranges(self._state, self._cpus, self._policies) as policies:
            yield CpuClocks(policies)

    def environment(self) -> Mapping[str, str]:
        return {}

    @contextmanager
    def placed(self, count: int) -> Iterator[None]:
        """Programs inherit the cores of the process that starts them."""
        own = os.sched_getaffinity(0)
        chosen = self._packages[:count]
        wanted = {
            cpu for cpu, number in packages_by_processor(self._cpus).items() if number in chosen
        }
        try:
            if own & wanted:
                os.sched_setaffinity(0, own & wanted)
            yield
        finally:
            os.sched_setaffinity(0, own)


def _limit_w(zone: Path) -> float | None:
    with suppress(OSError, ValueError):  # not every package states one
        watts = int((zone / LIMIT).read_text()) / UJ_PER_J
        return watts or None
    return None


def _memory_gb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
