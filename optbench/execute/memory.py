"""Measure the memory of the machine and of a cell's process tree."""

from __future__ import annotations

import math
import os
import time
from pathlib import Path

from optbench.sandbox import process_tree
from optbench.sandbox.system_calls import IS_LINUX
from optbench.units import BYTES_PER_MB

# Files that hold a container's memory limit, by version of the control groups.
LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
# An exact measurement takes milliseconds per gigabyte. It is repeated after this many seconds, and
# after this many times its last duration. Processes that fork all the time hold the locks that it
# needs, so that the wait has a lower and an upper limit.
EXACT_EVERY_S, TIMES_AS_LONG, REST_S, LONGEST_S = 0.1, 20.0, 0.25, 5.0


def machine_mb() -> float:
    """Return the memory of the machine, or of the container where that is less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in LIMITS:
        try:
            text = path.read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            total = min(total, int(text))
    return total / BYTES_PER_MB


class TreeMemory:
    """Measures the memory of a cell's process tree beyond the ``baseline_mb`` that it shares with
    its slot.

    A plain sum counts pages shared by parent and child once for each of them, and is cheap. Where
    that could decide about a limit, the exact measurement divides every page by the number of
    processes that share it.
    """

    def __init__(self, baseline_mb: float, limit_mb: float) -> None:
        self.baseline_mb, self.limit_mb = baseline_mb, limit_mb
        self.pids: set[int] = set()
        self.changed_at, self.due_at, self.late_at = 0.0, 0.0, math.inf

    def of(self, used: list[process_tree.ProcessUsage]) -> float:
        """Return the memory in MB; 0 where an exact measurement is needed and not due yet."""
        together = sum(each.memory_mb for each in used) - self.baseline_mb
        if len(used) < 2 or together <= self.limit_mb or not IS_LINUX:
            return sum(max(0.0, each.memory_mb - self.baseline_mb) for each in used)
        now, pids = time.monotonic(), {each.pid for each in used}
        self.late_at = min(self.late_at, now + LONGEST_S)
        if pids != self.pids:
            self.pids, self.changed_at = pids, now
        if now < self.due_at or (now < self.changed_at + REST_S and now < self.late_at):
            return 0.0
        total = sum(process_tree.shared_out_mb(each.pid) for each in used)
        took = time.monotonic() - now
        self.due_at, self.late_at = now + max(EXACT_EVERY_S, TIMES_AS_LONG * took), math.inf
        return total
