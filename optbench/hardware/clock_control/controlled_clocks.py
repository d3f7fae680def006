"""Locking clocks so that they are restored however this process ends.

Within ``controlled_clocks`` this process alone controls the clocks of the devices. What an earlier
process left behind is restored first; a watchdog runs; journals are on the disk before the first
lock. At the end, after an exception too, every device is restored; what cannot be restored is
raised as ClockRestoreError, and its journal is kept.

    with gpu_session() as session, controlled_clocks(session, devices, "calibrating") as clocks:
        clocks.lock(device, 1005, 1005)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from optbench.errors import OptbenchError, ParameterError
from optbench.hardware.clock_control.device_lock import (
    DeviceLock,
    hold_devices,
    holder_of,
    is_held,
)
from optbench.hardware.clock_control.interruptions import undisturbed, without_stopping
from optbench.hardware.clock_control.journal import ClockRange, Journal, JournalHeader, new_header
from optbench.hardware.clock_control.restoring import (
    RestoreOutcome,
    release,
    restore_device,
    restore_journals,
    restore_unwritten,
)
from optbench.hardware.clock_control.state_folder import prepared, state_folder
from optbench.hardware.clock_control.watchdog import LOG, Watchdog, WatchdogError
from optbench.hardware.gpus.nvml_errors import (
    FUNCTION_NOT_FOUND,
    INVALID_ARGUMENT,
    NO_PERMISSION,
    NOT_SUPPORTED,
    GpuError,
)

if TYPE_CHECKING:
    from optbench.hardware.gpus.nvml_session import GpuDevice, GpuSession

Say = Callable[[str], None]
# A watchdog that dies this often is killed by something that will not stop.
MOST_WATCHDOGS = 20
# Results of NVML after which the clocks are as they were. After any other it is not known.
CHANGES_NOTHING = (INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, FUNCTION_NOT_FOUND)


class ClockControlError(OptbenchError):
    """The clocks of a device cannot be controlled."""


class ClockRestoreError(OptbenchError):
    """Clocks that could not be restored; their journals are kept."""


class ClockControl:
    """The clocks of devices that this process holds."""

    def __init__(
        self,
        session: GpuSession,
        folder: Path,
        locks: Sequence[DeviceLock],
        restore_to: ClockRange | None,
        say: Say,
    ) -> None:
        self._session, self._folder, self._say = session, folder, say
        self._locks, self._restore_to = locks, restore_to
        self._journals: dict[str, Journal] = {}
        self._headers: dict[str, JournalHeader] = {}
        self._set: dict[str, ClockRange] = {}
        # Devices that may have been locked, whatever became of their journals.
        self._touched: set[str] = set()
        self.outcomes: tuple[RestoreOutcome, ...] = ()
        self._watchdog: Watchdog | None = None
        self._started = 0

    def begin_journals(self, devices: Iterable[GpuDevice], purpose: str) -> None:
        """Write down how to restore the devices, and what they were like."""
        for device in devices:
            before = {
                "application_clock_mhz": self._session.application_clock_mhz(device),
                "power_limit_w": device.power_limit_w,
            }
            header = new_header(device.uuid, device.title, purpose, self._restore_to, before)
            self._headers[device.uuid] = header
            self._journals[device.uuid] = Journal.begin(self._folder, header)

    def lock(self, device: GpuDevice, low_mhz: int, high_mhz: int) -> None:
        """Lock a device to a range of graphics clocks."""
        clocks = ClockRange(low_mhz, high_mhz)
        self.check_watchdog()
        self.check_locks()
        journal = self._journal_of(device)
        journal.note_lock(clocks)
        if device.uuid not in self._touched:
            self._touched.add(device.uuid)
            self.watchdog.note_lock(self._number(device.uuid))
        try:
            self._session.lock_clocks(device, low_mhz, high_mhz)
        except GpuError as error:
            if error.code in CHANGES_NOTHING:
                journal.note_refused(error.words)
                if device.uuid not in self._set:
                    self._touched.discard(device.uuid)
            raise
        self._set[device.uuid] = clocks

    def _journal_of(self, device: GpuDevice) -> Journal:
        """The journal of a device, begun again where somebody has removed it."""
        journal = self._journals[device.uuid]
        if journal.is_there:
            return journal
        self._say(f"{device.title}: its journal {journal.path} was removed; it is written again")
        journal.close()
        journal = Journal.begin(self._folder, self._headers[device.uuid])
        self._journals[device.uuid] = journal
        return journal

    def _number(self, uuid: str) -> int:
        return [lock.uuid for lock in self._locks].index(uuid)

    def check_locks(self) -> None:
        """Refuse to go on where somebody has removed a lock file: others can take the device."""
        for lock in self._locks:
            if not lock.is_there(self._folder):
                raise ClockControlError(
                    f"device {lock.uuid}: its lock file in {self._folder} was removed, so that "
                    "another process may control its clocks too. Its own clocks are restored; "
                    "leave the files of the folder alone, and run the command again"
                )

    def release(self, device: GpuDevice) -> None:
        """Put a device into the state that a restoration leaves it in, and keep control of it."""
        if device.uuid in self._set:
            release(self._session, device, self._restore_to)
            self._journals[device.uuid].note_released()
            del self._set[device.uuid]

    @contextmanager
    def released(self, devices: Iterable[GpuDevice]) -> Iterator[None]:
        """Release devices for the time of the block, and lock them again as they were."""
        before = [(each, self._set[each.uuid]) for each in devices if each.uuid in self._set]
        for device, _ in before:
            self.release(device)
        yield
        for device, clocks in before:
            self.lock(device, clocks.low_mhz, clocks.high_mhz)

    def locked(self, device: GpuDevice) -> ClockRange | None:
        """The range that this process has locked a device to."""
        return self._set.get(device.uuid)

    @property
    def watchdog(self) -> Watchdog:
        """The watchdog that runs now."""
        if self._watchdog is None:
            raise ClockControlError("the watchdog was not started")
        return self._watchdog

    def start_watchdog(self) -> None:
        """Start a watchdog, without waiting until it watches."""
        self._started += 1
        if self._started > MOST_WATCHDOGS:
            raise WatchdogError(
                f"the watchdog died {MOST_WATCHDOGS} times; {self._folder / LOG} may say why. No "
                "clock is locked without it"
            )
        locked = [self._number(uuid) for uuid in self._touched]
        self._watchdog = Watchdog.start(self._folder, self._locks, self._restore_to, locked)

    def await_watchdog(self) -> None:
        """Wait until a watchdog watches, another one where the first was killed at once."""
        while not self.watchdog.await_answer():
            self.check_watchdog()

    def check_watchdog(self) -> None:
        """Start another watchdog where it has died."""
        dead = self.watchdog
        if dead.has_died():
            self._say(f"the watchdog (process {dead.pid}) died; another one is started")
            self._watchdog = None
            dead.stop()
            self.start_watchdog()

    def stop_watchdog(self) -> None:
        """End the watchdog; it restores what still has a journal."""
        watchdog, self._watchdog = self._watchdog, None
        if watchdog is not None:
            watchdog.stop()

    def restore(self) -> tuple[RestoreOutcome, ...]:
        """Restore all devices and remove their journals; each is tried, whatever the others do."""
        self.outcomes = tuple(self._restored(uuid) for uuid in self._journals)
        for outcome in self.outcomes:
            self._say(f"{outcome.device}: {outcome.words}")
        return self.outcomes

    def _restored(self, uuid: str) -> RestoreOutcome:
        """Restore a device by its journal; without it, by what this process knows."""
        journal, header = self._journals[uuid], self._headers[uuid]
        ours = journal.is_there
        journal.close()
        outcome = restore_device(self._session, self._folder, uuid) if ours else None
        if outcome is not None:
            return outcome
        lock = self._locks[self._number(uuid)]
        if not lock.is_there(self._folder) and is_held(self._folder, uuid):
            words = f"{holder_of(self._folder, uuid)} has taken it over, and restores its clocks"
            return RestoreOutcome(uuid, header.device, "held", words)
        if uuid not in self._touched:
            words = "no clock had been locked; somebody else removed its journal"
            return RestoreOutcome(uuid, header.device, "untouched", words)
        return restore_unwritten(self._session, uuid, header.device, self._restore_to)


@contextmanager
def controlled_clocks(
    session: GpuSession,
    devices: Iterable[GpuDevice],
    purpose: str,
    restore_to: ClockRange | None = None,
    say: Say = lambda words: None,
) -> Iterator[ClockControl]:
    """Control the clocks of devices, and restore them at the end.

    ``purpose`` tells other processes who holds the devices. ``restore_to`` is the range that
    restoring means; without it the locked clocks are reset. ``say`` is given a line whenever
    something is restored, or a watchdog replaced.
    """
    chosen = tuple(devices)
    for device in chosen:
        check_controllable(device)
        if restore_to is not None:
            check_supported(device, restore_to)
    folder = prepared(state_folder())
    if os.getpid() == 1:
        say(
            "this is process 1 of its container: if it is killed, the kernel kills the watchdog "
            f"too. Keep {folder} outside of the container, and run `optbench gpu restore` there"
        )
    with ExitStack() as stack:
        stack.enter_context(without_stopping())
        locks = stack.enter_context(hold_devices(folder, (d.uuid for d in chosen), purpose))
        restore_leftovers(folder, locks, say)
        control = ClockControl(session, folder, tuple(locks.values()), restore_to, say)
        stack.callback(control.stop_watchdog)
        control.start_watchdog()
        control.await_watchdog()
        try:
            control.begin_journals(chosen, purpose)
            yield control
        finally:
            with undisturbed():
                outcomes = control.restore()
                control.stop_watchdog()
        if lost := [outcome.words for outcome in outcomes if outcome.kept]:
            raise ClockRestoreError("\n".join(lost))


def restore_leftovers(folder: Path, locks: Mapping[str, DeviceLock], say: Say) -> None:
    """Restore what dead processes left; refuse to go on where that fails for a device of ours."""
    for outcome in restore_journals(folder, mine=locks):
        if outcome.state != "held":
            say(f"left by an earlier process: {outcome.device}: {outcome.words}")
        if outcome.kept and outcome.uuid in locks:
            raise ClockControlError(f"{outcome.device}: {outcome.words}")


def check_controllable(device: GpuDevice) -> None:
    """Refuse a device whose clocks cannot be locked."""
    if device.mig:
        raise ClockControlError(
            f"{device.title} is in MIG mode: its parts share one clock, which cannot be locked. "
            f"Choose another device, or end the mode with `nvidia-smi -i {device.index} -mig 0` as "
            "root"
        )
    for need in ("clock_lock", "clocks"):
        if need in device.missing:
            raise ClockControlError(f"{device.title}: {device.missing[need]}")


def check_supported(device: GpuDevice, clocks: ClockRange) -> None:
    """Refuse a range that a device does not have."""
    known = device.clocks_mhz
    if clocks.low_mhz > clocks.high_mhz:
        raise ParameterError(
            f"the range {clocks.low_mhz}-{clocks.high_mhz} MHz is upside down; write LOW-HIGH"
        )
    if known and not known[0] <= clocks.low_mhz <= clocks.high_mhz <= known[-1]:
        raise ParameterError(
            f"the range {clocks} is outside of what {device.title} has: {known[0]:,} to "
            f"{known[-1]:,} MHz"
        )
    if known and not any(clocks.low_mhz <= each <= clocks.high_mhz for each in known):
        near = sorted(sorted(known, key=lambda each: abs(each - clocks.low_mhz))[:2])
        raise ParameterError(
            f"the range {clocks} holds no clock that {device.title} has; the nearest ones are "
            f"{' and '.join(f'{each:,}' for each in near)} MHz"
        )


__all__ = ["ClockControl", "ClockRange", "controlled_clocks"]
