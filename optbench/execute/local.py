"""Run jobs on this machine: a zygote loads all and forks slots, which fork a child per job."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import IO, Any

from optbench.compiling.compile_meter import announce
from optbench.errors import OptbenchError
from optbench.execute.base import Job, JobOutcome
from optbench.execute.cell_energy import CellEnergies
from optbench.execute.limit_watch import MAIN_GRACE_S
from optbench.execute.memory import machine_mb
from optbench.execute.message_channel import MessageChannel
from optbench.execute.numba_cache import PluginCodeFolders
from optbench.execute.validate_answer import read_answer
from optbench.execute.zygote import ENVIRONMENT, SLOTS_END_S
from optbench.plugins.specs import name_of
from optbench.sandbox.process_tree import MAX_KILL_S, exit_words
from optbench.store.records import Reason
from optbench.study.declared import Study

START = "import sys, json; settings = json.loads(sys.argv[2]); sys.path[:] = settings['path']; \
from optbench.execute.zygote import main; main(int(sys.argv[1]), settings)"
# The share of the machine's memory that all cells together may use; seconds between two calls of
# ``stop``.
MEMORY_SHARE, LOOK_S = 0.9, 0.1
# A slot that has not answered this many seconds after its cell's limit was stopped or killed by the
# cell.
SILENCE_S = MAIN_GRACE_S + MAX_KILL_S + 5.0
# Processor time of a cell for which the study sets no limit: all threads for the whole time, and a
# margin.
CPU_SHARE, CPU_S = 1.1, 1.0


@dataclass(frozen=True)
class PreloadReport:
    """What the zygote loaded and compiled, and its threads, of which it should have none."""

    modules: int
    seconds: float
    threads: tuple[str, ...] = ()
    compile_s: float = 0.0


@dataclass
class _SlotHandle:
    """The runner's view of a slot."""

    name: int
    channel: MessageChannel
    pid: int | None = None
    job: Job | None = None
    sent_at: float = 0.0
    is_open: bool = True

    def is_silent(self) -> bool:
        """Whether the slot should have reported the end of its job long ago."""
        return (
            self.job is not None
            and time.monotonic() - self.sent_at > self.job.budget.hard_wall_s + SILENCE_S
        )


class LocalExecutor:
    """Runs ``jobs`` cells at a time. What the named plug-ins import is loaded once, when the first
    job has to be run: a finished study starts no process.

    ``sharing`` is the number of cells that share the machine's memory, including those of other
    executors. Without ``landlock`` cells are confined as on a kernel that lacks it.
    """

    def __init__(
        self,
        jobs: int = 1,
        solvers: Iterable[str] = (),
        problems: Iterable[str] = (),
        landlock: bool = True,
        sharing: int | None = None,
    ) -> None:
        self.jobs = jobs
        self.solvers, self.problems = sorted({*solvers}), sorted({*problems})
        self.landlock, self.sharing = landlock, max(jobs, sharing or 1)
        self.loaded: PreloadReport | None = None
        self.process: subprocess.Popen[bytes] | None = None
        self.slots: dict[int, _SlotHandle] = {}
        self.compiled, self.energies = PluginCodeFolders(), CellEnergies()
        self.ready, self.load, self.trouble = False, True, ""
        self.names = iter(range(1 << 62))
        # Jobs that follow others, the jobs that are followed, and the outcomes of those.
        self.next_jobs: list[Job] = []
        self.followed: dict[str, Job] = {}
        self.first: dict[str, JobOutcome] = {}

    @classmethod
    def for_study(cls, study: Study, jobs: int = 1, **options: Any) -> LocalExecutor:
        """Create an executor that loads what the plug-ins of a study need."""
        solvers = {entry.name for entry in study.solvers}
        return cls(jobs, solvers, set(map(name_of, study.problems)), **options)

    @property
    def compile_s(self) -> float:
        return 0.0 if self.loaded is None else self.loaded.compile_s

    def __enter__(self) -> LocalExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def run(
        self, jobs: Iterable[Job], stop: Callable[[], bool] = lambda: False
    ) -> Iterator[JobOutcome]:
        waiting = iter(jobs)
        first = next(waiting, None)
        if first is None or stop():
            return
        if self.process is None:
            self._start(load=True)
        waiting = chain([first], waiting)
        ended: list[JobOutcome] = []
        self.trouble = ""
        try:
            while True:
                # New jobs are sent to idle slots before the runner judges the jobs that ended.
                for slot in self.slots.values():
                    if slot.job is None and not stop():
                        job = self.next_jobs.pop(0) if self.next_jobs else next(waiting, None)
                        if job is not None:
                            self._send(slot, job)
                yield from ended
                self._raise_if_failed()
                if stop() or not any(slot.job for slot in self.slots.values()):
                    return
                ended = [
                    found
                    for each in self._read_messages(LOOK_S)
                    if (found := self._complete(each)) is not None
                ]
        finally:
            self._stop_all()
            for kept in (self.next_jobs, self.followed, self.first, self.energies):
                kept.clear()

    def _complete(self, outcome: JobOutcome) -> JobOutcome | None:
        """Return the outcome of a job and of the one that follows it; None while that has to run,
        which it does before the jobs that wait.
        """
        if outcome.key in self.first:
            return replace(self.first.pop(outcome.key), check=outcome)
        job = self.followed.pop(outcome.key, None)
        following = None if job is None or job.then is None else job.then(outcome)
        if following is None:
            return outcome
        self.first[outcome.key] = outcome
        self.next_jobs.append(following)
        return None

    def _raise_if_failed(self) -> None:
        """Raise when the machine starts no process, which is not a failure of a cell."""
        if self.trouble:
            raise OptbenchError(
                f"no cell can be started: {self.trouble}; finished cells are kept, and the same "
                "command continues from there"
            )

    def _start(self, load: bool) -> None:
        """Start a zygote and its slots; they answer once the zygote has loaded."""
        self.log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (closed by _end)
        self.ready, self.load = False, load
        mine, its = socket.socketpair()
        settings = {
            "path": sys.path,
            "solvers": self.solvers,
            "problems": self.problems,
            "preload": load,
        }
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", START, str(its.fileno()), json.dumps(settings)],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            env={**os.environ, **ENVIRONMENT},
            pass_fds=[its.fileno()],
            start_new_session=True,
        )
        its.close()
        self.control = MessageChannel(mine)
        for _ in range(self.jobs):
            self._add_slot()

    def _add_slot(self) -> _SlotHandle:
        mine, its = socket.socketpair()
        slot = _SlotHandle(next(self.names), MessageChannel(mine))
        self.slots[slot.name] = slot
        line = json.dumps({"slot": slot.name}).encode() + b"\n"
        # A dead slot is noticed in the next read.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError), its:
            socket.send_fds(self.control.socket, [line], [its.fileno()])
        return slot

    def _end(self) -> None:
        """Close every channel: slots kill their cells and end, and the zygote after them."""
        if self.process is None:
            return
        for slot in self.slots.values():
            slot.channel.close()
        self.slots.clear()
        self.control.close()
        if not self.ready:  # it is still loading and has no slots
            self.process.kill()
        try:
            self.process.wait(SLOTS_END_S + MAX_KILL_S + 5.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None
        self.energies.close()
        self.log.close()

    def _send(self, slot: _SlotHandle, job: Job) -> None:
        budget = job.budget
        limits = {
            "wall_s": budget.hard_wall_s,
            "cpu_s": budget.threads * budget.hard_wall_s * CPU_SHARE + CPU_S,
            "memory_mb": machine_mb() * MEMORY_SHARE / self.sharing,
            "processes": budget.max_processes,
        }
        given = {"cpu_s": budget.cpu_limit_s, "memory_mb": budget.memory_limit_mb}
        limits |= {name: limit for name, limit in given.items() if limit is not None}
        message = {
            "key": job.key,
            "kind": job.kind,
            "payload": dict(job.payload),
            "folder": str(job.folder.resolve()),
            "threads": budget.threads,
            "compiled": self.compiled.folder(job),
            "limits": limits,
            "landlock": self.landlock,
        }
        if job.then is not None:
            self.followed[job.key] = job
        self.energies.begin(job.key)
        slot.job, slot.sent_at = job, time.monotonic()
        slot.channel.send({"job": message})

    def _read_messages(self, timeout_s: float) -> list[JobOutcome]:
        """Read messages for at most ``timeout_s`` seconds; return the outcomes in them."""
        ends = [self.control, *(slot.channel for slot in self.slots.values() if slot.is_open)]
        ready, _, _ = select.select(ends, [], [], timeout_s)
        out = [
            found
            for slot in self.slots.values()
            if slot.channel in ready
            for found in self._read_slot(slot)
        ]
        if self.control in ready:
            out += self._read_zygote()
        for slot in self.slots.values():
            if self.ready and slot.pid is not None and slot.is_silent():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(slot.pid, signal.SIGKILL)
        return out

    def _read_slot(self, slot: _SlotHandle) -> list[JobOutcome]:
        messages = slot.channel.receive()
        if messages is None:  # the slot is dead: the zygote cleans up and reports it
            slot.is_open = False
            return []
        out = []
        for message in messages:
            job, slot.job = slot.job, None
            if "not_started" in message:
                self.trouble = message["not_started"]
            elif job is not None and "key" in message:
                energy = self.energies.end(job.key, message)
                out.append(replace(outcome(job, message), energy=energy))
        return out

    def _read_zygote(self) -> list[JobOutcome]:
        messages = self.control.receive()
        if messages is None:
            return self._start_again()
        out = []
        for message in messages:
            if "ready" in message:
                self.ready, self.loaded = True, PreloadReport(**message["ready"])
            elif "said" in message:
                announce(str(message["said"]))
            elif "slot" in message:
                slot = self.slots[message["slot"]]
                slot.pid = message["pid"]
                slot.sent_at = time.monotonic()  # a job sent earlier has waited for the libraries
            elif "gone" in message:
                slot = self.slots.pop(message["gone"])
                slot.channel.close()
                words = exit_words(os.waitstatus_to_exitcode(message["status"]))
                what = "the process that watched the cell was ended, probably by the cell"
                out += self._lost_job(slot, f"{what} ({words})")
                self._add_slot()
        return out

    def _start_again(self) -> list[JobOutcome]:
        """Replace a dead zygote and its slots; without libraries, if loading them ended it."""
        assert self.process is not None
        slots, was_ready, loading = list(self.slots.values()), self.ready, self.load
        words = self._last_words()
        self._end()
        if not was_ready and not loading:
            raise OptbenchError(
                f"the process that starts cells ended before the first ({words}); see `optbench "
                "doctor`"
            )
        self._start(load=was_ready and loading)
        out = []
        for old, new in zip(slots, list(self.slots.values()), strict=True):
            if was_ready:
                out += self._lost_job(
                    old, f"the process that starts cells was ended, probably by a cell ({words})"
                )
            elif old.job is not None:
                self._send(new, old.job)
        return out

    def _lost_job(self, slot: _SlotHandle, message: str) -> list[JobOutcome]:
        """Return the outcome of a job whose slot has ended."""
        if slot.job is None:
            return []
        self.energies.forget(slot.job.key)
        lasted_s = round(time.monotonic() - slot.sent_at, 6)
        return [JobOutcome(slot.job.key, None, Reason("signal", message), total_s=lasted_s)]

    def _last_words(self) -> str:
        assert self.process is not None
        code = self.process.wait()
        self.log.seek(0)
        lines = self.log.read().decode(errors="replace").strip().splitlines()
        return "; ".join([f"exit code {code}", *lines[-1:]])

    def _stop_all(self) -> None:
        """Kill running jobs; they yield no outcome."""
        busy = [slot for slot in self.slots.values() if slot.job is not None]
        if busy and not self.ready:
            self._end()
            return
        for slot in busy:
            slot.channel.send({"stop": True})
        deadline = time.monotonic() + MAX_KILL_S
        while any(slot.job for slot in self.slots.values()):
            self._read_messages(LOOK_S)
            if time.monotonic() > deadline:
                self._end()
                return


def outcome(job: Job, message: dict[str, Any]) -> JobOutcome:
    """Build the outcome from the slot's measurements and the answer that the cell wrote."""
    reason = message["reason"]
    found = Reason(*reason) if reason is not None else read_answer(job.folder)
    facts = {
        name: message[name]
        for name in ("total_s", "cpu_s", "peak_memory_mb", "output", "left_processes", "sandbox")
    }
    if isinstance(found, Reason):
        return JobOutcome(job.key, None, found, **facts)
    if found.get("refusal") == "memory_limit":
        return JobOutcome(
            job.key,
            None,
            Reason("memory_limit", f"{found.get('message')} ({message['memory']})"),
            **facts,
        )
    return JobOutcome(job.key, found, **facts)
