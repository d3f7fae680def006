"""The journal of a device: what its clocks were locked to, and how they are restored.

A file per device, of JSON lines. The first line says who locks, how to restore, and what
application clocks and power limit were before; it is written beside, synced, renamed, and the
folder is synced, all before the first lock. Each lock then adds a line before the driver is called,
and each answer of the driver a line after it. The file is removed once the clocks are restored. A
line that was cut off or damaged counts as a lock: restoring once too often does no harm.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from optbench.errors import OptbenchError
from optbench.hardware.clock_control.device_lock import is_held
from optbench.hardware.clock_control.state_folder import (
    JOURNAL,
    path_of,
    readable_folders,
    remove_durably,
    replacing_durably,
    uuid_of,
)

FORMAT = "optbench-clock-journal-1"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
# A device name, a command line and a few numbers; nobody writes more into a line.
MOST_READ = 64 << 20


class JournalError(OptbenchError):
    """A journal cannot be written or removed."""


@dataclass(frozen=True)
class ClockRange:
    """Lowest and highest graphics clock that a device may take."""

    low_mhz: int
    high_mhz: int

    def __str__(self) -> str:
        same = self.low_mhz == self.high_mhz
        return f"{self.low_mhz:,} MHz" if same else f"{self.low_mhz:,} to {self.high_mhz:,} MHz"


@dataclass(frozen=True)
class JournalHeader:
    """The first line: the device, who locks it, what it was like, how it is restored."""

    uuid: str
    device: str
    purpose: str = "unknown"
    pid: int = 0
    host: str = ""
    boot_id: str = ""
    began: str = ""
    restore_to: ClockRange | None = None
    before: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ReadJournal:
    """A journal as it was read.

    ``locked`` is the range that was set last, None after a reset; ``touched`` is whether a lock
    may have been made; ``damaged`` names what could not be read; ``alive`` is whether a process
    holds the device: then the clocks are under control, otherwise they wait for a restoration.
    """

    header: JournalHeader
    path: Path
    locked: ClockRange | None
    touched: bool
    alive: bool
    damaged: str | None = None

    @property
    def uuid(self) -> str:
        return self.header.uuid

    @property
    def restarted(self) -> bool:
        """Whether the host was restarted since the journal was begun."""
        return bool(self.header.boot_id) and self.header.boot_id != boot_id()

    @property
    def elsewhere(self) -> bool:
        """Whether the journal was written on a host of another name, in a folder that both share.

        Whether a device is here, its UUID decides: containers of one host have names of their own.
        """
        return bool(self.header.host) and self.header.host != socket.gethostname()


class Journal:
    """The open journal of a device that this process holds."""

    def __init__(self, path: Path, handle: int) -> None:
        self.path, self._handle, self._synced = path, handle, False

    @classmethod
    def begin(cls, folder: Path, header: JournalHeader) -> Journal:
        """Write the first line; when this returns, it is on the disk under its final name."""
        path = path_of(folder, header.uuid, JOURNAL)
        try:
            with replacing_durably(path) as fresh:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
                journal = cls(path, os.open(fresh, flags, 0o644))
                journal._write(_header_to_dict(header), sync=True)
        except OSError as error:
            raise JournalError(
                f"the journal {path} cannot be written: {error.strerror}; no clock was locked"
            ) from None
        return journal

    def note_lock(self, clocks: ClockRange) -> None:
        """Say that a range is about to be set; before the first one, that is on the disk.

        The later lines outlive this process without it, and a restart of the host ends all locks.
        """
        self._note({"set": [clocks.low_mhz, clocks.high_mhz]}, sync=not self._synced)
        self._synced = True

    @property
    def is_there(self) -> bool:
        """Whether the file still has its name: not when somebody removed or replaced it."""
        try:
            return os.path.samestat(self.path.stat(), os.fstat(self._handle))
        except OSError:
            return False

    def note_refused(self, words: str) -> None:
        """Say that the driver refused what was about to be set, and changed nothing."""
        self._note({"refused": words})

    def note_released(self) -> None:
        """Say that the device is as a restoration would leave it."""
        self._note({"released": True})

    def remove(self) -> None:
        """The clocks are restored: forget the device."""
        self.close()
        remove_journal(self.path)

    def close(self) -> None:
        """Leave the file where it is, for a restoration later."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _note(self, row: Mapping[str, Any], sync: bool = False) -> None:
        try:
            self._write(row, sync)
        except OSError as error:
            raise JournalError(
                f"the journal {self.path} cannot be written: {error.strerror}"
            ) from None

    def _write(self, row: Mapping[str, Any], sync: bool) -> None:
        line = json.dumps({**row, "at": _now()}, ensure_ascii=False).encode() + b"\n"
        if os.write(self._handle, line) != len(line):
            raise OSError(28, "no space left on the device")
        if sync:
            os.fsync(self._handle)


def remove_journal(path: Path) -> None:
    """Remove a journal, and bring that to the disk."""
    try:
        remove_durably(path)
    except OSError as error:
        raise JournalError(f"the journal {path} cannot be removed: {error.strerror}") from None


def journal_entry(uuid: str) -> ReadJournal | None:
    """The journal of a device, in the folders that this user may read; None without one."""
    found = (read_journal(folder, uuid) for folder in readable_folders())
    return next((entry for entry in found if entry is not None), None)


def locked_range(uuid: str) -> ClockRange | None:
    """The range that a device is locked to by its journal; a restart of the host ends locks."""
    entry = journal_entry(uuid)
    return None if entry is None or entry.restarted else entry.locked


def journals(folder: Path) -> Iterator[ReadJournal]:
    """All journals of a folder, by device."""
    for path in sorted(folder.glob(f"*{JOURNAL}")):
        if (entry := read_journal(folder, uuid_of(path))) is not None:
            yield entry


def read_journal(folder: Path, uuid: str) -> ReadJournal | None:
    """The journal of a device in a folder; None where there is none."""
    path = path_of(folder, uuid, JOURNAL)
    try:
        with path.open("rb") as file:
            content = file.read(MOST_READ)
    except FileNotFoundError:
        return None
    except OSError as error:
        why = f"cannot be read: {error.strerror}"
        return ReadJournal(_unknown(uuid), path, None, True, is_held(folder, uuid), why)
    rows, damaged = _rows(content)
    header = _header_of(rows[0], uuid) if rows else None
    if header is None:
        damaged = "the first line is damaged"
    normal = None if header is None else header.restore_to
    locked, touched = _replayed(rows, normal)
    return ReadJournal(
        header or _unknown(uuid),
        path,
        locked,
        touched or damaged is not None,
        is_held(folder, uuid),
        damaged,
    )


def _unknown(uuid: str) -> JournalHeader:
    """What is known without a first line: the device, by the name of the file."""
    return JournalHeader(uuid, f"device {uuid}")


def boot_id() -> str:
    """The kernel's name for this start of the host; empty where it has none."""
    with suppress(OSError):
        return BOOT_ID.read_text(encoding="ascii").strip()
    return ""


def new_header(
    uuid: str,
    device: str,
    purpose: str,
    restore_to: ClockRange | None,
    before: Mapping[str, Any],
) -> JournalHeader:
    """The first line of a journal of this process."""
    host = socket.gethostname()
    return JournalHeader(
        uuid, device, purpose, os.getpid(), host, boot_id(), _now(), restore_to, before
    )


def _rows(content: bytes) -> tuple[list[dict[str, Any]], str | None]:
    """The lines that can be read, and what is wrong with the others."""
    rows, damaged = [], None
    *lines, rest = content.split(b"\n")
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if isinstance(row, dict):
            rows.append(row)
        else:
            damaged = f"line {number} is damaged"
    return rows, "the last line is cut off" if rest else damaged


def _replayed(
    rows: list[dict[str, Any]], normal: ClockRange | None
) -> tuple[ClockRange | None, bool]:
    """The range that is locked after these lines, and whether a lock was ever made; ``normal`` is
    the range that a release leaves.
    """
    locked: ClockRange | None = None
    before, touched, was_touched = locked, False, False
    for row in rows:
        if "set" in row:
            before, was_touched = locked, touched
            locked, touched = _range_of(row["set"]), True
        elif "refused" in row:
            locked, touched = before, was_touched
        elif "released" in row:
            locked = normal
    return locked, touched


def _header_to_dict(header: JournalHeader) -> dict[str, Any]:
    kept = header.restore_to
    return {
        "format": FORMAT,
        **{name: getattr(header, name) for name in ("uuid", "device", "purpose", "pid", "host")},
        "boot_id": header.boot_id,
        "began": header.began,
        "restore_to": None if kept is None else [kept.low_mhz, kept.high_mhz],
        "before": dict(header.before),
    }


def _header_of(row: Mapping[str, Any], uuid: str) -> JournalHeader | None:
    """The first line; None where it is not one, or of another device."""
    if row.get("format") != FORMAT or row.get("uuid") != uuid:
        return None
    names = ("device", "purpose", "host", "boot_id", "began")
    words = {name: value for name in names if isinstance(value := row.get(name), str)}
    kept, pid, before = row.get("restore_to"), row.get("pid"), row.get("before")
    if len(words) < len(names) or type(pid) is not int:
        return None
    restore_to = None if kept is None else _range_of(kept)
    if (restore_to is None) != (kept is None) or not isinstance(before, dict):
        return None
    return JournalHeader(uuid=uuid, pid=pid, restore_to=restore_to, before=before, **words)


def _range_of(value: Any) -> ClockRange | None:
    whole = isinstance(value, list) and len(value) == 2 and all(type(x) is int for x in value)
    return ClockRange(value[0], value[1]) if whole else None


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
