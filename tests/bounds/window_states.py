"""Windows, modes, edges and pools in the layout of compiled propagation, for its tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optbench.bounds.combinatorial.propagate import propagate, shave

Window = tuple[int, int]
# A resource: its capacity, and the devices that each of its (task, mode) pairs uses.
Resource = tuple[int, dict[int, int]]


@dataclass
class State:
    """Windows, modes, edges (source, target, lag) and resources in the layout of the
    compiled code.
    """

    windows: Sequence[Window]
    modes: Sequence[Sequence[int]]
    edges: Sequence[tuple[int, int, int]] = ()
    resources: Sequence[Resource] = ()

    def __post_init__(self) -> None:
        self.a, self.b = (np.array([w[k] for w in self.windows], dtype=np.int64) for k in (0, 1))
        sizes = [len(each) for each in self.modes]
        ptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        length = np.array([d for each in self.modes for d in each], dtype=np.int64)
        task_of = np.repeat(np.arange(len(sizes)), sizes)
        self.alive = np.ones(len(length), dtype=np.bool_)
        self.left = np.array([10**9], dtype=np.int64)
        self.dirty = np.ones(len(self.resources), dtype=np.bool_)
        entries = [
            (r, int(task_of[k]), k, u)
            for r, (_, use) in enumerate(self.resources)
            for k, u in sorted(use.items())
        ]
        of: list[list[int]] = [
            sorted({r for r, t, _, _ in entries if t == i}) for i in range(len(sizes))
        ]
        count = [sum(e[0] == r for e in entries) for r in range(len(self.resources))]

        def row(values: Any) -> Any:
            return np.array(list(values), dtype=np.int64)

        self.tables = (
            (ptr, length),
            tuple(row(e[k] for e in self.edges) for k in range(3)),
            (
                row(c for c, _ in self.resources),
                row([0, *np.cumsum(count)]),
                *(row(e[k] for e in entries) for k in (1, 2, 3)),
                row([0, *np.cumsum([len(each) for each in of])]),
                row(r for each in of for r in each),
            ),
        )

    def propagate(self, partial: bool = False) -> bool:
        return bool(
            propagate(self.a, self.b, self.alive, self.dirty, partial, self.left, *self.tables)
        )

    def shave(self, task: int, partial: bool = False) -> int:
        return int(shave(self.a, self.b, self.alive, task, partial, self.left, *self.tables))

    @property
    def found(self) -> list[Window]:
        return list(zip(self.a.tolist(), self.b.tolist(), strict=True))


def on_one_pool(capacity: int, *tasks: tuple[int, int, int, int]) -> State:
    """Tasks (earliest start, latest end, length, devices) of one mode each on one pool."""
    use = {i: task[3] for i, task in enumerate(tasks)}
    return State([task[:2] for task in tasks], [[task[2]] for task in tasks], (), [(capacity, use)])
