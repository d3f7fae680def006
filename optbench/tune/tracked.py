"""A search as MLflow runs: a parent per search, a run below it per finished trial."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from optbench.study.canonical import digest
from optbench.track.runs import TrackedRun
from optbench.track.tracking import Tracking
from optbench.tune.search_charts import standalone
from optbench.tune.search_page import all_charts, importance, render
from optbench.tune.search_task import HASH_DIGITS
from optbench.tune.trials import CELLS, FAILED, TOTAL_S, VALUES, Trials
from optbench.tune.validation import Validation

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from optbench.track.runs import RunStatus, SyncReport

# Raised when trials or searches get other files from the same values.
FILES_VERSION = "1"
STATES = {
    "RUNNING": "running",
    "FINISHED": "complete",
    "KILLED": "incomplete",
    "FAILED": "incomplete",
}
NOT_IN_NAMES = re.compile(r"[^\w\-. :/]")


def send(known: Trials, found: Validation | None, status: RunStatus) -> SyncReport:
    """Make the tracking store hold exactly one run per finished trial; what is there
    already stays.
    """
    done = [trial for trial in known.all() if trial.state.name in ("COMPLETE", "PRUNED")]
    children = [_trial(known, trial) for trial in done]
    return Tracking().sync(
        f"optbench/{known.task.study.name}", _parent(known, done, found, status), children
    )


def _short(known: Trials) -> str:
    return known.task.hash[:HASH_DIGITS]


def _parent(
    known: Trials, done: list[FrozenTrial], found: Validation | None, status: RunStatus
) -> TrackedRun:
    task = known.task
    pruned = sum(each.state.name == "PRUNED" for each in done)
    metrics = {"trials": float(len(done)), "pruned": float(pruned)}
    tags = _tags(known) | {"optbench.kind": "tune", "optbench.status": STATES[status]}
    if found is not None and found.chosen is not None:
        tags["optbench.best_trial"] = str(found.chosen.number)
        for each in found.comparisons:
            change = each.natural
            values = {"defaults": each.defaults, "tuned": each.tuned, "change": change.value}
            values |= {"change_low": change.low, "change_high": change.high} if change.known else {}
            for key, value in values.items():
                if value is not None:
                    metrics[_name(f"validation/{each.goal}/{key}")] = value
    spans, section = [_span_ms(trial) for trial in done], task.section
    seeds = str(list(section.seeds))
    params = {"sampler": section.sampler, "pruner": section.pruner, "seeds": seeds}
    content = [FILES_VERSION, [trial.number for trial in done], sorted(metrics.items())]
    return TrackedRun(
        f"{_short(known)}-tune",
        f"tune | {task.study.name}",
        tags={**tags, "mlflow.note.content": task.study.question},
        params=params,
        metrics=metrics,
        began_ms=min((began for began, _ in spans), default=0),
        ended_ms=max((ended for _, ended in spans), default=0),
        status=status,
        artifacts=None if status == "RUNNING" else partial(_files, known, found),
        files_version=digest(content)[:16],
    )


def _trial(known: Trials, trial: FrozenTrial) -> TrackedRun:
    task = known.task
    began, ended = _span_ms(trial)
    metrics: dict[str, float] = {}
    for goal, value in zip(task.section.goals, trial.values or (), strict=False):
        metrics[_name(f"{goal.loss}/{goal.expression}")] = value
    metrics |= {_name(name): value for name, value in trial.user_attrs.get(VALUES, {}).items()}
    metrics |= {_name(f"excess/{name}"): value for name, value in trial.constraints.items()}
    cells: list[str] = trial.user_attrs.get(CELLS, [])
    metrics |= {"cells": float(len(cells)), "failed": float(trial.user_attrs.get(FAILED, 0))}
    metrics["total_s"] = float(trial.user_attrs.get(TOTAL_S, 0.0))
    status = trial.state.name.lower()
    own = {"optbench.kind": "trial", "optbench.trial": str(trial.number), "optbench.status": status}
    return TrackedRun(
        f"{_short(known)}-trial-{trial.number}",
        f"{task.entry.name} | trial {trial.number}",
        tags=_tags(known) | own,
        params={name: str(value) for name, value in trial.params.items()},
        metrics=metrics,
        began_ms=began,
        ended_ms=ended,
        artifacts=partial(_keep_cells, cells),
        files_version=FILES_VERSION,
    )


def _tags(known: Trials) -> dict[str, str]:
    task = known.task
    tags = {
        "study": task.study.name,
        "search": task.name,
        "problem": ", ".join(task.targets),
        "solver": task.entry.label,
        "config_hash": task.hash,
    }
    return {f"optbench.{key}": value for key, value in tags.items()}


def _name(text: str) -> str:
    return NOT_IN_NAMES.sub("_", text)


def _span_ms(trial: FrozenTrial) -> tuple[int, int]:
    """By the storage, which knows when it was told."""
    times = (trial.datetime_start, trial.datetime_complete or trial.datetime_start)
    began, ended = (0 if when is None else round(when.timestamp() * 1000) for when in times)
    return began, ended


def _keep_cells(cells: list[str], folder: Path) -> None:
    """Keys in the local store, in the order in which they were evaluated."""
    (folder / "cells.txt").write_text("".join(f"{key}\n" for key in cells), encoding="utf-8")


def _files(known: Trials, found: Validation | None, folder: Path) -> None:
    """The page, its charts one by one, importances, and the parameter file."""
    chosen = None if found is None or found.chosen is None else found.chosen.number
    (folder / "tune.html").write_text(render(known, found), encoding="utf-8")
    for name, chart in all_charts(known, chosen).items():
        stem = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        for k, drawn in enumerate(standalone(chart), start=1):
            (folder / f"{stem}-{k}.svg").write_text(drawn, encoding="utf-8")
    lines = ["goal\tparameter\tshare\n"]
    for k, goal in enumerate(known.task.section.goals):
        for name, share in importance(known, k)[0].items():
            lines.append(f"{goal.expression}\t{name}\t{share:.6f}\n")
    (folder / "importance.tsv").write_text("".join(lines), encoding="utf-8")
    if found is not None and found.path is not None and found.path.is_file():
        (folder / "tuned.toml").write_bytes(found.path.read_bytes())
