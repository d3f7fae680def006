"""The desk of a search: it answers the workers on other machines, in the process that the user
started.

A worker elsewhere shares no files with the search. It asks this desk for trials, for the cells of a
configuration, and for the content of files, and gives it records. The locks of its trial are held
here on its behalf: they end with this process, and are given back when the worker is lost, so that
the trial is adopted like that of any dead worker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from optbench.errors import OptbenchError
from optbench.execute.ray_cluster.travelling_files import FileContent, with_references
from optbench.run.runner import job_of
from optbench.store.records import Record
from optbench.study.cells import Cell
from optbench.tune.search_task import Configuration
from optbench.tune.trial_evaluation import Evaluator
from optbench.tune.trials import TrialClaim, Trials

# Contents that are kept in memory for workers to fetch; older ones are read again.
MOST_CONTENTS = 64


@dataclass(frozen=True)
class TrialTicket:
    """A trial as a worker elsewhere receives it."""

    trial_id: int
    number: int
    configuration: Configuration
    adopted: bool


@dataclass(frozen=True)
class CellOrder:
    """A cell as a worker elsewhere receives it: its ``payload`` has references in the place of
    files. A ``record`` says that it has been run; of a cell that cannot be run, ``reason`` says
    why.
    """

    cell: Cell | None = None
    payload: Mapping[str, Any] = field(default_factory=dict)
    record: Record | None = None
    reason: str = ""


@dataclass
class SearchDesk:
    """Answers requests; ``held`` are the claims of workers, by the workers' names."""

    known: Trials
    evaluator: Evaluator
    total: int
    held: dict[str, TrialClaim] = field(default_factory=dict)
    contents: dict[str, FileContent] = field(default_factory=dict)

    def answer(self, worker: str, request: str, given: tuple[Any, ...]) -> Any:
        """Answer one request of a worker."""
        answers: dict[str, Callable[..., Any]] = {
            "claim": self.claim,
            "release": self.release,
            "confirm": self.confirm,
            "cells": self.cells,
            "content": self.content,
            "add": self.add,
        }
        return answers[request](worker, *given)

    def claim(self, worker: str) -> TrialTicket | None:
        """A trial to work on, whose lock is held here meanwhile."""
        self.release(worker)
        claim = self.known.claim(self.total)
        if claim is None:
            return None
        self.held[worker] = claim
        trial_id = claim.trial._trial_id
        return TrialTicket(trial_id, claim.number, claim.configuration, claim.adopted)

    def release(self, worker: str) -> None:
        """Give back the trial of a worker that is done with it, or is lost."""
        claim = self.held.pop(worker, None)
        if claim is not None:
            claim.release()

    def confirm(self, worker: str, number: int) -> None:
        """Make sure that a trial is still this worker's."""
        claim = self.held.get(worker)
        if claim is None or claim.number != number:
            raise OptbenchError(f"trial {number} is no longer that of worker {worker}")

    def cells(self, worker: str, configuration: Configuration) -> list[CellOrder]:
        """The cells of a configuration, in the order of the search's instances."""
        points = self.known.task.points
        planned = self.evaluator.cells(configuration, points)
        records = self.evaluator.store.records()
        return [self._order(planned[point], records) for point in points]

    def _order(self, cell: Cell | str, records: Mapping[str, Record]) -> CellOrder:
        if isinstance(cell, str):
            return CellOrder(reason=cell)
        record = records.get(cell.key)
        if record is not None:
            return CellOrder(cell, record=record)
        payload, files = with_references(job_of(cell, self.evaluator.store, self.evaluator.folder))
        for each in files:
            self.contents[each.digest] = each
        while len(self.contents) > max(MOST_CONTENTS, len(files)):
            del self.contents[next(iter(self.contents))]
        return CellOrder(cell, payload)

    def content(self, worker: str, digest: str, configuration: Configuration) -> bytes:
        """The content of a file of the configuration's cells."""
        if digest not in self.contents:
            self.cells(worker, configuration)
        return self.contents[digest].content

    def add(self, worker: str, record: Record, files: Mapping[str, bytes]) -> Record:
        """Keep a record and its files; return the one that counts."""
        return self.evaluator.store.add(record, files)
