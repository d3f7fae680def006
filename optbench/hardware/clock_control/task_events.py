"""Starts and ends of tasks, as another program reports them through a FIFO, a line each.

    start TASK      the next segment of the task starts now
    end TASK        its segment that runs ends now
    finish          nothing more will come: restore and leave

TASK is the task's name in the schedule, to the end of the line. Empty lines and lines that begin
with # are skipped. A line that is none of these, a task that the schedule does not have, a start of
a task that runs or has no segment left, and an end of one that does not run change nothing: they
are reported with their number and counted.
"""

from __future__ import annotations

import os
import stat
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from optbench.errors import OptbenchError, clipped
from optbench.hardware.clock_control.planned_clocks import ClockPlan, PlannedSegment

START, END, FINISH = "start", "end", "finish"
# POSIX writes no more than this to a FIFO in one piece.
MOST_LINE = 4096
# After the planned end of all tasks that run, their launcher may be silent this long.
SILENCE_S = 600.0


class EventFileError(OptbenchError):
    """The FIFO of events is missing, or something else."""


class EventError(OptbenchError):
    """A line that changes nothing; the message says why."""


@dataclass(frozen=True)
class TaskEvent:
    """A segment that starts or ends; None with ``finish``."""

    kind: str
    segment: PlannedSegment | None = None


@contextmanager
def open_fifo(path: Path) -> Iterator[int]:
    """The FIFO, open to read; writers may come and go."""
    try:
        if not stat.S_ISFIFO(path.stat().st_mode):
            raise EventFileError(f"--events {str(path)!r} is no FIFO; make one with `mkfifo PATH`")
        # Opened for writing too, so that it does not end when the last writer closes it.
        handle = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise EventFileError(
            f"--events {str(path)!r}: there is no such FIFO; make it with `mkfifo {path}`"
        ) from None
    except OSError as error:
        raise EventFileError(f"--events {str(path)!r}: {error.strerror}") from None
    try:
        yield handle
    finally:
        os.close(handle)


class EventLines:
    """Whole lines of the FIFO, with their numbers."""

    def __init__(self) -> None:
        self._rest, self._number = b"", 0

    def read(self, handle: int) -> list[tuple[int, bytes]]:
        """The lines that have become complete; longer ones than a FIFO takes at once are cut."""
        try:
            content = os.read(handle, 1 << 16)
        except BlockingIOError:
            return []
        *lines, rest = (self._rest + content).split(b"\n")
        # What is too long to be a line is not kept in memory.
        self._rest = rest[: MOST_LINE + 1]
        out = []
        for line in lines:
            self._number += 1
            out.append((self._number, line[: MOST_LINE + 1]))
        return out


class StartedTasks:
    """Which segment of each task runs, by the events so far."""

    def __init__(self, plan: ClockPlan) -> None:
        self._left: dict[str, list[PlannedSegment]] = defaultdict(list)
        for segment in reversed(plan.segments):
            self._left[segment.task].append(segment)
        self._running: dict[str, PlannedSegment] = {}
        # Segments with a clock that have not ended yet.
        self.clocks_left = len(plan.clocked)

    def take(self, line: bytes) -> TaskEvent | None:
        """The event of a line, None for one without; raise EventError where it changes nothing."""
        kind, task = parse_event(line)
        if kind in ("", FINISH):
            return TaskEvent(FINISH) if kind else None
        if task not in self._left:
            close = get_close_matches(task, self._left, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise EventError(f"the schedule has no task {clipped(task)!r}{hint}")
        if kind == START:
            if task in self._running:
                raise EventError(f"task {task!r} runs already")
            if not self._left[task]:
                raise EventError(f"task {task!r} has no segment left to start")
            self._running[task] = self._left[task].pop()
            return TaskEvent(START, self._running[task])
        if task not in self._running:
            raise EventError(f"task {task!r} does not run")
        ended = self._running.pop(task)
        self.clocks_left -= ended.clock is not None
        return TaskEvent(END, ended)


def parse_event(line: bytes) -> tuple[str, str]:
    """Kind and task of a line; both empty where it says nothing."""
    if len(line) > MOST_LINE:
        raise EventError(f"the line has more than {MOST_LINE:,} bytes")
    try:
        text = line.decode().strip()
    except UnicodeDecodeError as error:
        raise EventError(f"the line is not UTF-8 (byte {error.start})") from None
    if not text or text.startswith("#"):
        return "", ""
    kind, _, task = text.partition(" ")
    task = task.strip()
    if kind in (START, END) and task:
        return kind, task
    if kind == FINISH and not task:
        return kind, ""
    raise EventError(f"{clipped(text)!r} is no event; write `start TASK`, `end TASK` or `finish`")
