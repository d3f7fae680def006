"""Schedules as JSON, version 1: the columns of the segments, and the hash of the instance they belong to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from optbench.errors import FileFormatError
from optbench.model.files import columns as col
from optbench.model.files.instance_json import listed, times_listed
from optbench.model.files.reading import read_text, shown
from optbench.model.files.strict_json import parse_json, render, write_text
from optbench.model.instance import MAX_TIME, Instance
from optbench.model.schedule import Schedule

FORMAT, VERSION = "optbench-schedule", 1
SEGMENT_COLUMNS = ("task", "mode", "start", "end", "units")
# The first half of an instance's hash leaves the objective out: a schedule is one whatever is minimised.
PHYSICS_DIGITS = 32


def read_schedule(path: str | Path, instance: Instance) -> Schedule:
    """The schedule in a file, for this instance; whether it is feasible is for the verifier to say."""
    path = Path(path)
    text = read_text(path)
    try:
        return schedule_from_dict(parse_json(text), instance)
    except FileFormatError as error:
        raise FileFormatError(f"{shown(path)}: {error}") from None


def write_schedule(schedule: Schedule, path: str | Path, instance: Instance) -> None:
    write_text(Path(path), render(schedule_to_dict(schedule, instance)))


def schedule_to_dict(schedule: Schedule, instance: Instance) -> dict[str, Any]:
    """The JSON object of a schedule."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "instance": instance.name,
        "instance_hash": instance.hash,
        "domain": instance.domain,
        "segments": {
            **{key: listed(getattr(schedule, key)) for key in SEGMENT_COLUMNS},
            **{key: times_listed(getattr(schedule, key), instance.domain) for key in ("start", "end")},
        },
    }


def schedule_from_dict(data: Any, instance: Instance) -> Schedule:
    """A schedule whose segments name tasks and modes that exist."""
    if isinstance(data, dict):
        col.header(data, FORMAT, VERSION)
    data = col.table(data, "", ("format", "version", "domain", "segments"), ("instance", "instance_hash"))
    if data["instance"] is not None:
        col.text(data["instance"], "instance")
    check_owner(data, instance)
    segments = col.table(data["segments"], "segments", SEGMENT_COLUMNS)
    n = len(col.rows(segments["task"], "segments.task"))
    time = "int" if instance.domain == "ticks" else "float"
    schedule = Schedule(
        task=index_column(segments, "task", n, instance.num_tasks),
        mode=index_column(segments, "mode", n, instance.num_modes),
        start=col.column(segments, "start", "segments", time, n),
        end=col.column(segments, "end", "segments", time, n),
        units=col.column(segments, "units", "segments", "float", n),
    )
    check_magnitudes(schedule, instance)
    return schedule


def check_magnitudes(schedule: Schedule, instance: Instance) -> None:
    """Times and work that arithmetic can hold; everything else is for the verifier."""
    with np.errstate(over="ignore"):
        work = np.abs(schedule.units) * instance.modes.time_per_unit_s[schedule.mode] / instance.step_s
    for key, sizes in (("start", np.abs(schedule.start)), ("end", np.abs(schedule.end)), ("units", work)):
        bad = np.flatnonzero(sizes >= MAX_TIME)
        if len(bad):
            what = f"{instance.domain} of work" if key == "units" else instance.domain
            col.refuse(f"segments.{key}[{bad[0]}]", getattr(schedule, key)[bad[0]].item(), f"less than {MAX_TIME:.3g} {what}")


def check_owner(data: dict[str, Any], instance: Instance) -> None:
    domain = col.text(data["domain"], "domain", ("ticks", "seconds"))
    if domain != instance.domain:
        raise FileFormatError(f"domain is {domain!r}; instance {instance.name!r} has {instance.domain!r}")
    if data["instance_hash"] is None:
        return
    found = col.text(data["instance_hash"], "instance_hash")
    if found[:PHYSICS_DIGITS] != instance.hash[:PHYSICS_DIGITS]:
        raise FileFormatError(
            f"instance_hash is {col.describe(found)}, a schedule of another instance; that of {instance.name!r} begins "
            f"{instance.hash[:PHYSICS_DIGITS]!r}. Remove the key to verify it all the same"
        )


def index_column(segments: dict[str, Any], key: str, length: int, size: int) -> Any:
    values = col.column(segments, key, "segments", "int", length)
    bad = np.flatnonzero((values < 0) | (values >= size))
    if len(bad):
        col.refuse(f"segments.{key}[{bad[0]}]", int(values[bad[0]]), f"from 0 to {size - 1}: the instance has {size:,} {key}s")
    return values
