"""Watches the GPUs of this host while runs use them, and says what each run drew.

A thread reads the devices ten times a second, so that the process that started the runs can wait
for them meanwhile. The energy between two readings is that of NVML's counter, or the integral of
power where a device has none.

A run is charged for the devices on which one of its processes was listed by the driver, while it
was, whatever devices it was given. It is divided evenly among the runs that were there; the kernel
of a GPU has no processor time of a run by which it could be split. Where the driver hides processes
(in containers), a run is charged for the devices that it was given by name
(``CUDA_VISIBLE_DEVICES``), and those are divided among the runs that were given them. A device that
it was not given by name, and that was used by nobody knows whom, is left out with a note.

NVML is used in this process only and never in one that forks cells: its state does not survive a
fork.
"""

from __future__ import annotations

import ctypes
import math
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from optbench.errors import UnknownNameError
from optbench.hardware.device_steps import DeviceStep, DeviceUse, WatchedDevice
from optbench.hardware.run_energy import DeviceEnergy, DeviceSource

if TYPE_CHECKING:
    from optbench.hardware.gpus.device_processes import DeviceProcesses
    from optbench.hardware.gpus.nvml_session import GpuDevice, GpuReading, GpuSession

LIBRARY = "libnvidia-ml.so.1"
PERIOD_S = 0.1
NO_PROCESSES: tuple[int, ...] = ()


@dataclass
class _HeldRun:
    """A run that may use devices: the UUIDs given by name, None for any; its processes."""

    given: frozenset[str] | None
    processes: Callable[[], Collection[int]]
    begun_s: float
    notes: tuple[str, ...] = ()


@dataclass
class _Sums:
    """What a run drew of its devices so far."""

    by_device: dict[str, float] = field(default_factory=dict)
    sources: set[DeviceSource] = field(default_factory=set)
    error_j: float = 0.0
    shared: bool = False
    complete: bool = True
    notes: list[str] = field(default_factory=list)

    def add(self, watched: WatchedDevice, run: str, began_s: float, ended_s: float) -> None:
        """Add a device that the run used."""
        steps = watched.steps_between(began_s, ended_s)
        parts = [(step, step.share_of(run, began_s, ended_s)) for step in steps]
        mine = [step for step, part in parts if part > 0]
        uuid = watched.device.uuid
        self.by_device[uuid] = sum(step.energy_j * part for step, part in parts)
        self.error_j += sum(step.error_j * part for step, part in parts)
        self.sources.add("counter" if watched.has_counter else "power")
        mig = watched.device.mig
        self.shared |= mig or any(step.holders > 1 or step.use.others for step in mine)
        if watched.has_counter:
            self.error_j += _late_j(mine)
        elif mine:
            # A mean over W seconds counts what was drawn before the run as its own, at most W times
            # the mean at its beginning, and misses at most W times the mean at its end.
            ends_w = max(mine[0].peak_w, mine[-1].peak_w)
            self.error_j += watched.last.power_window_s * ends_w
        trouble = watched.trouble or next((each.trouble for each in mine if each.trouble), "")
        if trouble:
            self.leave(f"GPU {uuid}: a lower bound, {trouble}")
        if mig:
            self.notes.append(f"GPU {uuid}: MIG is enabled, this is the energy of the whole GPU")
        if any(step.use.others for step in mine):
            self.notes.append(
                f"GPU {uuid}: processes of others were on it as well, their energy is in the figure"
            )

    def leave(self, note: str) -> None:
        """Say what is missing."""
        self.notes.append(note)
        self.complete = False

    def energy(self) -> DeviceEnergy:
        source = "counter and power" if len(self.sources) > 1 else next(iter(self.sources), None)
        found = (self.error_j, self.shared, tuple(self.notes), self.complete)
        return DeviceEnergy(self.by_device, source, *found)


def _late_j(steps: Sequence[DeviceStep]) -> float:
    """What a counter that moves in steps has counted too late, at most: its largest step."""
    return max((step.counter_step_j / max(1, step.holders) for step in steps), default=0.0)


class DeviceWatch:
    """``begin`` a run, ``end`` it, ``close``. Where there is no driver it does nothing.

    The driver is looked for when the first run begins that may use a device.
    """

    def __init__(self, period_s: float = PERIOD_S) -> None:
        self.period_s = period_s
        self.lock, self.stopping = threading.Lock(), threading.Event()
        self.stack = ExitStack()
        self.session: GpuSession | None = None
        self.watched: dict[str, WatchedDevice] = {}
        self.listing: dict[str, DeviceProcesses] = {}
        self.held: dict[str, _HeldRun] = {}
        # Processes on each device, by its last reading; None where they are hidden.
        self.listed: dict[str, frozenset[int] | None] = {}
        # Why devices are not measured, by UUID; those that no program can use are not among them.
        self.unread: dict[str, str] = {}
        self.trouble = f"GPUs: not measured, {LIBRARY} or its driver does not answer"
        self.may_exist = False
        self.looked = False
        self.thread: threading.Thread | None = None

    def begin(
        self,
        run: str,
        given: Sequence[str] | None,
        processes: Callable[[], Collection[int]] = lambda: NO_PROCESSES,
    ) -> None:
        """Begin to count for a run; ``given`` as of ``devices_given``, ``processes`` returns those
        that it has at the moment.
        """
        if given is not None and not given:
            return
        self._open()
        uuids, unknown = frozenset[str](), tuple[str, ...]()
        if self.session is not None:
            uuids, unknown = self._uuids(given)
            left = [each for uuid, each in self.unread.items() if given is None or uuid in uuids]
            unknown = (*unknown, *left)
        elif given or self.may_exist:
            unknown = (self.trouble,)
        with self.lock:
            self._read_all()
            names = None if given is None else uuids
            self.held[run] = _HeldRun(names, processes, time.monotonic(), unknown)
            for uuid, use in self._uses().items():  # it may be on a device already
                self.watched[uuid].last_use = use

    def so_far(self, run: str, began_s: float, ended_s: float) -> DeviceEnergy:
        """Return what a run drew between two moments of ``time.monotonic``."""
        if run not in self.held:
            return DeviceEnergy()
        with self.lock:
            self._read_all()
            return self._between(run, began_s, ended_s)

    def end(self, run: str, began_s: float, ended_s: float) -> DeviceEnergy:
        """Return the same at the end of a run.

        What it did not use before its process began and after it ended belongs to the others.
        """
        found = self.so_far(run, began_s, ended_s)
        with self.lock:
            if run in self.held:
                for watched in self.watched.values():
                    watched.give_back(run, self.held[run].begun_s, began_s)
                    watched.give_back(run, ended_s, math.inf)
        self.forget(run)
        return found

    def forget(self, run: str) -> None:
        """End a run whose energy nobody asks for."""
        with self.lock:
            self.held.pop(run, None)
            for watched in self.watched.values():
                watched.forget(run)

    def close(self) -> None:
        self.stopping.set()
        if self.thread is not None:
            self.thread.join()
        self.stack.close()
        self.session, self.thread = None, None

    def _between(self, run: str, began_s: float, ended_s: float) -> DeviceEnergy:
        held, sums = self.held[run], _Sums()
        for note in held.notes:
            sums.leave(note)
        for uuid, watched in self.watched.items():
            steps = watched.steps_between(began_s, ended_s)
            if any(run in step.use.runs for step in steps):
                sums.add(watched, run, began_s, ended_s)
            elif held.given is None and any(step.use.hidden for step in steps):
                sums.leave(
                    f"GPU {uuid}: left out, its driver does not say which processes use it; "
                    "CUDA_VISIBLE_DEVICES gives a run its GPUs by name, or none if it is empty"
                )
            elif watched.trouble and (held.given is None or uuid in held.given):
                sums.leave(f"GPU {uuid}: not measured, {watched.trouble}")
        return sums.energy()

    def _uuids(self, given: Sequence[str] | None) -> tuple[frozenset[str], tuple[str, ...]]:
        """Return the UUIDs of the devices given, and what is said of those that are unknown."""
        assert self.session is not None
        found, unknown = set(), []
        for name in given or ():
            try:
                found.add(self.session.find(name).uuid)
            except UnknownNameError as error:
                unknown.append(f"GPUs: {name} is not measured ({error})")
        return frozenset(found), tuple(unknown)

    def _open(self) -> None:
        """Open NVML and start the thread, once; without a driver this takes microseconds."""
        if self.looked:
            return
        self.looked = True
        try:
            ctypes.CDLL(LIBRARY)
        except OSError:
            return
        from optbench.hardware.gpus.nvml_session import GpuUnavailableError, gpu_session

        try:
            self.session = self.stack.enter_context(gpu_session())
        except ImportError:
            self.trouble = "GPUs: not measured, the package nvidia-ml-py is not installed"
            self.may_exist = True
            return
        except GpuUnavailableError:
            return
        for device in self.session.devices():
            self._watch(device)
        for error in self.session.unreadable:
            if not error.is_gone:
                self.unread[error.device] = f"GPUs: not measured, {error}"
        self.thread = threading.Thread(target=self._run, name="optbench-gpus", daemon=True)
        self.thread.start()

    def _watch(self, device: GpuDevice) -> None:
        from optbench.hardware.gpus.device_processes import DeviceProcesses
        from optbench.hardware.gpus.nvml_session import GpuError

        assert self.session is not None
        try:
            reading = self.session.read(device)
        except GpuError as error:
            self.unread[device.uuid] = f"GPUs: not measured, {error}"
            return
        self.watched[device.uuid] = WatchedDevice(device, reading)
        self.listing[device.uuid] = DeviceProcesses(self.session.reader(device))

    def _run(self) -> None:
        while not self.stopping.wait(self.period_s):
            with self.lock:
                if self.held:
                    self._read_all()

    def _read_all(self) -> None:
        """Read the devices and who uses them; the lock is held."""
        if self.session is None:
            return
        from optbench.hardware.gpus.nvml_session import GpuError

        since_s = min((each.begun_s for each in self.held.values()), default=time.monotonic())
        readings: dict[str, GpuReading] = {}
        for uuid, watched in self.watched.items():
            self.listed.pop(uuid, None)
            try:
                readings[uuid] = self.session.read(watched.device)
            except GpuError as error:
                watched.trouble = error.words
            else:
                pids = self.listing[uuid].listed()
                hidden = watched.hides_processes(readings[uuid], pids)
                self.listed[uuid] = None if hidden else pids
        uses = self._uses()
        for uuid, reading in readings.items():
            self.watched[uuid].add(reading, uses[uuid], self.held, since_s)

    def _uses(self) -> dict[str, DeviceUse]:
        """Return who uses the devices, by the processes that were listed last."""
        # Trees are looked at only where there is something to compare them with.
        trees = {
            run: frozenset(held.processes()) if any(self.listed.values()) else frozenset[int]()
            for run, held in self.held.items()
        }
        return {uuid: self._use(uuid, pids, trees) for uuid, pids in self.listed.items()}

    def _use(
        self, uuid: str, pids: frozenset[int] | None, trees: Mapping[str, frozenset[int]]
    ) -> DeviceUse:
        if pids is None:
            given = [run for run, held in self.held.items() if uuid in (held.given or ())]
            return DeviceUse(frozenset(given), hidden=True)
        runs = frozenset(run for run, tree in trees.items() if tree & pids)
        return DeviceUse(runs, others=bool(pids.difference(*trees.values())))
