"""Watch one cell: measure its process tree, detect exceeded limits, report how it ended."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optbench.execute.memory import TreeMemory
from optbench.execute.tasks import ANSWER, mentions_out_of_memory
from optbench.sandbox import process_tree
from optbench.sandbox.system_calls import IS_LINUX

# Seconds between two measurements, by the age of the cell: a young cell may be a fork bomb, an old
# one should not be disturbed.
LOOKS = ((1.0, 0.01), (10.0, 0.02), (float("inf"), 0.05))
SLOW_LOOK_S = 0.25  # where each measurement lists all processes of the machine
# Seconds that a cell may take to end after its answer, and its helper processes (queues, resource
# trackers) after the cell.
MAIN_GRACE_S, HELPERS_GRACE_S = 2.0, 0.2
OUTPUT_TAIL, MAX_OUTPUT, MAX_LINE = 20_000, 8 << 20, 300


@dataclass(frozen=True)
class ProcessLimits:
    """Limits on the whole process tree of a cell."""

    wall_s: float
    cpu_s: float
    memory_mb: float
    processes: int


@dataclass(frozen=True)
class Baseline:
    """Memory of the slot at the fork, which the cell shares and which is not counted as its own."""

    memory_mb: float
    rss_mb: float


@dataclass
class CellUsage:
    """The resources that a cell has used so far, and how it ended."""

    cpu_s: float = 0.0
    reaped_cpu_s: float = 0.0
    peak_memory_mb: float = 0.0
    processes: int = 0
    status: int | None = None
    ended_at: float | None = None
    answered_at: float | None = None
    reason: tuple[str, str] | None = None


class LimitWatch:
    """Watches a cell from its fork to the end of its last descendant, in a slot without others."""

    def __init__(
        self,
        main: int,
        folder: Path,
        output: int,
        limits: ProcessLimits,
        baseline: Baseline,
        files: Iterable[int],
    ) -> None:
        self.main, self.output, self.limits, self.baseline = main, output, limits, baseline
        self.answer = folder / ANSWER
        self.began = time.monotonic()
        self.seen = CellUsage()
        self.memory = TreeMemory(baseline.memory_mb, limits.memory_mb)
        self.poller = select.poll()
        self.handle = _handle(main)
        for file in (*files, *(() if self.handle is None else (self.handle,))):
            self.poller.register(file, select.POLLIN)

    def wait(self) -> list[int]:
        """Wait for the next measurement, the cell's end or a file; return the readable files."""
        return [
            file for file, _ in self.poller.poll(self._interval_s() * 1000) if file != self.handle
        ]

    def close(self) -> None:
        if self.handle is not None:
            self.poller.unregister(self.handle)
            os.close(self.handle)
            self.handle = None

    def _interval_s(self) -> float:
        if not IS_LINUX:
            return SLOW_LOOK_S
        if self.seen.ended_at is not None:
            return 0.002
        age = time.monotonic() - self.began
        return next(seconds for until, seconds in LOOKS if age < until)

    def poll(self) -> bool:
        """Measure the process tree; return whether all has ended or the rest must be killed."""
        seen, now = self.seen, time.monotonic()
        ended = process_tree.reap()
        self.account(ended or [])
        if seen.status is not None:
            return self._is_over(now)
        self._cap_output()
        if seen.answered_at is None and self.answer.exists():
            seen.answered_at = now
        if seen.answered_at is not None and now - seen.answered_at > MAIN_GRACE_S:
            return True
        seen.reason = self._exceeded(now - self.began)
        return seen.reason is not None

    def _is_over(self, now: float) -> bool:
        """Whether the wait for the helpers of a cell that has ended is over."""
        self.close()
        self.seen.ended_at = self.seen.ended_at or now
        alive = self._alive()
        if not alive or not self.answer.exists() or len(alive) > self.limits.processes:
            return True
        return now - self.seen.ended_at > HELPERS_GRACE_S

    def account(self, ended: list[process_tree.EndedProcess]) -> None:
        """Add the usage of reaped children: the cell itself, or orphaned descendants."""
        for child in ended:
            self.seen.reaped_cpu_s += child.cpu_s
            if child.pid == self.main:
                self.seen.status = child.status
                self.seen.peak_memory_mb = max(
                    self.seen.peak_memory_mb, child.max_rss_mb - self.baseline.rss_mb
                )
        self.seen.cpu_s = max(self.seen.cpu_s, self.seen.reaped_cpu_s)

    def _alive(self) -> list[int]:
        return [pid for pid in process_tree.descendants(os.getpid()) if process_tree.is_alive(pid)]

    def _exceeded(self, age_s: float) -> tuple[str, str] | None:
        """Return the first limit that the process tree exceeds, with a message."""
        limits, seen = self.limits, self.seen
        if age_s > limits.wall_s:
            return "time_limit", f"still at work after {limits.wall_s:g} s; killed"
        pids = process_tree.descendants(os.getpid())
        if len(pids) > limits.processes:
            return (
                "process_limit",
                (
                    f"{len(pids)} processes; {limits.processes} processes and threads are allowed; "
                    "killed"
                ),
            )
        used = [found for pid in pids if (found := process_tree.usage(pid)) is not None]
        threads = sum(each.threads for each in used)
        seen.processes = max(seen.processes, threads)
        if threads > limits.processes:
            return (
                "process_limit",
                f"{threads} processes and threads; {limits.processes} are allowed; killed",
            )
        seen.cpu_s = max(seen.cpu_s, seen.reaped_cpu_s + sum(each.cpu_s for each in used))
        if seen.cpu_s > limits.cpu_s:
            return (
                "cpu_limit",
                f"{seen.cpu_s:.1f} s of processor time; {limits.cpu_s:g} s are allowed; killed",
            )
        memory_mb = self.memory.of(used)
        seen.peak_memory_mb = max(seen.peak_memory_mb, memory_mb)
        if memory_mb > limits.memory_mb:
            return (
                "memory_limit",
                f"{memory_mb:.0f} MB of memory; {limits.memory_mb:.0f} MB are allowed; killed",
            )
        return None

    def _cap_output(self) -> None:
        """Drop the middle of an output that is too long, so that it cannot fill the disk."""
        if os.fstat(self.output).st_size > MAX_OUTPUT:
            os.ftruncate(self.output, 0)

    def finish(self) -> dict[str, Any]:
        """Kill what is still running and return the outcome of the cell."""
        seen = self.seen
        total_s = (seen.ended_at or time.monotonic()) - self.began
        answered = seen.reason is None and (
            seen.answered_at is not None or (seen.status is not None and self.answer.exists())
        )
        left = len([pid for pid in self._alive() if pid != self.main]) if answered else 0
        ended, stuck = process_tree.kill_tree()
        self.account(ended)
        if not IS_LINUX:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.main, signal.SIGKILL)
        if stuck:
            seen.reason = seen.reason or (
                "left_processes",
                f"{stuck} processes cannot be killed: they are stuck in the kernel",
            )
        output = self._output_tail()
        return {
            "reason": seen.reason or (None if answered else self._without_answer(output)),
            "total_s": round(total_s, 6),
            "cpu_s": round(seen.cpu_s, 6),
            "peak_memory_mb": round(max(0.0, seen.peak_memory_mb), 3),
            "output": output,
            "left_processes": left,
        }

    def _output_tail(self) -> str:
        size = os.fstat(self.output).st_size
        return os.pread(self.output, OUTPUT_TAIL, max(0, size - OUTPUT_TAIL)).decode(
            errors="replace"
        )

    def _without_answer(self, output: str) -> tuple[str, str]:
        """Explain a missing answer by the end of the process and its last line of output."""
        status, last = self.seen.status or 0, most_telling_line(output)
        said = f"; its last line: {last}" if last else ""
        if not os.WIFSIGNALED(status):
            return (
                "exited",
                f"exit code {os.waitstatus_to_exitcode(status)}, without an answer{said}",
            )
        number = os.WTERMSIG(status)
        if number == signal.SIGXCPU:
            return (
                "cpu_limit",
                f"{self.seen.cpu_s:.1f} s of processor time; {self.limits.cpu_s:g} s are allowed",
            )
        if mentions_out_of_memory(output[-2000:]) and number in (
            signal.SIGABRT,
            signal.SIGSEGV,
            signal.SIGBUS,
        ):
            return (
                "memory_limit",
                f"memory could not be allocated ({self.limits.memory_mb:.0f} MB are allowed){said}",
            )
        return "signal", f"ended by signal {number} ({_signal_name(number)}){said}"


def most_telling_line(output: str) -> str:
    """Return the first line of Python's fault handler if there is one, otherwise the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    candidates = [line for line in lines if line.startswith("Fatal Python error")] or lines
    return candidates[-1][:MAX_LINE] if candidates else ""


def _signal_name(number: int) -> str:
    """Return the name of a signal, such as SIGKILL."""
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time signals have no names
        return "no name"


def _handle(pid: int) -> int | None:
    """Return a file that becomes readable when the process ends, on systems that have one."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
