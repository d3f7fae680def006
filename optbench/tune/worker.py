"""A worker: a process that claims trials one by one and evaluates them until there is none left."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Protocol

from optbench.errors import OptbenchError
from optbench.store.records import Record
from optbench.store.run_store import Store
from optbench.tune.scoring import Reference, changes_of, excess, means_of
from optbench.tune.search_task import Configuration, SearchPoint, SearchTask
from optbench.tune.storage import reachable
from optbench.tune.trial_evaluation import Stopped, evaluating, executor_of
from optbench.tune.trials import ALIVE_EVERY_S, CELLS, FAILED, TOTAL_S, VALUES, TrialClaim, Trials

# Between looks for a trial that somebody else may leave behind.
WAIT_S = 0.5


@dataclass(frozen=True)
class WorkerOrders:
    """The task of a worker. It shares only files and a pipe with the process that started it; the
    end of the pipe means that the worker must stop.
    """

    task: SearchTask
    url: str
    folder: Path
    store: Path
    total: int
    reference: Reference
    jobs: int


def work(orders: WorkerOrders, pipe: Connection) -> None:
    """Body of a worker's process; what stops it is one message, and its exit code."""
    try:
        with reachable(orders.url):
            _work(orders, pipe)
    except OptbenchError as error:
        sys.stderr.write(f"optbench: worker {os.getpid()}: {error}\n")
        sys.exit(1)


def _work(orders: WorkerOrders, pipe: Connection) -> None:
    """Ctrl-C reaches the whole group of processes; a worker ends when its pipe does, and so with
    its starter too.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stop = threading.Event()
    threading.Thread(target=_watch, args=(pipe, stop), daemon=True).start()
    store = Store(orders.store).make()
    trials = Trials(orders.task, orders.url, orders.folder)
    executor = executor_of(orders.task, 1, sharing=orders.jobs)
    with evaluating(orders.task, store, executor, stop) as evaluator:
        work_on_trials(orders, trials, lambda: trials.claim(orders.total), evaluator, stop)


def work_on_trials(
    orders: WorkerOrders,
    trials: Trials,
    claim_next: Callable[[], TrialClaim | None],
    evaluator: RecordSource,
    stop: threading.Event,
) -> None:
    """Claim trials and evaluate them until all are done, or until ``stop``."""
    while not stop.is_set():
        claim = claim_next()
        if claim is not None:
            try:
                _Trial(orders, trials, claim, evaluator).run()
            except Stopped:
                return
            finally:
                claim.release()
        elif len(trials.finished(orders.total)) >= orders.total:
            return
        else:
            stop.wait(WAIT_S)


def _watch(pipe: Connection, stop: threading.Event) -> None:
    try:
        pipe.recv()
    except (EOFError, OSError):
        stop.set()


class RecordSource(Protocol):
    """Evaluates configurations."""

    def records(
        self, configuration: Configuration, points: Sequence[SearchPoint]
    ) -> Iterator[tuple[SearchPoint, Record | None]]:
        """Records one by one, in the order of the points; None where the configuration leaves no
        instance.
        """
        ...


@dataclass
class _Trial:
    """One trial at work."""

    orders: WorkerOrders
    trials: Trials
    claim: TrialClaim
    evaluator: RecordSource

    def run(self) -> None:
        """Evaluate instance by instance, report, prune, tell."""
        import optuna

        task, trial, began = self.orders.task, self.claim.trial, time.monotonic()
        with repeating(lambda: self.trials.alive(trial), ALIVE_EVERY_S):
            records, pruned = self._evaluate()
        self._note(records, began)
        self.claim.confirm()
        if pruned:
            self.trials.study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            return
        for text in task.section.constraints:
            trial.set_constraint(text, excess(task, text, records))
        self.trials.study.tell(
            trial, [sum(each.values()) / len(each) for each in self._changes(records)]
        )

    def _evaluate(self) -> tuple[dict[SearchPoint, Record | None], bool]:
        """Records by instance, and whether those that are missing were given up."""
        task, records = self.orders.task, dict[SearchPoint, Record | None]()
        for step, (point, record) in enumerate(
            self.evaluator.records(self.claim.configuration, task.points)
        ):
            records[point] = record
            if task.section.pruner != "none" and self._should_prune(step, records):
                return records, True
        return records, False

    def _changes(
        self, records: Mapping[SearchPoint, Record | None]
    ) -> list[dict[SearchPoint, float]]:
        return changes_of(self.orders.task, records, self.orders.reference)

    def _should_prune(self, step: int, records: Mapping[SearchPoint, Record | None]) -> bool:
        """Reports the mean so far, or to the Wilcoxon pruner, which pairs instances, the last one's
        change.
        """
        section, trial = self.orders.task.section, self.claim.trial
        changes = list(self._changes(records)[0].values())
        value = changes[-1] if section.pruner == "wilcoxon" else sum(changes) / len(changes)
        known = self.trials.study._storage.get_trial(trial._trial_id).intermediate_values
        if step not in known:  # an adopted trial has reported the first ones already
            trial.report(value, step)
        last = step == len(self.orders.task.points) - 1
        return not last and self.claim.number > 0 and trial.should_prune()

    def _note(self, records: Mapping[SearchPoint, Record | None], began: float) -> None:
        """What is shown of a trial beside its value."""
        trial = self.claim.trial
        trial.set_user_attr(
            CELLS, [record.key for record in records.values() if record is not None]
        )
        trial.set_user_attr(
            FAILED, sum(record is None or record.failed for record in records.values())
        )
        trial.set_user_attr(TOTAL_S, round(time.monotonic() - began, 3))
        trial.set_user_attr(VALUES, means_of(self.orders.task, records))


@contextmanager
def repeating(
    action: Callable[[], None], every_s: float, leave_s: float | None = None
) -> Iterator[None]:
    """Do something every so many seconds meanwhile, in a thread that has ``leave_s`` to end."""
    done = threading.Event()

    def repeat() -> None:
        while not done.wait(every_s):
            action()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(leave_s)
