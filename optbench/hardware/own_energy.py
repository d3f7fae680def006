"""Measures the energy of work that this process does itself, with the processes that it starts."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection
from types import TracebackType

from optbench.hardware.cpu_run_meter import CpuRunMeter
from optbench.hardware.device_watch import DeviceWatch
from optbench.hardware.run_energy import RunEnergy
from optbench.hardware.visible_devices import devices_given

RUN = "own"


class OwnEnergy:
    """A context manager; ``so_far`` says what was drawn since it was entered, also afterwards.

    ``processor_s`` returns the processor time of this process and of all below it. A thread reads
    counters before they can wrap around twice, and calls ``on_tick`` every ``tick_s`` seconds.
    ``processes`` returns all of these processes.
    """

    def __init__(
        self,
        processor_s: Callable[[], float],
        on_tick: Callable[[RunEnergy], None] | None = None,
        tick_s: float = 10.0,
        processes: Callable[[], Collection[int]] = lambda: (os.getpid(),),
    ) -> None:
        self.processes = processes
        self.processor_s, self.on_tick, self.tick_s = processor_s, on_tick, tick_s
        self.meter, self.devices = CpuRunMeter(), DeviceWatch()
        self.lock, self.stopping = threading.Lock(), threading.Event()
        self.thread = threading.Thread(target=self._run, name="optbench-energy", daemon=True)
        self.began_s = self.processor_began_s = 0.0
        self.found: RunEnergy | None = None

    def __enter__(self) -> OwnEnergy:
        self.devices.begin(RUN, devices_given(), self.processes)
        self.began_s, self.processor_began_s = time.monotonic(), self.processor_s()
        self.meter.begin()
        self.thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stopping.set()
        self.thread.join()
        self.found = self.so_far()
        self.devices.close()

    def so_far(self) -> RunEnergy:
        if self.found is not None:
            return self.found
        with self.lock:
            energy = self.meter.so_far(self._spent_s())
            return energy.with_devices(self.devices.so_far(RUN, self.began_s, time.monotonic()))

    def _spent_s(self) -> float:
        return max(0.0, self.processor_s() - self.processor_began_s)

    def _run(self) -> None:
        told_at = self.began_s
        while not self.stopping.wait(self.meter.every_s):
            with self.lock:
                self.meter.tick(self._spent_s())
            if self.on_tick is not None and time.monotonic() - told_at >= self.tick_s:
                told_at = time.monotonic()
                self.on_tick(self.so_far())
