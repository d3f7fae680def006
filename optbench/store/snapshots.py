"""The plan of a study as it was last run, kept in the store: for what looks at results without planning anything anew."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from optbench.errors import FileFormatError, OptbenchError, UnknownNameError
from optbench.plugins.discovery import names
from optbench.study.cells import Cell
from optbench.study.declared import Study
from optbench.study.planning import FORMAT, VERSION, Plan
from optbench.study.study_file import load_study

if TYPE_CHECKING:
    from optbench.store.run_store import Store

STUDIES, LATEST = "studies", "latest"
HASH_DIGITS = 16


def load_plan(study: str | Path, store: Store | None = None) -> Plan:
    """The latest plan of a study, by its name or its file, from the store; where its file asks for cells that were run before
    the latest ones, or is one of several of that name, the plan of those.

    Question, gates, claims and metrics are those of the study file as it is now, where that can be read and asks for the
    same cells; ``Plan.changed`` says so where it does not.
    """
    folder = _folder(store)
    name = Path(study).stem if str(study).endswith(".toml") else str(study)
    latest = folder / name / LATEST
    if not latest.is_file():
        raise _never_run(study, name, folder)
    plan = read_plan(folder / name / latest.read_text(encoding="utf-8").strip())
    try:
        now = load_study(study if str(study).endswith(".toml") else _source(plan, name))
    except OptbenchError as error:
        return replace(plan, changed=f"the study cannot be read any more: {error}")
    if now.config_hash != plan.study.config_hash and (folder / name / snapshot_of(now)).is_file():
        plan = read_plan(folder / name / snapshot_of(now))
    return _compared(plan, now)


def snapshot_of(study: Study) -> str:
    """Name of the file that its plan is kept in."""
    return f"{study.config_hash[:HASH_DIGITS]}.json"


def studies_run(store: Store | None = None) -> list[str]:
    """Names of the studies that the store has a plan of."""
    return sorted(path.parent.name for path in _folder(store).glob(f"*/{LATEST}"))


def load_plans(store: Store | None = None) -> Iterator[Plan]:
    """The latest plan of every study of the store."""
    return (load_plan(name, store) for name in studies_run(store))


def read_plan(path: Path) -> Plan:
    """A plan from its file."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data.get("format") != FORMAT or data.get("version") != VERSION:
            raise FileFormatError(f"format {data.get('format')!r}, version {data.get('version')!r}")
        return Plan.from_dict(data)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, FileFormatError) as error:
        message = f"{path}: no plan that can be read ({type(error).__name__}: {error}); `optbench run` writes it anew"
        raise FileFormatError(message) from None


def _folder(store: Store | None) -> Path:
    if store is not None:
        return store.folder / STUDIES
    from optbench.workspace import store as store_folder

    return store_folder() / STUDIES


def _source(plan: Plan, name: str) -> str | Path:
    """The file that was run; the study of that name where it is not there any more, as in a workspace that was moved."""
    path = plan.study.path
    return name if path is None or (not path.is_file() and name in names("study")) else path


def _never_run(study: str | Path, name: str, folder: Path) -> OptbenchError:
    run = sorted(path.parent.name for path in folder.glob(f"*/{LATEST}"))
    known = names("study")
    if name in known or (str(study).endswith(".toml") and Path(study).is_file()):
        return OptbenchError(f"study {name!r} has not been run here: {folder.parent} holds nothing of it; `optbench run {study}`")
    if str(study).endswith(".toml"):
        return FileFormatError(f"{study}: no such file, and no study {name!r} was run here; see `optbench list studies`")
    return UnknownNameError("study", str(study), {*known, *run})


def _compared(plan: Plan, now: Study) -> Plan:
    """The plan with the words of its study's file, or with what is to be said about that file."""
    if now.config_hash != plan.study.config_hash:
        return replace(plan, changed=_difference(plan.study, now))
    labels = now.labels
    renamed = {label: labels[content] for content, label in plan.study.labels.items()}
    cells = tuple(_labelled(cell, renamed.get(cell.label, cell.label)) for cell in plan.cells)
    return replace(plan, study=now, cells=cells)


def _labelled(cell: Cell, label: str) -> Cell:
    """Under another label, with the key that it has."""
    return cell if cell.label == label else Cell.from_dict({**cell.to_dict(), "label": label})


def _difference(then: Study, now: Study) -> str:
    """In which fields the configuration is another."""
    names = ("problems", "seeds", "repetitions", "bound_limit_s")
    parts = [name.removesuffix("_s") for name in names if getattr(then, name) != getattr(now, name)]
    if set(then.labels) != set(now.labels):
        parts.append("solvers or their budgets")
    where = now.path or now.name
    return f"{where} has changed since the last run ({', '.join(parts)}); `optbench run {now.name}` runs what is new"
