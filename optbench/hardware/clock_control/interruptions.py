"""Signals that end a run, as a file to wait on: nothing is interrupted between a lock and its note.

SIGINT, SIGTERM and SIGHUP are noted, and whoever waits sees it at once. So is Ctrl-Z (SIGTSTP): a
process that is stopped would leave its clocks locked, so that it has to release them first. A
signal that the process ignores already stays ignored: `nohup` means that a hang-up ends nothing.
Writing to the terminal from the background (SIGTTOU) never stops the process. Used in the main
thread.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType

REFUSAL = b"optbench: Ctrl-Z is ignored: stopped, it would leave clocks locked; Ctrl-C ends it\n"
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruptions:
    """Whether a signal has arrived; ``handle`` is readable from then on."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self.number: int | None = None

        self.stop_wanted = False

    def note(self, number: int, frame: FrameType | None) -> None:
        del frame
        if number == signal.SIGTSTP:
            self.stop_wanted = True
        else:
            self.number = self.number or number

    def stop_here(self) -> None:
        """Stop the process, as Ctrl-Z would have; return when it is continued."""
        self.stop_wanted = False
        os.kill(os.getpid(), signal.SIGSTOP)
        # The bytes that woke us up are read; what ended the run meanwhile is in ``number``.
        with suppress(BlockingIOError):
            os.read(self.handle, 1 << 10)

    @property
    def name(self) -> str | None:
        """The first signal's name."""
        return None if self.number is None else signal.Signals(self.number).name


@contextmanager
def without_stopping() -> Iterator[None]:
    """Answer Ctrl-Z with words instead of stopping, where nothing else handles it."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGTSTP) != signal.SIG_DFL:
        yield
        return

    def answer(number: int, frame: FrameType | None) -> None:
        del number, frame
        # Not through sys.stderr, which may be in the middle of a line.
        with suppress(OSError):
            os.write(2, REFUSAL)

    signal.signal(signal.SIGTSTP, answer)
    try:
        yield
    finally:
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Put off Ctrl-C, a hang-up and a termination until the end of the block.

    Blocking them for a thread would not do: the kernel hands them to another one, and Python then
    still calls their handlers in the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []

    def put_off(number: int, frame: FrameType | None) -> None:
        del frame
        waiting.append(number)

    before = {
        number: handler
        for number in ENDING
        if (handler := signal.getsignal(number)) not in (signal.SIG_IGN, None)
    }
    try:
        for number in before:
            signal.signal(number, put_off)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for first in waiting[:1]:
            signal.raise_signal(first)


@contextmanager
def noting_signals() -> Iterator[Interruptions]:
    """Note the signals that would end the process, until the end of the block."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    noted = Interruptions(read)
    wakeup = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    before = {
        number: signal.signal(number, noted.note)
        for number in (*ENDING, signal.SIGTSTP)
        if signal.getsignal(number) != signal.SIG_IGN
    }
    before[signal.SIGTTOU] = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup)
        os.close(read)
        os.close(write)


def wait_for(handles: Mapping[str, int], until: float | None) -> frozenset[str]:
    """Names of the handles that are readable; none at the time ``until`` of ``time.monotonic``."""
    poll = select.poll()
    names: dict[int, str] = {}
    for name, handle in handles.items():
        poll.register(handle, select.POLLIN | select.POLLHUP)
        names[handle] = name
    # poll waits for whole milliseconds; rounded up, so that it does not spin before the time.
    left = None if until is None else max(0.0, until - time.monotonic()) * 1e3
    found = poll.poll(None if left is None else int(left) + (left % 1 > 0))
    return frozenset(names[handle] for handle, _ in found)
