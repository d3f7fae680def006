"""Stores that an earlier optbench has written, in which instances had another hash and schedules other columns.

The first command that meets such a store brings it up to date, once, under its lock: instances are read as version 1 of the
native format and hashed anew; every kept schedule is put on the grid, verified under today's rules (after a repair, where only
rounding stands in the way) and its objective and metrics computed again; cells get the keys that belong to the new hashes and to
the solver's code as it is now, so that nothing is run again whose schedule still verifies. What does not verify is left out and
listed, and so are the bounds of instances, which were kept without a certificate: both are run again. The file of records as it
was stays beside the new one, and so do the files of the cells that were left out.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from optbench.bounds.streams.stream_bound import path_metrics
from optbench.errors import OptbenchError
from optbench.model.files.instance_json import instance_from_dict, instance_to_dict
from optbench.model.files.schedule_json import schedule_from_dict, schedule_to_dict
from optbench.model.instance import Instance
from optbench.model.measures import contradicts, gap
from optbench.model.repair import Repaired, verified_or_repaired
from optbench.model.result import OPTIMAL_GAP
from optbench.model.timegrid import RELATIVE_TOLERANCE
from optbench.model.validate import validate
from optbench.store.records import Record
from optbench.study.cells import Cell
from optbench.study.code_version import code_hash, contents_of

MARKER, FORMAT = "format", "2"
OLD_RECORDS, OLD_CELLS = "results.version1.jsonl", "cells.version1"
# What a damaged file, or one that is none of ours, raises when it is read.
UNREADABLE = (OptbenchError, OSError, ValueError, TypeError, LookupError, AttributeError, pickle.UnpicklingError, EOFError)


@dataclass
class Migrated:
    """What became of a store; ``changed`` and ``dropped`` are one line per cell."""

    instances: int = 0
    kept: int = 0
    bounds_dropped: int = 0
    changed: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    moved: set[str] = field(default_factory=set)

    def lines(self) -> list[str]:
        """For people."""
        head = (
            f"{self.instances:,} instances hashed anew, {self.kept:,} results kept, {len(self.changed):,} of them with another "
            f"value; {len(self.dropped):,} results no longer verify and {self.bounds_dropped:,} bounds have no certificate: "
            "`optbench run` makes them again"
        )
        return [head, *(f"  changed: {line}" for line in self.changed), *(f"  dropped: {line}" for line in self.dropped)]


def is_current(folder: Path) -> bool:
    """Whether a store needs nothing: it says so, or holds nothing yet."""
    marker, records = folder / MARKER, folder / "results.jsonl"
    if marker.exists():
        return True
    return not records.exists() or records.stat().st_size == 0


def migrate(folder: Path) -> Migrated:
    """Bring a store up to date; the caller holds its lock. A crash in between leaves the old records, and begins again."""
    done = Migrated()
    new_hash = dict(_instances(folder, done))
    lines: list[bytes] = []
    old_records, new_keys = _records(folder / "results.jsonl"), set[str]()
    for old in old_records.values():
        record = _record(folder, old, new_hash, done)
        if record is not None:
            new_keys.add(record.key)
            lines.append(json.dumps(record.to_dict(), allow_nan=False).encode() + b"\n")
    for path in sorted((folder / "studies").glob("*/*.json")):
        _plan(path, new_hash)
    for path in sorted((folder / "instances").glob("source-*.json")):
        _source(path, new_hash)
    if not (folder / OLD_RECORDS).exists():
        shutil.copy2(folder / "results.jsonl", folder / OLD_RECORDS)
    write_whole(folder / "results.jsonl", b"".join(lines))
    for old_key in old_records.keys() - new_keys:
        _move_files(folder, old_key, moved=old_key in done.moved)
    for old_hash, instance in new_hash.items():
        if old_hash != instance.hash:
            (folder / "instances" / f"{old_hash}.pickle").unlink(missing_ok=True)
    write_whole(folder / MARKER, FORMAT.encode())
    return done


def mark_current(folder: Path) -> None:
    """A new store is up to date."""
    if not (folder / MARKER).exists():
        write_whole(folder / MARKER, FORMAT.encode())


def current_instance(old: Instance) -> Instance:
    """An instance unpickled from an earlier store: a version 1 object, whatever today's class says."""
    domain = vars(old).get("domain")
    if domain is None:
        return old
    data = _as_version1(old, str(domain))
    return validate(instance_from_dict(data))


def _as_version1(old: Instance, domain: str) -> dict[str, Any]:
    """The JSON object that version 1 would have written."""
    data = instance_to_dict(replace(_without_domain(old), stream=None, tariffs=None, horizon=None))
    data |= {"version": 1, "domain": domain, "horizon": None if old.horizon is None else float(old.horizon)}
    data["tasks"] |= {
        "release": old.tasks.release.tolist(),
        "deadline": [t if t != float("inf") else None for t in old.tasks.deadline.tolist()],
    }
    if old.tariffs is not None:
        columns = ("times", "price_usd_per_kwh", "carbon_g_per_kwh")
        data["tariffs"] = {name: getattr(old.tariffs, name).tolist() for name in columns}
    if old.stream is not None:
        data["stream"] = _stream(old.stream)
    return data


def _stream(stream: Any) -> dict[str, Any]:
    ways = [[way if way != float("inf") else None for way in row] for row in stream.latency_s.tolist()]
    outages = {name: getattr(stream.outages, name).tolist() for name in ("time", "pool", "devices", "announced")}
    return {
        "ingress_names": list(stream.ingress_names), "latency_s": ways, "ingress": stream.ingress.tolist(),
        "sent_to": stream.sent_to.tolist(), "opens": None if stream.opens is None else float(stream.opens),
        "outages": outages if outages["time"] else None,
    }  # fmt: skip


def _without_domain(old: Instance) -> Instance:
    """A copy that holds the fields of today's class and nothing that the old one had cached."""
    names = Instance.__dataclass_fields__
    tasks = replace(old.tasks, release=old.tasks.release.astype("int64"))
    return Instance(**{name: vars(old)[name] for name in names if name != "tasks"}, tasks=tasks)


def _instances(folder: Path, done: Migrated) -> Iterator[tuple[str, Instance]]:
    """Old hash and new instance of every kept one; the new file stands beside the old until all is done."""
    for path in sorted((folder / "instances").glob("*.pickle")):
        try:
            instance = current_instance(pickle.loads(path.read_bytes()))
        except UNREADABLE:  # its results are listed as dropped, with this as the reason
            continue
        done.instances += 1
        write_whole(folder / "instances" / f"{instance.hash}.pickle", pickle.dumps(instance, protocol=5))
        yield path.stem, instance


def _records(path: Path) -> dict[str, Record]:
    """The last whole record of each key; a line that a crash cut off is none."""
    out: dict[str, Record] = {}
    for line in path.read_bytes().split(b"\n"):
        try:
            record = Record.from_dict(json.loads(line))
        except UNREADABLE:
            continue
        out[record.key] = record
    return out


def _record(folder: Path, old: Record, instances: Mapping[str, Instance], done: Migrated) -> Record | None:
    """A record under its new key; None where it has to be made again."""
    instance = instances.get(old.cell.instance_hash)
    if old.cell.kind == "bound":
        done.bounds_dropped += 1
        return None
    if instance is None:
        done.dropped.append(f"{old.cell.title}: its instance cannot be read any more")
        return None
    cell = current_cell(old.cell, instance)
    made = None
    if old.objective is not None:
        made = _verified(folder / "cells" / old.key / "schedule.json", instance)
        if made is None or not made.verdict.feasible:
            why = "its schedule cannot be read" if made is None else "; ".join(map(str, made.verdict.violations[:2]))
            done.dropped.append(f"{old.cell.title}: {why}")
            return None
    target = folder / "cells" / cell.key
    if cell.key != old.key and (folder / "cells" / old.key).exists():
        shutil.copytree(folder / "cells" / old.key, target, dirs_exist_ok=True)
    record = replace(old, cell=cell)
    if made is not None:
        write_whole(target / "schedule.json", json.dumps(schedule_to_dict(made.schedule, instance)).encode())
        record = _scored(record, instance, made)
        if not _same(old.objective, record.objective):
            done.changed.append(f"{cell.title}: objective {old.objective} is now {record.objective}")
    done.kept += 1
    done.moved.add(old.key)
    return record


def _move_files(folder: Path, key: str, *, moved: bool) -> None:
    """The files of a cell under its old key: copied to the new one, else kept aside, since nothing can make them again."""
    files, kept = folder / "cells" / key, folder / OLD_CELLS / key
    if moved or kept.exists():
        shutil.rmtree(files, ignore_errors=True)
    elif files.exists():
        kept.parent.mkdir(exist_ok=True)
        os.replace(files, kept)


def _verified(path: Path, instance: Instance) -> Repaired | None:
    try:
        schedule = schedule_from_dict(json.loads(path.read_bytes()), instance)
    except UNREADABLE:  # reported with the cell by the caller
        return None
    return verified_or_repaired(instance, schedule)


def _scored(record: Record, instance: Instance, made: Repaired) -> Record:
    """Objective, metrics and gap anew. Bounds had no certificate: they stand as their solver's word, where they still can."""
    values = made.verdict.objectives
    bounds = [dict(bound) | {"proof": "solver"} for bound in record.bounds]
    bounds = [each for each in bounds if not contradicts(values[each.get("level", 0)], each["value"])]
    lows = [max((each["value"] for each in bounds if each.get("level", 0) == k), default=None) for k in range(len(values))]
    gaps = [gap(value, low) for value, low in zip(values, lows, strict=True)]
    closed = all(each is not None and each <= OPTIMAL_GAP for each in gaps)
    return replace(
        record, objective=_value(values), bounds=tuple(bounds), bound=_value(lows), gap=_value(gaps),
        status="optimal" if closed else "feasible", metrics=made.verdict.metrics | path_metrics(instance, made.verdict.metrics),
    )  # fmt: skip


def current_cell(old: Cell, instance: Instance) -> Cell:
    """The cell with today's hash of its instance and of its solver's code: its schedule has been verified today."""
    code = old.code
    if old.kind == "solve":
        try:
            code = code_hash("solver", old.solver) + contents_of(old.params)
        except (OptbenchError, LookupError):  # a plug-in that is gone keeps the code that it had
            code = old.code
    data = {**old.to_dict(), "instance_hash": instance.hash, "code": code}
    return Cell.from_dict({name: value for name, value in data.items() if name != "key"})


def _plan(path: Path, instances: Mapping[str, Instance]) -> None:
    """The cells and instances that a study was planned with."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        for made in data["made"]:
            if made.get("instance_hash") in instances:
                made["instance_hash"] = instances[made["instance_hash"]].hash
        cells = [Cell.from_dict(each) for each in data["cells"]]
    except UNREADABLE:  # `optbench run` writes it anew
        return
    known = [current_cell(each, instances[each.instance_hash]) for each in cells if each.instance_hash in instances]
    data["cells"] = [json.loads(json.dumps(each.to_dict(), default=str)) for each in known]
    write_whole(path, json.dumps(data).encode())


def _source(path: Path, instances: Mapping[str, Instance]) -> None:
    """What a target's instance was."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        data["instance_hash"] = instances[data["instance_hash"]].hash
    except UNREADABLE:  # the instance is made again
        path.unlink(missing_ok=True)
        return
    write_whole(path, json.dumps(data).encode())


def _same(old: Any, new: Any) -> bool:
    pairs = zip(_levels(old), _levels(new), strict=True)
    return all(abs(a - b) <= RELATIVE_TOLERANCE * max(abs(a), abs(b)) for a, b in pairs)


def _levels(value: Any) -> tuple[float, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _value(values: Any) -> Any:
    """A number for one level, a tuple for several, None when any is missing."""
    known = tuple(values)
    if any(value is None for value in known):
        return None
    return known[0] if len(known) == 1 else known


def write_whole(path: Path, content: bytes) -> None:
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
