"""Watches the GPUs of this host while runs use them, and says what each run drew.

A thread reads the devices ten times a second, so that the process that started the runs can wait
for them meanwhile. The energy between two readings is that of NVML's counter, or the integral of
power where a device has none. It is divided evenly among the runs that held the device; the kernel
of a GPU has no processor time of a run by which it could be split.

A run holds the devices that it was given (``CUDA_VISIBLE_DEVICES``). A run that was given none by
name may use any: it holds those that were busy meanwhile, marked as shared, because NVML does not
say who used them. A device that stayed idle is not counted for it.

NVML is used in this process only and never in one that forks cells: its state does not survive a
fork.
"""

from __future__ import annotations

import ctypes
import math
import threading
import time
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from optbench.errors import UnknownNameError
from optbench.hardware.run_energy import DeviceEnergy, DeviceSource

if TYPE_CHECKING:
    from optbench.hardware.gpus.nvml_session import GpuDevice, GpuReading, GpuSession

LIBRARY = "libnvidia-ml.so.1"
PERIOD_S = 0.1
# Steps of a device that are kept one by one: a minute of them. Older ones are joined.
RECENT = 600


@dataclass(frozen=True)
class _Step:
    """Joules between two readings of a device, and how many runs held it."""

    began_s: float
    ended_s: float
    energy_j: float
    error_j: float
    holders: int
    busy: bool
    trouble: str

    @property
    def power_w(self) -> float:
        return self.energy_j / (self.ended_s - self.began_s)

    def share_of(self, began_s: float, ended_s: float) -> float:
        """The part of the step that lies between two moments, for one of its holders."""
        overlap_s = min(self.ended_s, ended_s) - max(self.began_s, began_s)
        return max(0.0, overlap_s) / (self.ended_s - self.began_s) / max(1, self.holders)

    def cut(self, at_s: float) -> list[_Step]:
        """Return the parts before and after a moment, with their shares of the energy."""
        if not self.began_s < at_s < self.ended_s:
            return [self]
        part = (at_s - self.began_s) / (self.ended_s - self.began_s)
        energy_j, error_j = self.energy_j * part, self.error_j * part
        return [
            replace(self, ended_s=at_s, energy_j=energy_j, error_j=error_j),
            replace(
                self,
                began_s=at_s,
                energy_j=self.energy_j - energy_j,
                error_j=self.error_j - error_j,
            ),
        ]


@dataclass
class _Watched:
    """A device with its last reading and the steps between readings."""

    device: GpuDevice
    last: GpuReading
    steps: list[_Step] = field(default_factory=list)
    trouble: str = ""

    @property
    def has_counter(self) -> bool:
        return self.last.energy_j is not None

    def add(self, reading: GpuReading, holders: int, since_s: float) -> None:
        """Add a reading; no run began before ``since_s``."""
        last = self.last
        if reading.t_s <= last.t_s:
            return
        self.last, self.trouble = reading, ""
        energy_j, error_j, trouble = _between_readings(last, reading)
        busy = reading.utilisation is None or reading.utilisation > 0
        step = _Step(last.t_s, reading.t_s, energy_j, error_j, holders, busy, trouble)
        self.steps.append(step)
        if len(self.steps) > 2 * RECENT:
            old = [each for each in self.steps[:-RECENT] if each.ended_s > since_s]
            self.steps = [*_joined(old), *self.steps[-RECENT:]]

    def give_back(self, began_s: float, ended_s: float) -> None:
        """Count one holder less between two moments at which a run turned out not to be there."""
        after = bisect_right(self.steps, began_s, key=lambda step: step.ended_s)
        pieces = [
            piece
            for step in self.steps[after:]
            for half in step.cut(began_s)
            for piece in half.cut(ended_s)
        ]
        self.steps[after:] = [
            replace(each, holders=each.holders - 1)
            if began_s <= each.began_s and each.ended_s <= ended_s
            else each
            for each in pieces
        ]

    def steps_between(self, began_s: float, ended_s: float) -> list[_Step]:
        after = bisect_right(self.steps, began_s, key=lambda step: step.ended_s)
        return [each for each in self.steps[after:] if each.began_s < ended_s]


def _between_readings(last: GpuReading, reading: GpuReading) -> tuple[float, float, str]:
    """Return joules, how far they may be off, and what is wrong with them."""
    if reading.energy_j is not None and last.energy_j is not None:
        energy_j = reading.energy_j - last.energy_j
        return (energy_j, 0.0, "") if energy_j >= 0 else (0.0, 0.0, "its energy counter was reset")
    if reading.power_w is not None and last.power_w is not None:
        lasted_s = reading.t_s - last.t_s
        # Power that changes once between two readings, at any moment, is off by at most this.
        error_j = abs(reading.power_w - last.power_w) / 2 * lasted_s
        return (reading.power_w + last.power_w) / 2 * lasted_s, error_j, ""
    return 0.0, 0.0, "it reports neither energy nor power"


def _joined(steps: Sequence[_Step]) -> list[_Step]:
    """Join neighbours with the same holders: a run begins and ends where their number changes."""
    out: list[_Step] = []
    for step in steps:
        last = out[-1] if out else None
        same = last is not None and (last.holders, last.trouble) == (step.holders, step.trouble)
        if last is not None and same:
            out[-1] = replace(
                last,
                ended_s=step.ended_s,
                energy_j=last.energy_j + step.energy_j,
                error_j=last.error_j + step.error_j,
                busy=last.busy or step.busy,
            )
        else:
            out.append(step)
    return out


class DeviceWatch:
    """``begin`` a run, ``end`` it, ``close``. Where there is no driver it does nothing.

    The driver is looked for when the first run begins that may use a device.
    """

    def __init__(self, period_s: float = PERIOD_S) -> None:
        self.period_s = period_s
        self.lock, self.stopping = threading.Lock(), threading.Event()
        self.stack = ExitStack()
        self.session: GpuSession | None = None
        self.watched: dict[str, _Watched] = {}
        # UUIDs by run; None for a run that may use any device.
        self.held: dict[str, frozenset[str] | None] = {}
        self.begun_s: dict[str, float] = {}
        self.notes: dict[str, tuple[str, ...]] = {}
        self.looked = False
        self.thread: threading.Thread | None = None

    def begin(self, run: str, given: Sequence[str] | None) -> None:
        """Begin to count for a run; ``given`` as of ``devices_given``."""
        if given is not None and not given:
            return
        self._open()
        if self.session is None:
            if given:
                self.notes[run] = (f"GPUs: not measured, {LIBRARY} or its driver does not answer",)
            return
        uuids, unknown = self._uuids(given)
        with self.lock:
            self._read_all()
            self.held[run] = None if given is None else uuids
            self.begun_s[run] = time.monotonic()
            if unknown:
                self.notes[run] = unknown

    def so_far(self, run: str, began_s: float, ended_s: float) -> DeviceEnergy:
        """Return what a run drew between two moments of ``time.monotonic``."""
        notes = self.notes.get(run, ())
        if run not in self.held:
            return DeviceEnergy(notes=notes)
        with self.lock:
            self._read_all()
            found = self._between(self.held[run], began_s, ended_s)
        return replace(found, notes=(*notes, *found.notes))

    def end(self, run: str, began_s: float, ended_s: float) -> DeviceEnergy:
        """Return the same at the end of a run.

        It was counted as a holder from ``begin`` to now. What it did not use before its process
        began and after it ended belongs to the other holders.
        """
        found = self.so_far(run, began_s, ended_s)
        with self.lock:
            held = self.held.get(run, frozenset())
            for uuid, watched in self.watched.items():
                if run in self.held and (held is None or uuid in held):
                    watched.give_back(self.begun_s[run], began_s)
                    watched.give_back(ended_s, math.inf)
        self.forget(run)
        return found

    def forget(self, run: str) -> None:
        """End a run whose energy nobody asks for."""
        with self.lock:
            self.held.pop(run, None)
            self.begun_s.pop(run, None)
            self.notes.pop(run, None)

    def close(self) -> None:
        self.stopping.set()
        if self.thread is not None:
            self.thread.join()
        self.stack.close()
        self.session, self.thread = None, None

    def _between(self, held: frozenset[str] | None, began_s: float, ended_s: float) -> DeviceEnergy:
        by_device, sources, notes = dict[str, float](), set[DeviceSource](), list[str]()
        error_j, shared = 0.0, False
        for uuid, watched in self.watched.items():
            steps = watched.steps_between(began_s, ended_s)
            if uuid not in held if held is not None else not any(each.busy for each in steps):
                continue
            parts = [(step, step.share_of(began_s, ended_s)) for step in steps]
            by_device[uuid] = sum(step.energy_j * part for step, part in parts)
            error_j += sum(step.error_j * part for step, part in parts)
            sources.add("counter" if watched.has_counter else "power")
            shared |= held is None or watched.device.mig or any(s.holders > 1 for s in steps)
            if not watched.has_counter and steps:
                # A mean over a window shows a change of power only when the window has passed.
                error_j += watched.last.power_window_s * abs(steps[-1].power_w - steps[0].power_w)
            troubles = [each.trouble for each in steps if each.trouble]
            if watched.trouble or troubles:
                notes.append(f"GPU {uuid}: a lower bound, {watched.trouble or troubles[0]}")
            if watched.device.mig:
                notes.append(f"GPU {uuid}: MIG is enabled, this is the energy of the whole GPU")
        source = "counter and power" if len(sources) > 1 else next(iter(sources), None)
        return DeviceEnergy(by_device, source, error_j, shared, tuple(notes))

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
        except (GpuUnavailableError, ImportError):
            return
        for device in self.session.devices():
            self._watch(device)
        self.thread = threading.Thread(target=self._run, name="optbench-gpus", daemon=True)
        self.thread.start()

    def _watch(self, device: GpuDevice) -> None:
        from optbench.hardware.gpus.nvml_session import GpuError

        assert self.session is not None
        try:
            self.watched[device.uuid] = _Watched(device, self.session.read(device))
        except GpuError:
            return

    def _run(self) -> None:
        while not self.stopping.wait(self.period_s):
            with self.lock:
                if self.held:
                    self._read_all()

    def _read_all(self) -> None:
        """Read the devices that a run holds or may use; the lock is held."""
        from optbench.hardware.gpus.nvml_session import GpuError

        assert self.session is not None
        since_s = min(self.begun_s.values(), default=time.monotonic())
        for uuid, watched in self.watched.items():
            by_name = sum(held is not None and uuid in held for held in self.held.values())
            by_any = sum(held is None for held in self.held.values())
            try:
                watched.add(self.session.read(watched.device), by_name + by_any, since_s)
            except GpuError as error:
                watched.trouble = error.words
