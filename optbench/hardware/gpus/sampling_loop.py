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

from optbench.hardware.gpus.device_reader import DeviceReader, Moment, SlowValues
from optbench.hardware.gpus.nvml_errors import GpuError

Ended = Literal["finished", "interrupted", "lost"]
# Temperature, utilisation and memory clock are read this often at most.
SLOW_EVERY_S = 0.5


class SamplingListener:
    """What is told of a loop; a subclass overrides what it uses."""

    def take(self, position: int, moment: Moment, slow: SlowValues) -> None:
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


def sample(
    readers: Sequence[DeviceReader],
    period_s: float,
    seconds: float | None,
    stop: threading.Event,
    listener: SamplingListener,
) -> SamplingResult:
    """Read until ``seconds`` are over (None: until ``stop`` is set)."""
    out = SamplingResult()
    slow: dict[int, SlowValues] = {}
    answering = dict(enumerate(readers))
    began_s, used_s = time.monotonic(), time.process_time()
    slow_due_s, k = began_s, 0
    while True:
        now_s = time.monotonic()
        is_slow = now_s >= slow_due_s
        if is_slow:
            slow_due_s = now_s + SLOW_EVERY_S
        for position, reader in tuple(answering.items()):
            try:
                moment = reader.moment()
                if is_slow:
                    slow[position] = reader.slow_values()
            except GpuError as error:
                out.lost[position] = error
                del answering[position]
                listener.lose(position, error)
            else:
                listener.take(position, moment, slow[position])
        out.ticks += 1
        now_s = time.monotonic()
        out.span_s = now_s - began_s
        listener.tick(out.span_s)
        following = max(k + 1, math.ceil((now_s - began_s) / period_s))
        out.missed_ticks += following - k - 1
        k = following
        if not answering:
            out.ended = "lost"
            break
        if seconds is not None and k * period_s > seconds * (1 + 1e-9):
            break
        if stop.wait(max(0.0, began_s + k * period_s - time.monotonic())):
            out.ended = "interrupted"
            break
    out.processor_s = time.process_time() - used_s
    return out
