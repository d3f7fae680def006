"""What a GPU drew between readings, and which runs used it then.

A run used a device in a step if one of its processes was listed there at its beginning or its end.
Where the driver hides processes, the runs used it that were given it by name. The energy of a step
is divided evenly among its runs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from optbench.hardware.gpus.gpu_device import GpuDevice, GpuReading

# Steps of a device that are kept one by one: a minute of them. Older ones are joined.
RECENT = 600
# NVML forms utilisation over up to a second: so long it does not show that processes are hidden.
UTILISATION_WINDOW_S = 1.0
# Joules that a counter must have missed to be one that moves in steps; it counts millijoules.
RESOLUTION_J = 0.01


@dataclass(frozen=True)
class DeviceUse:
    """Runs that use a device; ``others``: so does a process of none of them; ``hidden``: the driver
    does not say which processes do.
    """

    runs: frozenset[str] = frozenset()
    others: bool = False
    hidden: bool = False

    def joined(self, other: DeviceUse) -> DeviceUse:
        runs = self.runs | other.runs
        return DeviceUse(runs, self.others or other.others, self.hidden or other.hidden)


@dataclass(frozen=True)
class DeviceStep:
    """Joules between two readings of a device, or several, and how many runs used it.

    ``counter_step_j`` is the size of a step of a counter that moves in steps, ``peak_w`` the
    largest power that was read, where it was read.
    """

    began_s: float
    ended_s: float
    energy_j: float
    error_j: float
    use: DeviceUse
    holders: int
    trouble: str
    counter_step_j: float = 0.0
    peak_w: float = 0.0

    def share_of(self, run: str, began_s: float, ended_s: float) -> float:
        """The part of the step that lies between two moments, for one of its runs."""
        if run not in self.use.runs:
            return 0.0
        overlap_s = min(self.ended_s, ended_s) - max(self.began_s, began_s)
        return max(0.0, overlap_s) / (self.ended_s - self.began_s) / max(1, self.holders)

    def without(self, run: str) -> DeviceStep:
        if run not in self.use.runs:
            return self
        use = replace(self.use, runs=self.use.runs - {run})
        return replace(self, use=use, holders=self.holders - 1)

    def cut(self, at_s: float) -> list[DeviceStep]:
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
class WatchedDevice:
    """A device with its last reading, who used it then, and the steps between readings."""

    device: GpuDevice
    last: GpuReading
    last_use: DeviceUse = DeviceUse()
    steps: list[DeviceStep] = field(default_factory=list)
    trouble: str = ""
    listed_s: float = -UTILISATION_WINDOW_S
    hides: bool = False
    # Of the counter: when it last moved, by how much, and whether it was seen to stand still.
    moved_s: float | None = None
    moved_j: float = 0.0
    in_steps: bool = False

    @property
    def has_counter(self) -> bool:
        return self.last.energy_j is not None

    def hides_processes(self, reading: GpuReading, pids: Collection[int] | None) -> bool:
        """Whether the driver does not say which processes use the device: not at all, or none while
        it was busy.
        """
        if pids is None:
            return True
        if pids:
            self.listed_s, self.hides = reading.t_s, False
        elif reading.utilisation and reading.t_s - self.listed_s > UTILISATION_WINDOW_S:
            self.hides = True
        return self.hides

    def add(
        self, reading: GpuReading, use: DeviceUse, running: Collection[str], since_s: float
    ) -> None:
        """Add a reading; of the ``running`` runs none began before ``since_s``."""
        last = self.last
        if reading.t_s <= last.t_s:
            return
        during = self.last_use.joined(use)
        self.last, self.last_use, self.trouble = reading, use, ""
        energy_j, error_j, trouble = _between_readings(last, reading)
        step_j = self._counter_step_j(last, reading, energy_j)
        times_s = (last.t_s, reading.t_s)
        holders = len(during.runs)
        peak_w = max(last.power_w or 0.0, reading.power_w or 0.0)
        step = DeviceStep(*times_s, energy_j, error_j, during, holders, trouble, step_j, peak_w)
        self.steps.append(step)
        if len(self.steps) > 2 * RECENT:
            old = [each for each in self.steps[:-RECENT] if each.ended_s > since_s]
            self.steps = [*_joined(old, frozenset(running)), *self.steps[-RECENT:]]

    def _counter_step_j(self, last: GpuReading, reading: GpuReading, energy_j: float) -> float:
        """Return the size of a step of the counter, where it moves in steps: what it missed since
        it moved, if it does not move.
        """
        if reading.energy_j is None or last.energy_j is None:
            return 0.0
        if self.moved_s is None:
            self.moved_s = last.t_s
        waiting_j = (reading.power_w or 0.0) * (reading.t_s - self.moved_s)
        if energy_j > 0:
            self.moved_s, self.moved_j = reading.t_s, energy_j
        elif (reading.power_w or 0.0) * (reading.t_s - last.t_s) > RESOLUTION_J:
            self.in_steps = True
        if not self.in_steps:
            return 0.0
        return max(self.moved_j, 0.0 if energy_j > 0 else waiting_j)

    def forget(self, run: str) -> None:
        """Count a run no more from the last reading on."""
        self.last_use = replace(self.last_use, runs=self.last_use.runs - {run})

    def give_back(self, run: str, began_s: float, ended_s: float) -> None:
        """Take a run from the steps between two moments at which it turned out not to be there."""
        after = bisect_right(self.steps, began_s, key=lambda step: step.ended_s)
        pieces = [
            piece
            for step in self.steps[after:]
            for half in step.cut(began_s)
            for piece in half.cut(ended_s)
        ]
        self.steps[after:] = [
            each.without(run) if began_s <= each.began_s and each.ended_s <= ended_s else each
            for each in pieces
        ]

    def steps_between(self, began_s: float, ended_s: float) -> list[DeviceStep]:
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


def _joined(steps: Sequence[DeviceStep], running: frozenset[str]) -> list[DeviceStep]:
    """Join neighbours with the same runs; of those that have ended only the number counts."""
    out: list[DeviceStep] = []
    for each in steps:
        step = replace(each, use=replace(each.use, runs=each.use.runs & running))
        last = out[-1] if out else None
        if last is not None and _alike(last, step):
            out[-1] = replace(
                last,
                ended_s=step.ended_s,
                energy_j=last.energy_j + step.energy_j,
                error_j=last.error_j + step.error_j,
                counter_step_j=max(last.counter_step_j, step.counter_step_j),
                peak_w=max(last.peak_w, step.peak_w),
            )
        else:
            out.append(step)
    return out


def _alike(one: DeviceStep, other: DeviceStep) -> bool:
    return (one.use, one.holders, one.trouble) == (other.use, other.holders, other.trouble)
