"""The load of a calibration: a program that is started for every run and prints what it did.

A workload is a command with places for ``{device}``, ``{size}`` and ``{seconds}``. The program
works on the devices until it has done its work, or for about that many seconds, and prints at least
one line

    units=U seconds=S

with the units of work that all devices together did in the S seconds before the line. Lines may
come one by one: each is a measurement of its own, and other lines are ignored. A program should
flush its lines, since the time of the work is told by when they come.

No load outlives its run, which nobody would end while it heats a device. The program has a process
group of its own, with all that it starts; the group is ended before the program is collected, so
that its number cannot belong to others by then. If this process is killed, Linux kills the program,
and a guard the rest of the group: the guard reads the end of a pipe that nobody else holds.
"""

from __future__ import annotations

import ctypes
import math
import os
import re
import selectors
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO

from optbench.errors import OptbenchError, ParameterError, nearest

LINE = re.compile(r"\s*units=(\S*)\s+seconds=(\S*)\s*")
PLACE = re.compile(r"\{(\w*)\}")
PLACES = ("device", "size", "seconds")
# Characters of a program's own words that a message shows.
MOST_SHOWN = 300
# Seconds for a program to end after SIGTERM, before it is killed.
TO_END_S = 2.0
# A line may claim this much more time than the program has run, by its own clock.
CLOCK_SLACK_S = 0.05
# Seconds between two looks whether a program has ended.
LOOK_EVERY_S = 0.005
PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
DONE = b"done"
# The program's number comes first, from itself; without the last word the parent was killed.
GUARD = (
    "import os, signal, sys; said = sys.stdin.buffer.read().split(); "
    f"said and said[-1] != {DONE!r} and os.killpg(int(said[0]), signal.SIGKILL)"
)


class LoadError(OptbenchError):
    """A workload that cannot be started, fails, or prints nothing that can be used."""


@dataclass(frozen=True)
class LoadLine:
    """Units done in the ``seconds`` before the line came."""

    at_s: float  # time.monotonic
    units: float
    seconds: float

    @property
    def begin_s(self) -> float:
        return self.at_s - self.seconds


def check_workload(template: str) -> str:
    """Return the template of a workload if its places are known ones."""
    try:
        words = shlex.split(template)
    except ValueError as error:
        raise ParameterError(f"workload {template!r}: {error}; quote it as a shell would") from None
    if not words:
        raise ParameterError("workload is empty; give a command such as './load {device} {size}'")
    for name in PLACE.findall(template):
        if name not in PLACES:
            raise ParameterError(
                f"workload {template!r} has the place {{{name}}}; {nearest(name, PLACES)}"
            )
    if "{device}" not in template:
        raise ParameterError(
            f"workload {template!r} has no {{device}}; without it the program cannot know which "
            "devices are measured: write 'CMD {device} {size}'"
        )
    return template


def command_of(template: str, devices: str, size: int, seconds: float) -> list[str]:
    """The words of the command of one run."""
    values = {"device": devices, "size": str(size), "seconds": f"{seconds:g}"}
    return [PLACE.sub(lambda found: values[found[1]], word) for word in shlex.split(template)]


@dataclass
class RunningLoad:
    """A started program; ``lines_until`` reads what it prints meanwhile."""

    command: Sequence[str]
    process: subprocess.Popen[bytes]
    errors: IO[bytes]
    began_s: float
    rest: bytes = b""
    others: list[str] = field(default_factory=list)
    lines: list[LoadLine] = field(default_factory=list)
    ended: bool = False

    def read_until(self, until_s: float) -> None:
        """Take lines as they come until a time, or until the program has closed its output."""
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while not self.ended and (left := until_s - time.monotonic()) > 0:
                if not selector.select(left):
                    return
                chunk = os.read(self.process.stdout.fileno(), 65536)
                self._take(chunk, time.monotonic())
                self.ended = not chunk

    def _take(self, chunk: bytes, at_s: float) -> None:
        *whole, self.rest = (self.rest + (chunk or b"\n")).split(b"\n")
        for text in (line.decode(errors="replace") for line in whole):
            found = LINE.fullmatch(text)
            if found is not None:
                self.lines.append(self._line(text, found[1], found[2], at_s))
            elif text.strip():
                self.others = [*self.others[-4:], text]

    def _line(self, text: str, units: str, seconds: str, at_s: float) -> LoadLine:
        done, spent_s = _number(units), _number(seconds)
        if not (0 < done < math.inf and 0 < spent_s < math.inf):
            raise LoadError(
                f"{self.name} printed {text.strip()[:MOST_SHOWN]!r}; units and seconds must be "
                "positive numbers, as in 'units=120 seconds=4.2'"
            )
        if spent_s > at_s - self.began_s + CLOCK_SLACK_S:
            raise LoadError(
                f"{self.name} printed {text.strip()[:MOST_SHOWN]!r} after running for "
                f"{at_s - self.began_s:.3g} s; seconds are those of the counted work"
            )
        return LoadLine(at_s, done, spent_s)

    @property
    def name(self) -> str:
        return f"the workload `{shlex.join(self.command)}`"

    def check_end(self) -> None:
        """Wait for the program and refuse a failure, or an end without a result."""
        has_ended(self.process.pid, None)
        end_group(self.process)
        code = self.process.returncode
        if code != 0:
            how = f"ended with exit code {code}"
            if code < 0:
                how = f"was ended by {signal.Signals(-code).name}"
            raise LoadError(f"{self.name} {how}{self._said()}")
        if not self.lines:
            raise LoadError(
                f"{self.name} printed no line 'units=U seconds=S' (units of work done, and the "
                f"seconds they took){self._said()}"
            )

    def _said(self) -> str:
        self.errors.seek(0)
        words = self.errors.read().decode(errors="replace").strip() or "\n".join(self.others)
        return f"; it said: {words[-MOST_SHOWN:].strip()}" if words else "; it said nothing"


@contextmanager
def running_load(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[RunningLoad]:
    """Start a program in a process group of its own, which is ended with the context."""
    with tempfile.TemporaryFile() as errors, group_guard() as told:
        began_s = time.monotonic()
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **environment},
                start_new_session=True,
                preexec_fn=dying_with(os.getpid(), told),
            )
        except OSError as error:
            raise LoadError(
                f"the workload `{shlex.join(command)}` cannot be started: {error.strerror}: "
                f"{command[0]!r}; give the path of a program, or of a script with its interpreter"
            ) from None
        assert process.stdout is not None
        try:
            yield RunningLoad(command, process, errors, began_s)
        finally:
            end_group(process)
            process.stdout.close()


@contextmanager
def group_guard() -> Iterator[int]:
    """A process in a session of its own that kills the group of a load once this one is killed;
    yield the pipe that takes the number of the group."""
    guard = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", GUARD],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert guard.stdin is not None
    try:
        yield guard.stdin.fileno()
    finally:
        with suppress(BrokenPipeError):  # somebody has killed it
            os.write(guard.stdin.fileno(), DONE)
        guard.stdin.close()
        guard.wait()


def dying_with(parent: int, told: int) -> Callable[[], None]:
    """What a child runs before its program: it names itself to the guard, and Linux will kill it
    when this process dies."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)

    def tie() -> None:
        os.write(told, b"%d " % os.getpid())
        if prctl is not None:
            prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
            if os.getppid() != parent:
                os._exit(1)  # the parent died in between

    return tie


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a program and what it has started, and collect it, unless that has been done: from then
    on another group may have its number."""
    if process.returncode is not None:
        return
    for number, patience_s in ((signal.SIGTERM, TO_END_S), (signal.SIGKILL, None)):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        has_ended(process.pid, patience_s)
    process.wait()


def has_ended(pid: int, patience_s: float | None) -> bool:
    """Wait until a child has ended, without collecting it; None: as long as it takes."""
    look = os.WEXITED | os.WNOWAIT
    until = time.monotonic() + (patience_s or 0.0)
    try:
        if patience_s is None:
            return os.waitid(os.P_PID, pid, look) is not None
        while os.waitid(os.P_PID, pid, look | os.WNOHANG) is None:
            if time.monotonic() > until:
                return False
            time.sleep(LOOK_EVERY_S)
    except ChildProcessError:  # collected, since SIGCHLD is ignored
        pass
    return True


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
