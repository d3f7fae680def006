"""Computing time of a process, and the sleep that makes a slower device of it.

A *section* is what a process computes between two exchanges. With c seconds of processor time in
it and a device of speed s ≤ 1, the section lasts

    c / s

by the clock on the wall: the process sleeps for the rest, and what a sleep takes too long is
deducted from the next one. Processor time is that of the computing thread alone, so that processes
which share a core, and the thread that sends rows, do not count. On a GPU, whose speed is its own,
a section is measured by the wall after the device has finished, and nothing sleeps.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from optbench.errors import ParameterError, UnsupportedError

# A throttled process whose measured speed is further from its own is no such device.
SPEED_TOLERANCE = 0.1


class SectionClock:
    """Seconds at work of one device of relative speed ``speed``."""

    def __init__(self, speed: float = 1.0, gpu: bool = False) -> None:
        if not 0 < speed <= 1 or (gpu and speed != 1):
            allowed = "1 on a GPU" if gpu else "in (0, 1]: the fastest device has speed 1"
            raise ParameterError(f"speed is {speed}; it must be {allowed}")
        self.speed, self._gpu = speed, gpu
        self.busy_s, self.waited_s = 0.0, 0.0
        self._late_s = 0.0
        self.begin()

    def begin(self) -> None:
        """A section begins."""
        self._wall, self._used = time.perf_counter(), self._now()

    def end(self) -> None:
        """The section is over: sleep until a device of this speed would be done."""
        seconds = (self._now() - self._used) / self.speed
        self.busy_s += seconds
        if self.speed < 1:
            due = self._wall + seconds - self._late_s
            pause = due - time.perf_counter()
            if pause > 0:
                time.sleep(pause)
                self._late_s = time.perf_counter() - due
            else:
                # A section that others on the core have delayed is not made up for.
                self._late_s = min(self._late_s, -pause)
        self.begin()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """End the section before an exchange, and begin the next one after it."""
        self.end()
        yield
        self.waited_s += time.perf_counter() - self._wall
        self.begin()

    def _now(self) -> float:
        if not self._gpu:
            return time.thread_time()
        import torch

        torch.cuda.synchronize()
        return time.perf_counter()


def solo_speed(speed: float, sections: int = 8, tries: int = 20) -> float:
    """Measure the speed of a throttled process: processor time over time on the wall.

    Other load only lowers it, so that the highest of several tries counts.
    """
    best = 0.0
    for _ in range(tries):
        clock = SectionClock(speed)
        wall, used = time.perf_counter(), time.thread_time()
        for _ in range(sections):
            _spin(0.002)
            clock.end()
        best = max(best, (time.thread_time() - used) / (time.perf_counter() - wall))
        if best >= 0.95 * speed:
            break
    return best


def check_speeds(speeds: tuple[float, ...], measured: list[float]) -> None:
    """Refuse readings of processes that were not as fast as their devices."""
    for d, (wanted, found) in enumerate(zip(speeds, measured, strict=True)):
        if wanted < 1 and abs(found / wanted - 1) > SPEED_TOLERANCE:
            raise UnsupportedError(
                f"device {d} alone computed at {found:.3f} of a core; it stands for {wanted:.3f}, "
                f"and at most {SPEED_TOLERANCE:.0%} off is allowed. Measure while the machine has "
                "no other work"
            )


def _spin(seconds: float) -> None:
    """Compute for so much processor time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
