"""Read devices at a fixed period until the time is over, somebody stops it, or all are lost.

There is no thread: the loop waits for the next tick, reads every device and hands the readings to a
function. Ticks lie near a grid, so that a late one does not move those that follow; ticks that pass
while the loop is kept waiting are missed, counted and not made up for.

Tick k is due at t_k = (k + s_k) T for the period T, with shifts

    s_k = Λ(1/4 + k a) − 1/2,    Λ(x) = 1 − |2 (x mod 1) − 1|,    a = 1 / (13 + (√5 − 1)/2) = 0.0734

so that s_0 = 0; the first and the last tick lie on the grid. On the grid itself, power that repeats
with a multiple of T would be met at the same phases for ever, and the integral be wrong without a
sign. The shifts are uniform in [−1/2, 1/2] along every arithmetic sequence of k, so that each phase
is met as often as it lasts. Each shift is met as often while s rises as while it falls, which makes
the mean weight of a reading in the trapezoids T at every phase: the integral is right on average,
and its stated error is that of readings that meet spikes by chance. Intervals lie between 0.85 T
and 1.15 T. Only periods near irrational parts of T, such as T / (1 + 2 a), stay in step for long.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from optbench.hardware.gpus.device_reader import DeviceReader, QuickValues, SlowValues
from optbench.hardware.gpus.nvml_errors import GpuError

Ended = Literal["finished", "interrupted", "lost"]
# Clocks with their reasons, and what changes slowly, are read this often at most; power and counter
# at every tick.
CLOCK_EVERY_S, SLOW_EVERY_S = 0.1, 0.5
# The step of the shifts: as irrational as the golden ratio.
SHIFT_STEP = 1 / (13 + (math.sqrt(5) - 1) / 2)


class SamplingListener:
    """What is told of a loop; a subclass overrides what it uses."""

    def take(self, position: int, moment: QuickValues, slow: SlowValues) -> None:
        """A reading of a device by its position: what changes quickly, and the last of the rest."""

    def lose(self, position: int, error: GpuError) -> None:
        """A device does not answer any more."""

    def tick(self, passed_s: float) -> None:
        """All devices have been read."""


@dataclass
class SamplingResult:
    """How a loop went."""

    ended: Ended = "finished"
    ticks: int = 0
    missed_ticks: int = 0
    # Positions of devices that stopped answering, and why.
    lost: dict[int, GpuError] = field(default_factory=dict)
    processor_s: float = 0.0
    span_s: float = 0.0


class DeviceRound:
    """Reads all devices that still answer, each value as often as it is worth."""

    def __init__(
        self,
        readers: Sequence[DeviceReader],
        period_s: float,
        listener: SamplingListener,
        lost: dict[int, GpuError],
    ) -> None:
        self.period_s, self.listener, self.lost = period_s, listener, lost
        self.answering = dict(enumerate(readers))
        self._clocks: dict[int, tuple[float, int]] = {}
        self._slow: dict[int, SlowValues] = {}
        self._clocks_due_s = self._slow_due_s = -math.inf

    def read(self) -> None:
        """One tick."""
        now_s = time.monotonic()
        with_clocks, with_slow = now_s >= self._clocks_due_s, now_s >= self._slow_due_s
        if with_clocks:  # half a period early: a tick is never exactly on time
            self._clocks_due_s = now_s + CLOCK_EVERY_S - self.period_s / 2
        if with_slow:
            self._slow_due_s = now_s + SLOW_EVERY_S - self.period_s / 2
        for position, reader in tuple(self.answering.items()):
            try:
                power = reader.power()
                if with_clocks:
                    self._clocks[position] = reader.clock()
                if with_slow:
                    self._slow[position] = reader.slow_values()
            except GpuError as error:
                self.lost[position] = error
                del self.answering[position]
                self.listener.lose(position, error)
            else:
                quick = QuickValues(*power, *self._clocks[position])
                self.listener.take(position, quick, self._slow[position])


def tick_shift(k: int) -> float:
    """How far tick ``k`` lies from the grid, in periods: −0.5 to 0.5."""
    return 0.5 - abs(2 * ((0.25 + k * SHIFT_STEP) % 1.0) - 1)


def sample(
    readers: Sequence[DeviceReader],
    period_s: float,
    seconds: float | None,
    stop: threading.Event,
    listener: SamplingListener,
) -> SamplingResult:
    """Read until ``seconds`` are over (None: until ``stop`` is set)."""
    out = SamplingResult()
    devices = DeviceRound(readers, period_s, listener, out.lost)
    began_s, used_s, k = time.monotonic(), time.process_time(), 0
    while True:
        devices.read()
        out.ticks += 1
        out.span_s = time.monotonic() - began_s
        listener.tick(out.span_s)
        following = _following(k, out.span_s / period_s)
        out.missed_ticks += following - k - 1
        k = following
        if not devices.answering:
            out.ended = "lost"
            break
        most = math.inf if seconds is None else seconds / period_s * (1 + 1e-9)
        if k > most:
            break
        due_s = (k if k + 1 > most else k + tick_shift(k)) * period_s
        if stop.wait(max(0.0, began_s + due_s - time.monotonic())):
            out.ended = "interrupted"
            break
    out.processor_s = time.process_time() - used_s
    return out


def _following(k: int, passed: float) -> int:
    """The first tick after ``k`` that is not over; ``passed`` periods are."""
    following = max(k + 1, math.floor(passed) - 1)
    while following + tick_shift(following) < passed:
        following += 1
    return following
