"""Measure the seconds that this process spends compiling, and announce when compiling begins and
ends. numba is not imported here.

Compiling is never charged to a budget: ``kernel_table.prepare`` runs before a clock starts, and its
time is shown.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Announce = Callable[[str], None]

_total_s = 0.0
_depth = threading.local()


def to_stderr(words: str) -> None:
    """Print one line of progress."""
    try:
        sys.stderr.write(f"optbench: {words}\n")
        sys.stderr.flush()
    except (BrokenPipeError, ValueError):  # standard error is closed
        return


def no_announcement(words: str) -> None:
    """No-op announcement."""


_announcer: Announce = to_stderr


def compiled_s() -> float:
    """Seconds of compiling in this process so far."""
    return _total_s


@contextmanager
def announcing(announce: Announce) -> Iterator[None]:
    """Pass announcements of compiling in any thread to ``announce`` meanwhile."""
    global _announcer
    before, _announcer = _announcer, announce
    try:
        yield
    finally:
        _announcer = before


def announce(words: str) -> None:
    _announcer(words)


@contextmanager
def metered(what: str | None) -> Iterator[None]:
    """Measure the time of the outermost of nested uses, and announce that ``what`` is compiled if
    it is given.
    """
    global _total_s
    level = getattr(_depth, "level", 0)
    _depth.level = level + 1
    began = time.perf_counter()
    if level == 0 and what is not None:
        announce(f"compiling {what}, once per machine")
    try:
        yield
    finally:
        _depth.level = level
        if level == 0:
            spent = time.perf_counter() - began
            _total_s += spent
            if what is not None:
                announce(f"compiled in {spent:.1f} s")
