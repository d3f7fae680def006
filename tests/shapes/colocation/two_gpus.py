"""A cluster that can be calculated by hand: two GPU types, three job types, epochs of 100 s."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from optbench.shapes.colocation.allocations import NOBODY, Allocation
from optbench.shapes.colocation.colocation_data import Colocation, GpuType, Jobs, JobType

FAST, SLOW = 0, 1
# Job types: two that share a GPU, one that fits beside none, and a gang of two GPUs.
HEAVY, LIGHT, ALONE, GANG = 0, 1, 2, 3

TYPES = (
    JobType("heavy", "a", 64.0),
    JobType("light", "a", 16.0),
    JobType("alone", "b", 8.0),
    JobType("gang", "b", 8.0, 2),
)
ALONE_PER_S = [[2.0, 4.0, 1.0, 5.0], [1.0, 2.0, 0.0, 2.5]]
# Heavy and light share either GPU, two light ones the fast one.
BESIDE = {(FAST, HEAVY, LIGHT): (1.0, 3.0), (SLOW, HEAVY, LIGHT): (0.5, 1.5)}


def tables() -> tuple[Any, Any]:
    beside = np.zeros((2, 4, 4))
    for (g, t, s), (own, other) in BESIDE.items():
        beside[g, t, s], beside[g, s, t] = own, other
    beside[FAST, LIGHT, LIGHT] = 3.0
    return np.array(ALONE_PER_S), beside


def cluster(jobs: Sequence[tuple[Any, ...]], **others: Any) -> Colocation:
    """Jobs are (type, arrival, required, work, stay) and perhaps replicas; GPUs are one and two."""
    columns = list(zip(*((*each, 1)[:6] for each in jobs), strict=True))
    alone, beside = tables()
    settings: dict[str, Any] = {"horizon_epochs": 8, "epoch_s": 100.0, "restart_s": 20.0}
    settings |= {"profile_s": 25.0, "noise": 0.0, "known": np.ones((2, 4), dtype=bool)}
    return Colocation(
        (GpuType("fast", 1, 10.0, 30.0, 130.0), GpuType("slow", 2, 5.0, 20.0, 60.0)),
        TYPES,
        alone,
        beside,
        np.full((2, 4), 0.5),
        jobs=Jobs(
            np.array(columns[0]),
            np.array(columns[1], dtype=float),
            np.array(columns[2], dtype=float),
            np.array(columns[3], dtype=float),
            np.array(columns[4], dtype=float),
            np.array(columns[5]),
        ),
        **(settings | others),
    )


def rows(*table: tuple[int, ...]) -> Allocation:
    """Rows (epoch, GPU type, job), with another job, and with True for a profile run."""
    full = [(*each, NOBODY, False)[:5] if len(each) == 3 else (*each, False)[:5] for each in table]
    epoch, gpu, first, second, profile = zip(*full, strict=True) if full else ((),) * 5
    places = [np.array(column, dtype=np.int64) for column in (epoch, gpu, first, second)]
    return Allocation(places[0], places[1], places[2], places[3], np.array(profile, dtype=bool))
