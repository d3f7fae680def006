"""Schedules as JSON, version 2: the columns of the segments in whole ticks, and the hash of the
instance they belong to.

Version 1 is still read: its times may be seconds, and the hash of its instance is of another kind,
so that nothing is compared.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from optbench.errors import FileFormatError, naming
from optbench.model.files import json_columns as col
from optbench.model.files.instance_json import listed
from optbench.model.files.json_fields import read_text, shown
from optbench.model.files.strict_json import parse_json, render, write_text
from optbench.model.files.version1 import SECONDS, TICKS, segment_times
from optbench.model.instance import Instance
from optbench.model.repair import on_grid
from optbench.model.schedule import Schedule, Sleep
from optbench.typed_values import describe, refuse
from optbench.units import EXACT

FORMAT, VERSION, OLDEST = "optbench-schedule", 2, 1
SEGMENT_COLUMNS = ("task", "mode", "start", "end")
SLEEP = ("pool", "devices", "start", "end")
# The first half of an instance's hash leaves the objective out: a schedule is one whatever is
# minimised.
PHYSICS_DIGITS = 32


def read_schedule(path: str | Path, instance: Instance) -> Schedule:
    """The schedule in a file, for this instance; the verifier says if it is feasible."""
    path = Path(path)
    text = read_text(path)
    with naming(shown(path), FileFormatError):
        return schedule_from_dict(parse_json(text), instance)


def write_schedule(schedule: Schedule, path: str | Path, instance: Instance) -> None:
    write_text(Path(path), render(schedule_to_dict(schedule, instance)))


def schedule_to_dict(schedule: Schedule, instance: Instance) -> dict[str, Any]:
    """The JSON object of a schedule."""
    return schedule_document(schedule, instance.name, instance.hash)


def schedule_document(schedule: Schedule, instance: str, instance_hash: str) -> dict[str, Any]:
    """The JSON object of a schedule of the instance with this name and hash."""
    rows = schedule.sleep
    return {
        "format": FORMAT,
        "version": VERSION,
        "instance": instance,
        "instance_hash": instance_hash,
        "segments": {key: listed(getattr(schedule, key)) for key in SEGMENT_COLUMNS},
        **({} if rows is None else {"sleep": {key: listed(getattr(rows, key)) for key in SLEEP}}),
    }


def schedule_from_dict(data: Any, instance: Instance) -> Schedule:
    """A schedule whose segments name tasks and modes that exist."""
    if isinstance(data, dict) and col.header(data, FORMAT, VERSION, OLDEST) == 1:
        return version1_schedule(data, instance)
    optional = ("instance", "instance_hash", "sleep")
    data = col.table(data, "", ("format", "version", "segments"), optional)
    if data["instance"] is not None:
        col.text(data["instance"], "instance")
    check_owner(data, instance)
    segments = col.columns(data["segments"], "segments", dict.fromkeys(SEGMENT_COLUMNS, col.ints))
    check_indices(segments, instance)
    return Schedule(**segments, sleep=sleep_from(data["sleep"], instance))


def sleep_from(value: Any, instance: Instance) -> Sleep | None:
    """The rows of devices that sleep, of pools that exist."""
    if value is None:
        return None
    rows = col.columns(value, "sleep", dict.fromkeys(SLEEP, col.ints))
    known = f"from 0 to {instance.num_pools - 1}: the instance has {instance.num_pools:,} pools"
    col.check_index(rows["pool"], "sleep.pool", instance.num_pools, known)
    return Sleep(**rows)


def version1_schedule(data: dict[str, Any], instance: Instance) -> Schedule:
    """A schedule of version 1, its times on the grid of the instance."""
    data = col.table(
        data, "", ("format", "version", "domain", "segments"), ("instance", "instance_hash")
    )
    domain = col.text(data["domain"], "domain", (TICKS, SECONDS))
    readers: col.Readers = {
        "task": col.ints,
        "mode": col.ints,
        "start": col.floats,
        "end": col.floats,
    }
    segments = col.columns(data["segments"], "segments", readers, optional=("units",))
    times = [segment_times(instance, segments[key], domain) for key in ("start", "end")]
    for key, column in zip(("start", "end"), times, strict=True):
        late = next((row for row, time in enumerate(column) if abs(time) > EXACT), None)
        if late is not None:
            refuse(f"segments.{key}[{late}]", column[late], "within 2^53 ticks")
    check_indices(segments, instance)
    return on_grid(segments["task"], segments["mode"], *times)


def check_owner(data: dict[str, Any], instance: Instance) -> None:
    if data["instance_hash"] is None:
        return
    found = col.text(data["instance_hash"], "instance_hash")
    if found[:PHYSICS_DIGITS] != instance.hash[:PHYSICS_DIGITS]:
        raise FileFormatError(
            f"instance_hash is {describe(found)}, a schedule of another instance; that of "
            f"{instance.name!r} begins "
            f"{instance.hash[:PHYSICS_DIGITS]!r}. Remove the key to verify it all the same"
        )


def check_indices(segments: dict[str, Any], instance: Instance) -> None:
    for key, size in (("task", instance.num_tasks), ("mode", instance.num_modes)):
        known = f"from 0 to {size - 1}: the instance has {size:,} {key}s"
        col.check_index(segments[key], f"segments.{key}", size, known)
