"""Migration of stores written by earlier versions, in which instances had other hashes and
schedules other columns.

The first command that opens such a store migrates it once, under its lock. Instances are read as
version 1 of the native format and hashed again. Every stored schedule is put on the tick grid,
verified under the current rules (repaired first where only rounding stands in the way), and its
objective and metrics are computed again. Cells get the keys of the new hashes and of the solver's
current code, so that nothing is run again whose schedule still verifies. Results that do not verify
are dropped and listed, and so are bounds of instances, which were stored without certificates: both
are run again. The old file of records and the files of dropped cells are kept beside the new ones.
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

import numpy as np

from optbench.errors import OptbenchError
from optbench.files import write_whole
from optbench.model.files.instance_json import instance_from_dict, instance_to_dict
from optbench.model.files.schedule_json import schedule_from_dict, schedule_to_dict
from optbench.model.instance import Instance
from optbench.model.measures import contradicts
from optbench.model.repair import Repaired, verified_or_repaired
from optbench.model.result import OPTIMAL_GAP, Bound
from optbench.model.timegrid import RELATIVE_TOLERANCE
from optbench.model.validate import validate
from optbench.outcome import outcome_of
from optbench.store.records import Record
from optbench.study.cells import Cell
from optbench.study.code_version import code_hash, contents_of

MARKER, FORMAT = "format", "2"
OLD_RECORDS, OLD_CELLS = "results.version1.jsonl", "cells.version1"
# Exceptions when reading a damaged or foreign file.
UNREADABLE = (
    OptbenchError,
    OSError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    pickle.UnpicklingError,
    EOFError,
)


@dataclass
class Migrated:
    """The result of a migration; ``changed`` and ``dropped`` have one line per cell."""

    instances: int = 0
    kept: int = 0
    bounds_dropped: int = 0
    changed: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    moved: set[str] = field(default_factory=set)

    def lines(self) -> list[str]:
        """For people."""
        head = (
            f"{self.instances:,} instances hashed anew, {self.kept:,} results kept, "
            f"{len(self.changed):,} of them with another "
            f"value; {len(self.dropped):,} results no longer verify and {self.bounds_dropped:,} "
            "bounds have no certificate: "
            "`optbench run` makes them again"
        )
        return [
            head,
            *(f"  changed: {line}" for line in self.changed),
            *(f"  dropped: {line}" for line in self.dropped),
        ]


def is_current(folder: Path) -> bool:
    """Whether a store needs no migration: it is marked, or empty."""
    marker, records = folder / MARKER, folder / "results.jsonl"
    if marker.exists():
        return True
    return not records.exists() or records.stat().st_size == 0


def migrate(folder: Path) -> Migrated:
    """Migrate a store under its lock; after a crash the migration starts again."""
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
    """Mark a new store as current."""
    if not (folder / MARKER).exists():
        write_whole(folder / MARKER, FORMAT.encode())


def current_instance(old: Instance) -> Instance:
    """Convert an instance unpickled from a version 1 store to the current class."""
    domain = vars(old).get("domain")
    if domain is None:
        return old
    data = _as_version1(old, str(domain))
    return validate(instance_from_dict(data))


def _as_version1(old: Instance, domain: str) -> dict[str, Any]:
    """Return the JSON object that version 1 would have written."""
    data = instance_to_dict(replace(_without_domain(old), stream=None, tariffs=None, horizon=None))
    data |= {
        "version": 1,
        "domain": domain,
        "horizon": None if old.horizon is None else float(old.horizon),
    }
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
    ways = [
        [way if way != float("inf") else None for way in row] for row in stream.latency_s.tolist()
    ]
    outages = {
        name: getattr(stream.outages, name).tolist()
        for name in ("time", "pool", "devices", "announced")
    }
    return {
        "ingress_names": list(stream.ingress_names),
        "latency_s": ways,
        "ingress": stream.ingress.tolist(),
        "sent_to": stream.sent_to.tolist(),
        "opens": None if stream.opens is None else float(stream.opens),
        "outages": outages if outages["time"] else None,
    }


def _without_domain(old: Instance) -> Instance:
    """Return a copy with the fields of the current class and no cached values of the old one;
    fields that came later have their defaults.
    """
    names = set(Instance.__dataclass_fields__) & set(vars(old)) - {"tasks"}
    tasks = replace(old.tasks, release=old.tasks.release.astype("int64"))
    return Instance(**{name: vars(old)[name] for name in names}, tasks=tasks)


def _instances(folder: Path, done: Migrated) -> Iterator[tuple[str, Instance]]:
    """Yield the old hash and the new instance of every stored one; both files stay for now."""
    for path in sorted((folder / "instances").glob("*.pickle")):
        try:
            instance = current_instance(pickle.loads(path.read_bytes()))
        except UNREADABLE:  # its results are listed as dropped, with this as the reason
            continue
        done.instances += 1
        write_whole(
            folder / "instances" / f"{instance.hash}.pickle", pickle.dumps(instance, protocol=5)
        )
        yield path.stem, instance


def _records(path: Path) -> dict[str, Record]:
    """Return the last complete record of each key; a truncated line is ignored."""
    out: dict[str, Record] = {}
    for line in path.read_bytes().split(b"\n"):
        try:
            record = Record.from_dict(json.loads(line))
        except UNREADABLE:
            continue
        out[record.key] = record
    return out


def _record(
    folder: Path, old: Record, instances: Mapping[str, Instance], done: Migrated
) -> Record | None:
    """Return a record under its new key; None where the cell has to be run again."""
    instance = instances.get(old.cell.instance_hash)
    if old.cell.kind == "bound":
        done.bounds_dropped += 1
        return None
    if instance is None:
        done.dropped.append(f"{old.cell.title}: its instance can no longer be read")
        return None
    cell = current_cell(old.cell, instance)
    made = None
    if old.objective is not None:
        made = _verified(folder / "cells" / old.key / "schedule.json", instance)
        if made is None:
            done.dropped.append(f"{old.cell.title}: its schedule cannot be read")
            return None
        if not made.verdict.feasible:
            why = "; ".join(map(str, made.verdict.violations[:2]))
            done.dropped.append(f"{old.cell.title}: {why}")
            return None
    target = folder / "cells" / cell.key
    if cell.key != old.key and (folder / "cells" / old.key).exists():
        shutil.copytree(folder / "cells" / old.key, target, dirs_exist_ok=True)
    record = replace(old, cell=cell)
    if made is not None:
        write_whole(
            target / "schedule.json", json.dumps(schedule_to_dict(made.schedule, instance)).encode()
        )
        record = _scored(record, instance, made)
        values = np.array(old.objective), np.array(record.objective)
        if not np.allclose(*values, rtol=RELATIVE_TOLERANCE, atol=0.0):
            done.changed.append(
                f"{cell.title}: objective {old.objective} is now {record.objective}"
            )
    done.kept += 1
    done.moved.add(old.key)
    return record


def _move_files(folder: Path, key: str, *, moved: bool) -> None:
    """Remove a cell's files that were copied to its new key; keep others aside."""
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
    """Compute objective, metrics and gap again; bounds remain as claims where consistent."""
    values = made.verdict.objectives
    claims = (Bound(**{**bound, "proof": "solver"}) for bound in record.bounds)
    bounds = [each for each in claims if not contradicts(values[each.level], each.value)]
    found = outcome_of(instance, made.verdict, bounds)
    closed = all(each is not None and each <= OPTIMAL_GAP for each in found.gaps)
    return replace(
        record,
        objective=found.objective,
        bounds=tuple(bound.to_dict() for bound in bounds),
        bound=found.bound,
        gap=found.gap,
        status="optimal" if closed else "feasible",
        metrics=found.metrics,
    )


def current_cell(old: Cell, instance: Instance) -> Cell:
    """Return the cell with the current hashes of its instance and of its solver's code."""
    code = old.code
    if old.kind == "solve":
        try:
            code = code_hash("solver", old.solver) + contents_of(old.params)
        except (
            OptbenchError,
            LookupError,
        ):
            # A plug-in that no longer exists keeps its old code hash
            code = old.code
    data = {**old.to_dict(), "instance_hash": instance.hash, "code": code}
    return Cell.from_dict({name: value for name, value in data.items() if name != "key"})


def _plan(path: Path, instances: Mapping[str, Instance]) -> None:
    """Migrate the cells and instances with which a study was planned."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        for made in data["made"]:
            if made.get("instance_hash") in instances:
                made["instance_hash"] = instances[made["instance_hash"]].hash
        cells = [Cell.from_dict(each) for each in data["cells"]]
    except UNREADABLE:  # `optbench run` writes it again
        return
    known = [
        current_cell(each, instances[each.instance_hash])
        for each in cells
        if each.instance_hash in instances
    ]
    data["cells"] = [json.loads(json.dumps(each.to_dict(), default=str)) for each in known]
    write_whole(path, json.dumps(data).encode())


def _source(path: Path, instances: Mapping[str, Instance]) -> None:
    """Migrate the note of a target's instance."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        data["instance_hash"] = instances[data["instance_hash"]].hash
    except UNREADABLE:  # the instance is made again
        path.unlink(missing_ok=True)
        return
    write_whole(path, json.dumps(data).encode())
