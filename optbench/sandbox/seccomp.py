"""A system call filter for what Landlock does not restrict: modes, owners, times and attributes of
files, limits of other processes, and System V memory.

Changing a file's attributes does nothing and succeeds, because copying a file calls it. Setting a
limit of another process is refused, and so are System V's shared memory, semaphores and queues,
which remain when their creator is killed.
"""

from __future__ import annotations

import ctypes
import os
import struct

from optbench.sandbox.system_calls import IS_LINUX, PR_SET_NO_NEW_PRIVS, prctl, syscall

# Per machine: the architecture as seccomp names it, the numbers of seccomp and prlimit, calls that
# do nothing, and refused calls.
MACHINES = {
    "x86_64": (
        0xC000003E,
        317,
        302,
        (90, 91, 92, 93, 94, 132, 188, 189, 190, 197, 198, 199, 235, 260, 261, 268, 280, 452),
        (29, 64, 68),
    ),
    "aarch64": (
        0xC00000B7,
        277,
        261,
        (5, 6, 7, 14, 15, 16, 52, 53, 54, 55, 88, 452),
        (186, 190, 194),
    ),
}
X32_BIT = 0x40000000
SET_MODE_FILTER = 1
ALLOW, FAIL = 0x7FFF0000, 0x00050000
EPERM = 1
# Opcodes of the classic packet filter: load a word, jump if equal, jump if greater or equal,
# return.
LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
# Offsets in struct seccomp_data: number, architecture, and the low and high half of the first
# argument.
NUMBER, ARCHITECTURE, LOW, HIGH = 0, 4, 16, 20


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def is_available() -> bool:
    """Whether the filter is defined for this machine."""
    return IS_LINUX and os.uname().machine in MACHINES


def install_filter() -> None:
    """Keep this process tree from changing attributes of files and others' limits."""
    architecture, number, prlimit, idle, refused = MACHINES[os.uname().machine]
    code = b"".join(_instructions(architecture, prlimit, idle, refused))
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.addressof(buffer))
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    syscall(number, ctypes.c_uint(SET_MODE_FILTER), ctypes.c_uint(0), ctypes.byref(program))


def _instructions(
    architecture: int, prlimit: int, idle: tuple[int, ...], refused: tuple[int, ...]
) -> list[bytes]:
    """Return the filter program, in which jumps are relative to the next instruction."""
    calls = (*refused, *idle)
    to_refusal, to_nothing = len(calls) + 4, len(calls) + 5
    filtered = [
        _op(EQUAL, call, (to_refusal if call in refused else to_nothing) - k - 1, 0)
        for k, call in enumerate(calls)
    ]
    return [
        _op(LOAD, ARCHITECTURE),
        _op(EQUAL, architecture, 1, 0),
        _op(RETURN, FAIL | EPERM),
        _op(LOAD, NUMBER),
        _op(AT_LEAST, X32_BIT, to_refusal, 0),
        *filtered,
        _op(EQUAL, prlimit, 0, 2),
        _op(LOAD, LOW),
        _op(EQUAL, 0, 0, 1),
        _op(RETURN, ALLOW),
        _op(RETURN, FAIL | EPERM),
        _op(RETURN, FAIL),
    ]


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
