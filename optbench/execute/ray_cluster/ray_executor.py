"""Run jobs on the nodes of a Ray cluster, each in the same confined process as at home.

Ray decides when and where the cores, memory and GPUs of a cell are free (``cell_lease``), the
agent of the node runs it (``node_agent``), the driver judges and stores. A job whose node or lease
is lost runs again elsewhere. Instances are made on the driver's machine, where their sources are.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from optbench.execute.base import Job, JobOutcome
from optbench.execute.cell_pool import LOOK_S
from optbench.execute.following_jobs import FollowingJobs
from optbench.execute.ray_cluster.cell_lease import (
    AGENT_ENDED,
    Assignment,
    LeaseReport,
    run_leased,
)
from optbench.execute.ray_cluster.connection import (
    ClusterConnection,
    ClusterError,
    connected,
    first_line,
)
from optbench.execute.ray_cluster.doubtful_outcomes import (
    CellWork,
    Confirmations,
    failure_of,
    failure_words,
)
from optbench.execute.ray_cluster.home_instances import HomeExecutor
from optbench.execute.ray_cluster.node_agent import (
    AgentSettings,
    job_to,
    new_secret,
    with_memory,
)
from optbench.execute.ray_cluster.node_facts import usable_cores
from optbench.execute.ray_cluster.node_roster import NodeRoster, NoFittingNodeError
from optbench.execute.ray_cluster.sent_contents import SentContents
from optbench.execute.ray_cluster.travelling_files import (
    FileDigests,
    comparison_of,
    with_references,
)
from optbench.plugins.specs import name_of
from optbench.sandbox.process_tree import MAX_KILL_S
from optbench.study.declared import CellBudget, Study
from optbench.units import BYTES_PER_MB

# Cells make no sockets unless this setting says so: whoever reaches Ray's ports, or the sockets of
# its processes, runs anything there.
NETWORK_VARIABLE, OPEN = "OPTBENCH_CLUSTER_NETWORK", "open"
# How often a job is begun again after its node or lease was lost, before it is left missing.
MAX_LOSSES = 5
# How many reasons are shown for cells that were left missing.
SHOWN_REASONS = 3


@dataclass
class Flight:
    """A job on its way: how often it was lost, and the nodes that it avoids."""

    job: Job
    losses: int = 0
    avoided: set[str] = field(default_factory=set)
    # The node and outcome of a cell that did not end by an answer: another node has to confirm it.
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
        self.sent, self.digests = SentContents(), FileDigests()
        self.roster: NodeRoster | None = None
        self.stack = ExitStack()
        self.turn = 0
        self.network = os.environ.get(NETWORK_VARIABLE) == OPEN
        self.compile_s = 0.0
        self.ended: list[JobOutcome] = []
        self.again: list[Flight] = []
        # Jobs for which no node answers at the moment, and those that are left missing, with why.
        self.parked: list[Flight] = []
        self.stranded: list[tuple[Flight, str]] = []
        self.confirmations = Confirmations()

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
        return self

    def __exit__(self, *_: object) -> None:
        if self.roster is not None:
            self.roster.leave()
            self.compile_s = self.roster.compile_s
        self.sent.clear()
        self.roster = None
        self.stack.close()

    def admit(self, budgets: Iterable[CellBudget]) -> None:
        """Refuse a cell that fits on no node, even an idle one."""
        for budget in dict.fromkeys(budgets):
            nodes = self._nodes().usable()
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
            with HomeExecutor(at_a_time, (), self.settings.problems, network=self.network) as home:
                yield from home.run(waiting, stop)
            return
        yield from self._run_on_nodes(waiting, stop)

    def _run_on_nodes(
        self, waiting: Iterator[Job], stop: Callable[[], bool]
    ) -> Iterator[JobOutcome]:
        import ray

        self._nodes()
        self.turn += 1
        flights: dict[Any, Flight] = {}
        try:
            while True:
                # New jobs are sent before the runner judges those that ended.
                while len(flights) + len(self.parked) < self.jobs and not stop():
                    flight = self._next(waiting)
                    if flight is None:
                        break
                    if (reply := self._launch(flight)) is not None:
                        flights[reply] = flight
                ended, self.ended = self.ended, []
                yield from ended
                if stop():
                    return
                if not (flights or self.again or self.parked or self.following.waiting):
                    self._refuse_stranded()
                    return
                self.again, self.parked = [*self.again, *self.parked], []
                if not flights:
                    time.sleep(LOOK_S)
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
        """Give Ray the lease of a job; return the reference of its report. None where no node can
        run it now: it waits, or is left missing.
        """
        import ray

        payload, contents = with_references(flight.job, self.digests)
        memory_mb = self._memory_mb(flight.job.budget)
        job = with_memory(flight.job, memory_mb)
        budget = job.budget
        try:
            places = self._nodes().places_for(
                budget, memory_mb, comparison_of(payload), flight.avoided
            )
        except NoFittingNodeError as error:
            self.stranded.append((flight, str(error)))
            return None
        if places is None:
            self.parked.append(flight)
            return None
        lease = ray.remote(run_leased).options(
            num_cpus=budget.threads,
            num_gpus=budget.gpus,
            memory=math.floor(memory_mb * BYTES_PER_MB),
            max_retries=0,
            label_selector=places,
        )
        travelling = job_to(job, payload)
        assignment = Assignment(self.settings.secret, self.turn, travelling, self.network)
        return lease.remote(assignment, list(map(self.sent.reference, contents)))

    def _memory_mb(self, budget: CellBudget) -> float:
        given = budget.memory_limit_mb
        self._nodes().refuse_none()
        return given or math.floor(budget.threads * self._nodes().memory_per_core_mb)

    def _land(self, flight: Flight, reply: Any) -> None:
        """Take the report of a lease, or begin the job again."""
        import ray

        try:
            report: LeaseReport = ray.get(reply)
        except ray.exceptions.RayError as error:
            self._nodes().probe()
            self._begin_again(flight, first_line(error))
            return
        if report.outcome is None:
            # An agent takes all its leases with it, which is one failure of its node.
            if self._nodes().revive(report.node_id) or report.trouble != AGENT_ENDED:
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
        else:
            why = f"cell {flight.job.key} was lost {flight.losses} times with what ran it: {words}"
            self.stranded.append((flight, why))

    def _refuse_stranded(self) -> None:
        """Raise for cells that no node could run: they have no records, which a failure would."""
        if not self.stranded:
            return
        reasons = dict.fromkeys(words for _, words in self.stranded)
        shown = "; ".join(list(reasons)[:SHOWN_REASONS])
        raise ClusterError(
            f"{len(self.stranded)} cells have not been run: {shown}. Finished cells are kept, and "
            "the same command continues once the cluster has a node for them"
        )

    def _confirmed(self, flight: Flight, node_id: str, outcome: JobOutcome) -> JobOutcome | None:
        """Return the outcome; None for one without an answer that another node has to confirm.

        A cell that another node completes shows that the first node is at fault.
        """
        roster, kind = self._nodes(), failure_of(outcome)
        work = CellWork.of(flight.job)
        if not kind:
            roster.worked(node_id, work)
        if flight.doubted is not None:
            first, failed = flight.doubted
            if not kind:
                roster.strike(first, failure_words(failed), work)
            elif kind == failure_of(failed):  # two nodes agree: it is the solver
                self.confirmations.agreed(work, first)
            return outcome
        if not (self.confirmations.needed(kind, work, node_id) and roster.others(node_id)):
            return outcome
        flight.doubted = (node_id, outcome)
        flight.avoided.add(node_id)
        self.again.append(flight)
        return None

    def _end_flights(self, replies: list[Any]) -> None:
        """Kill what is running on all nodes, and wait for it."""
        import ray

        for kept in (self.again, self.ended, self.parked, self.stranded):
            kept.clear()
        self.following.clear()
        if not replies:
            return
        for reply in replies:
            ray.cancel(reply, force=False)
        self._nodes().quiet(self.turn, 2 * MAX_KILL_S)
        ray.wait(replies, num_returns=len(replies), timeout=MAX_KILL_S)

    def _nodes(self) -> NodeRoster:
        """Return the nodes; the cluster is joined for the first cell: a finished study does not."""
        if self.roster is None:
            with ExitStack() as stack:
                connection = self.connection or stack.enter_context(connected(self.address))
                roster = NodeRoster(connection, self.settings)
                roster.begin()
                self.stack.push(stack.pop_all())
            self.roster = roster
        return self.roster
