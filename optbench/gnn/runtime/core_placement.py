"""Which core computes for which device: the speeds of the devices on a core add up to at most 1."""

from __future__ import annotations

import os
from collections.abc import Sequence

from optbench.errors import UnsupportedError

# What rounding may add to a sum of speeds.
ROUNDING = 1e-9


def usable_cores() -> tuple[int, ...]:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def cores_of_devices(speeds: Sequence[float], cores: Sequence[int]) -> tuple[int, ...]:
    """Return the core of each device; devices are placed by falling speed, with backtracking."""
    order = sorted(range(len(speeds)), key=lambda d: (-speeds[d], d))
    load, chosen = [0.0] * len(cores), [0] * len(speeds)

    def place(k: int) -> bool:
        if k == len(order):
            return True
        tried = set[float]()
        for c in range(len(cores)):
            after = load[c] + speeds[order[k]]
            if load[c] in tried or after > 1 + ROUNDING:
                continue
            before = load[c]
            tried.add(before)
            load[c], chosen[order[k]] = after, cores[c]
            if place(k + 1):
                return True
            load[c] = before
        return False

    if sum(speeds) > len(cores) * (1 + ROUNDING) or not place(0):
        total = ", ".join(f"{each:g}" for each in speeds)
        raise UnsupportedError(
            f"{len(speeds)} devices of relative speeds {total} do not fit the {len(cores)} cores "
            "of this machine: the speeds on a core may add up to at most 1. Use fewer devices "
            "(parts share them), slower ones such as devices=4:2:1, or more machines"
        )
    return tuple(chosen)
