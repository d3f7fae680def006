"""Small shops and projects for the tests of bounds, declared in one line each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

import optbench as ob
from optbench.model.instance import Instance

# An operation: (machine, duration), or several of them to choose from.
Operation = tuple[int, float] | Sequence[tuple[int, float]]

FT06: Sequence[Sequence[Operation]] = [
    [(2, 1), (0, 3), (1, 6), (3, 7), (5, 3), (4, 6)],
    [(1, 8), (2, 5), (4, 10), (5, 10), (0, 10), (3, 4)],
    [(2, 5), (3, 4), (5, 8), (0, 9), (1, 1), (4, 7)],
    [(1, 5), (0, 5), (2, 5), (3, 3), (4, 8), (5, 9)],
    [(2, 9), (1, 3), (4, 5), (5, 4), (0, 3), (3, 1)],
    [(1, 3), (3, 3), (5, 9), (0, 10), (4, 4), (2, 1)],
]


def shop(
    jobs: Sequence[Sequence[Operation]], counts: Sequence[int], **objective: float
) -> Instance:
    """Jobs as chains of operations on pools of ``counts`` machines."""
    m = ob.Model("shop")
    pools = [m.pool(f"m{p}", count=count) for p, count in enumerate(counts)]
    for job in jobs:
        before: Any = ()
        for operation in job:
            choices: Any = [operation] if isinstance(operation, tuple) else operation
            before = m.task(modes=[m.mode(pools[p], time_s=d) for p, d in choices], after=before)
    m.minimize(**(objective or {"makespan": 1.0}))
    return m.build()


def without_tasks(instance: Instance) -> Instance:
    """The pools and modes of an instance of unlinked tasks, with nothing to do."""
    tasks = instance.tasks
    columns = {f.name: getattr(tasks, f.name) for f in fields(tasks)}
    none: dict[str, Any] = {
        name: each[:0] for name, each in columns.items() if isinstance(each, np.ndarray)
    }
    return replace(instance, tasks=replace(tasks, names=None, **none))
