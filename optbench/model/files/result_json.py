"""Results as JSON, version 1: what ``solve --json`` prints; missing values are null."""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from optbench.model.files.schedule_json import schedule_document
from optbench.model.files.strict_json import jsonable, render, write_text
from optbench.model.result import Bound, Infeasibility, Result, TrajectoryPoint

FORMAT, VERSION = "optbench-result", 1
# The schedule itself is a file of its own, and the instance another.
SEPARATE = ("schedule", "instance_data", "files", "measured", "energy")
VALUES = tuple(entry.name for entry in fields(Result) if entry.name not in SEPARATE)


def result_to_dict(result: Result) -> dict[str, Any]:
    """The JSON object of a result."""
    out: dict[str, Any] = {"format": FORMAT, "version": VERSION}
    for key in VALUES:
        out[key] = _plain(getattr(result, key))
    if result.files:
        out["files"] = jsonable(result.files)
    if result.energy is not None:
        out["energy"] = jsonable(result.energy)
    if result.measured is not None:
        out["measured"] = jsonable(result.measured.to_dict())
    return out


def _plain(value: Any) -> Any:
    """Plain JSON; certificates of bounds and of infeasibility stay out."""
    if isinstance(value, tuple) and value and isinstance(value[0], (Bound, TrajectoryPoint)):
        return [jsonable(row.to_dict() if isinstance(row, Bound) else asdict(row)) for row in value]
    return value.to_dict() if isinstance(value, Infeasibility) else jsonable(value)


def write_result(result: Result, path: str | Path) -> None:
    write_text(Path(path), render(result_to_dict(result)))


def result_files(result: Result, path: Path) -> dict[Path, str]:
    """The texts of ``result.save(path)``: the schedule in ``NAME.schedule.json``, then the
    document, which names it relative to its own folder.
    """
    if result.schedule is None:
        return {path: render(result_to_dict(replace(result, schedule_file=None)))}
    schedule = path.with_name(f"{path.name.removesuffix('.json')}.schedule.json")
    document = result_to_dict(replace(result, schedule_file=schedule.name))
    shape = getattr(result.instance_data, "shape", None)
    decision = (
        schedule_document(result.schedule, result.instance, result.instance_hash)
        if shape is None
        else shape.write_decision(result.instance_data, result.schedule)
    )
    tables = {} if shape is None else shape.decision_files(result.instance_data, result.schedule)
    stem = path.name.removesuffix(".json")
    named = {path.with_name(f"{stem}.{name}"): text for name, text in tables.items()}
    return {schedule: render(decision), **named, path: render(document)}
