"""Keep a process's own handling of SIGTERM while a library is called that replaces it.

Ray sets a handler in Python, and one of the C library from whatever thread joins a cluster. Python
can set handlers in the main thread only, so the C library's is kept and restored as it is.
"""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Larger than struct sigaction of any system.
ACTION_BYTES = 512


@contextmanager
def own_sigterm() -> Iterator[None]:
    """Restore the handlers of SIGTERM afterwards."""
    libc = ctypes.CDLL(None, use_errno=True)
    action = ctypes.create_string_buffer(ACTION_BYTES)
    number, handler = int(signal.SIGTERM), signal.getsignal(signal.SIGTERM)
    libc.sigaction(number, None, action)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)
        libc.sigaction(number, action, None)
