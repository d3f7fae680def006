"""Signals that end a run, as a file to wait on: nothing is interrupted between a lock and its note.

SIGINT, SIGTERM and SIGHUP are noted, and whoever waits sees it at once. Used in the main thread.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruptions:
    """Whether a signal has arrived; ``handle`` is readable from then on."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self.number: int | None = None

    def note(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.number = self.number or number

    @property
    def name(self) -> str | None:
        """The first signal's name."""
        return None if self.number is None else signal.Signals(self.number).name


@contextmanager
def noting_signals() -> Iterator[Interruptions]:
    """Note the signals that would end the process, until the end of the block."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    noted = Interruptions(read)
    wakeup = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    before = {number: signal.signal(number, noted.note) for number in ENDING}
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
