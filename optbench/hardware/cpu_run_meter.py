"""Measures the processors' energy of one run after another, from outside the run.

A run's energy is Σ E(k) s(k) over intervals k of about a second: E(k) is what the packages drew on
which it may run, s(k) its processor time over that of everything that ran there. Where the powercap
tree cannot be read, it is the run's processor time times an assumed power.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from optbench.hardware.cpu_energy.assumed_power import assumed_w
from optbench.hardware.cpu_energy.energy_counters import CpuEnergyCounters
from optbench.hardware.cpu_energy.powercap_zones import (
    CpuEnergyError,
    PowercapZone,
    find_zones,
)
from optbench.hardware.cpu_energy.processor_time import PackageTime
from optbench.hardware.run_energy import RunEnergy

# Seconds of an interval within which a run's processor time is taken to be evenly spread.
INTERVAL_S = 1.0
# Others have used a package if they had more of its processor time than this share and these
# seconds, twice the resolution of the kernel's figures.
OTHERS_SHARE, OTHERS_S = 0.05, 0.02
# The resolution of the kernel's figures of processors.
TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


@dataclass
class _Sums:
    """What a run has used so far."""

    energy_j: float = 0.0
    package_j: float = 0.0
    own_s: float = 0.0
    others_s: float = 0.0
    busy_s: float | None = None
    read_at: float = 0.0


class CpuRunMeter:
    """``begin`` a run, ``tick`` as often as convenient, ask ``so_far`` at its end.

    ``processors`` are those on which runs may be; without them those of this process.
    """

    def __init__(
        self,
        processors: Iterable[int] | None = None,
        root: Path | None = None,
        busy: PackageTime | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.assumed_w, self.clock = assumed_w(), clock
        self.default = self.busy = PackageTime(processors) if busy is None else busy
        self.trouble = ""
        self.counters: CpuEnergyCounters | None = None
        self.sums = _Sums()
        try:
            self.every_zone = find_zones(root)
        except CpuEnergyError as error:
            self.every_zone, self.trouble = (), error.reason

    @property
    def every_s(self) -> float:
        """Seconds after which ``tick`` has something to do."""
        return min(INTERVAL_S, INTERVAL_S if self.counters is None else self.counters.every_s)

    @property
    def zones(self) -> tuple[PowercapZone, ...]:
        """The counters of the packages on which the run may be; all, if there is none of those."""
        packages = self.busy.packages
        return tuple(z for z in self.every_zone if z.package in packages) or self.every_zone

    def begin(self, processors: Iterable[int] | None = None) -> None:
        """Begin a run: what was drawn before does not count. ``processors`` are its own, if it has
        some.
        """
        self.busy = self.default if processors is None else PackageTime(processors)
        self.counters, self.sums = None, _Sums()
        if self.every_zone:
            try:
                self.counters = CpuEnergyCounters(zones=self.zones, clock=self.clock)
            except CpuEnergyError as error:
                self.trouble = error.reason
                return
            self.sums = _Sums(busy_s=self.busy.busy_s(), read_at=self.clock())

    def tick(self, cpu_s: float) -> None:
        """Close an interval if one is due; ``cpu_s`` is the run's processor time so far."""
        if self.counters is not None and self.clock() - self.sums.read_at >= self.every_s:
            self._close_interval(cpu_s)

    def so_far(self, cpu_s: float) -> RunEnergy:
        """Return the energy of the run, which has used ``cpu_s`` seconds of processor time."""
        if self.counters is not None:
            self._close_interval(cpu_s)
        if self.counters is None:
            words = (f"estimated, processors: {self.trouble}",)
            energy_j = cpu_s * self.assumed_w
            return RunEnergy(energy_j, "estimate", cpu_s, assumed_w=self.assumed_w, notes=words)
        sums, doubt = self.sums, self.counters.doubt
        busy_s = sums.own_s + sums.others_s
        shared = sums.others_s > max(OTHERS_S, OTHERS_SHARE * busy_s)
        share = sums.energy_j / sums.package_j if sums.package_j > 0 else None
        notes = (f"processors: {doubt}",) if doubt else ()
        return RunEnergy(
            sums.energy_j,
            "powercap",
            cpu_s,
            share,
            shared,
            notes=notes,
            cpu_complete=not doubt,
        )

    def _close_interval(self, cpu_s: float) -> None:
        assert self.counters is not None
        sums, before_j = self.sums, sum(self.counters.sums_j)
        try:
            drawn_j = self.counters.read().energy_j - before_j
        except CpuEnergyError as error:
            self.counters, self.trouble = None, error.reason
            return
        busy_s, own_s = self.busy.busy_s(), max(0.0, cpu_s - sums.own_s)
        spent_s = own_s if busy_s is None or sums.busy_s is None else busy_s - sums.busy_s
        # The kernel's ticks are coarser than the time of a process: where it saw none, others may
        # have used up to one. A run that slept is charged for nothing.
        spent_s = max(spent_s, own_s)
        least_s = min(TICK_S, self.clock() - sums.read_at)
        divided_s = max(spent_s, least_s)
        sums.energy_j += drawn_j * (own_s / divided_s if divided_s > 0 else 0.0)
        sums.package_j += drawn_j
        sums.own_s += own_s
        sums.others_s += spent_s - own_s
        sums.busy_s, sums.read_at = busy_s, self.clock()
