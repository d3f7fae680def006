"""The nodes on which cells may run: checked, with an agent each, and neither lost nor set aside.

A node that joins later is checked before it is used. A node on which cells keep failing for reasons
that lie in the machine is set aside and named.
"""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from optbench.compiling.compile_meter import announce
from optbench.execute.ray_cluster.connection import (
    ClusterConnection,
    ClusterError,
    ClusterNode,
    on_nodes,
)
from optbench.execute.ray_cluster.doubtful_outcomes import CellWork
from optbench.execute.ray_cluster.node_agent import AgentSettings, NodeAgent
from optbench.study.declared import CellBudget

# Failures in a row of the same work for which a node is set aside.
STRIKES = 3
# A node whose agent does not answer is avoided until it answers or Ray lists the node as dead,
# which takes it some 20 seconds; after this many seconds without either the node is tried again.
SUSPECT_S = 90.0
# Seconds that a cell may wait for cores, which Ray has given to it, before that is said.
WAIT_S = 30.0
# Seconds between two looks at the cluster's nodes; seconds that an agent may take to start.
LOOK_NODES_S, START_S = 1.0, 120.0


class NoFittingNodeError(ClusterError):
    """No node that is left has room for a cell; others may be run."""


@dataclass
class RosterEntry:
    """A node in use."""

    node: ClusterNode
    agent: Any
    machine: Mapping[str, Any]
    cores: int
    # Failures in a row by what failed; those under None lie in no cell, such as a full disk.
    strikes: Counter[CellWork | None] = field(default_factory=Counter)
    suspected_until: float = 0.0
    is_waiting: bool = False

    @property
    def hardware(self) -> tuple[str, tuple[str, ...]]:
        """What must be equal where times are compared: the models of the CPU and the GPUs."""
        return str(self.machine.get("cpu", "")), tuple(self.machine.get("gpus", ()))

    def has_room_for(self, budget: CellBudget, memory_mb: float) -> bool:
        """Whether a cell could run here if nothing else did."""
        return (
            budget.threads <= min(self.node.cpus, self.cores)
            and budget.gpus <= self.node.gpus
            and memory_mb <= self.node.memory_mb
        )


@dataclass
class NodeRoster:
    """All nodes of a cluster that may run cells, by id."""

    connection: ClusterConnection
    settings: AgentSettings
    tell: Callable[[str], None] = announce
    entries: dict[str, RosterEntry] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    looked_at: float = 0.0
    probed_at: float = 0.0
    compile_s: float = 0.0

    def __post_init__(self) -> None:
        self.questions: dict[Any, RosterEntry] = {}
        self.waits: dict[Any, RosterEntry] = {}
        self.asked_waits_at = time.monotonic()
        self.lock = threading.Lock()
        self.joining: threading.Thread | None = None

    def begin(self) -> None:
        """Check all nodes, start their agents; raise ClusterMismatchError for other versions."""
        self._admit(self.connection.check_nodes())
        self.refuse_none()
        self.looked_at = time.monotonic()

    def refresh(self) -> None:
        """Notice nodes that were lost, and have those that joined checked meanwhile."""
        if time.monotonic() - self.looked_at < LOOK_NODES_S:
            return
        self.looked_at = time.monotonic()
        alive = {node.node_id: node for node in self.connection.nodes()}
        for entry in [each for each in self.usable() if each.node.node_id not in alive]:
            elsewhere = "; its cells run elsewhere" if len(self.usable()) > 1 else ""
            self._leave_out(entry, f"was lost{elsewhere}")
        self._lift_suspicion()
        self._announce_waits()
        new = [
            node
            for node in alive.values()
            if node.node_id not in self.entries and node.node_id not in self.refused
        ]
        if new and (self.joining is None or not self.joining.is_alive()):
            self.joining = threading.Thread(target=self._join, args=(new,), daemon=True)
            self.joining.start()

    def _join(self, new: Collection[ClusterNode]) -> None:
        """Check nodes that joined; one with other versions is named and not used."""
        wrong = self.connection.mismatches(new)
        for node_id, words in wrong.items():
            self.refused[node_id] = words
            self.tell(f"{words}; it is not used")
        fit = [node for node in new if node.node_id in self.connection.facts]
        for entry in self._admit(fit):
            self.tell(f"node {entry.node.name} joined")

    def _admit(self, nodes: Iterable[ClusterNode]) -> list[RosterEntry]:
        """Start the agents of nodes and take the nodes into use."""
        import ray

        nodes = [node for node in nodes if node.cpus >= 1]
        agents = {node.node_id: self._agent_on(node) for node in nodes}
        admitted = []
        for node in nodes:
            agent = agents[node.node_id]
            try:
                machine = ray.get(agent.machine.remote(), timeout=START_S)
            except ray.exceptions.RayError as error:
                self.refused[node.node_id] = str(error)
                self.tell(f"node {node.name}: its agent could not be started; it is not used")
                continue
            cores = len(self.connection.facts[node.node_id]["cores"])
            entry = RosterEntry(node, agent, machine, cores)
            admitted.append(entry)
            with self.lock:
                self.entries[node.node_id] = entry
        return admitted

    def _agent_on(self, node: ClusterNode) -> Any:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        where = NodeAffinitySchedulingStrategy(node.node_id, soft=False)
        actor = ray.remote(NodeAgent).options(
            num_cpus=0, max_restarts=0, max_concurrency=4, scheduling_strategy=where
        )
        return actor.remote(self.settings, node.node_id)

    def usable(self) -> list[RosterEntry]:
        with self.lock:
            return list(self.entries.values())

    @property
    def memory_per_core_mb(self) -> float:
        """The memory of a cell for which the study sets no limit, per core: what every node has."""
        return min(entry.node.memory_mb / entry.node.cpus for entry in self.usable())

    @property
    def total_cpus(self) -> int:
        return max(1, sum(math.floor(entry.node.cpus) for entry in self.usable()))

    def places_for(
        self, budget: CellBudget, memory_mb: float, comparison: str, avoided: Collection[str]
    ) -> dict[str, str] | None:
        """Return Ray's selector of the nodes for a cell; None while none of them answers. Cells
        with the same ``comparison`` go to nodes with the same CPU and GPU models, as long as these
        have room for them.
        """
        fits = [each for each in self.usable() if each.has_room_for(budget, memory_mb)]
        if not fits:
            self.refuse_none()
            raise NoFittingNodeError(
                f"no node that is left has room for a cell with {budget.threads} threads, "
                f"{budget.gpus} GPUs and {memory_mb:,.0f} MB of memory"
            )
        cpus: dict[Any, float] = {}
        for each in fits:
            cpus[each.hardware] = cpus.get(each.hardware, 0.0) + each.node.cpus
        chosen = max(cpus, key=lambda model: _rank(comparison, model, cpus[model]))
        now = time.monotonic()
        alike = [each for each in fits if each.hardware == chosen and each.suspected_until < now]
        if not alike:
            return None
        wanted = [each for each in alike if each.node.node_id not in avoided] or alike
        return on_nodes([each.node.node_id for each in wanted])

    def probe(self) -> None:
        """Avoid nodes whose agents do not answer, until Ray knows more: a lease was lost."""
        if time.monotonic() - self.probed_at >= LOOK_NODES_S:
            self._ask("machine")
            self.probed_at = time.monotonic()

    def _ask(self, question: str) -> list[Any]:
        """Return what the agents answer; name nodes that do not, and avoid them for a while."""
        import ray

        now = time.monotonic()
        asked = {getattr(entry.agent, question).remote(): entry for entry in self.usable()}
        done, silent = ray.wait(list(asked), num_returns=len(asked), timeout=LOOK_NODES_S)
        answers = []
        for reply in done:
            try:
                answers.append(ray.get(reply))
            except ray.exceptions.RayError:
                silent.append(reply)
        for entry in (asked[reply] for reply in silent):
            if entry.suspected_until < now:
                others = any(
                    each.suspected_until < now for each in self.usable() if each is not entry
                )
                what = "its cells run elsewhere" if others else "its cells wait for it"
                self.tell(f"node {entry.node.name} does not answer; {what}")
            entry.suspected_until = now + SUSPECT_S
        return answers

    def _lift_suspicion(self) -> None:
        """Use a node again once its agent answers; a node without its agent gets a new one."""
        import ray

        ready, _ = ray.wait(list(self.questions), num_returns=len(self.questions), timeout=0)
        for reply in ready:
            entry = self.questions.pop(reply)
            try:
                ray.get(reply)
            except ray.exceptions.ActorUnavailableError:
                continue
            except ray.exceptions.RayError:  # the next answer is that of the new agent
                if entry.node.node_id not in self.entries:
                    continue
                entry.agent = self._agent_on(entry.node)
                continue
            entry.suspected_until = 0.0
        asked = {id(entry) for entry in self.questions.values()}
        for entry in self.usable():
            if entry.suspected_until > time.monotonic() and id(entry) not in asked:
                self.questions[entry.agent.machine.remote()] = entry

    def _announce_waits(self) -> None:
        """Name nodes on which cells wait for cores that others have pinned."""
        import ray

        ready, _ = ray.wait(list(self.waits), num_returns=len(self.waits), timeout=0)
        for reply in ready:
            entry = self.waits.pop(reply)
            with suppress(ray.exceptions.RayError):
                self.note_wait(entry, *ray.get(reply))
        if time.monotonic() - self.asked_waits_at >= WAIT_S:
            self.asked_waits_at = time.monotonic()
            self.waits = {entry.agent.waiting.remote(): entry for entry in self.usable()}

    def note_wait(self, entry: RosterEntry, cells: int, seconds: float) -> None:
        """Say it once when cells of a node have waited for long."""
        was_waiting, entry.is_waiting = entry.is_waiting, seconds >= WAIT_S
        if entry.is_waiting and not was_waiting:
            self.tell(
                f"node {entry.node.name}: {cells} cells have waited for cores for {seconds:.0f} s: "
                "other processes hold them (their locks are in $OPTBENCH_CORE_LOCKS, by default "
                "optbench-core-locks in the folder of temporary files)"
            )

    def others(self, node_id: str) -> bool:
        """Whether there is another node with the same CPU and GPU models."""
        mine = self.entries.get(node_id)
        return mine is not None and any(
            each is not mine and each.hardware == mine.hardware for each in self.usable()
        )

    def worked(self, node_id: str, work: CellWork) -> None:
        """Note that a cell was run on a node as it should: other work may still fail there."""
        if (entry := self.entries.get(node_id)) is not None:
            entry.strikes[work] = entry.strikes[None] = 0

    def strike(self, node_id: str, words: str, work: CellWork | None = None) -> None:
        """Note a failure that lies in a node; set the node aside after several in a row."""
        entry = self.entries.get(node_id)
        if entry is None:
            return
        entry.strikes[work] += 1
        if entry.strikes[work] >= STRIKES:
            cells = f"cells of {work.solver}" if work is not None and work.solver else "cells"
            what = f"is set aside: {STRIKES} {cells} in a row failed there ({words})"
            self._leave_out(entry, what)
            self.refused[node_id] = what

    def revive(self, node_id: str) -> bool:
        """Start a node's agent again if it has ended; return whether it had."""
        import ray

        entry = self.entries.get(node_id)
        if entry is None:
            return False
        try:
            ray.get(entry.agent.machine.remote(), timeout=LOOK_NODES_S)
        except ray.exceptions.GetTimeoutError:
            return False
        except ray.exceptions.RayError:
            entry.agent = self._agent_on(entry.node)
            return True
        return False

    def _leave_out(self, entry: RosterEntry, words: str) -> None:
        with self.lock:
            self.entries.pop(entry.node.node_id, None)
        self.connection.facts.pop(entry.node.node_id, None)
        self.tell(f"node {entry.node.name} {words}")

    def refuse_none(self) -> None:
        if not self.usable():
            raise ClusterError(
                "no node of the cluster can run cells: all were lost or set aside, or have no "
                "CPUs; finished cells are kept, and the same command continues from there"
            )

    def quiet(self, turn: int, patience_s: float) -> None:
        """Kill the cells of a turn on all nodes, and wait until none is left."""
        import ray

        asked = [entry.agent.quiet.remote(turn) for entry in self.usable()]
        if asked:
            ray.wait(asked, num_returns=len(asked), timeout=patience_s)

    def leave(self) -> None:
        """Ask the agents how long they have compiled, of which the longest counts, and end them."""
        self.compile_s = max([self.compile_s, *self._ask("leave")])


def _rank(comparison: str, hardware: Any, cpus: float) -> float:
    """Weighted rendezvous hashing: each kind of hardware gets its share of the comparisons, and
    one keeps its kind when others come or go, also in the next run.
    """
    digest = hashlib.sha256(f"{comparison}|{hardware}".encode()).digest()
    uniform = (int.from_bytes(digest[:8], "big") + 0.5) / 2**64
    return -cpus / math.log(uniform)
