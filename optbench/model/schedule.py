"""A schedule: a table of segments, without a score; the verifier computes all metrics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optbench.errors import ModelError
from optbench.model.instance import Instance, Ints


@dataclass(frozen=True, eq=False)
class Sleep:
    """Rows: ``devices`` of ``pool`` sleep from ``start`` to ``end`` in whole ticks, then wake."""

    pool: Ints
    devices: Ints
    start: Ints
    end: Ints


@dataclass(frozen=True, eq=False)
class Schedule:
    """One row per segment: ``task`` runs in ``mode`` from ``start`` to ``end``, in whole ticks.

    ``sleep`` says which devices sleep, where waking them takes time or energy.
    """

    task: Ints
    mode: Ints
    start: Ints
    end: Ints
    sleep: Sleep | None = field(default=None, kw_only=True)

    def as_int64(self) -> Schedule:
        """The same in 64-bit columns: differences of unsigned integers would wrap around."""
        columns, sleep = (self.task, self.mode, self.start, self.end), self.sleep
        if sleep is not None:
            rows = (sleep.pool, sleep.devices, sleep.start, sleep.end)
            sleep = Sleep(*(column.astype(np.int64) for column in rows))
        elif all(column.dtype == np.int64 for column in columns):
            return self
        return Schedule(*(column.astype(np.int64) for column in columns), sleep=sleep)

    @property
    def num_segments(self) -> int:
        return len(self.task)

    @classmethod
    def of(cls, instance: Instance, mode: Any, start: Any) -> Schedule:
        """One segment per task, in task order, from each task's mode and whole start."""
        task = np.arange(instance.num_tasks)
        mode = np.asarray(mode, dtype=np.int64)
        start = _whole(np.asarray(start))
        return cls(task, mode, start, start + instance.duration(mode, instance.tasks.units))


def _whole(start: Any) -> Ints:
    """Starts as integers; a fraction of a tick raises an error."""
    out: Ints = start.astype(np.int64)
    if start.dtype.kind == "f" and (out != start).any():
        row = int(np.flatnonzero(out != start)[0])
        raise ModelError(
            f"start[{row}] is {start[row]}; it must be whole ticks (Instance.to_ticks makes them "
            "of seconds)"
        )
    return out
