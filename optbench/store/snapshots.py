"""Stored plans of studies as last run, for commands that read results without planning again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from optbench.errors import FileFormatError, OptbenchError, UnknownNameError
from optbench.plugins.discovery import names
from optbench.store.run_store import STUDIES, Store
from optbench.study.cells import Cell
from optbench.study.declared import Study
from optbench.study.planning import FORMAT, VERSION, Plan
from optbench.study.study_file import load_study

LATEST = "latest"
HASH_DIGITS = 16
# Fields of a study's configuration whose names say too little.
FIELDS = {"solvers": "solvers or their budgets", "bound_limit_s": "bound_limit"}


def load_plan(study: str | Path, store: Store) -> Plan:
    """Return the latest plan of a study, by its name or file, from the store. If its file asks for
    cells that were run earlier, or is one of several of that name, it is the plan of those
    cells.

    Question, gates, claims and metrics are those of the current study file, if it can be read and
    asks for the same cells; otherwise ``Plan.changed`` describes the difference.
    """
    folder = store.folder / STUDIES
    name = Path(study).stem if str(study).endswith(".toml") else str(study)
    latest = folder / name / LATEST
    if not latest.is_file():
        raise _never_run(study, name, folder)
    plan = read_plan(folder / name / latest.read_text(encoding="utf-8").strip())
    try:
        now = load_study(study if str(study).endswith(".toml") else _source(plan, name))
    except OptbenchError as error:
        return replace(plan, changed=f"the study can no longer be read: {error}")
    if now.config_hash != plan.study.config_hash and (folder / name / snapshot_of(now)).is_file():
        plan = read_plan(folder / name / snapshot_of(now))
    return _compared(plan, now)


def snapshot_of(study: Study) -> str:
    """Return the name of the file with a study's plan."""
    return f"{study.config_hash[:HASH_DIGITS]}.json"


def studies_run(store: Store) -> list[str]:
    """Return the names of the studies with a plan in the store."""
    return sorted(path.parent.name for path in (store.folder / STUDIES).glob(f"*/{LATEST}"))


def last_study(store: Store) -> str | None:
    """Return the name of the study that was run last; None where none was."""
    ran = {
        path.parent.name: path.stat().st_mtime_ns
        for path in (store.folder / STUDIES).glob(f"*/{LATEST}")
    }
    return max(ran, key=lambda name: (ran[name], name)) if ran else None


def load_plans(store: Store) -> Iterator[Plan]:
    """Yield the latest plan of every study of the store."""
    return (load_plan(name, store) for name in studies_run(store))


def read_plan(path: Path) -> Plan:
    """Read a plan from its file."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data.get("format") != FORMAT or data.get("version") != VERSION:
            raise FileFormatError(f"format {data.get('format')!r}, version {data.get('version')!r}")
        return Plan.from_dict(data)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, FileFormatError) as error:
        message = (
            f"{path}: the plan cannot be read ({type(error).__name__}: {error}); `optbench "
            "run` writes it again"
        )
        raise FileFormatError(message) from None


def _source(plan: Plan, name: str) -> str | Path:
    """Return the file that was run, or the study's name if the file no longer exists."""
    path = plan.study.path
    return name if path is None or (not path.is_file() and name in names("study")) else path


def _never_run(study: str | Path, name: str, folder: Path) -> OptbenchError:
    run = sorted(path.parent.name for path in folder.glob(f"*/{LATEST}"))
    known = names("study")
    if name in known or (str(study).endswith(".toml") and Path(study).is_file()):
        what = f"study {name!r} has not been run here: {folder.parent} has no results of it"
        return OptbenchError(f"{what}; `optbench run {study}`")
    if str(study).endswith(".toml"):
        return FileFormatError(
            f"{study}: no such file, and no study {name!r} was run here; see `optbench list "
            "studies`"
        )
    return UnknownNameError("study", str(study), {*known, *run})


def _compared(plan: Plan, now: Study) -> Plan:
    """Return the plan with the texts of its study file, or with a description of the difference."""
    if now.config_hash != plan.study.config_hash:
        return replace(plan, changed=_describe_study_change(plan.study, now))
    labels = now.labels
    renamed = {label: labels[content] for content, label in plan.study.labels.items()}
    cells = tuple(_labelled(cell, renamed.get(cell.label, cell.label)) for cell in plan.cells)
    return replace(plan, study=now, cells=cells)


def _labelled(cell: Cell, label: str) -> Cell:
    """Return the cell under another label, with the same key."""
    return cell if cell.label == label else Cell.from_dict({**cell.to_dict(), "label": label})


def _describe_study_change(then: Study, now: Study) -> str:
    """Return the notice that a study file has changed since the last run: the changed fields and
    the command that runs what is new.
    """
    before, after = then.configuration, now.configuration
    parts = [FIELDS.get(name, name) for name in before if before[name] != after[name]]
    where = now.path or now.name
    return (
        f"{where} has changed since the last run ({', '.join(parts)}); `optbench run "
        f"{now.name}` runs what is new"
    )
