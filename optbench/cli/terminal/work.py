"""Long work that Ctrl-C interrupts: it runs in a thread while the main thread waits for signals."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
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

    def interrupt(*_: object) -> None:
        nonlocal asked_at
        if not keeps:
            sys.stderr.write("optbench: interrupted\n")
            sys.stderr.flush()
            os._exit(exits.INTERRUPTED)
        if not stop.is_set():
            asked_at = time.monotonic()
            stop.set()
            sys.stderr.write(patience)
        elif time.monotonic() - asked_at > ONE_PRESS_S:
            os._exit(exits.INTERRUPTED)

    before = {
        number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        with ThreadPoolExecutor(1, "optbench-solve") as executor:
            future = executor.submit(work)
            while not future.done():
                wait([future], timeout=WAKE_S)
            return future.result()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
