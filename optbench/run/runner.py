"""Running a study: what is missing of its cells, each in a process of its own, each recorded when it ends."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from optbench.execute.base import Executor, Job
from optbench.execute.local import LocalExecutor
from optbench.execute.on_demand import OnDemand
from optbench.files import write_whole
from optbench.run.instance_cache import make_instances
from optbench.run.judge import files, judge
from optbench.sandbox.job_folder import remove
from optbench.store.records import Record
from optbench.store.run_store import Store
from optbench.study.cells import Cell
from optbench.study.declared import Study
from optbench.study.instance_sources import Made
from optbench.study.planning import Plan, plan


@dataclass(frozen=True)
class RunProgress:
    """One thing that happened: an instance was made, the plan stands, or a cell is done.

    ``done`` of ``total`` count instances or cells; those that were in the store before are among the done ones. Of a plan,
    ``known`` are the records that stay, ``waiting`` the cells that are to be run.
    """

    kind: Literal["instance", "plan", "cell"]
    done: int
    total: int
    record: Record | None = None
    made: Made | None = None
    known: Mapping[str, Record] = field(default_factory=dict)
    waiting: tuple[Cell, ...] = ()


@dataclass(frozen=True)
class StudyRun:
    """What a call of ``run_study`` came to: the selected cells and their records, by the cell's key.

    ``stored`` are all records of the store, those of cells that were not selected too.
    """

    plan: Plan
    cells: tuple[Cell, ...]
    records: Mapping[str, Record]
    ran: int
    interrupted: bool
    stored: Mapping[str, Record] = field(default_factory=dict)

    @property
    def done(self) -> int:
        return len(self.records)

    @property
    def skipped(self) -> int:
        """Cells that had their record already, or got it from another runner in the meantime."""
        return self.done - self.ran

    @property
    def failed(self) -> int:
        """Cells with a reason, and instances that could not be made."""
        return sum(record.failed for record in self.records.values()) + len(self.unmade)

    @property
    def unmade(self) -> tuple[Made, ...]:
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
    """Run what the store does not hold yet; all of it with ``force``, what failed too with ``retry``.

    Of all cells those that ``only`` returns. A study has one runner at a time; runners of other studies in the same store
    share what they finish.
    """
    store, stop, tell = (store or Store()).make(), stop or threading.Event(), on_progress or _nobody
    executor = OnDemand(executor or LocalExecutor.for_study(study, jobs))
    with store.only_runner(study.name), store.work_folder() as folder, executor as workers:
        made = make_instances(study, store, workers, folder, stop, _telling(tell))
        planned = plan(study, tuple(made))
        if stop.is_set():
            return StudyRun(planned, (), {}, 0, interrupted=True)
        keep_plan(planned, store)
        wanted = tuple(only(planned.cells))
        known = {cell.key: record for cell in wanted if (record := store.records().get(cell.key)) is not None}
        missing = tuple(cell for cell in wanted if _is_missing(known.get(cell.key), force, retry))
        done, elsewhere = len(wanted) - len(missing), set[str]()
        replaced = {cell.key: known.pop(cell.key) for cell in missing if cell.key in known}
        tell(RunProgress("plan", done, len(wanted), known=known, waiting=missing))
        for record in run_cells(missing, store, workers, folder, stop, replaced, elsewhere):
            done += 1
            tell(RunProgress("cell", done, len(wanted), record=record))
    records = store.records()
    found = {cell.key: record for cell in wanted if (record := records.get(cell.key)) is not None}
    ran = done - (len(wanted) - len(missing)) - len(elsewhere)
    return StudyRun(planned, wanted, found, ran, stop.is_set(), records)


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    executor: Executor,
    folder: Path,
    stop: threading.Event,
    replaced: Mapping[str, Record] | None = None,
    elsewhere: set[str] | None = None,
) -> Iterator[Record]:
    """Run cells and record them; a record is on the disk before it is yielded.

    ``folder`` is one that ``store.work_folder`` made, ``replaced`` holds the records of cells that are run again. A cell
    that another runner has finished in the meantime is not run, or its second result is dropped: the record in the store
    is yielded, and the key added to ``elsewhere``.
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
        record = judge(cell, outcome, store.instance(cell.instance_hash), began[cell.key])
        kept = store.add(record, files(outcome, record), replaced.get(cell.key))
        remove(folder / cell.key)
        if kept is not record:
            elsewhere.add(cell.key)
        yield kept
    elsewhere.update(record.key for record in found)
    yield from found


def job_of(cell: Cell, store: Store, folder: Path) -> Job:
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
    return Job(cell.key, cell.kind, payload, budget, folder / cell.key)


def keep_plan(planned: Plan, store: Store) -> Path:
    """What the study came to, for reports and for tracking; the latest plan of a study is named beside it."""
    folder = store.study_folder(planned.study.name)
    path = folder / f"{planned.study.config_hash[:16]}.json"
    with store.writing():
        write_whole(path, json.dumps(planned.to_dict(), default=str).encode())
        write_whole(folder / "latest", path.name.encode())
    return path


def _is_missing(known: Record | None, force: bool, retry: bool) -> bool:
    return force or known is None or (retry and known.failed)


def _telling(tell: OnProgress) -> Callable[[Made, int], None]:
    """Reports instances as they are made, counted."""
    done = 0

    def on_made(made: Made, total: int) -> None:
        nonlocal done
        done += 1
        tell(RunProgress("instance", done, total, made=made))

    return on_made


def _nobody(progress: RunProgress) -> None:
    """Nobody wants to know."""
