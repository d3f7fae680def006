"""The decision: a table of segments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from optbench.model.instance import Floats, Instance, Ints


@dataclass(frozen=True, eq=False)
class Schedule:
    """One row per segment: ``units`` of ``task`` run in ``mode`` from ``start`` to ``end``, in the instance's time domain."""

    task: Ints
    mode: Ints
    start: Floats | Ints
    end: Floats | Ints
    units: Floats

    @property
    def num_segments(self) -> int:
        return len(self.task)

    @classmethod
    def of(cls, instance: Instance, mode: Any, start: Any) -> Schedule:
        """One segment per task, in task order, from each task's mode and start."""
        task = np.arange(instance.num_tasks)
        mode = np.asarray(mode, dtype=np.int64)
        dtype = np.int64 if instance.domain == "ticks" else np.float64
        start = np.asarray(start, dtype=dtype)
        units = instance.tasks.units[task].astype(float)
        return cls(task, mode, start, start + instance.duration(mode, units), units)
