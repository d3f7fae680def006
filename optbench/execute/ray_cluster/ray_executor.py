"""Run jobs on the nodes of a Ray cluster, each in the same confined process as at home.

Ray decides when and where the cores, memory and GPUs of a cell are free (``cell_lease``), the
agent of the node runs it (``node_agent``), the driver judges and stores. A job whose node or lease
is lost runs again elsewhere. Instances are made on the driver's machine, where their sources are.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from optbench.execute.base import Job, JobOutcome
from optbench.execute.cell_pool import LOOK_S
from optbench.execute.following_jobs import FollowingJobs
from optbench.execute.local import LocalExecutor
from optbench.execute.ray_cluster.cell_lease import Assignment, LeaseReport, run_leased
from optbench.execute.ray_cluster.connection import (
    ClusterConnection,
    ClusterError,
    connected,
    first_line,
)
from optbench.execute.ray_cluster.node_agent import (
    AgentSettings,
    job_to,
    new_secret,
    with_memory,
)
from optbench.execute.ray_cluster.node_facts import usable_cores
from optbench.execute.ray_cluster.node_roster import NodeRoster
from optbench.execute.ray_cluster.sent_contents import SentContents
from optbench.execute.ray_cluster.travelling_files import with_references
from optbench.plugins.specs import name_of
from optbench.sandbox.process_tree import MAX_KILL_S
from optbench.store.records import Reason
from optbench.study.declared import CellBudget, Study
from optbench.units import BYTES_PER_MB

# Cells open no TCP connections unless this setting says so: Ray's ports take orders from anybody.
NETWORK_VARIABLE, OPEN = "OPTBENCH_CLUSTER_NETWORK", "open"
# How often a job is begun again after its node or lease was lost, before it counts as failed.
MAX_LOSSES = 5


@dataclass
class Flight:
    """A job on its way: how often it was lost, and the nodes that it avoids."""

    job: Job
    losses: int = 0
    avoided: set[str] = field(default_factory=set)
    # The node and outcome of a cell that a signal ended: another node has to confirm it.
    doubted: tuple[str, JobOutcome] | None = None


class RayExecutor:
    """Runs ``jobs`` cells at a time, by default as many as the cluster has CPUs; over a
    ``connection`` that outlives it, or over one of its own to ``address``.
    """

    def __init__(
        self,
        jobs: int | None = None,
        solvers: Iterable[str] = (),
        problems: Iterable[str] = (),
        landlock: bool = True,
        address: str | None = None,
        connection: ClusterConnection | None = None,
    ) -> None:
        self.given_jobs, self.address, self.connection = jobs, address, connection
        self.settings = AgentSettings(
            new_secret(), tuple(sorted({*solvers})), tuple(sorted({*problems})), landlock
        )
        self.following = FollowingJobs()
        self.sent = SentContents()
        self.roster: NodeRoster | None = None
        self.stack = ExitStack()
        self.turn = 0
        self.network = os.environ.get(NETWORK_VARIABLE) == OPEN
        self.compile_s = 0.0
        self.ended: list[JobOutcome] = []
        self.again: list[Flight] = []

    @classmethod
    def for_study(cls, study: Study, jobs: int | None = None, **options: Any) -> RayExecutor:
        """Create an executor whose nodes load what the plug-ins of a study need."""
        solvers = {entry.name for entry in study.solvers}
        return cls(jobs, solvers, set(map(name_of, study.problems)), **options)

    @property
    def jobs(self) -> int:
        """Cells at a time; those beyond what is free wait in Ray's queue."""
        return self.given_jobs or (1 if self.roster is None else self.roster.total_cpus)

    def __enter__(self) -> RayExecutor:
        with ExitStack() as stack:
            connection = self.connection or stack.enter_context(connected(self.address))
            roster = NodeRoster(connection, self.settings)
            roster.begin()
            self.roster = roster
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        if self.roster is not None:
            self.roster.measure_compiling()
            self.compile_s = self.roster.compile_s
        self.sent.clear()
        self.roster = None
        self.stack.close()

    def admit(self, budgets: Iterable[CellBudget]) -> None:
        """Refuse a cell that fits on no node, even an idle one."""
        nodes = self._nodes().usable()
        for budget in dict.fromkeys(budgets):
            memory_mb = self._memory_mb(budget)
            if not any(entry.has_room_for(budget, memory_mb) for entry in nodes):
                known = "; ".join(
                    f"{each.node.name} has {min(each.node.cpus, each.cores):g} cores, "
                    f"{each.node.gpus:g} GPUs and {each.node.memory_mb:,.0f} MB"
                    for each in nodes
                )
                raise ClusterError(
                    f"a cell with threads = {budget.threads}, reserved_gpus = "
                    f"{budget.gpus} and "
                    f"{memory_mb:,.0f} MB of memory fits on no node of the cluster: {known}. Lower "
                    "what the study asks for, or add a node"
                )

    def run(
        self, jobs: Iterable[Job], stop: Callable[[], bool] = lambda: False
    ) -> Iterator[JobOutcome]:
        waiting = iter(jobs)
        first = next(waiting, None)
        if first is None or stop():
            return
        waiting = chain([first], waiting)
        if first.kind == "instance":
            cores = len(usable_cores())
            at_a_time = min(self.given_jobs or cores, cores)
            with LocalExecutor(at_a_time, (), self.settings.problems) as home:
                yield from home.run(waiting, stop)
            return
        yield from self._run_on_nodes(waiting, stop)

    def _run_on_nodes(
        self, waiting: Iterator[Job], stop: Callable[[], bool]
    ) -> Iterator[JobOutcome]:
        import ray

        self.turn += 1
        flights: dict[Any, Flight] = {}
        try:
            while True:
                # New jobs are sent before the runner judges those that ended.
                while len(flights) < self.jobs and not stop():
                    flight = self._next(waiting)
                    if flight is None:
                        break
                    flights[self._launch(flight)] = flight
                ended, self.ended = self.ended, []
                yield from ended
                if stop() or not (flights or self.again or self.following.waiting):
                    return
                done, _ = ray.wait(list(flights), timeout=LOOK_S)
                if done:
                    done, _ = ray.wait(list(flights), num_returns=len(flights), timeout=0)
                for reply in done:
                    self._land(flights.pop(reply), reply)
                self._nodes().refresh()
        finally:
            self._end_flights(list(flights))

    def _next(self, waiting: Iterator[Job]) -> Flight | None:
        """Return the next flight: lost ones first, then jobs that follow others, then new ones."""
        if self.again:
            return self.again.pop(0)
        second = self.following.waiting
        job = second.pop(0) if second else next(waiting, None)
        if job is None:
            return None
        self.following.began(job)
        return Flight(job)

    def _launch(self, flight: Flight) -> Any:
        """Give Ray the lease of a job; return the reference of its report."""
        import ray

        payload, contents = with_references(flight.job)
        memory_mb = self._memory_mb(flight.job.budget)
        job = with_memory(flight.job, memory_mb)
        comparison = str(flight.job.payload.get("instance_file", ""))
        budget = job.budget
        lease = ray.remote(run_leased).options(
            num_cpus=budget.threads,
            num_gpus=budget.gpus,
            memory=math.floor(memory_mb * BYTES_PER_MB),
            max_retries=0,
            label_selector=self._nodes().places_for(
                budget, memory_mb, comparison.rpartition("/")[2], flight.avoided
            ),
        )
        travelling = job_to(job, payload)
        assignment = Assignment(self.settings.secret, self.turn, travelling, self.network)
        return lease.remote(assignment, *map(self.sent.reference, contents))

    def _memory_mb(self, budget: CellBudget) -> float:
        given = budget.memory_limit_mb
        return given or math.floor(budget.threads * self._nodes().memory_per_core_mb)

    def _land(self, flight: Flight, reply: Any) -> None:
        """Take the report of a lease, or begin the job again."""
        import ray

        try:
            report: LeaseReport = ray.get(reply)
        except ray.exceptions.RayTaskError as error:
            raise ClusterError(f"a lease failed: {error}") from error
        except ray.exceptions.RayError as error:
            self._nodes().probe()
            self._begin_again(flight, first_line(error))
            return
        if report.outcome is None:
            self._nodes().revive(report.node_id)
            self._nodes().strike(report.node_id, report.trouble)
            flight.avoided.add(report.node_id)
            self._begin_again(flight, report.trouble)
            return
        outcome = self._confirmed(flight, report.node_id, report.outcome)
        if outcome is not None and (whole := self.following.complete(outcome)) is not None:
            self.ended.append(whole)

    def _begin_again(self, flight: Flight, words: str) -> None:
        flight.losses += 1
        if flight.losses <= MAX_LOSSES:
            self.again.append(flight)
            return
        reason = Reason("signal", f"lost {flight.losses} times with what ran it: {words}")
        whole = self.following.complete(JobOutcome(flight.job.key, None, reason))
        if whole is not None:
            self.ended.append(whole)

    def _confirmed(self, flight: Flight, node_id: str, outcome: JobOutcome) -> JobOutcome | None:
        """Return the outcome; None for one by a signal that another node has to confirm.

        A cell that another node completes shows that the first node is at fault.
        """
        roster = self._nodes()
        by_signal = outcome.reason is not None and outcome.reason.kind == "signal"
        if flight.doubted is not None:
            if not by_signal:
                roster.strike(flight.doubted[0], str(flight.doubted[1].reason))
                roster.worked(node_id)
            return outcome
        if by_signal and roster.others(node_id):
            flight.doubted = (node_id, outcome)
            flight.avoided.add(node_id)
            self.again.append(flight)
            return None
        if not by_signal:
            roster.worked(node_id)
        return outcome

    def _end_flights(self, replies: list[Any]) -> None:
        """Kill what is running on all nodes, and wait for it."""
        import ray

        for kept in (self.again, self.ended):
            kept.clear()
        self.following.clear()
        if not replies:
            return
        for reply in replies:
            ray.cancel(reply, force=False)
        self._nodes().quiet(self.turn, 2 * MAX_KILL_S)
        ray.wait(replies, num_returns=len(replies), timeout=MAX_KILL_S)

    def _nodes(self) -> NodeRoster:
        if self.roster is None:
            raise ClusterError("the cluster has not been joined; use the executor in a with block")
        return self.roster
