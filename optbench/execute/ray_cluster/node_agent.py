"""The agent of a node: it holds the pool of processes that run cells there, for one driver.

It is an actor without cores of its own, which ends with the driver. Leases, which are tasks that
hold the cores, memory and GPUs of one cell, reach it through a socket and give it a secret that
cells cannot read. Where a lease ends, for any reason, its cell is killed.
"""

from __future__ import annotations

import hmac
import os
import queue
import secrets
import socket
import threading
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from optbench.errors import OptbenchError
from optbench.execute.base import CellPlacement, Job
from optbench.execute.cell_pool import LOOK_S, CellPool, EndedJob, SlotHandle
from optbench.execute.message_channel import MessageChannel
from optbench.execute.ray_cluster.agent_socket import (
    is_from_a_cell,
    private_folder,
    remove_dead_sockets,
    socket_path,
)
from optbench.execute.ray_cluster.core_pins import CorePins
from optbench.execute.ray_cluster.node_facts import usable_cores
from optbench.execute.ray_cluster.travelling_files import ContentCache
from optbench.sandbox.job_folder import remove_folder
from optbench.sandbox.process_tree import MAX_KILL_S
from optbench.store.locks import work_folder
from optbench.store.records import machine
from optbench.study.declared import CellBudget

# Variables of Ray's own processes, which cells do not see.
RAY_VARIABLES = "RAY_"
WORK, GUARD = "work", "guard"
# The first message of a lease is the secret, and no longer than this.
MAX_GREETING = 1000
# Connections may be silent for so many seconds, and so many at once.
GREETING_S, MOST_SILENT = 10.0, 64


@dataclass(frozen=True)
class AgentSettings:
    """What an agent is told: the plug-ins to load, and the secret that leases show."""

    secret: str
    solvers: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    landlock: bool = True


def new_secret() -> str:
    return secrets.token_hex(16)


def cell_environment() -> dict[str, str]:
    """Return this process's environment without what is Ray's, its token among it."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(RAY_VARIABLES) and name != "LD_PRELOAD"
    }


class NodeAgent:
    """The actor: its methods are called by the driver, its loop serves the leases."""

    def __init__(self, settings: AgentSettings, node_id: str) -> None:
        self.loop = LeaseLoop(settings, socket_path(settings.secret, node_id))
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        """Serve; this process ends with the loop, so that nobody takes it for an agent."""
        try:
            self.loop.serve()
        finally:
            if not self.loop.leaving:
                traceback.print_exc()
                os._exit(1)

    def machine(self) -> dict[str, Any]:
        """Return the machine's description for records."""
        return dict(machine())

    def waiting(self) -> tuple[int, float]:
        """Return how many leases wait for cores that others hold, and the longest for how long."""
        return self.loop.waiting()

    def leave(self) -> float:
        """Remove what lies in this machine's temporary folder; return the seconds of compiling
        before the first cell.
        """
        loaded = self.loop.pool.loaded
        self.loop.leave()
        self.thread.join(MAX_KILL_S)
        return 0.0 if loaded is None else loaded.compile_s

    def quiet(self, turn: int) -> bool:
        """Kill the cells of this turn and earlier ones; return whether none is left."""
        done = threading.Event()
        self.loop.order(turn, done)
        return done.wait(2 * MAX_KILL_S)


@dataclass
class LeaseEnd:
    """The agent's end of a lease; its job as it arrived, until there are cores, and then as run."""

    channel: MessageChannel
    opened_at: float
    given: Mapping[str, Any] | None = None
    given_at: float = 0.0
    job: Job | None = None
    turn: int = 0
    is_trusted: bool = False


class LeaseLoop:
    """Serves leases in one thread: gives their jobs to slots and sends back how they ended."""

    def __init__(self, settings: AgentSettings, path: Path) -> None:
        self.secret, self.cache, self.path = settings.secret, ContentCache(), path
        self.pool = CellPool(
            settings.solvers,
            settings.problems,
            settings.landlock,
            compiled=self.cache.compiled,
            environment=cell_environment(),
        )
        path.unlink(missing_ok=True)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(256)
        self.bell, self.ring = socket.socketpair()
        self.orders: queue.SimpleQueue[tuple[int, threading.Event]] = queue.SimpleQueue()
        self.pending: list[tuple[float, threading.Event]] = []
        self.leases: list[LeaseEnd] = []
        self.abandoned: list[Job] = []
        self.pinned: list[tuple[Job, CorePins]] = []
        self.quiet_turn = 0
        self.leaving = False

    def order(self, turn: int, done: threading.Event) -> None:
        """Have the loop kill the cells of a turn, from another thread."""
        self.orders.put((turn, done))
        self.ring.send(b"!")

    def leave(self) -> None:
        """Have the loop end, from another thread."""
        self.leaving = True
        self.ring.send(b"!")

    def waiting(self) -> tuple[int, float]:
        """Return how many leases wait for cores, and how many seconds the first has waited."""
        since = [each.given_at for each in list(self.leases) if each.given is not None]
        return len(since), time.monotonic() - min(since) if since else 0.0

    def serve(self) -> None:
        """Serve until this process ends, or no process can be started here."""
        private = private_folder()
        (private / WORK).mkdir(exist_ok=True)
        remove_dead_sockets()
        self.cache.remove_unused()
        try:
            with work_folder(private / WORK, private / GUARD) as self.folder:
                self.pool.start()
                while not self.leaving:
                    self._serve_once()
        except OptbenchError as error:
            for lease in self.leases:
                lease.channel.send({"refused": str(error)})
        finally:
            self.pool.end()
            self.listener.close()
            self.path.unlink(missing_ok=True)

    def _serve_once(self) -> None:
        ends = [self.listener, self.bell, *(lease.channel for lease in self.leases)]
        ended, ready = self.pool.read_with(LOOK_S, ends)
        for each in ended:
            self._report(each)
        if self.listener in ready:
            self._accept()
        for lease in [lease for lease in self.leases if lease.channel in ready]:
            self._read(lease)
        if self.bell in ready:
            self.bell.recv(4096)
        while not self.orders.empty():
            self._obey(*self.orders.get())
        self._finish_orders()
        self._remove_abandoned()
        self._begin_given()
        self._refuse_silent()

    def _accept(self) -> None:
        """Take a connection, but none of a cell."""
        with suppress(OSError):  # no descriptor is left, or the other end has gone
            end = self.listener.accept()[0]
            if is_from_a_cell(end):
                end.close()
                return
            self.leases.append(LeaseEnd(MessageChannel(end), time.monotonic()))

    def _refuse_silent(self) -> None:
        """Close connections that have not shown the secret: old ones, and more than a few."""
        silent = [lease for lease in self.leases if not lease.is_trusted]
        before = time.monotonic() - GREETING_S
        for k, lease in enumerate(silent):
            if lease.opened_at < before or k < len(silent) - MOST_SILENT:
                self._drop(lease)

    def _read(self, lease: LeaseEnd) -> None:
        """Take a lease's job, or kill its cell if the lease has ended."""
        try:
            messages = lease.channel.receive()
        except (ValueError, RecursionError):  # no JSON of a lease
            messages = None
        is_flood = not lease.is_trusted and lease.channel.incomplete_bytes > MAX_GREETING
        if messages is None or is_flood:
            self._drop(lease)
            return
        for message in messages:
            if not lease.is_trusted:
                lease.is_trusted = self._is_greeting(message)
                if not lease.is_trusted:
                    self._drop(lease)
                    return
            elif message["turn"] <= self.quiet_turn:
                lease.channel.send({"refused": "the driver has stopped"})
            else:
                lease.given, lease.given_at = message, time.monotonic()
                lease.turn = message["turn"]

    def _is_greeting(self, message: Any) -> bool:
        given = message.get("secret") if isinstance(message, dict) else None
        return isinstance(given, str) and hmac.compare_digest(given.encode(), self.secret.encode())

    def _begin_given(self) -> None:
        """Begin jobs in the order of their arrival, each on cores that nobody else holds."""
        for lease in [each for each in self.leases if each.given is not None]:
            assert lease.given is not None
            try:
                pins = CorePins()
                if not pins.take(lease.given["job"]["budget"]["threads"], usable_cores()):
                    return
            except (OSError, OptbenchError) as error:
                lease.given = None
                lease.channel.send({"refused": str(error)})
                continue
            self._begin(lease, lease.given, pins)
            lease.given = None

    def _begin(self, lease: LeaseEnd, message: Mapping[str, Any], pins: CorePins) -> None:
        """Run a job; its cores are held until no process of it is left."""
        job = job_from(message["job"], self.folder / secrets.token_hex(6))
        placement = CellPlacement(pins.cores, tuple(message["gpus"]), message["network"])
        self.pinned.append((job, pins))
        lease.job = job
        self.pool.send(self._idle_slot(), job, placement)

    def _idle_slot(self) -> SlotHandle:
        for slot in self.pool.slots.values():
            if slot.job is None and slot.is_open:
                return slot
        return self.pool.add_slot()

    def _report(self, ended: EndedJob) -> None:
        """Send back how a job ended; the lease reads its answer and removes the folder."""
        for lease in self.leases:
            if lease.job is ended.job:
                lease.channel.send(
                    {
                        "message": ended.message,
                        "lost": ended.lost,
                        "total_s": ended.total_s,
                        "folder": str(ended.job.folder),
                        "machine": machine(),
                    }
                )
                lease.job = None
                return
        remove_folder(ended.job.folder)

    def _drop(self, lease: LeaseEnd) -> None:
        lease.channel.close()
        self.leases.remove(lease)
        if lease.job is not None:
            self._kill(lease.job)

    def _kill(self, job: Job) -> None:
        self.abandoned.append(job)
        for slot in self.pool.busy:
            if slot.job is job:
                slot.channel.send({"stop": True})

    def _obey(self, turn: int, done: threading.Event) -> None:
        self.quiet_turn = max(self.quiet_turn, turn)
        for lease in list(self.leases):
            if (lease.job or lease.given) and lease.turn <= turn:
                self._drop(lease)
        self.pending.append((time.monotonic() + MAX_KILL_S, done))

    def _finish_orders(self) -> None:
        """Answer orders once no cell is left; a pool that cannot end one is replaced."""
        if self.pending and self.pool.busy and time.monotonic() > self.pending[0][0]:
            self.pool.end()
            self.pool.start()
        if not self.pool.busy:
            for _, done in self.pending:
                done.set()
            self.pending.clear()

    def _remove_abandoned(self) -> None:
        """Give back the cores of jobs that have ended, and remove the folders of killed ones."""
        running = {id(slot.job) for slot in self.pool.busy}
        for job, pins in [each for each in self.pinned if id(each[0]) not in running]:
            pins.close()
            self.pinned.remove((job, pins))
        for job in [job for job in self.abandoned if id(job) not in running]:
            remove_folder(job.folder)
            self.abandoned.remove(job)


def job_to(job: Job, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job as JSON, with this payload and without its folder."""
    return {
        "key": job.key,
        "kind": job.kind,
        "payload": dict(payload),
        "budget": asdict(job.budget),
    }


def job_from(data: Mapping[str, Any], folder: Path) -> Job:
    budget = CellBudget.from_dict(data["budget"])
    return Job(data["key"], data["kind"], data["payload"], budget, folder)


def with_memory(job: Job, memory_mb: float) -> Job:
    """Return the job with a limit of memory if the study sets none."""
    if job.budget.memory_limit_mb is not None:
        return job
    return replace(job, budget=replace(job.budget, memory_limit_mb=memory_mb))
