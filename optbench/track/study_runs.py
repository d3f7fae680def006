"""Convert a study's plan and records to MLflow runs: one parent, and a child per cell."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from optbench.evaluate.rows import Row, Table, table
from optbench.evaluate.scores import ranked
from optbench.evaluate.summaries import Summary
from optbench.evaluate.trajectories import primal_integral_s
from optbench.model.measures import Value
from optbench.plugins.training_energy import is_complete
from optbench.run.repeat_command import command_of
from optbench.store.records import Record
from optbench.store.run_store import Store
from optbench.study.cells import Cell
from optbench.study.planning import Plan
from optbench.track.artifacts import cell_files, study_files
from optbench.track.runs import CELL, PREFIX, RunStatus, TrackedRun

# Increased when the files of cells or studies change for the same records.
FILES_VERSION = "1"
HASH_DIGITS = 12


@dataclass
class StudyRuns:
    """The runs of one plan; values read from files are kept for the next call."""

    plan: Plan
    store: Store
    _integrals: dict[tuple[str, str, float], float | None] = field(default_factory=dict)

    @property
    def experiment(self) -> str:
        return f"optbench/{self.plan.study.name}"

    @property
    def short_hash(self) -> str:
        return self.plan.study.config_hash[:HASH_DIGITS]

    def runs(
        self, records: Mapping[str, Record], running: bool = False
    ) -> tuple[TrackedRun, list[TrackedRun]]:
        """Return the parent and its children: one for every cell that has a record."""
        joined = table(self.plan, records)
        bounding = [
            self._run(cell, record, record.status, {"gap": None}, [record.began_at])
            for cell in self.plan.bounding.values()
            if (record := records.get(cell.key)) is not None
        ]
        solving = [
            self._solve(row, row.record, joined) for row in joined.rows if row.record is not None
        ]
        return self._parent(joined, records, running), [*bounding, *solving]

    def _parent(self, joined: Table, records: Mapping[str, Record], running: bool) -> TrackedRun:
        study = self.plan.study
        done = [records[cell.key] for cell in self.plan.cells if cell.key in records]
        whole = len(done) == len(self.plan.cells)
        state: RunStatus = "RUNNING" if running else "FINISHED" if whole else "KILLED"
        spans = [span_ms(record) for record in done]
        tags = {
            f"{PREFIX}study": study.name,
            f"{PREFIX}config_hash": study.config_hash,
            f"{PREFIX}problem": ", ".join(study.problems),
            f"{PREFIX}solver": ", ".join(entry.label for entry in study.solvers),
            f"{PREFIX}kind": "study",
            f"{PREFIX}status": "running" if running else "complete" if whole else "incomplete",
            "mlflow.note.content": study.question,
        }
        if done:
            tags[f"{PREFIX}code_version"] = done[-1].code_version
        version = digest(
            [FILES_VERSION, self.plan.to_dict(), sorted((each.key, each.began_at) for each in done)]
        )
        return TrackedRun(
            f"{self.short_hash}-study",
            f"{study.name} {study.config_hash[:8]}",
            tags=tags,
            params={
                "bound_limit_s": f"{study.bound_limit_s:g}",
                "repetitions": str(study.repetitions),
            },
            metrics=self._sums(joined, done),
            began_ms=min((began for began, _ in spans), default=0),
            ended_ms=max((ended for _, ended in spans), default=0),
            status=state,
            artifacts=None if running else partial(study_files, joined, self.store),
            files_version="" if running else version,
        )

    def _sums(self, joined: Table, done: list[Record]) -> dict[str, float]:
        out = {
            "cells": float(len(self.plan.cells)),
            "cells_done": float(len(done)),
            "cells_failed": float(sum(row.failed for row in joined.rows)),
            "instances_failed": float(sum(each.error is not None for each in self.plan.made)),
        }
        for summary in ranked(joined):
            if summary.ran:
                out |= {f"{key}/{summary.label}": value for key, value in _of_solver(summary)}
        return out

    def _solve(self, row: Row, record: Record, joined: Table) -> TrackedRun:
        own = {
            "gap": row.gap,
            "study_gap": row.study_gap,
            "study_bound": row.low,
            "rpd": row.rpd,
            "regret": row.regret,
            "primal_integral": self._primal_integral(row, record, joined),
        }
        # The chart shows the bound and the violations.
        drawn = [record.began_at, record.bound, row.low, str(record.reason)]
        return self._run(row.cell, record, "error" if row.failed else row.state, own, drawn)

    def _run(
        self,
        cell: Cell,
        record: Record,
        status: str,
        own: Mapping[str, float | None],
        drawn: list[Any],
    ) -> TrackedRun:
        """Return the run of a cell; its files are sent again where ``drawn`` has changed."""
        began, ended = span_ms(record)
        used = ("wall_s", "total_s", "cpu_s", "time_to_first_s", "peak_memory_mb")
        values: dict[str, float | None] = {**own, **{name: getattr(record, name) for name in used}}
        values |= _run_energy(record)
        values |= _levels("objective", record.objective) | _levels("bound", record.bound)
        if isinstance(record.gap, tuple):
            values |= _levels("gap", record.gap)
        known = {key: value for key, value in values.items() if value is not None}
        metrics = {**record.metrics, **known}
        return TrackedRun(
            f"{self.short_hash}-{cell.key}",
            cell.title,
            tags=self._tags(cell, record, status),
            params=_params(cell),
            metrics=metrics,
            began_ms=began,
            ended_ms=ended,
            status="FAILED" if record.failed else "FINISHED",
            artifacts=partial(cell_files, replace(record, cell=cell), self.store),
            files_version=digest([FILES_VERSION, *drawn]),
        )

    def _tags(self, cell: Cell, record: Record, status: str) -> dict[str, str]:
        tags = {
            "study": self.plan.study.name,
            "kind": cell.kind,
            "problem": cell.target,
            "instance": cell.instance,
            "instance_hash": cell.instance_hash,
            "instance_seed": str(cell.instance_seed),
            "solver": cell.label,
            "seed": str(cell.seed),
            "threads": str(cell.budget.threads),
            "config_hash": self.plan.study.config_hash,
            "key": cell.key,
            "code_version": record.code_version,
            "status": status,
            "termination": record.termination,
            "host": str(record.machine.get("host", "")),
        }
        if record.energy.get("cpu_source"):
            tags |= _energy_tags(record)
        if record.reason is not None:
            tags |= {"reason": record.reason.kind, "message": record.reason.message}
        out = {f"{PREFIX}{key}": value for key, value in tags.items()}
        if cell.kind == "solve":
            out["mlflow.note.content"] = f"To repeat it: `{command_of(cell, cell.params)}`"
        assert CELL not in out
        return out

    def _primal_integral(self, row: Row, record: Record, joined: Table) -> float | None:
        """Return the primal integral against the best known objective."""
        best = joined.best.get(row.cell.instance_hash)
        if best is None or record.failed:
            return None
        place = (record.key, record.began_at, best.first)
        if place not in self._integrals:
            self._integrals[place] = primal_integral_s(row, best, self.store)
        return self._integrals[place]


def _run_energy(record: Record) -> dict[str, float | None]:
    """Return what the cell's own run drew; records of older versions have nothing."""
    names = {"energy_j": "run_energy_j", "cpu_j": "run_cpu_j", "device_j": "run_device_j"}
    return {metric: record.energy.get(name) for name, metric in names.items()}


def _energy_tags(record: Record) -> dict[str, str]:
    """Return how the energy of the run is known, and whether others used the same packages."""
    shared = record.energy["cpu_shared"] or record.energy["device_shared"]
    how = "estimated" if record.energy["estimated"] else "measured"
    whole = "yes" if is_complete(record.energy) else "no"
    tags = {"run_energy": how, "run_energy_shared": "yes" if shared else "no"}
    return {**tags, "run_energy_complete": whole}


def span_ms(record: Record) -> tuple[int, int]:
    """Return when a cell began and ended, the same in repeated requests."""
    began = datetime.fromisoformat(record.began_at).timestamp() * 1000 if record.began_at else 0.0
    return round(began), round(began + record.total_s * 1000)


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _levels(name: str, value: Value | None) -> dict[str, float]:
    """Return ``name``, or ``name_0`` and so on for lexicographic objectives."""
    if isinstance(value, tuple):
        return {f"{name}_{level}": each for level, each in enumerate(value)}
    return {} if value is None else {name: value}


def _params(cell: Cell) -> dict[str, str]:
    """Return the parameters of a cell's key: MLflow does not allow a parameter to change."""
    budget = cell.budget
    limits = ("time_limit_s", "work_limit", "cpu_limit_s", "memory_limit_mb")
    given = {name: value for name in limits if (value := getattr(budget, name)) is not None}
    params = {key: str(value) for key, value in cell.params.items()}
    stated = {key: f"{value:g}" for key, value in given.items()}
    return params | stated | {"threads": str(budget.threads)}


def _of_solver(summary: Summary) -> Iterator[tuple[str, float]]:
    yield "failed", float(summary.failed)
    yield "optimal_share", summary.optimal_share
    for key, estimate in (
        ("mean_gap", summary.gap),
        ("mean_study_gap", summary.study_gap),
        ("mean_rpd", summary.rpd),
    ):
        if estimate is not None:
            yield key, float(estimate.value)
    if summary.rank is not None:
        yield "rank", summary.rank
