"""Processor time of a machine's packages, by which the energy of a shared package is split.

The kernel counts the time that each processor was busy, with all processes of everybody, in ticks
of 10 ms. The share of a run is its own processor time over that of its packages: a run that is
alone has all, and the shares of runs beside each other add up to one with what else was running.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

PROC_STAT = Path("/proc/stat")
PROCESSORS = Path("/sys/devices/system/cpu")
# Fields of a line of /proc/stat: user, nice and system; interrupts. Guests are part of user.
BUSY_FIELDS = (1, 2, 3, 6, 7)


class PackageTime:
    """The busy time of the packages to which some processors belong, by default those on which
    this process may run.

    ``packages`` is empty where the kernel does not say which package a processor belongs to;
    then the time is that of the whole machine.
    """

    def __init__(
        self,
        processors: Iterable[int] | None = None,
        proc_stat: Path = PROC_STAT,
        topology: Path = PROCESSORS,
    ) -> None:
        self.proc_stat = proc_stat
        package_of = packages_by_processor(topology)
        own = _allowed(package_of) if processors is None else processors
        self.packages = frozenset(package_of[each] for each in own if each in package_of)
        self.names = {
            f"cpu{processor}".encode()
            for processor, package in package_of.items()
            if package in self.packages
        }

    def busy_s(self) -> float | None:
        """Return the processor seconds since the start of the machine; None where it is unknown."""
        try:
            file = os.open(self.proc_stat, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            # The lines of the processors come first: the counters of interrupts are not read.
            text = os.read(file, 256 * (len(self.names) + 1) + 4096)
        finally:
            os.close(file)
        ticks = 0
        for line in text.splitlines():
            if not line.startswith(b"cpu"):
                break
            words = line.split()
            if words[0] in self.names or (not self.names and words[0] == b"cpu"):
                ticks += sum(int(words[field]) for field in BUSY_FIELDS)
        return ticks / os.sysconf("SC_CLK_TCK")


def _allowed(known: Iterable[int]) -> Iterable[int]:
    """Return the processors on which this process may run."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else known


@cache
def packages_by_processor(topology: Path = PROCESSORS) -> dict[int, int]:
    """Return the package of each processor."""
    out = {}
    for folder in topology.glob("cpu[0-9]*"):
        try:
            text = (folder / "topology" / "physical_package_id").read_text()
        except OSError:  # a processor that is switched off
            continue
        if text.strip().isdigit():
            out[int(folder.name[3:])] = int(text)
    return out
