"""Landlock: a process permanently restricts its access to files. Everything may be read, little may
be written.

Rights are bits of ``linux/landlock.h``; a kernel knows those of its version and of earlier ones.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from optbench.sandbox.system_calls import IS_LINUX, PR_SET_NO_NEW_PRIVS, prctl, syscall

# System call numbers; they are the same on every architecture.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
ASK_VERSION, RULE_PATH_BENEATH = 1, 1
WRITE_FILE, REMOVE_DIR, REMOVE_FILE = 1 << 1, 1 << 4, 1 << 5
MAKE = sum(1 << bit for bit in range(6, 13))  # char, dir, reg, sock, fifo, block, sym
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
# The version that introduced a right or a scope.
SINCE = {WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE: 1, REFER: 2, TRUNCATE: 3, IOCTL_DEV: 5}
ON_A_FILE = WRITE_FILE | TRUNCATE | IOCTL_DEV
# What earlier versions do not restrict, and the kernel that introduced it.
LEFT_OPEN = (
    (3, "6.2", "truncate files outside their folders"),
    (6, "6.12", "signal other processes"),
)
SCOPE_ABSTRACT_SOCKETS, SCOPE_SIGNALS, SCOPES_SINCE = 1, 2, 6
# Opening a connection by TCP.
CONNECT_TCP, NETWORK_SINCE = 2, 4
# Devices that any program may write, and device files of GPUs.
DEVICES = (
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/kfd",
    "/dev/dri",
)


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("files", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


@cache
def landlock_version() -> int:
    """Return the version of this kernel's Landlock; 0 if it has none."""
    if not IS_LINUX:
        return 0
    try:
        return syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(ASK_VERSION))
    except OSError:  # not built in, or not enabled
        return 0


def write_only_beneath(folders: Iterable[Path], network: bool = True) -> None:
    """Restrict this process tree to writing beneath these folders and to its own signals; without
    ``network`` also to TCP connections that others open.
    """
    known = landlock_version()
    rights = sum(bits for bits, since in SINCE.items() if known >= since)
    scopes = SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS if known >= SCOPES_SINCE else 0
    refused = CONNECT_TCP if not network and known >= NETWORK_SINCE else 0
    asked = _Ruleset(rights, refused, scopes)
    # An older kernel rejects unknown rights, and even a longer structure.
    size = 8 if known < NETWORK_SINCE else 16 if known < SCOPES_SINCE else 24
    ruleset = syscall(
        CREATE_RULESET, ctypes.byref(asked), ctypes.c_size_t(size), ctypes.c_uint32(0)
    )
    try:
        for path in [*map(str, folders), *DEVICES, *_graphics()]:
            _allow(ruleset, path, rights)
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        syscall(RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        allowed = rights if stat.S_ISDIR(os.fstat(parent).st_mode) else rights & ON_A_FILE
        rule = _Beneath(allowed, parent)
        syscall(
            ADD_RULE,
            ctypes.c_int(ruleset),
            ctypes.c_int(RULE_PATH_BENEATH),
            ctypes.byref(rule),
            ctypes.c_uint32(0),
        )
    finally:
        os.close(parent)


def _graphics() -> list[str]:
    return [f"/dev/{name}" for name in os.listdir("/dev") if name.startswith("nvidia")]
