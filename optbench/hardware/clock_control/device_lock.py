"""One process controls the clocks of a device: an exclusive ``flock`` on a file per device.

The watchdog inherits the open file, so that the device stays taken until both processes have ended.
The kernel releases the lock when they have, however they ended: whether a journal's owner lives is
read from the lock and never from a process number, which may belong to another process by now.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from optbench.errors import OptbenchError
from optbench.hardware.clock_control.state_folder import LOCK, path_of

# A watchdog that restores the clocks of a process that has just died needs a moment.
PATIENCE_S = 10.0
RETRY_S = 0.02
# A process that only looks whether a device is held holds it for a moment itself.
GLANCE_S = 0.2
# What a process says that restores and ends.
RESTORING = "restoring clocks"
MOST_READ = 4096


class DeviceBusyError(OptbenchError):
    """Another process controls the clocks of the device."""


@dataclass(frozen=True)
class DeviceLock:
    """A lock that this process holds; ``handle`` is the open file."""

    uuid: str
    handle: int


@contextmanager
def hold_devices(
    folder: Path, uuids: Iterable[str], purpose: str, patience_s: float = PATIENCE_S
) -> Iterator[dict[str, DeviceLock]]:
    """Hold all these devices, or raise DeviceBusyError with the process that has one of them.

    They are taken in the order of their names, so that two processes never wait for each other. A
    process that lives is not waited for; the watchdog of a dead one is, up to ``patience_s``.
    """
    until = time.monotonic() + patience_s
    with ExitStack() as stack:
        held = {}
        for uuid in sorted(set(uuids)):
            lock = stack.enter_context(_waiting(folder, uuid, purpose, until))
            held[uuid] = lock
        yield held


@contextmanager
def _waiting(folder: Path, uuid: str, purpose: str, until: float) -> Iterator[DeviceLock]:
    begun = time.monotonic()
    with ExitStack() as stack:
        while (lock := stack.enter_context(try_device(folder, uuid, purpose))) is None:
            now = time.monotonic()
            if now >= until or (now >= begun + GLANCE_S and _stays(folder, uuid)):
                raise DeviceBusyError(
                    f"device {uuid}: {holder_of(folder, uuid)} controls its clocks; wait for it to "
                    "end, or stop it: it restores the clocks"
                )
            stack.close()
            time.sleep(RETRY_S)
        yield lock


@contextmanager
def try_device(folder: Path, uuid: str, purpose: str) -> Iterator[DeviceLock | None]:
    """Hold a device, or yield None where another process does."""
    handle = os.open(path_of(folder, uuid, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        _sign(handle, purpose)
        yield DeviceLock(uuid, handle)
    finally:
        # Closed, never unlocked: a watchdog that is still restoring keeps the device.
        os.close(handle)


def holder_of(folder: Path, uuid: str) -> str:
    """Words for the process that holds a device, from what it wrote into the lock file."""
    said = _signature(folder, uuid)
    if not {"pid", "purpose", "since"} <= said.keys():
        return "another process"
    who = f"process {said['pid']}"
    who = who if _lives(said["pid"]) else f"the watchdog of {who}, which has died,"
    return f"{who} ({said['purpose']}, since {said['since']})"


def is_held(folder: Path, uuid: str) -> bool:
    """Whether a process holds the device now."""
    try:
        handle = os.open(path_of(folder, uuid, LOCK), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _signature(folder: Path, uuid: str) -> dict[str, Any]:
    """What the last holder wrote into the lock file."""
    try:
        with path_of(folder, uuid, LOCK).open("rb") as file:
            said = json.loads(file.read(MOST_READ))
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


def _lives(pid: Any) -> bool:
    """Whether a process of this number lives. It decides who is named and waited for, no more:
    another process may have the number by now.
    """
    if type(pid) is not int:
        return False
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[:1]
    except OSError:
        return False
    return state not in ([b"Z"], [b"X"])


def _stays(folder: Path, uuid: str) -> bool:
    """Whether a process holds a device that lives and goes on."""
    said = _signature(folder, uuid)
    return said.get("purpose") != RESTORING and _lives(said.get("pid"))


def _sign(handle: int, purpose: str) -> None:
    """Write into the lock file who holds it, for the messages of other processes."""
    said = {
        "pid": os.getpid(),
        "purpose": purpose,
        "since": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC",
    }
    os.ftruncate(handle, 0)
    os.pwrite(handle, json.dumps(said).encode(), 0)
