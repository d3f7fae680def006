"""Evaluating a configuration: ordinary cells by the same store, executor and judge as those of any
study.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from optbench.errors import OptbenchError
from optbench.execute.base import Executor
from optbench.execute.local import LocalExecutor
from optbench.run.instance_cache import make_instances
from optbench.run.runner import run_cells
from optbench.run.taken_shapes import refuse_unfit
from optbench.store.records import Record
from optbench.store.run_store import Store
from optbench.study.cells import Cell
from optbench.study.instance_sources import MadeInstance
from optbench.study.planning import plan
from optbench.tune.search_task import Configuration, SearchPoint, SearchTask


@contextmanager
def evaluating(
    task: SearchTask, store: Store, executor: Executor, stop: threading.Event
) -> Iterator[Evaluator]:
    """An evaluator whose executor ends with it; it is started when the first cell has to be run."""
    with store.work_folder() as folder, executor:
        yield Evaluator(task, store, executor, folder, stop)


def executor_of(task: SearchTask, jobs: int, sharing: int | None = None) -> LocalExecutor:
    """So many processes for cells of a search; ``sharing`` cells in all workers have the machine's
    memory between them.
    """
    study = task.study_of(task.defaults, task.points)
    return LocalExecutor.for_study(study, jobs, sharing=sharing)


class Stopped(Exception):
    """The search was asked to stop; what is finished is in the store."""


@dataclass
class Evaluator:
    """Runs what the store does not hold of a configuration's cells, and hands out the records of
    all; ``folder`` is one of ``store.work_folder``.
    """

    task: SearchTask
    store: Store
    executor: Executor
    folder: Path
    stop: threading.Event
    _made: dict[tuple[str, ...], tuple[MadeInstance, ...]] = field(default_factory=dict)

    def cells(
        self, configuration: Configuration, points: Sequence[SearchPoint]
    ) -> dict[SearchPoint, Cell | str]:
        """The cell of each instance, or why the instance cannot be made with this configuration."""
        study = self.task.study_of(configuration, tuple(points))
        key = (*study.problems, *map(str, study.seeds))
        if key not in self._made:
            made = tuple(make_instances(study, self.store, self.executor, self.folder, self.stop))
            if self.stop.is_set():
                raise Stopped
            self._made[key] = made
        by_source = {(each.target, each.seed): each for each in self._made[key]}
        planned = plan(study, self._made[key])
        refuse_unfit(planned, planned.solving)
        by_content = {(cell.instance_hash, cell.instance_seed): cell for cell in planned.solving}
        out: dict[SearchPoint, Cell | str] = {}
        for point in points:
            made_one = by_source[self.task.target(point.target, configuration), point.seed]
            if made_one.instance_hash is None:
                out[point] = made_one.error or "it cannot be made"
            else:
                out[point] = by_content[made_one.instance_hash, point.seed]
        return out

    def records(
        self, configuration: Configuration, points: Sequence[SearchPoint]
    ) -> Iterator[tuple[SearchPoint, Record | None]]:
        """Records one by one, in the order of the points; None where the configuration leaves no
        instance.
        """
        cells = self.cells(configuration, points)
        for point in points:
            cell = cells[point]
            yield point, None if isinstance(cell, str) else self._record(cell)

    def instances(self, points: Sequence[SearchPoint]) -> dict[SearchPoint, str]:
        """Hashes of the defaults' instances; every one must be there."""
        cells = self.cells(self.task.defaults, points)
        errors = [f"{point.name}: {cell}" for point, cell in cells.items() if isinstance(cell, str)]
        if errors:
            raise OptbenchError(
                f"tune: {len(errors)} of {len(cells)} instances cannot be made; {errors[0]}"
            )
        return {
            point: cell.instance_hash for point, cell in cells.items() if isinstance(cell, Cell)
        }

    def all_records(
        self, configuration: Configuration, points: Sequence[SearchPoint]
    ) -> dict[SearchPoint, Record | None]:
        """Records of all, several at a time; None where the configuration leaves no instance."""
        cells = self.cells(configuration, points)
        found = {point: cell for point, cell in cells.items() if isinstance(cell, Cell)}
        known = self.store.records()
        missing = {cell.key: cell for cell in found.values() if cell.key not in known}
        for _ in run_cells(
            list(missing.values()), self.store, self.executor, self.folder, self.stop
        ):
            pass
        known = self.store.records()
        if any(cell.key not in known for cell in found.values()):
            raise Stopped
        return {point: known[found[point].key] if point in found else None for point in points}

    def _record(self, cell: Cell) -> Record:
        if self.stop.is_set():
            raise Stopped
        known = self.store.records()
        if cell.key in known:
            return known[cell.key]
        for record in run_cells([cell], self.store, self.executor, self.folder, self.stop):
            return record
        raise Stopped
