"""Seconds that this process has spent compiling, and who is told when compiling begins and ends; numba is not imported here.

Compiling is never charged to a budget: ``kernel_table.prepare`` does it before a clock starts, and what it took is shown.
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
    """One line of progress."""
    try:
        sys.stderr.write(f"optbench: {words}\n")
        sys.stderr.flush()
    except (BrokenPipeError, ValueError):  # nobody reads it any more
        return


def no_announcement(words: str) -> None:
    """For those who asked for quiet."""


_told: Announce = to_stderr


def compiled_s() -> float:
    """Seconds of compiling in this process so far."""
    return _total_s


@contextmanager
def announcing(announce: Announce) -> Iterator[None]:
    """What is compiled meanwhile, in whatever thread, is told to ``announce``."""
    global _told
    before, _told = _told, announce
    try:
        yield
    finally:
        _told = before


def announce(words: str) -> None:
    _told(words)


@contextmanager
def metered(what: str | None) -> Iterator[None]:
    """Count the time; the outermost of nested uses alone, which says ``what`` is compiled where that is given."""
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
