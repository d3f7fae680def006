"""Running a study: what is missing of its cells, each in a process of its own, each recorded when it ends."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from optbench.bench.executor import Executor, Job, LocalExecutor, Outcome
from optbench.bench.executor.tasks import INSTANCE
from optbench.bench.judge import files, judge
from optbench.bench.records import Record
from optbench.bench.store import INSTANCES, STUDIES, WORK, Store, read_foreign_instance, write_whole
from optbench.bench.study.cells import Cell
from optbench.bench.study.declared import CellBudget, Study
from optbench.bench.study.planning import Plan, plan
from optbench.bench.study.sources import Made, note_made, recall, source_key
from optbench.errors import OptbenchError


@dataclass(frozen=True)
class Progress:
    """One thing that happened: an instance was made, or a cell is done; ``done`` of ``total`` cells are in the store."""

    kind: Literal["instance", "cell"]
    done: int
    total: int
    record: Record | None = None
    made: Made | None = None


@dataclass(frozen=True)
class StudyRun:
    """What a call of ``run_study`` came to: every record of the plan that is in the store, by the cell's key."""

    plan: Plan
    records: Mapping[str, Record]
    ran: int
    skipped: int
    interrupted: bool

    @property
    def done(self) -> int:
        return len(self.records)

    @property
    def failed(self) -> int:
        """Cells with a reason, and instances that could not be made."""
        return sum(record.failed for record in self.records.values()) + sum(each.error is not None for each in self.plan.made)


OnProgress = Callable[[Progress], None]


def run_study(
    study: Study,
    *,
    jobs: int = 1,
    force: bool = False,
    retry: bool = False,
    only: Callable[[Cell], bool] = lambda cell: True,
    store: Store | None = None,
    executor: Executor | None = None,
    on_progress: OnProgress | None = None,
    stop: threading.Event | None = None,
) -> StudyRun:
    """Run what the store does not hold yet; all of it with ``force``, what failed too with ``retry``."""
    store = (store or Store()).make()
    stop = stop or threading.Event()
    with executor or LocalExecutor(jobs) as workers:
        made = tuple(make_instances(study, store, workers, on_progress, stop))
        planned = plan(study, made)
        keep_plan(planned, store)
        known = store.records()
        wanted = [cell for cell in planned.cells if only(cell)]
        missing = [cell for cell in wanted if force or cell.key not in known or (retry and known[cell.key].failed)]
        done, ran = len(wanted) - len(missing), 0
        for record in run_cells(missing, store, workers, stop):
            ran += 1
            if on_progress is not None:
                on_progress(Progress("cell", done + ran, len(wanted), record=record))
    records = store.records()
    found = {cell.key: records[cell.key] for cell in wanted if cell.key in records}
    return StudyRun(planned, found, ran, len(wanted) - len(missing), stop.is_set())


def make_instances(
    study: Study, store: Store, executor: Executor, on_progress: OnProgress | None, stop: threading.Event
) -> list[Made]:
    """Every instance of the study, once for all solvers, in the study's order; those that were made before are known."""
    folder = store.folder / INSTANCES
    wanted = [(target, seed) for target in study.problems for seed in study.seeds]
    keys = {pair: source_key(*pair) or repr(pair) for pair in wanted}
    made = {key: found for key in set(keys.values()) if (found := recall(folder, key)) is not None}
    missing = {key: pair for pair, key in keys.items() if key not in made}
    jobs = [
        Job(key, "instance", {"target": target, "seed": seed}, CellBudget(), store.folder / WORK / f"instance-{k}")
        for k, (key, (target, seed)) in enumerate(missing.items())
    ]
    folders = {job.key: job.folder for job in jobs}
    for outcome in executor.run(jobs, stop.is_set):
        key = outcome.key
        made[key] = _made(*missing[key], outcome, folders[key], store)
        shutil.rmtree(folders[key], ignore_errors=True)
        note_made(folder, key, made[key])
        if on_progress is not None:
            on_progress(Progress("instance", 0, len(jobs), made=made[key]))
    return [replace(made[keys[pair]], target=pair[0], seed=pair[1]) for pair in wanted if keys[pair] in made]


def _made(target: str, seed: int, outcome: Outcome, folder: Path, store: Store) -> Made:
    answer = outcome.answer or {}
    if outcome.reason is not None or "refusal" in answer:
        return Made(target, seed, target, None, error=str(outcome.reason or answer["message"]))
    try:
        instance = read_foreign_instance(folder / INSTANCE)
    except (OptbenchError, OSError) as error:
        return Made(target, seed, target, None, error=str(error))
    store.add_instance(instance)
    return Made(target, seed, instance.name, instance.hash, instance.objective.num_levels)


def run_cells(cells: Sequence[Cell], store: Store, executor: Executor, stop: threading.Event) -> Iterator[Record]:
    """Run cells and record them; a record is on the disk before it is yielded."""
    by_key = {cell.key: cell for cell in cells}
    began: dict[str, str] = {}

    def jobs() -> Iterator[Job]:
        for cell in cells:
            began[cell.key] = datetime.now(UTC).isoformat(timespec="milliseconds")
            yield job_of(cell, store)

    for outcome in executor.run(jobs(), stop.is_set):
        cell = by_key[outcome.key]
        record = judge(cell, outcome, store.instance(cell.instance_hash), began[cell.key])
        store.keep(cell.key, files(outcome))
        store.append(record)
        shutil.rmtree(store.folder / WORK / cell.key, ignore_errors=True)
        yield record


def job_of(cell: Cell, store: Store) -> Job:
    """What the cell's process is told."""
    budget = cell.budget
    payload = {
        "instance_file": str(store.instance_file(cell.instance_hash)),
        "time_limit_s": budget.time_limit_s,
        "work_limit": budget.work_limit,
        "threads": budget.threads,
        "seed": cell.seed,
        "solver": cell.solver,
        "params": dict(cell.params),
    }
    return Job(cell.key, cell.kind, payload, budget, store.folder / WORK / cell.key)


def keep_plan(planned: Plan, store: Store) -> Path:
    """What the study came to, for reports and for tracking; the latest plan of a study is named beside it."""
    folder = store.folder / STUDIES / planned.study.name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{planned.study.config_hash[:16]}.json"
    write_whole(path, json.dumps(planned.to_dict(), default=str).encode())
    write_whole(folder / "latest", path.name.encode())
    return path
