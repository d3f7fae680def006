"""Read devices at a fixed period until the time is over, somebody stops it, or all are lost.

There is no thread: the loop waits for the next tick, reads every device and hands the readings to a
function. Ticks lie on a grid, so that a late one does not move those that follow; ticks that pass
while the loop is kept waiting are missed, counted and not made up for.
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
        following = max(k + 1, math.ceil(out.span_s / period_s))
        out.missed_ticks += following - k - 1
        k = following
        if not devices.answering:
            out.ended = "lost"
            break
        if seconds is not None and k * period_s > seconds * (1 + 1e-9):
            break
        if stop.wait(max(0.0, began_s + k * period_s - time.monotonic())):
            out.ended = "interrupted"
            break
    out.processor_s = time.process_time() - used_s
    return out
