"""Assignment of segments to devices of their pools; a schedule only has the number of devices.

Segments are assigned to free devices in order of start. Where the capacity holds there are always
enough. A block of neighbouring devices is preferred, so that a task on four GPUs is drawn as one
bar four lanes high.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.model.instance import Instance
from optbench.model.metrics import requirements
from optbench.model.schedule import Schedule


@dataclass(frozen=True)
class Block:
    """``height`` neighbouring lanes of a pool from ``lane`` on, held by a row of the schedule."""

    segment: int
    pool: int
    lane: int
    height: int


def assign_lanes(instance: Instance, schedule: Schedule) -> list[Block]:
    """Blocks of every segment with a length; pool -1 gathers the segments that hold no device."""
    row, pool, count = requirements(instance, schedule.mode)
    start, end = schedule.start.astype(float), schedule.end.astype(float)
    bare = np.flatnonzero(np.bincount(row, minlength=schedule.num_segments) == 0)
    row = np.concatenate((row, bare))
    pool = np.concatenate((pool, np.full(len(bare), -1)))
    count = np.concatenate((count, np.ones(len(bare), dtype=np.int64)))
    free_at: dict[int, list[float]] = {
        p: [0.0] * int(n) for p, n in enumerate(instance.pools.count)
    }
    blocks: list[Block] = []
    for k in np.lexsort((row, start[row])).tolist():
        segment, p, need = int(row[k]), int(pool[k]), int(count[k])
        if end[segment] <= start[segment] or need == 0:
            continue
        lanes = free_at.setdefault(p, [])
        chosen = _choose(lanes, start[segment], need)
        for lane in chosen:
            lanes[lane] = float(end[segment])
        blocks += [Block(segment, p, first, height) for first, height in _runs(chosen)]
    return blocks


def _choose(lanes: list[float], now: float, need: int) -> list[int]:
    """Free lanes, neighbouring ones if possible; an infeasible schedule may add lanes."""
    free = [lane for lane, until in enumerate(lanes) if until <= now]
    for first, height in _runs(free):
        if height >= need:
            return list(range(first, first + need))
    while len(free) < need:
        free.append(len(lanes))
        lanes.append(0.0)
    return free[:need]


def _runs(lanes: list[int]) -> list[tuple[int, int]]:
    """Neighbouring lanes merged: (first, how many)."""
    out: list[tuple[int, int]] = []
    for lane in lanes:
        if out and lane == out[-1][0] + out[-1][1]:
            out[-1] = (out[-1][0], out[-1][1] + 1)
        else:
            out.append((lane, 1))
    return out
