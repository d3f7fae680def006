"""Rows of studies of each kind, and of the reference week, without times."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import optbench as ob
from tests.golden.commands import document, workspace
from tests.golden.normalising import normalised
from tests.golden.optbench_access import load_target
from tests.golden.recording import Entry, Recording
from tests.golden.solving import plain, schedule_hash

# One of each kind: plain, with gates and claims, with arriving work; the last one is tuned.
STUDIES, TUNED = ("plain", "judged", "streams"), "tuned"
REFERENCE_POLICIES = ("default_policy", "ucb1", "joint_nf")
WEEK = (
    "instance_hash",
    "end",
    "now_s",
    "arrivals",
    "completed",
    "in_progress",
    "queue_end",
    "queue_end_by_site",
    "queue_by_day",
    "routing",
    "j_per_unit_logged",
    "slo_violation",
    "energy_j",
    "lost_j",
    "units_done",
    "j_per_unit",
    "latency_s",
    "verified",
    "violations",
    "metrics",
)
# The key of a cell covers the code of its solver.
LEFT_OUT = ("key", "code")


def record_studies(sample: bool = False) -> Recording:
    """What each study prints, and its rows in the store; the sample is the plain one."""
    entries: list[Entry] = []
    texts: list[Entry] = []
    with workspace() as folder:

        def keep(name: str, value: Any) -> None:
            said: dict[str, str] = {}
            entries.append({"name": name, "document": normalised(value, str(folder), said)})
            texts.append({"name": name, "texts": said})

        for study in STUDIES[:1] if sample else STUDIES:
            seen = rows(folder).keys()
            for words in (["run", study, "--no-track", "-q"], ["report", study], ["claims", study]):
                keep(" ".join(words), document(words))
            for key, row in rows(folder).items():
                if key not in seen:
                    keep(f"{study}: {row_name(row)}", row)
        if not sample:
            seen = rows(folder).keys()
            document(["tune", TUNED, "--no-track", "-q"])
            for key, row in rows(folder).items():
                if key not in seen:
                    keep(f"{TUNED}: {row_name(row)} {json.dumps(row['cell']['params'])}", row)
    return Recording(sorted(entries, key=by_name), sorted(texts, key=by_name))


def by_name(entry: Entry) -> str:
    return str(entry["name"])


def row_name(row: Entry) -> str:
    cell = row["cell"]
    return (
        f"{cell['kind']} | {cell['label']} | {cell['instance']} | {cell['target']} | {cell['seed']}"
    )


def rows(folder: Path) -> dict[str, Entry]:
    """The records of the store by their key, read as the JSON lines that they are."""
    store = folder / ".optbench"
    file = store / "results.jsonl"
    records = [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []
    return {record["key"]: row_of(record, store / "cells" / record["key"]) for record in records}


def row_of(record: Entry, cell: Path) -> Entry:
    row = {name: value for name, value in record.items() if name not in LEFT_OUT}
    row["cell"] = {name: value for name, value in record["cell"].items() if name not in LEFT_OUT}
    schedule = cell / "schedule.json"
    if schedule.is_file():
        row["schedule"] = hashlib.sha256(schedule.read_bytes()).hexdigest()[:16]
    return row


def record_reference(sample: bool = False) -> Recording:
    """The reference week under three policies; nothing without $OPTBENCH_DATA."""
    arrivals = Path(os.environ.get("OPTBENCH_DATA", "none")) / "chsac-af/reference/arrivals.csv.gz"
    if sample or not arrivals.is_file():
        return Recording([], [])
    instance = load_target(f"geo_dc:arrivals={arrivals}")
    return Recording([reference_entry(instance, policy) for policy in REFERENCE_POLICIES], [])


def reference_entry(instance: ob.Instance, policy: str) -> Entry:
    done = ob.simulate(instance, policy, bound=False)
    found = {name: getattr(done, name) for name in WEEK}
    found |= {"objective": plain(done.objective), "schedule": schedule_hash(done.schedule)}
    return {"name": policy, "document": json.loads(json.dumps(found, default=as_json))}


def as_json(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return value.tolist()
