"""A system call filter for what Landlock does not restrict: modes, owners, times and attributes of
files, limits of other processes, System V memory, and sockets.

Changing a file's attributes does nothing and succeeds, because copying a file calls it. Setting a
limit of another process is refused, and so are System V's shared memory, semaphores and queues,
which remain when their creator is killed.

Without a network no socket can be made at all: Landlock knows TCP alone, and neither Multipath TCP,
nor data that are sent with the opening of a connection, nor sockets that are files. Pairs of
connected UNIX sockets and pipes remain, so processes of one cell can still talk to each other.
"""

from __future__ import annotations

import ctypes
import os
import struct
from typing import NamedTuple

from optbench.sandbox.system_calls import IS_LINUX, PR_SET_NO_NEW_PRIVS, prctl, syscall


class _Machine(NamedTuple):
    """The architecture as seccomp names it, numbers of calls, calls that do nothing, and calls that
    are refused: always, and without a network.

    The latter are socket, connect, ptrace, process_vm_writev, io_uring_setup (whose queue makes
    sockets without a call) and pidfd_getfd (which takes those of other processes).
    """

    architecture: int
    seccomp: int
    prlimit: int
    socketpair: int
    idle: tuple[int, ...]
    refused: tuple[int, ...]
    network: tuple[int, ...]


MACHINES = {
    "x86_64": _Machine(
        0xC000003E,
        317,
        302,
        53,
        (90, 91, 92, 93, 94, 132, 188, 189, 190, 197, 198, 199, 235, 260, 261, 268, 280, 452),
        (29, 64, 68),
        (41, 42, 101, 311, 425, 438),
    ),
    "aarch64": _Machine(
        0xC00000B7,
        277,
        261,
        199,
        (5, 6, 7, 14, 15, 16, 52, 53, 54, 55, 88, 452),
        (186, 190, 194),
        (198, 203, 117, 271, 425, 438),
    ),
}
X32_BIT = 0x40000000
SET_MODE_FILTER = 1
ALLOW, FAIL = 0x7FFF0000, 0x00050000
EPERM = 1
# Opcodes of the classic packet filter: load a word, keep some of its bits, jump if equal, jump if
# greater or equal, return.
LOAD, KEEP, EQUAL, AT_LEAST, RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
# Offsets in struct seccomp_data: number, architecture, the low and high half of the first argument,
# and the low half of the second.
NUMBER, ARCHITECTURE, LOW, HIGH, SECOND = 0, 4, 16, 20, 24
# The kinds of sockets whose ends stay connected to each other, among the bits of the type.
TYPE_BITS, STREAM, SEQUENCED, UNIX = 0xF, 1, 5, 1


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def is_available() -> bool:
    """Whether the filter is defined for this machine."""
    return IS_LINUX and os.uname().machine in MACHINES


def install_filter(network: bool = True) -> None:
    """Keep this process tree from changing attributes of files and others' limits; without
    ``network`` also from making sockets.
    """
    machine = MACHINES[os.uname().machine]
    code = b"".join(_instructions(machine, network))
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.addressof(buffer))
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    syscall(
        machine.seccomp, ctypes.c_uint(SET_MODE_FILTER), ctypes.c_uint(0), ctypes.byref(program)
    )


def _instructions(machine: _Machine, network: bool) -> list[bytes]:
    """Return the filter program, in which jumps are relative to the next instruction."""
    refused = machine.refused if network else (*machine.refused, *machine.network)
    calls = (*refused, *machine.idle)
    pairs = [] if network else _pairs(machine.socketpair)
    to_refusal = len(calls) + len(pairs) + 4
    filtered = [
        _op(EQUAL, call, to_refusal + (call not in refused) - k - 1, 0)
        for k, call in enumerate(calls)
    ]
    return [
        _op(LOAD, ARCHITECTURE),
        _op(EQUAL, machine.architecture, 1, 0),
        _op(RETURN, FAIL | EPERM),
        _op(LOAD, NUMBER),
        _op(AT_LEAST, X32_BIT, to_refusal, 0),
        *filtered,
        *pairs,
        _op(EQUAL, machine.prlimit, 0, 2),
        _op(LOAD, LOW),
        _op(EQUAL, 0, 0, 1),
        _op(RETURN, ALLOW),
        _op(RETURN, FAIL | EPERM),
        _op(RETURN, FAIL),
    ]


def _pairs(socketpair: int) -> list[bytes]:
    """Return the part that allows only pairs of UNIX sockets that stay connected to each other."""
    return [
        _op(EQUAL, socketpair, 0, 8),
        _op(LOAD, LOW),
        _op(EQUAL, UNIX, 0, 5),
        _op(LOAD, SECOND),
        _op(KEEP, TYPE_BITS),
        _op(EQUAL, STREAM, 1, 0),
        _op(EQUAL, SEQUENCED, 0, 1),
        _op(RETURN, ALLOW),
        _op(RETURN, FAIL | EPERM),
    ]


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
