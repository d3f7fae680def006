"""The processes of one machine that run cells: a zygote that has loaded all, and slots that it
forked, which fork a child per job.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from optbench.compiling.compile_meter import announce
from optbench.errors import OptbenchError
from optbench.execute.base import CellPlacement, Job, JobOutcome
from optbench.execute.cell_energy import CellEnergies
from optbench.execute.limit_watch import MAIN_GRACE_S
from optbench.execute.memory import machine_mb
from optbench.execute.message_channel import MessageChannel
from optbench.execute.numba_cache import PluginCodeFolders
from optbench.execute.validate_answer import read_answer
from optbench.execute.zygote import ENVIRONMENT, SLOTS_END_S
from optbench.sandbox.process_tree import MAX_KILL_S, exit_words
from optbench.store.records import Reason

START = "import sys, json; settings = json.loads(sys.argv[2]); sys.path[:] = settings['path']; \
from optbench.execute.zygote import main; main(int(sys.argv[1]), settings)"
# The share of the machine's memory that all cells together may use; seconds between two looks at
# the slots while they are stopped.
MEMORY_SHARE, LOOK_S = 0.9, 0.1
# A slot that has not answered this many seconds after its cell's limit was stopped or killed by the
# cell.
SILENCE_S = MAIN_GRACE_S + MAX_KILL_S + 5.0
# Processor time of a cell for which the study sets no limit: all threads for the whole time, and a
# margin.
CPU_SHARE, CPU_S = 1.1, 1.0
# What a slot measures of a job.
MEASURED = (
    "total_s",
    "cpu_s",
    "peak_memory_mb",
    "output",
    "left_processes",
    "sandbox",
    "energy",
)


@dataclass(frozen=True)
class PreloadReport:
    """What the zygote loaded and compiled, and its threads, of which it should have none."""

    modules: int
    seconds: float
    threads: tuple[str, ...] = ()
    compile_s: float = 0.0


@dataclass
class SlotHandle:
    """The view of a slot from outside."""

    name: int
    channel: MessageChannel
    pid: int | None = None
    job: Job | None = None
    placement: CellPlacement = field(default_factory=CellPlacement)
    sent_at: float = 0.0
    is_open: bool = True

    def is_silent(self) -> bool:
        """Whether the slot should have reported the end of its job long ago."""
        return (
            self.job is not None
            and time.monotonic() - self.sent_at > self.job.budget.hard_wall_s + SILENCE_S
        )


@dataclass(frozen=True)
class EndedJob:
    """A job that a slot no longer runs: the slot's measurements, or how the job was lost."""

    slot: int
    job: Job
    message: Mapping[str, Any] | None
    lost: str = ""
    total_s: float = 0.0

    @property
    def not_started(self) -> str:
        """Why the machine could not start the cell; empty where it could."""
        return "" if self.message is None else str(self.message.get("not_started", ""))

    def outcome(self) -> JobOutcome:
        """Return the outcome, with the answer that the cell wrote."""
        if self.message is None:
            reason = Reason("signal", self.lost)
            return JobOutcome(self.job.key, None, reason, total_s=self.total_s)
        return outcome(self.job, self.message)


class CellPool:
    """A zygote and its slots. What the named plug-ins import is loaded once, by the zygote.

    ``sharing`` is the number of cells that share the machine's memory. Without ``landlock`` cells
    are confined as on a kernel that lacks it. ``compiled`` is the folder of compiled code, by
    default the workspace's.
    """

    def __init__(
        self,
        solvers: Iterable[str] = (),
        problems: Iterable[str] = (),
        landlock: bool = True,
        sharing: int = 1,
        compiled: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.solvers, self.problems = sorted({*solvers}), sorted({*problems})
        self.landlock, self.sharing = landlock, sharing
        self.environment = environment
        self.loaded: PreloadReport | None = None
        self.process: subprocess.Popen[bytes] | None = None
        self.slots: dict[int, SlotHandle] = {}
        self.compiled, self.energies = PluginCodeFolders(compiled), CellEnergies(environment)
        self.ready, self.load = False, True
        self.names = iter(range(1 << 62))

    @property
    def busy(self) -> list[SlotHandle]:
        return [slot for slot in self.slots.values() if slot.job is not None]

    def start(self, load: bool = True) -> None:
        """Start a zygote; slots answer once it has loaded."""
        self.log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (closed by end)
        self.ready, self.load = False, load
        mine, its = socket.socketpair()
        settings = {
            "path": sys.path,
            "solvers": self.solvers,
            "problems": self.problems,
            "preload": load,
        }
        inherited = os.environ if self.environment is None else self.environment
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", START, str(its.fileno()), json.dumps(settings)],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            env={**inherited, **ENVIRONMENT},
            pass_fds=[its.fileno()],
            start_new_session=True,
        )
        its.close()
        self.control = MessageChannel(mine)

    def add_slot(self) -> SlotHandle:
        """Have the zygote fork one more slot."""
        mine, its = socket.socketpair()
        slot = SlotHandle(next(self.names), MessageChannel(mine))
        self.slots[slot.name] = slot
        line = json.dumps({"slot": slot.name}).encode() + b"\n"
        # A dead slot is noticed in the next read.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError), its:
            socket.send_fds(self.control.socket, [line], [its.fileno()])
        return slot

    def end(self) -> None:
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

    def send(self, slot: SlotHandle, job: Job, placement: CellPlacement | None = None) -> None:
        """Have a slot run a job."""
        budget, placed = job.budget, placement or CellPlacement()
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
            "placement": placed.to_dict(),
        }
        self.energies.begin(job.key, placed.gpus, lambda: slot.pid)
        slot.job, slot.placement, slot.sent_at = job, placed, time.monotonic()
        slot.channel.send({"job": message})

    def read(self, timeout_s: float) -> list[EndedJob]:
        """Read messages for at most ``timeout_s`` seconds; return the jobs that ended."""
        return self.read_with(timeout_s, ())[0]

    def read_with(
        self, timeout_s: float, others: Collection[Any]
    ) -> tuple[list[EndedJob], list[Any]]:
        """The same, less long if one of these other files is readable; return those that are."""
        ends = [self.control, *(slot.channel for slot in self.slots.values() if slot.is_open)]
        ready = _readable([*ends, *others], timeout_s)
        out = [
            found
            for slot in self.slots.values()
            if slot.channel in ready
            for found in self._read_slot(slot)
        ]
        if self.control in ready:
            out += self.read_zygote()
        for slot in self.slots.values():
            if self.ready and slot.pid is not None and slot.is_silent():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(slot.pid, signal.SIGKILL)
        return out, [each for each in others if each in ready]

    def _read_slot(self, slot: SlotHandle) -> list[EndedJob]:
        messages = slot.channel.receive()
        if messages is None:  # the slot is dead: the zygote cleans up and reports it
            slot.is_open = False
            return []
        out = []
        for message in messages:
            job, slot.job = slot.job, None
            if job is not None:
                energy = self.energies.end(job.key, message)
                if "key" in message:
                    out.append(EndedJob(slot.name, job, {**message, "energy": energy}))
        return out

    def read_zygote(self) -> list[EndedJob]:
        """Read the zygote's messages; return the jobs that were lost with their slots."""
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
                self.add_slot()
        return out

    def _start_again(self) -> list[EndedJob]:
        """Replace a dead zygote and its slots; without libraries, if loading them ended it."""
        assert self.process is not None
        slots, was_ready, loading = list(self.slots.values()), self.ready, self.load
        words = self._last_words()
        self.end()
        if not was_ready and not loading:
            raise OptbenchError(
                f"the process that starts cells ended before the first ({words}); see `optbench "
                "doctor`"
            )
        self.start(load=was_ready and loading)
        out = []
        for old in slots:
            new = self.add_slot()
            if was_ready:
                out += self._lost_job(
                    old, f"the process that starts cells was ended, probably by a cell ({words})"
                )
            elif old.job is not None:
                self.send(new, old.job, old.placement)
        return out

    def _lost_job(self, slot: SlotHandle, message: str) -> list[EndedJob]:
        """Return the job of a slot that has ended."""
        if slot.job is None:
            return []
        self.energies.forget(slot.job.key)
        total_s = round(time.monotonic() - slot.sent_at, 6)
        return [EndedJob(slot.name, slot.job, None, message, total_s)]

    def _last_words(self) -> str:
        assert self.process is not None
        code = self.process.wait()
        self.log.seek(0)
        lines = self.log.read().decode(errors="replace").strip().splitlines()
        return "; ".join([f"exit code {code}", *lines[-1:]])

    def stop(self, slots: Sequence[SlotHandle] | None = None) -> None:
        """Kill the running jobs of these slots, by default of all; they end without a report."""
        chosen = self.busy if slots is None else [slot for slot in slots if slot.job is not None]
        if chosen and not self.ready:
            self.end()
            return
        for slot in chosen:
            slot.channel.send({"stop": True})
        deadline = time.monotonic() + MAX_KILL_S
        while any(slot.job for slot in chosen if slot.name in self.slots):
            self.read(LOOK_S)
            if time.monotonic() > deadline:
                self.end()
                return


def _readable(ends: Sequence[Any], timeout_s: float) -> list[Any]:
    """Return those that can be read or have ended; ``select`` would refuse large descriptors."""
    watched = select.poll()
    for end in ends:
        watched.register(end, select.POLLIN)
    found = {descriptor for descriptor, _ in watched.poll(math.ceil(timeout_s * 1000))}
    return [end for end in ends if end.fileno() in found]


def outcome(job: Job, message: Mapping[str, Any]) -> JobOutcome:
    """Build the outcome from the slot's measurements and the answer that the cell wrote."""
    reason = message["reason"]
    found = Reason(*reason) if reason is not None else read_answer(job.folder)
    facts = {name: message[name] for name in MEASURED}
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
