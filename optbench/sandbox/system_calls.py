"""Linux system calls that Python does not offer, by number."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any

IS_LINUX = sys.platform == "linux"
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_SET_CHILD_SUBREAPER = 1, 38, 36
LIBC = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, argument: int) -> None:
    """Set a property of this process; Linux only."""
    if (
        LIBC.prctl(
            option,
            ctypes.c_ulong(argument),
            ctypes.c_ulong(0),
            ctypes.c_ulong(0),
            ctypes.c_ulong(0),
        )
        != 0
    ):
        raise last_error()


def syscall(number: int, *arguments: Any) -> int:
    """Return the result, or raise OSError."""
    result = int(LIBC.syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        raise last_error()
    return result


def last_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
