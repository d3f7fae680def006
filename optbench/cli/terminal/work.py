"""Long work that Ctrl-C interrupts: it runs in a thread while the main thread waits for signals.

A termination does the same, and so does a hang-up of the terminal, unless it is ignored as under
``nohup``.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from typing import TypeVar

from optbench.cli.terminal import exits

T = TypeVar("T")
PATIENCE = (
    "optbench: stopping; the best schedule so far is kept (press Ctrl-C again to leave at once)\n"
)
WAKE_S = 0.1
# Wrappers such as timeout signal a process and then its group: a signal within this time is the
# same.
ONE_PRESS_S = 1.0
STDOUT, STDERR = 1, 2


def interruptible(work: Callable[..., T], keeps: bool = True, patience: str = PATIENCE) -> T:
    """The result of ``work(stop=stop)``. A signal sets ``stop``; a second one exits at once.

    Without ``keeps`` the work takes no ``stop``, and the first signal already exits at once.
    ``patience`` is the message printed after the first signal.

    Native solvers block the thread that calls them, and Python runs signal handlers in the main
    thread only. If the solver ran there, Ctrl-C would have no effect until it ends.
    """
    stop = threading.Event()
    if keeps:
        work = partial(work, stop=stop)
    if threading.current_thread() is not threading.main_thread():
        return work()

    asked_at = 0.0
    terminals = [handle for handle in (STDOUT, STDERR) if os.isatty(handle)]

    def interrupt(number: int, *_: object) -> None:
        nonlocal asked_at
        if number == signal.SIGHUP:
            write_nowhere(terminals)
        if not keeps:
            say("optbench: interrupted\n")
            os._exit(exits.INTERRUPTED)
        if not stop.is_set():
            asked_at = time.monotonic()
            stop.set()
            say(patience)
        elif number != signal.SIGHUP and time.monotonic() - asked_at > ONE_PRESS_S:
            os._exit(exits.INTERRUPTED)

    before = {number: signal.signal(number, interrupt) for number in ending_signals()}
    try:
        with ThreadPoolExecutor(1, "optbench-solve") as executor:
            future = executor.submit(work)
            while not future.done():
                wait([future], timeout=WAKE_S)
            return future.result()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def ending_signals() -> tuple[signal.Signals, ...]:
    """The signals that end the work. A hang-up that is ignored stays so: the work goes on."""
    always = (signal.SIGINT, signal.SIGTERM)
    ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return always if ignored else (*always, signal.SIGHUP)


def write_nowhere(terminals: Sequence[int]) -> None:
    """After a hang-up: writing to a terminal that has gone would be an error that ends the work."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for handle in terminals:
        os.dup2(nowhere, handle)
    os.close(nowhere)


def say(words: str) -> None:
    """Write to stderr, whether or not somebody still reads it."""
    with suppress(OSError):
        sys.stderr.write(words)
        sys.stderr.flush()
