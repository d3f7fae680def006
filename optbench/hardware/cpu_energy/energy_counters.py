"""Joules of processors and memory since the first reading, from counters that wrap around.

Between two readings a counter that shows less than before has wrapped once. A second wrap leaves no
trace, so that readings have to follow each other within the time in which a counter can wrap at
most once: its range over the highest power (65,536 J at 2,000 W: 33 s). ``read`` has to be called
at least every ``every_s``, half of that. A longer gap, such as a suspended machine, is stated with
the result, which then is a lower bound.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from optbench.hardware.cpu_energy.powercap_zones import (
    PowercapZone,
    find_zones,
    read_counter_j,
)

# Watts that no package and no package's memory exceeds: the largest server processors are rated at
# 500 W and draw less than twice that for moments.
HIGHEST_W = 2000.0


@dataclass(frozen=True)
class CpuEnergyReading:
    """Joules by zone since the counters were opened; with a ``doubt`` they are a lower bound."""

    t_s: float  # time.monotonic
    zone_j: Mapping[str, float]
    doubt: str = ""

    @property
    def energy_j(self) -> float:
        return sum(self.zone_j.values())


class CpuEnergyCounters:
    """Reads the zones of a powercap tree; zero at its creation.

    ``packages`` restricts it to some packages; ``zones`` have been found before. ``clock`` gives
    the seconds by which gaps are told.
    """

    def __init__(
        self,
        root: Path | None = None,
        packages: Iterable[int] | None = None,
        highest_w: float = HIGHEST_W,
        clock: Callable[[], float] = time.monotonic,
        zones: Iterable[PowercapZone] | None = None,
    ) -> None:
        wanted = None if packages is None else {*packages}
        zones = find_zones(root) if zones is None else zones
        self.zones = tuple(zone for zone in zones if wanted is None or zone.package in wanted)
        self.highest_w, self.clock = highest_w, clock
        self.wraps_within_s = min(
            (zone.range_j / highest_w for zone in self.zones), default=float("inf")
        )
        self.read_at = clock()
        self.last_j = [read_counter_j(zone) for zone in self.zones]
        self.sums_j = [0.0] * len(self.zones)
        self.doubt = ""

    @property
    def every_s(self) -> float:
        """Seconds within which the next reading has to follow."""
        return self.wraps_within_s / 2

    def is_due(self) -> bool:
        return self.clock() - self.read_at >= self.every_s

    def read(self) -> CpuEnergyReading:
        now = self.clock()
        gap_s, self.read_at = now - self.read_at, now
        for index, zone in enumerate(self.zones):
            self._add(index, zone, read_counter_j(zone), gap_s)
        labels = [zone.label for zone in self.zones]
        return CpuEnergyReading(now, dict(zip(labels, self.sums_j, strict=True)), self.doubt)

    def _add(self, index: int, zone: PowercapZone, value_j: float, gap_s: float) -> None:
        step_j = value_j - self.last_j[index]
        self.sums_j[index] += step_j if step_j >= 0 else step_j + zone.range_j
        self.last_j[index] = value_j
        lasts_s = zone.range_j / self.highest_w
        if gap_s > lasts_s and not self.doubt:
            self.doubt = (
                f"a lower bound: {gap_s:.3g} s passed between two readings of {zone.label}, whose "
                f"counter of {zone.range_j:,.0f} J may wrap more than once after {lasts_s:.3g} s"
            )
