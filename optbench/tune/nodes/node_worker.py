"""A worker of a search on a node of a cluster.

It talks to the search's storage, like any worker: reports, prunes and tells its trials. All else it
asks of the search's desk, through a mailbox. Its cells run in processes of this node, confined and
pinned to cores of their own, and what they give is judged here and kept at home before the trial
goes on.
"""

from __future__ import annotations

import queue
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from optbench.errors import OptbenchError
from optbench.execute.ray_cluster.travelling_files import (
    REFERENCE,
    ContentCache,
    references,
    with_paths,
)
from optbench.plugins.specs import name_of
from optbench.run.runner import run_cells
from optbench.shapes.protocol.shape_facts import CellShape
from optbench.store.records import Record
from optbench.store.run_store import Store
from optbench.tune.nodes.placed_cells import PlacedExecutor
from optbench.tune.nodes.search_desk import CellOrder, TrialTicket
from optbench.tune.search_task import Configuration, SearchPoint
from optbench.tune.storage import reachable
from optbench.tune.trial_evaluation import Stopped
from optbench.tune.trials import TrialClaim, Trials
from optbench.tune.worker import WorkerOrders, work_on_trials

# Where a worker keeps instances and the folders of its cells, beneath the node's temporary folder.
PREFIX = "optbench-tune-"


@dataclass(frozen=True)
class Letter:
    """What a worker gives to its home: a request, or (without one) that it has ended, with the
    error that ended it.
    """

    request: str | None = None
    given: tuple[Any, ...] = ()
    error: str | None = None


class Mailbox:
    """Requests of a worker's thread and answers to them: the other end takes the next request and
    brings the answer to the last one.
    """

    def __init__(self) -> None:
        self.requests: queue.SimpleQueue[Letter] = queue.SimpleQueue()
        self.answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.stop = threading.Event()

    def ask(self, request: str, *given: Any) -> Any:
        """Ask the home and wait; raise Stopped where none will answer any more."""
        self.requests.put(Letter(request, given))
        return self._answer()

    def _answer(self) -> Any:
        while True:
            try:
                return self.answers.get(timeout=0.1)
            except queue.Empty:
                if self.stop.is_set():
                    raise Stopped from None

    def exchange(self, answer: Any = None, is_first: bool = False) -> Letter:
        """Bring an answer and wait for the next request."""
        if not is_first:
            self.answers.put(answer)
        return self.requests.get()

    def end(self, error: str | None = None) -> None:
        self.requests.put(Letter(error=error))


@dataclass
class HomeClaim(TrialClaim):
    """A trial whose lock is held at home."""

    ask: Callable[..., Any] = field(kw_only=True)

    def confirm(self) -> None:
        self.ask("confirm", self.number)


@dataclass(frozen=True)
class _LockAtHome:
    ask: Callable[..., Any]

    def close(self) -> None:
        self.ask("release")


class NodeStore(Store):
    """The store of a worker: instances are here, records go home."""

    def __init__(self, folder: Path, ask: Callable[..., Any]) -> None:
        super().__init__(folder)
        self.ask = ask
        self.instances: dict[str, Path] = {}

    def instance_file(self, instance_hash: str, shape: CellShape | None = None) -> Path:
        return self.instances[instance_hash]

    def add(
        self, record: Record, files: Mapping[str, bytes], replaces: Record | None = None
    ) -> Record:
        kept: Record = self.ask("add", record, dict(files))
        return kept


@dataclass
class NodeEvaluator:
    """Runs the cells of configurations on this node, one at a time."""

    store: NodeStore
    executor: PlacedExecutor
    folder: Path
    stop: threading.Event
    cache: ContentCache = field(default_factory=ContentCache)

    def records(
        self, configuration: Configuration, points: Sequence[SearchPoint]
    ) -> Iterator[tuple[SearchPoint, Record | None]]:
        orders: list[CellOrder] = self.store.ask("cells", configuration)
        for point, order in zip(points, orders, strict=True):
            yield point, None if order.cell is None else self._record(order, configuration)

    def _record(self, order: CellOrder, configuration: Configuration) -> Record:
        if self.stop.is_set():
            raise Stopped
        if order.record is not None:
            return order.record
        assert order.cell is not None
        payload = with_paths(order.payload, self._places(order.payload, configuration))
        self.store.instances[order.cell.instance_hash] = Path(payload["instance_file"])
        self.executor.params = payload["params"]
        for record in run_cells([order.cell], self.store, self.executor, self.folder, self.stop):
            return record
        raise Stopped

    def _places(
        self, payload: Mapping[str, Any], configuration: Configuration
    ) -> dict[tuple[str, str], Path]:
        """Fetch the files of a cell that this node has not; return where they are."""
        out = {}
        for each in references(payload):
            digest, name = each[REFERENCE], each["name"]
            path = self.cache.folder / "files" / digest / Path(name).name
            if not path.is_file():
                content = self.store.ask("content", digest, configuration)
                path = self.cache.keep(digest, name, content)
            out[digest, name] = path
        return out


def work_at_node(orders: WorkerOrders, box: Mailbox, on_node: str, memory_mb: float) -> None:
    """Body of the worker's thread; the last letter says how it ended. ``memory_mb`` is what a cell
    may use where the study sets no limit.
    """
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    error: str | None = f"worker on {on_node}: an internal error, which Ray's logs there show"
    try:
        with reachable(orders.url):
            _work(orders, box, folder, memory_mb)
        error = None
    except Stopped:
        error = None
    except OptbenchError as raised:
        error = f"worker on {on_node}: {raised}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        box.end(error)


def _work(orders: WorkerOrders, box: Mailbox, folder: Path, memory_mb: float) -> None:
    trials = Trials(orders.task, orders.url, folder / "search")
    store = NodeStore(folder / "store", box.ask)
    store.make()
    study = orders.task.study_of(orders.task.defaults, orders.task.points)
    problems = map(name_of, study.problems)
    executor = PlacedExecutor(1, [orders.task.entry.name], problems, memory_mb=memory_mb)
    with store.work_folder() as work, executor:
        evaluator = NodeEvaluator(store, executor, work, box.stop)
        work_on_trials(orders, trials, lambda: _claim(trials, box), evaluator, box.stop)


def _claim(trials: Trials, box: Mailbox) -> TrialClaim | None:
    """A trial of the desk, with the parameters that were drawn there."""
    from optuna.samplers import RandomSampler
    from optuna.trial import Trial

    from optbench.tune.samplers import sampler_of

    ticket: TrialTicket | None = box.ask("claim")
    if ticket is None:
        return None
    trials.study.sampler = RandomSampler()  # draws nothing: all parameters are there
    trial = Trial(trials.study, ticket.trial_id)
    trials.study.sampler = sampler_of(trials.task, ticket.number)
    return HomeClaim(
        trial,
        ticket.number,
        ticket.configuration,
        ticket.adopted,
        _LockAtHome(box.ask),
        ask=box.ask,
    )
