"""The process tree on systems without /proc (macOS), from one call of ``ps`` per measurement.

There is no subreaper either: a process that left its parent is found by its session only, and one
that also started a new session is not found.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import NamedTuple

from optbench.units import DAY_S, KB_PER_MB


@dataclass(frozen=True)
class ProcessUsage:
    """What one process uses. Memory is its own: without files and, unlike ``rss``, without mapped
    libraries.
    """

    pid: int
    cpu_s: float
    memory_mb: float
    threads: int


class PsRow(NamedTuple):
    """One line of the output of ``ps``."""

    pid: int
    parent: int
    group: int
    rss_kb: int
    cpu: str
    state: str


def rows() -> dict[int, PsRow]:
    """Return every process of the machine except the ``ps`` that lists them."""
    words = ["ps", "-axo", "pid=,ppid=,pgid=,rss=,time=,state="]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as shown:
        split = [line.split() for line in shown.communicate()[0].splitlines()]
    found = [PsRow(int(f[0]), int(f[1]), int(f[2]), int(f[3]), f[4], f[5]) for f in split if len(f) == 6]
    return {row.pid: row for row in found if row.pid != shown.pid}


def children(root: int) -> list[int]:
    return [row.pid for row in rows().values() if row.parent == root]


def descendants(root: int) -> list[int]:
    """Return the descendants by parent, and by the process groups that they lead."""
    table = rows()
    found: dict[int, None] = {}
    groups: set[int] = set()
    grown = True
    while grown:
        grown = False
        for row in table.values():
            if row.pid != root and row.pid not in found and (row.parent == root or row.parent in found or row.group in groups):
                found[row.pid] = None
                groups |= {row.pid} if row.group == row.pid else set()
                grown = True
    return list(found)


def usage(pid: int) -> ProcessUsage | None:
    row = rows().get(pid)
    if row is None or row.state.startswith("Z"):
        return None
    return ProcessUsage(pid, seconds(row.cpu), row.rss_kb / KB_PER_MB, 1)


def seconds(text: str) -> float:
    """Of ``[days-][hours:]minutes:seconds``."""
    days, _, clock = text.rpartition("-")
    total = 0.0
    for part in clock.split(":"):
        total = total * 60 + float(part)
    return total + DAY_S * int(days or 0)
