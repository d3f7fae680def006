"""Workers of a search as actors on the nodes of a Ray cluster."""

from __future__ import annotations

import itertools
import platform
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from optbench.compiling.compile_meter import announce
from optbench.execute.base import Executor
from optbench.execute.ray_cluster.connection import ClusterConnection, first_line
from optbench.execute.ray_cluster.like_nodes import LikeNodes
from optbench.execute.ray_cluster.ray_executor import RayExecutor
from optbench.study.declared import Study
from optbench.tune.nodes.node_worker import Letter, Mailbox, work_at_node
from optbench.tune.nodes.search_desk import SearchDesk
from optbench.tune.nodes.shared_storage import is_file, shared_url
from optbench.tune.search_task import SearchTask
from optbench.tune.storage import shown
from optbench.tune.trial_evaluation import Evaluator
from optbench.tune.trials import Trials
from optbench.tune.worker import WorkerOrders
from optbench.tune.worker_crews import LEAVE_S, FallenWorker, WorkerCrew
from optbench.units import BYTES_PER_MB

# An actor that is lost before it has started was sent to a node that is gone, which Ray notices
# after some 20 seconds: seconds until the next one is tried, and how many are in a row.
AGAIN_S, MOST_UNSTARTED = 1.0, 60
# What workers that leave may still ask for.
LAST_REQUESTS = ("add", "confirm", "release")


@dataclass(frozen=True)
class RayNodes:
    """The engine of a cluster with ``jobs`` workers; each holds the cores, GPUs and memory of a
    cell.
    """

    cluster: ClusterConnection
    nodes: LikeNodes
    jobs: int

    @classmethod
    def for_task(
        cls, cluster: ClusterConnection, task: SearchTask, jobs: int | None = None
    ) -> RayNodes:
        """Check all nodes; by default there are as many workers as cells fit on the nodes."""
        nodes = LikeNodes(cluster, task.entry.budget)
        fitting = sum(map(nodes.cells_at_a_time, nodes.alive()))
        return cls(cluster, nodes, jobs or fitting)

    def storage(self, url: str) -> str:
        nodes = self.nodes.alive()
        found = shared_url(url, platform.node(), {node.host for node in nodes})
        announce(f"{self.jobs} workers on {len(nodes)} nodes; trials in {shown(found)}")
        if is_file(found):
            announce("all nodes are on this machine: they share that file and its locks")
        return found

    def executor(self, study: Study) -> Executor:
        """The engine of the defaults and of validation: on the nodes of the trials, no others."""
        return RayExecutor.for_study(study, self.jobs, connection=self.nodes.restricted())

    def crew(self, orders: WorkerOrders, known: Trials, evaluator: Evaluator) -> WorkerCrew:
        return RayCrew(self.nodes, orders, SearchDesk(known, evaluator, orders.total))


class TuneActor:
    """A worker on a node: a thread that works, and its mailbox."""

    def __init__(self, memory_mb: float) -> None:
        self.box, self.memory_mb = Mailbox(), memory_mb

    def node_id(self) -> str:
        import ray

        return str(ray.get_runtime_context().get_node_id())

    def begin(self, orders: WorkerOrders, on_node: str) -> Letter:
        """Start to work; return the first request."""
        given = (orders, self.box, on_node, self.memory_mb)
        threading.Thread(target=work_at_node, args=given, daemon=True).start()
        return self.box.exchange(is_first=True)

    def exchange(self, answer: Any) -> Letter:
        return self.box.exchange(answer)

    def stop(self) -> None:
        self.box.stop.set()


@dataclass
class _NodeWorker:
    """A worker as the driver sees it; ``reply`` is what it does at the moment."""

    name: str
    actor: Any
    reply: Any
    node_id: str = ""
    node: str = "a node that has not started it"
    begun: bool = False


@dataclass
class RayCrew:
    """Actors, whose requests the search's desk answers."""

    nodes: LikeNodes
    orders: WorkerOrders
    desk: SearchDesk
    workers: list[_NodeWorker] = field(default_factory=list)
    names: Any = field(default_factory=itertools.count)
    unstarted: int = 0
    add_after: float = 0.0

    @property
    def size(self) -> int:
        return len(self.workers)

    def fill(self, wanted: int) -> None:
        while self.size < wanted and time.monotonic() >= self.add_after:
            self._add()

    def _add(self) -> None:
        import ray

        budget, nodes = self.orders.task.entry.budget, self.nodes
        memory = budget.threads * nodes.memory_per_core()
        if budget.memory_limit_mb is not None:
            memory = int(budget.memory_limit_mb * BYTES_PER_MB)
        made = ray.remote(TuneActor).options(
            num_cpus=budget.threads,
            num_gpus=budget.gpus,
            memory=memory,
            label_selector=nodes.selector(),
            scheduling_strategy="SPREAD",
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=2,
        )
        actor: Any = made.remote(memory / BYTES_PER_MB)
        name = f"worker-{next(self.names)}"
        self.workers.append(_NodeWorker(name, actor, actor.node_id.remote()))

    def serve(self, seconds: float) -> list[FallenWorker]:
        """Answer requests for so long; return the workers that were lost or have failed."""
        deadline, fallen = time.monotonic() + seconds, list[FallenWorker]()
        while not self.desk.evaluator.stop.is_set():
            left = deadline - time.monotonic()
            if left <= 0:
                break
            fallen += self._serve_once(left)
        return fallen

    def end(self) -> None:
        """Have workers end their cells and leave; end those that do not."""
        import ray

        for each in self.workers:
            if each.begun:
                each.actor.stop.remote()
        deadline = time.monotonic() + LEAVE_S
        while any(each.begun for each in self.workers) and time.monotonic() < deadline:
            self._serve_once(0.2, leaving=True)
        for each in self.workers:
            ray.kill(each.actor)
            self.desk.release(each.name)
        self.workers.clear()

    def _serve_once(self, seconds: float, leaving: bool = False) -> list[FallenWorker]:
        import ray

        by_reply = {each.reply: each for each in self.workers}
        if not by_reply:
            time.sleep(seconds)
            return []
        ready, _ = ray.wait(list(by_reply), timeout=seconds)
        fallen = []
        for reply in ready:
            worker = by_reply[reply]
            try:
                found = ray.get(reply)
            except ray.exceptions.RayError as error:
                fallen.append(self._lost(worker, error))
                continue
            ended = self._answered(worker, found, leaving)
            fallen += [ended] if ended is not None else []
        return fallen

    def _answered(self, worker: _NodeWorker, found: Any, leaving: bool) -> FallenWorker | None:
        """Answer a worker's request; return how it has failed, if it has."""
        if not worker.begun:
            self._begin(worker, found)
            return None
        letter: Letter = found
        if letter.request is None:
            self._dismiss(worker)
            return None if letter.error is None else FallenWorker(letter.error)
        if leaving and letter.request not in LAST_REQUESTS:
            self._dismiss(worker)
            return None
        answer = self.desk.answer(worker.name, letter.request, letter.given)
        worker.reply = worker.actor.exchange.remote(answer)
        return None

    def _begin(self, worker: _NodeWorker, node_id: str) -> None:
        """Give a worker its orders."""
        self.unstarted = 0
        worker.node_id, worker.node, worker.begun = node_id, self.nodes.name_of(node_id), True
        worker.reply = worker.actor.begin.remote(self.orders, worker.node)

    def _lost(self, worker: _NodeWorker, error: Exception) -> FallenWorker:
        """Give back the trial of a lost worker, which the next claim adopts."""
        self._dismiss(worker)
        if not worker.begun:
            self.unstarted, self.add_after = self.unstarted + 1, time.monotonic() + AGAIN_S
            words = f"no worker can be started ({first_line(error)})"
            return FallenWorker(words, by_node=self.unstarted < MOST_UNSTARTED)
        by_node = bool(worker.node_id) and not self.nodes.is_alive(worker.node_id)
        what = f"node {worker.node} was lost" if by_node else f"the worker on {worker.node} died"
        words = f"{what} ({first_line(error)})"
        announce(f"{what}; its trial is adopted by another worker")
        return FallenWorker(words, by_node)

    def _dismiss(self, worker: _NodeWorker) -> None:
        import ray

        self.workers.remove(worker)
        self.desk.release(worker.name)
        ray.kill(worker.actor)
