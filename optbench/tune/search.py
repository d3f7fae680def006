"""The search of a study: defaults first, then workers until all trials are done, then the best
against the defaults on instances that the search has not seen.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from optbench.errors import OptbenchError
from optbench.files import write_whole
from optbench.store.locks import exclusive_lock
from optbench.store.run_store import Store
from optbench.study.declared import Study
from optbench.track.runs import TrackingError
from optbench.tune.scoring import WHOLE, Reference, values_of, why_missing
from optbench.tune.search_page import render
from optbench.tune.search_task import SearchTask, task_of
from optbench.tune.storage import StorageError, folder_of, reachable, storage_url
from optbench.tune.trial_evaluation import Evaluator, Stopped, evaluating, executor_of
from optbench.tune.trial_front import front_of
from optbench.tune.trials import Trials
from optbench.tune.validation import Validation, file_of, validate
from optbench.tune.worker import WorkerOrders, repeating
from optbench.tune.worker_crews import LEAVE_S, FallenWorker, OneMachine, TuneEngine, WorkerCrew

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

POLL_S = 0.5
# Workers that die are replaced, but not for ever: so many times without a trial being finished in
# between.
MAX_DEATHS = 3
# Between sendings to MLflow.
SEND_EVERY_S = 15.0


@dataclass(frozen=True)
class TuneProgress:
    """How far a search is; ``best`` is the best change of a single goal so far, ``front`` the
    number of points of several.
    """

    done: int
    total: int
    running: int
    best: float | None
    front: int | None
    elapsed_s: float
    here: int

    @property
    def eta_s(self) -> float | None:
        """At the pace of this call; None before its first trial."""
        return self.elapsed_s / self.here * (self.total - self.done) if self.here else None


@dataclass(frozen=True)
class TuneRun:
    """What a call of ``run_tune`` came to."""

    task: SearchTask
    url: str
    folder: Path
    total: int
    trials: tuple[FrozenTrial, ...]
    ran: int
    deaths: int
    interrupted: bool
    validation: Validation | None = None
    page: Path | None = None
    tracked: str | None = None

    @property
    def done(self) -> int:
        return sum(trial.state.is_finished() and trial.number < self.total for trial in self.trials)


OnProgress = Callable[[TuneProgress], None]
Evaluating = Callable[[], AbstractContextManager[Evaluator]]


def run_tune(
    study: Study,
    *,
    trials: int | None = None,
    jobs: int = 1,
    engine: TuneEngine | None = None,
    storage: str | None = None,
    track: bool = False,
    store: Store | None = None,
    on_progress: OnProgress | None = None,
    stop: threading.Event | None = None,
) -> TuneRun:
    """Search until ``trials`` trials are done, whoever does them; then validate. The same call
    again goes on, or is done. ``engine`` says where, in place of ``jobs`` processes here.
    """
    engine = engine or OneMachine(jobs)
    task, store, stop = task_of(study), (store or Store()).make(), stop or threading.Event()
    folder = folder_of(store.folder, task.name)
    url = engine.storage(storage_url(storage or task.section.storage, folder))
    total = trials or task.section.trials
    with reachable(url):
        known = Trials(task, url, folder)
        before = len(known.finished(total))
        evaluator = partial(_evaluating, task, store, engine, stop)
        try:
            reference = _reference(known, evaluator)
            orders = WorkerOrders(task, url, folder, store.folder, total, reference, engine.jobs)
            sending = repeating(lambda: _send_finished(orders), SEND_EVERY_S, LEAVE_S)
            home_executor = executor_of(task, 1)
            with (
                sending if track else nullcontext(),
                evaluating(task, store, home_executor, stop) as home,
            ):
                crew = engine.crew(orders, known, home)
                deaths = _run_workers(orders, crew, known, engine.jobs, on_progress, stop)
            found = _validated(known, evaluator, stop, total)
        except Stopped:
            deaths, found = 0, None
        done, ran = tuple(known.all()), len(known.finished(total)) - before
        run = TuneRun(task, url, folder, total, done, ran, deaths, stop.is_set(), found)
        if found is None:
            return run
        page = file_of(store.folder, task).with_suffix(".html")
        page.parent.mkdir(parents=True, exist_ok=True)
        write_whole(page, render(known, found).encode())
        return replace(run, page=page, tracked=_send(known, found) if track else None)


def _send(known: Trials, found: Validation) -> str:
    """Send the search to MLflow, and say how that went: a store that cannot be reached does no
    harm.
    """
    from optbench.tune.tracked import send

    try:
        report = send(known, found, "FINISHED")
    except TrackingError as error:
        return f"not sent: {error}. The same command sends what is missing."
    return f"{report.total} runs in MLflow, {report.created} of them new"


def _send_finished(orders: WorkerOrders) -> None:
    """Send finished trials while the search goes on; a failure is said at its end alone."""
    from optbench.tune.tracked import send

    with suppress(TrackingError, StorageError), reachable(orders.url):
        send(Trials(orders.task, orders.url, orders.folder), None, "RUNNING")


def _evaluating(
    task: SearchTask, store: Store, engine: TuneEngine, stop: threading.Event
) -> AbstractContextManager[Evaluator]:
    """An evaluator of the process that was started by the user."""
    executor = engine.executor(task.study_of(task.defaults, task.points))
    return evaluating(task, store, executor, stop)


def _reference(known: Trials, evaluating: Evaluating) -> Reference:
    """The defaults' values, of the first worker of all; other machines must compare with
    the same.
    """
    task, goals = known.task, known.task.section.goals
    kept = known.reference()
    if kept is None:
        with exclusive_lock(known.folder / "reference"), evaluating() as evaluator:
            evaluator.instances(task.points)
            records = evaluator.all_records(task.defaults, task.points)
        values = {goal.expression: values_of(task, goal, records) for goal in goals}
        for goal in goals:
            if all(value is None for value in values[goal.expression].values()):
                why = why_missing(goal, task, records)
                raise OptbenchError(
                    f"tune: {goal.expression!r} has no value for the defaults "
                    f"({task.entry.label}): {why}"
                )
        named = {g: {p.name: value for p, value in each.items()} for g, each in values.items()}
        known.keep_reference(named)
        kept = known.reference()
        assert kept is not None
    points = {point.name: point for point in (*task.points, WHOLE)}
    return {
        goal: {points[name]: value for name, value in each.items()} for goal, each in kept.items()
    }


def _run_workers(
    orders: WorkerOrders, crew: WorkerCrew, known: Trials, jobs: int, tell: OnProgress | None,
    stop: threading.Event,
) -> int:  # fmt: skip
    """Workers until all trials are done; returns how many died."""
    began, before, deaths, in_a_row = time.monotonic(), len(known.finished(orders.total)), 0, 0
    done, fallen = before, list[FallenWorker]()
    try:
        while True:
            now = _progress(known, orders.total, time.monotonic() - began, before)
            if now.done > done:
                done, in_a_row = now.done, 0
            if tell is not None:
                tell(now)
            if now.done >= orders.total or stop.is_set():
                return deaths
            deaths, in_a_row = deaths + len(fallen), in_a_row + len(fallen)
            in_a_row -= sum(each.by_node for each in fallen)
            if in_a_row > MAX_DEATHS:
                raise OptbenchError(
                    f"tune: {in_a_row} workers in a row died ({fallen[-1].words}) "
                    "without finishing a trial; "
                    "what is finished is kept. Run the same command again to go on."
                )
            crew.fill(min(jobs, orders.total - now.done))
            fallen = crew.serve(POLL_S)
    finally:
        crew.end()


def _progress(known: Trials, total: int, elapsed_s: float, before: int) -> TuneProgress:
    trials = known.all()
    done = sum(trial.state.is_finished() and trial.number < total for trial in trials)
    running = sum(trial.state.name == "RUNNING" for trial in trials)
    best, front, goals = None, None, known.task.section.goals
    if len(goals) > 1:
        front = len(front_of(trials))
    elif (trial := known.best()) is not None:
        best = -trial.values[0] if goals[0].maximize else trial.values[0]
    return TuneProgress(done, total, running, best, front, elapsed_s, done - before)


def _validated(
    known: Trials, evaluating: Evaluating, stop: threading.Event, total: int
) -> Validation | None:
    if stop.is_set() or len(known.finished(total)) < total:
        return None
    with exclusive_lock(known.folder / "validation"), evaluating() as evaluator:
        return validate(known, evaluator)
