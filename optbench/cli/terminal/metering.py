"""Measures the energy of work that a command does in its own process: solving, training."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable

from optbench.hardware.own_energy import OwnEnergy
from optbench.hardware.run_energy import RunEnergy
from optbench.sandbox import process_tree


def metered(on_tick: Callable[[RunEnergy], None] | None = None) -> OwnEnergy:
    """Return a context manager that measures this process and all processes below it."""
    return OwnEnergy(processor_s, on_tick, processes=processes)


def processes() -> tuple[int, ...]:
    """Return this process and all processes below it."""
    return (os.getpid(), *process_tree.descendants(os.getpid()))


def processor_s() -> float:
    """Return the processor time of this process, of its ended and of its living descendants."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    living = map(process_tree.usage, process_tree.descendants(os.getpid()))
    total_s = sum(each.ru_utime + each.ru_stime for each in used)
    return total_s + sum(each.cpu_s for each in living if each is not None)
