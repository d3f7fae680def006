"""One process controls the clocks of a device: an exclusive ``flock`` on a file per device.

The watchdog inherits the open file, so that the device stays taken until both processes have ended.
The kernel releases the lock when they have, however they ended: whether a journal's owner lives is
read from the lock and never from a process number, which may belong to another process by now. The
file is its owner's alone: whoever may read it could hold it.
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import shlex
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from optbench.errors import OptbenchError
from optbench.hardware.clock_control.state_folder import LOCK, StateFolderError, path_of

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

    def is_there(self, folder: Path) -> bool:
        """Whether the file is the one that others find; without it, another process can hold the
        device.
        """
        try:
            found = path_of(folder, self.uuid, LOCK).stat()
        except OSError:
            return False
        return os.path.samestat(found, os.fstat(self.handle))


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
    handle = _opened(path_of(folder, uuid, LOCK))
    lock = DeviceLock(uuid, handle)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        if not lock.is_there(folder):  # removed between the two calls: try again
            yield None
            return
        _sign(handle, purpose)
        yield lock
    finally:
        # Closed, never unlocked: a watchdog that is still restoring keeps the device.
        os.close(handle)


def _opened(path: Path) -> int:
    """A lock file, made if it is missing; only its owner may open it."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        handle = os.open(path, flags, 0o600)
    except OSError as error:
        raise StateFolderError(
            f"the lock file {path} cannot be opened: {error.strerror}{_owned(path)}. Run the "
            "command as the owner or as root; where no process of optbench controls the device, "
            f"`sudo rm {shlex.quote(str(path))}` helps too"
        ) from None
    with suppress(OSError):  # written by an earlier version, for all to read
        os.fchmod(handle, 0o600)
    return handle


def _owned(path: Path) -> str:
    """Whose file it is, in words."""
    try:
        owner = path.lstat().st_uid
    except OSError:
        return ""
    try:
        name = pwd.getpwuid(owner).pw_name
    except KeyError:
        name = "unknown"
    return f"; it belongs to user {owner} ({name})"


def is_signed(folder: Path, uuid: str) -> bool:
    """Whether the process that signed the lock file last lives, as far as this one can see."""
    return _lives(_signature(folder, uuid))


def holder_of(folder: Path, uuid: str) -> str:
    """Words for the process that holds a device, from what it wrote into the lock file."""
    said = _signature(folder, uuid)
    if not {"pid", "purpose", "since"} <= said.keys():
        return "another process"
    who = f"process {said['pid']}"
    who = who if _lives(said) else f"the watchdog of {who}, which has died,"
    return f"{who} ({said['purpose']}, since {said['since']})"


def is_held(folder: Path, uuid: str) -> bool:
    """Whether a process holds the device now; False too where the file may not be opened."""
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


def _lives(said: Mapping[str, Any]) -> bool:
    """Whether the process of a signature lives. It decides who is named and waited for, no more:
    another process may have the number by now.
    """
    pid = said.get("pid")
    started = _start_of(pid) if type(pid) is int else None
    return started is not None and said.get("started", started) == started


def _start_of(pid: int) -> int | None:
    """When a process started, in ticks since the host did; None where it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    # The third field of the line is the state, the first one here; the 22nd is the start.
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def _stays(folder: Path, uuid: str) -> bool:
    """Whether a process holds a device that lives and goes on."""
    said = _signature(folder, uuid)
    return said.get("purpose") != RESTORING and _lives(said)


def _sign(handle: int, purpose: str) -> None:
    """Write into the lock file who holds it, for the messages of other processes."""
    said = {
        "pid": os.getpid(),
        "started": _start_of(os.getpid()),
        "purpose": purpose,
        "since": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC",
    }
    os.ftruncate(handle, 0)
    os.pwrite(handle, json.dumps(said).encode(), 0)
