"""Random tiny preemptive instances, as plain data; each is drawn from its family and seed alone."""

from __future__ import annotations

import math
import random
from typing import Any

from benchmarks._progress_rules import Json

MAX_TICKS = 12
FAMILIES = {
    "whole": "whole durations, no resting power",
    "fractions": "durations in eighths of a tick, no resting power",
    "rest": "durations in eighths of a tick, resting power of 1 to 6 W",
    "data": "durations in eighths, two tasks with data, two pools, resting power of 0 to 2 W",
    "guard": "durations 2^-33 of a tick above whole ones, no resting power",
    "tiny_units": "tasks of 2^-31 units, durations in eighths of a tick, no resting power",
}


def fault_3() -> Json:
    """Fault 3 of issue 11."""
    modes = [[0, 2, 1.01, 0.0], [0, 1, 4.0, 0.0]]
    return {"counts": [2], "idle": [0], "horizon": 5, "tasks": [[1.0, modes]] * 2, "edge": None}


def drawn(family: str, seed: int) -> Json:
    """Pools, resting power, tasks as [units, modes], modes as [pool, devices, s/unit, J/unit]."""
    rng = random.Random(f"{family}-{seed}")
    pools = 2 if family == "data" else rng.choice([1, 1, 2])
    counts = [rng.choice([1, 2, 3] if pools == 1 else [1, 2]) for _ in range(pools)]
    rest = {"rest": (1, 6), "data": (0, 2)}.get(family, (0, 0))
    num_tasks = 2 if family == "data" else rng.choice([2, 2, 3])
    tasks: list[tuple[float, list[Any]]] = []
    for _ in range(num_tasks):
        units = 2.0**-31 if family == "tiny_units" else float(rng.choice([1, 1, 2]))
        longest = 4 if num_tasks == 2 else 3
        modes = []
        for k in range(2 if family == "data" else rng.choice([1, 2, 2])):
            pool = k if family == "data" else rng.randrange(pools)
            part = {"whole": 0.0, "guard": 2.0**-33}.get(family, rng.randint(-7, 0) / 8)
            time_s, energy_j = (rng.randint(1, longest) + part) / units, rng.randint(1, 20) / units
            modes.append([pool, rng.randint(1, counts[pool]), time_s, energy_j])
        tasks.append((units, modes))
    edge = [1.0, 1000 * rng.randint(0, 2), rng.randint(1, 20)] if family == "data" else None
    horizon = 1 + (int(edge[1]) // 1000 if edge else 0)
    horizon += sum(min(math.ceil(units * mode[2]) for mode in modes) for units, modes in tasks)
    out = {"counts": counts, "idle": [rng.randint(*rest) for _ in counts], "tasks": tasks}
    return {**out, "edge": edge, "horizon": min(MAX_TICKS, horizon)}
