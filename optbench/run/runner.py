"""Run the missing cells of a study, each in a separate process, and record each when it ends."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

from optbench.execute.base import Executor, Job
from optbench.execute.local import LocalExecutor
from optbench.files import write_whole
from optbench.run.instance_cache import make_instances
from optbench.run.judge import judge, kept_files
from optbench.run.taken_shapes import refuse_unfit
from optbench.run.verification import verification, work_of
from optbench.sandbox.job_folder import remove_folder
from optbench.shapes.protocol.shape_facts import stand_in
from optbench.store.records import Record
from optbench.store.run_store import Store
from optbench.store.snapshots import LATEST, snapshot_of
from optbench.study.cells import Cell
from optbench.study.declared import Study
from optbench.study.instance_sources import MadeInstance
from optbench.study.planning import Plan, plan


@dataclass(frozen=True)
class RunProgress:
    """One step of progress: an instance was made, the plan is complete, or a cell is done.

    ``done`` of ``total`` count instances or cells, including those that were already in the store.
    Of a plan, ``known`` are the records that stay and ``waiting`` the cells to run, ``jobs`` at a
    time.
    """

    kind: Literal["instance", "plan", "cell"]
    done: int
    total: int
    record: Record | None = None
    made: MadeInstance | None = None
    known: Mapping[str, Record] = field(default_factory=dict)
    waiting: tuple[Cell, ...] = ()
    jobs: int | None = None


@dataclass(frozen=True)
class StudyRun:
    """The result of ``run_study``: the selected cells and their records, by the cell's key.

    ``stored`` are all records of the store, including those of cells that were not selected.
    ``wall_s`` is the time of the whole run; compiling, which is part of it, took ``compile_s``.
    """

    plan: Plan
    cells: tuple[Cell, ...]
    records: Mapping[str, Record]
    ran: int
    interrupted: bool
    stored: Mapping[str, Record] = field(default_factory=dict)
    wall_s: float = 0.0
    compile_s: float = 0.0

    @property
    def done(self) -> int:
        return len(self.records)

    @property
    def skipped(self) -> int:
        """Cells that already had a record, or received it from another runner in the meantime."""
        return self.done - self.ran

    @property
    def failed(self) -> int:
        """The number of failed cells and of instances that could not be made."""
        return sum(record.failed for record in self.records.values()) + len(self.unmade)

    @property
    def unmade(self) -> tuple[MadeInstance, ...]:
        return tuple(each for each in self.plan.made if each.error is not None)


OnProgress = Callable[[RunProgress], None]
Select = Callable[[Sequence[Cell]], Sequence[Cell]]


def run_study(
    study: Study,
    *,
    jobs: int = 1,
    force: bool = False,
    retry: bool = False,
    only: Select = tuple,
    store: Store | None = None,
    executor: Executor | None = None,
    on_progress: OnProgress | None = None,
    stop: threading.Event | None = None,
) -> StudyRun:
    """Run the cells that are not in the store; with ``force`` all of them, with ``retry`` also
    those that failed.

    Only the cells that ``only`` returns are run. A study has one runner at a time; runners of other
    studies in the same store share finished cells.
    """
    store, stop = (store or Store()).make(), stop or threading.Event()
    tell = on_progress or (lambda _: None)
    began = time.monotonic()
    executor = executor or LocalExecutor.for_study(study, jobs)
    with store.study_lock(study.name), store.work_folder() as folder, executor as workers:
        made = make_instances(study, store, workers, folder, stop, _instance_reporter(tell))
        planned = plan(study, tuple(made))
        if stop.is_set():
            return StudyRun(planned, (), {}, 0, interrupted=True)
        wanted = tuple(only(planned.cells))
        refuse_unfit(planned, wanted)
        keep_plan(planned, store)
        known = {
            cell.key: record
            for cell in wanted
            if (record := store.records().get(cell.key)) is not None
        }
        missing = tuple(cell for cell in wanted if _is_missing(known.get(cell.key), force, retry))
        done, elsewhere = len(wanted) - len(missing), set[str]()
        replaced = {cell.key: known.pop(cell.key) for cell in missing if cell.key in known}
        workers.admit(cell.budget for cell in missing)
        tell(RunProgress("plan", done, len(wanted), None, None, known, missing, workers.jobs))
        for record in run_cells(missing, store, workers, folder, stop, replaced, elsewhere):
            done += 1
            tell(RunProgress("cell", done, len(wanted), record=record))
    records = store.records()
    found = {cell.key: record for cell in wanted if (record := records.get(cell.key)) is not None}
    ran = done - (len(wanted) - len(missing)) - len(elsewhere)
    wall_s = time.monotonic() - began
    return StudyRun(planned, wanted, found, ran, stop.is_set(), records, wall_s, executor.compile_s)


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    executor: Executor,
    folder: Path,
    stop: threading.Event,
    replaced: Mapping[str, Record] | None = None,
    elsewhere: set[str] | None = None,
) -> Iterator[Record]:
    """Run cells and record them; a record is on disk before it is yielded.

    ``folder`` was made by ``store.work_folder``; ``replaced`` holds the records of cells that are
    run again. If another runner finished a cell in the meantime, it is not run or its second result
    is dropped: the stored record is yielded and its key added to ``elsewhere``.
    """
    by_key = {cell.key: cell for cell in cells}
    replaced, elsewhere = replaced or {}, set() if elsewhere is None else elsewhere
    began: dict[str, str] = {}
    found: list[Record] = []

    def jobs() -> Iterator[Job]:
        for cell in cells:
            known = store.records().get(cell.key)
            if known is not None and cell.key not in replaced:
                found.append(known)
                continue
            began[cell.key] = datetime.now(UTC).isoformat(timespec="milliseconds")
            yield job_of(cell, store, folder)

    for outcome in executor.run(jobs(), stop.is_set):
        cell = by_key[outcome.key]
        instance = (
            store.instance(cell.instance_hash)
            if cell.shape is None
            else stand_in(cell.instance, cell.shape)
        )
        record = judge(cell, outcome, instance, began[cell.key])
        kept = store.add(record, kept_files(outcome, record), replaced.get(cell.key))
        for used in work_of(cell.key, folder):
            remove_folder(used)
        if kept is not record:
            elsewhere.add(cell.key)
        yield kept
    elsewhere.update(record.key for record in found)
    yield from found


def job_of(cell: Cell, store: Store, folder: Path) -> Job:
    """Return the job of a cell: what its process receives."""
    budget = cell.budget
    payload: dict[str, Any] = {
        "instance_file": str(store.instance_file(cell.instance_hash, cell.shape)),
        "time_limit_s": budget.time_limit_s,
        "work_limit": budget.work_limit,
        "threads": budget.threads,
        "seed": cell.seed,
        "solver": cell.solver,
        "params": dict(cell.params),
    }
    if cell.shape is None:
        return Job(cell.key, cell.kind, payload, budget, folder / cell.key)
    if cell.kind == "bound":
        payload["target"] = cell.target
    then = partial(verification, cell, store, folder) if cell.kind == "solve" else None
    return Job(cell.key, cell.kind, payload, budget, folder / cell.key, then)


def keep_plan(planned: Plan, store: Store) -> Path:
    """Write the plan of the study for reports and tracking, and name it as the latest."""
    folder = store.study_folder(planned.study.name)
    path = folder / snapshot_of(planned.study)
    with store.writing():
        write_whole(path, json.dumps(planned.to_dict(), default=str).encode())
        write_whole(folder / LATEST, path.name.encode())
    return path


def _is_missing(known: Record | None, force: bool, retry: bool) -> bool:
    return force or known is None or (retry and known.failed)


def _instance_reporter(tell: OnProgress) -> Callable[[MadeInstance, int], None]:
    """Return a callback that reports instances as they are made, with a count."""
    done = 0

    def on_made(made: MadeInstance, total: int) -> None:
        nonlocal done
        done += 1
        tell(RunProgress("instance", done, total, made=made))

    return on_made
