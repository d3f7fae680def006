"""The form of a schedule: columns of whole numbers of one length, of things that exist."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

import numpy as np

from optbench.model.instance import Instance, Ints
from optbench.model.schedule import Schedule, Sleep

# Later times, far beyond any horizon, are invalid, so that differences of times fit into int64.
LARGEST_TIME = 2**60


def form_error(instance: Instance, s: Schedule) -> str | None:
    """What is wrong with the form of a schedule, if anything is."""
    columns = {"task": s.task, "mode": s.mode, "start": s.start, "end": s.end}
    n = s.task.size
    for name, column in columns.items():
        if column.ndim != 1 or len(column) != n:
            return f"column {name!r} has shape {column.shape}, expected ({n},)"
        if column.dtype.kind not in "iu":
            return f"column {name!r} holds {column.dtype}, expected whole numbers"
    for name, top in (("task", instance.num_tasks), ("mode", instance.num_modes)):
        bad = np.flatnonzero((columns[name] < 0) | (columns[name] >= top))
        if len(bad):
            return f"{name}[{bad[0]}] is {columns[name][bad[0]]}, expected 0 to {top - 1}"
    return _late(columns, ("start", "end")) or _form_of_sleep(instance, s.sleep)


def _late(columns: dict[str, Ints], names: Iterable[str]) -> str | None:
    for name in names:
        bad = np.flatnonzero((columns[name] > LARGEST_TIME) | (columns[name] < -LARGEST_TIME))
        if len(bad):
            return f"{name}[{bad[0]}] is {columns[name][bad[0]]}, expected at most 2^60 ticks"
    return None


def _form_of_sleep(instance: Instance, rows: Sleep | None) -> str | None:
    if rows is None:
        return None
    given = {field.name: getattr(rows, field.name) for field in fields(Sleep)}
    columns = {f"sleep.{name}": column for name, column in given.items()}
    for name, column in columns.items():
        if column.ndim != 1 or len(column) != rows.pool.size:
            return f"column {name!r} has shape {column.shape}, expected ({rows.pool.size},)"
        if column.dtype.kind not in "iu":
            return f"column {name!r} holds {column.dtype}, expected whole numbers"
    bad = np.flatnonzero((rows.pool < 0) | (rows.pool >= instance.num_pools))
    if len(bad):
        known = f"expected 0 to {instance.num_pools - 1}"
        return f"sleep.pool[{bad[0]}] is {rows.pool[bad[0]]}, {known}"
    return _late(columns, ("sleep.devices", "sleep.start", "sleep.end"))
