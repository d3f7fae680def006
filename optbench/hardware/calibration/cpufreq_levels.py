"""Clocks of processors through cpufreq: what can be set, setting it, and putting it back.

A policy is a group of cores with one clock. Setting a clock sets the least and the largest clock of
every policy to it. Both are put back at the end; what a killed process leaves, the journal of
cpufreq_journal.py puts back.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from optbench.errors import OptbenchError

VARIABLE, DEFAULT = "OPTBENCH_CPU_ROOT", "/sys/devices/system/cpu"
KHZ_PER_MHZ = 1000
# Clocks of a policy that takes any clock within its range.
SPREAD = 16
LEAST, LARGEST = "scaling_min_freq", "scaling_max_freq"


class CpuClockError(OptbenchError):
    """A clock of a processor that cannot be set or put back."""


@dataclass(frozen=True)
class ClockPolicy:
    """The folder of a policy and the range that it had."""

    folder: Path
    least_khz: int
    largest_khz: int


def cpu_root() -> Path:
    return Path(os.environ.get(VARIABLE) or DEFAULT)


def find_policies(root: Path) -> tuple[ClockPolicy, ...]:
    """Policies of a machine; none where cpufreq is missing."""
    found = []
    for folder in sorted(root.glob("cpufreq/policy*")) or sorted(root.glob("cpu[0-9]*/cpufreq")):
        least, largest = _khz(folder / LEAST), _khz(folder / LARGEST)
        if least is not None and largest is not None:
            found.append(ClockPolicy(folder, least, largest))
    return tuple(found)


def why_fixed(policies: tuple[ClockPolicy, ...], root: Path) -> str:
    """Why no clock can be set; empty where it can."""
    if not policies:
        return f"{root} has no cpufreq (a virtual machine, or the driver decides by itself)"
    for policy in policies:
        for name in (LEAST, LARGEST):
            if not os.access(policy.folder / name, os.W_OK):
                return f"only root may write {policy.folder / name}"
    return ""


def clock_levels_mhz(policies: tuple[ClockPolicy, ...]) -> tuple[int, ...]:
    """Clocks that every policy can be set to."""
    common = set.intersection(*(_levels(policy) for policy in policies))
    return tuple(sorted(common))


def _levels(policy: ClockPolicy) -> set[int]:
    with suppress(OSError, ValueError):
        listed = (policy.folder / "scaling_available_frequencies").read_text().split()
        return {int(word) // KHZ_PER_MHZ for word in listed}
    low = _khz(policy.folder / "cpuinfo_min_freq") or policy.least_khz
    high = _khz(policy.folder / "cpuinfo_max_freq") or policy.largest_khz
    step = (high - low) / (SPREAD - 1)
    return {round((low + k * step) / KHZ_PER_MHZ) for k in range(SPREAD)}


def set_clock(policies: tuple[ClockPolicy, ...], clock_mhz: int) -> None:
    khz = clock_mhz * KHZ_PER_MHZ
    for policy in policies:
        _write_range(policy.folder, khz, khz)


def put_back(policies: tuple[ClockPolicy, ...]) -> None:
    """Put the ranges back, each whatever the others do."""
    failed = []
    for policy in policies:
        try:
            _write_range(policy.folder, policy.least_khz, policy.largest_khz)
        except CpuClockError as error:
            failed.append(str(error))
    if failed:
        raise CpuClockError("; ".join(failed))


def current_mhz(policies: tuple[ClockPolicy, ...]) -> float | None:
    """The mean clock at this moment."""
    found = [_khz(policy.folder / "scaling_cur_freq") for policy in policies]
    known = [khz for khz in found if khz is not None]
    return sum(known) / len(known) / KHZ_PER_MHZ if known else None


def _write_range(folder: Path, least_khz: int, largest_khz: int) -> None:
    """The least clock must never be above the largest one, in between either."""
    upwards = largest_khz >= (_khz(folder / LARGEST) or 0)
    order = ((LARGEST, largest_khz), (LEAST, least_khz))
    for name, khz in order if upwards else reversed(order):
        try:
            (folder / name).write_text(f"{khz}\n")
        except OSError as error:
            raise CpuClockError(
                f"{folder / name} cannot be set to {khz} kHz: {error.strerror}; run as root"
            ) from None


def _khz(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
