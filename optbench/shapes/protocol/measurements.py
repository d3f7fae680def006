"""What a stopwatch or a watt meter says: readings with repeats and provenance, and their intervals.

Measured metrics are no part of a verdict, an objective, a bound or a gap: two readings of one
decision differ. They are compared by the interval of the difference of two means (Welch): with
means a and b, variances u and v of n and m readings,

    a - b ± t(f) √(u/n + v/m),    f = (u/n + v/m)² / ((u/n)²/(n-1) + (v/m)²/(m-1))

where t(f) is Student's quantile for 95 %. One reading alone has no interval.
"""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean, variance
from types import MappingProxyType
from typing import Any, Literal

from optbench.errors import ModelError, nearest

# Student's quantiles for 95 %, two sides, by degrees of freedom from 1 on; beyond, the last.
STUDENT = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
Comparison = Literal["lower", "higher", "undecided"]


@dataclass(frozen=True)
class MeasuringMachine:
    """Where readings are taken, and how many of each are asked for; ``folder`` is where files that
    come of it are kept, if the caller names one.
    """

    name: str
    system: str
    cores: int
    python: str
    repeats: int = 5
    folder: Path | None = None

    @classmethod
    def here(cls, repeats: int = 5, folder: Path | None = None) -> MeasuringMachine:
        cores = os.cpu_count() or 1
        system = f"{platform.system()} {platform.machine()}"
        return cls(platform.node(), system, cores, platform.python_version(), repeats, folder)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, without the folder."""
        return {name: value for name, value in asdict(self).items() if name != "folder"}


@dataclass(frozen=True)
class Measurements:
    """Readings of each measured metric, and how they were taken (tool, version, setting).

    ``outcome`` is what else came of it, such as the accuracy of a training, and ``files`` are the
    paths of files that were written, by what they hold. ``withheld`` is the reason, by metric, why
    readings that were asked for are missing although the rest is there.
    """

    readings: Mapping[str, tuple[float, ...]]
    provenance: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    outcome: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    files: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    withheld: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def mean(self, name: str) -> float:
        return fmean(self._of(name))

    def interval(self, name: str) -> tuple[float, float] | None:
        """Return the 95 % interval of the mean; None with one reading."""
        values = self._of(name)
        if len(values) < 2:
            return None
        half = student(len(values) - 1) * math.sqrt(variance(values) / len(values))
        return fmean(values) - half, fmean(values) + half

    def compared(self, other: Measurements, name: str) -> Comparison:
        """Return whether this mean is lower or higher than another, or the readings cannot say."""
        found = difference(self._of(name), other._of(name))
        if found is None or found[0] <= 0.0 <= found[1]:
            return "undecided"
        return "lower" if found[1] < 0.0 else "higher"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        rows = {
            name: {
                "readings": list(values),
                "mean": self.mean(name),
                "interval": self.interval(name),
            }
            for name, values in self.readings.items()
        }
        named = ("outcome", "files", "withheld")
        more = {name: dict(getattr(self, name)) for name in named}
        plain = {"metrics": rows, "provenance": dict(self.provenance)}
        return plain | {name: value for name, value in more.items() if value}

    def _of(self, name: str) -> tuple[float, ...]:
        if name in self.withheld:
            raise ModelError(f"{name!r} has no readings: {self.withheld[name]}")
        if name not in self.readings:
            raise ModelError(f"{name!r} was not measured; {nearest(name, self.readings)}")
        return self.readings[name]


def student(freedom: float) -> float:
    """Return Student's quantile, of the next smaller whole number of degrees of freedom."""
    return STUDENT[min(max(int(freedom), 1), len(STUDENT)) - 1]


def difference(one: tuple[float, ...], other: tuple[float, ...]) -> tuple[float, float] | None:
    """Return the 95 % interval of the difference of two means; None with one reading of either."""
    if min(len(one), len(other)) < 2:
        return None
    u, v = variance(one) / len(one), variance(other) / len(other)
    middle = fmean(one) - fmean(other)
    if u + v == 0.0:
        return middle, middle
    freedom = (u + v) ** 2 / (u**2 / (len(one) - 1) + v**2 / (len(other) - 1))
    half = student(freedom) * math.sqrt(u + v)
    return middle - half, middle + half
