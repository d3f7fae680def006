"""Restoring clocks by the journals: reset, or the range that was named when they were locked.

The same for the process that locked them, its watchdog, ``optbench gpu restore`` and the next
process that locks. A journal stays where it is until its device is restored.
"""

from __future__ import annotations

import shlex
from collections.abc import Container, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from optbench.errors import OptbenchError, UnknownNameError
from optbench.hardware.clock_control.device_lock import (
    GLANCE_S,
    RESTORING,
    DeviceBusyError,
    hold_devices,
    holder_of,
    is_signed,
)
from optbench.hardware.clock_control.journal import (
    ClockRange,
    JournalError,
    ReadJournal,
    journals,
    read_journal,
    remove_journal,
)
from optbench.hardware.clock_control.state_folder import LOCK, StateFolderError, path_of
from optbench.hardware.gpus.nvml_session import GpuError, GpuUnavailableError, gpu_session

if TYPE_CHECKING:
    from optbench.hardware.gpus.nvml_session import GpuDevice, GpuSession

# Its watchdog restores the clocks of a process that died within a moment, and tries three times.
WATCHDOG_S = 4.0


@dataclass(frozen=True)
class RestoreOutcome:
    """What became of a journal; ``words`` says it in a sentence.

    ``state`` is restored, untouched (no lock had been made; the journal is removed), held (its
    process lives and restores it), or kept: the clocks could not be restored and the journal stays.
    """

    uuid: str
    device: str
    state: str
    words: str

    @property
    def kept(self) -> bool:
        return self.state == "kept"


def restore_journals(
    folder: Path, mine: Iterable[str] = (), only: Container[str] | None = None
) -> tuple[RestoreOutcome, ...]:
    """Restore every device, or of ``only`` these, that has a journal in the folder and whose
    process has ended.

    ``mine`` are devices that the caller holds already.
    """
    there = journals(folder) if folder.is_dir() else ()
    found = tuple(entry for entry in there if only is None or entry.uuid in only)
    if not found:
        return ()
    mine = frozenset(mine)
    with ExitStack() as stack:
        try:
            session = stack.enter_context(gpu_session())
        except GpuUnavailableError as error:
            return tuple(_kept(entry, str(error)) for entry in found)
        return tuple(_restore_held(session, folder, entry, mine) for entry in found)


def _restore_held(
    session: GpuSession, folder: Path, entry: ReadJournal, mine: frozenset[str]
) -> RestoreOutcome:
    if entry.uuid in mine:
        return restore_device(session, folder, entry.uuid) or _gone_meanwhile(entry)
    try:
        # A process that lives is not waited for; the watchdog of a dead one is.
        with hold_devices(folder, [entry.uuid], RESTORING, WATCHDOG_S):
            return restore_device(session, folder, entry.uuid) or _gone_meanwhile(entry)
    except DeviceBusyError:
        who = holder_of(folder, entry.uuid)
        if not is_signed(folder, entry.uuid):
            lock = path_of(folder, entry.uuid, LOCK)
            return _kept(
                entry,
                f"{who} holds {lock}, and is not seen to live here, so that nobody may restore "
                f"them; `sudo fuser -v {shlex.quote(str(lock))}` shows which process it is. End "
                "it, and restore again",
            )
        return RestoreOutcome(
            entry.uuid, entry.header.device, "held", f"{who} controls its clocks and restores them"
        )
    except StateFolderError as error:
        return _kept(entry, str(error))
    except OSError as error:
        remedy = "; run `sudo optbench gpu restore`" if isinstance(error, PermissionError) else ""
        return _kept(entry, f"{error.filename}: {error.strerror}{remedy}")


def restore_device(session: GpuSession, folder: Path, uuid: str) -> RestoreOutcome | None:
    """Restore a device that the caller holds, by its journal; None where it has none."""
    entry = read_journal(folder, uuid)
    if entry is None:
        return None
    try:
        if not entry.touched:
            remove_journal(entry.path)
            words = "no clock had been locked; the journal is removed"
            return RestoreOutcome(uuid, entry.header.device, "untouched", words)
        device = session.find(uuid)
        words = release(session, device, entry.header.restore_to)
        remove_journal(entry.path)
    except UnknownNameError:
        return _kept(entry, _absence(session, entry))
    except (GpuError, JournalError) as error:
        return _kept(entry, str(error))
    words += _circumstances(entry) + _changed_by_others(session, device, entry)
    return RestoreOutcome(uuid, entry.header.device, "restored", words)


def restore_unwritten(
    session: GpuSession, uuid: str, device: str, target: ClockRange | None
) -> RestoreOutcome:
    """Restore a device that was locked and whose journal somebody has removed."""
    try:
        words = release(session, session.find(uuid), target)
    except (GpuError, UnknownNameError) as error:
        why = (
            f"its clocks are not restored: {error}. Its journal was removed meanwhile, so that "
            f"`optbench gpu restore` does not know of it: run `nvidia-smi -i {uuid} -rgc` as root"
        )
        return RestoreOutcome(uuid, device, "kept", why)
    return RestoreOutcome(
        uuid, device, "restored", f"{words}; its journal was removed by somebody else meanwhile"
    )


def restore_all_unwritten(
    uuids: Iterable[str], target: ClockRange | None
) -> tuple[RestoreOutcome, ...]:
    """Restore devices that were locked and have no journal, in a session of its own."""
    wanted = sorted(uuids)
    if not wanted:
        return ()
    try:
        with gpu_session() as session:
            return tuple(restore_unwritten(session, u, f"device {u}", target) for u in wanted)
    except GpuUnavailableError as error:
        words = f"its clocks are not restored: {error}. Its journal was removed meanwhile"
        return tuple(RestoreOutcome(uuid, f"device {uuid}", "kept", words) for uuid in wanted)


def release(session: GpuSession, device: GpuDevice, target: ClockRange | None) -> str:
    """Put the clocks back, into a range where one is named, and say how."""
    if target is None:
        session.reset_clocks(device)
        return "locked clocks were reset"
    session.lock_clocks(device, target.low_mhz, target.high_mhz)
    return f"clocks are locked to {target} again, as --restore-to says"


def forget_journal(folder: Path, uuid: str) -> RestoreOutcome:
    """Remove the journal of a device that is gone for good."""
    entry = read_journal(folder, uuid)
    if entry is None:
        raise UnknownNameError("device with a journal:", uuid, (e.uuid for e in journals(folder)))
    with hold_devices(folder, [uuid], RESTORING, GLANCE_S):
        with suppress(GpuUnavailableError, UnknownNameError), gpu_session() as session:
            session.find(uuid)
            raise OptbenchError(
                f"--forget {uuid}: the driver has this device, and its clocks may be locked. Use "
                "`optbench gpu restore`"
            )
        remove_journal(entry.path)
    return RestoreOutcome(uuid, entry.header.device, "forgotten", "the journal is removed")


def _kept(entry: ReadJournal, why: str) -> RestoreOutcome:
    words = f"its clocks are not restored: {why}. The journal {entry.path} is kept"
    return RestoreOutcome(entry.uuid, entry.header.device, "kept", words)


def _absence(session: GpuSession, entry: ReadJournal) -> str:
    """Why a device is not found, and what to do."""
    silent = "".join(f"; {error}" for error in session.unreadable)
    there = f" (it was locked on host {entry.header.host})" if entry.elsewhere else ""
    return (
        f"the driver has no such device now{there}{silent}. If it is gone for good, `optbench gpu "
        f"restore --forget {entry.uuid}` removes the journal"
    )


def _gone_meanwhile(entry: ReadJournal) -> RestoreOutcome:
    return RestoreOutcome(
        entry.uuid, entry.header.device, "restored", "its own process restored it meanwhile"
    )


def _circumstances(entry: ReadJournal) -> str:
    """What else is worth knowing about a restoration."""
    words = ""
    if entry.damaged is not None:
        words += f"; of its journal {entry.damaged}, so that it was restored to be safe"
    if entry.restarted:
        words += "; the host was restarted since"
    return words


def _changed_by_others(session: GpuSession, device: GpuDevice, entry: ReadJournal) -> str:
    """What is not as it was before the lock although nothing of ours sets it."""
    now: dict[str, float | None] = {"power_limit_w": device.power_limit_w}
    with suppress(GpuError):
        now["application_clock_mhz"] = session.application_clock_mhz(device)
    words = ""
    for name, unit in (("power_limit_w", "W"), ("application_clock_mhz", "MHz")):
        was = entry.header.before.get(name)
        if name in now and was is not None and now[name] is not None and now[name] != was:
            what = name.rpartition("_")[0].replace("_", " ")
            words += f"; somebody else changed its {what} from {was:g} to {now[name]:g} {unit}"
    return words
