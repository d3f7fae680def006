"""Drop the capabilities of root: a cell keeps those to read and write files, which Landlock
restricts, and no other.

Otherwise a cell of root could raise its own limits, set the clock or stop the machine.
"""

from __future__ import annotations

import ctypes

from optbench.sandbox.system_calls import IS_LINUX, LIBC, PR_SET_NO_NEW_PRIVS, last_error, prctl

VERSION_3 = 0x20080522
# Numbers of linux/capability.h: reading and writing files of other users.
DAC_OVERRIDE, DAC_READ_SEARCH = 1, 2
KEPT = 1 << DAC_OVERRIDE | 1 << DAC_READ_SEARCH


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Words(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def drop_capabilities() -> None:
    """Drop the capabilities permanently, for this process and its descendants."""
    if not IS_LINUX:
        return
    header, words = _Header(VERSION_3, 0), (_Words * 2)()
    if LIBC.capget(ctypes.byref(header), words) != 0:
        raise last_error()
    kept = words[0].permitted & KEPT
    words[0], words[1] = _Words(kept, kept, 0), _Words(0, 0, 0)
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    if LIBC.capset(ctypes.byref(header), words) != 0:
        raise last_error()
