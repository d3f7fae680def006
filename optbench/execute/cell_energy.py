"""The energy of cells, put together outside of them: processors by the slot, GPUs by the runner."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from optbench.hardware.cpu_energy.assumed_power import assumed_w
from optbench.hardware.device_watch import DeviceWatch
from optbench.hardware.run_energy import RunEnergy
from optbench.hardware.visible_devices import devices_given
from optbench.sandbox import process_tree


class CellEnergies:
    """``begin`` a job, ``end`` it with its slot's message; of the slots of one machine.

    ``environment`` is that of the cells, by default this process's. Two jobs at the same time
    share the packages of the machine, even where one of them was asleep.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self.environment = environment
        assumed_w(environment)  # a wrong setting is refused before the first cell
        self.devices = DeviceWatch()
        self.running: set[str] = set()
        self.overlapping: set[str] = set()

    def begin(
        self,
        key: str,
        given: Sequence[str] | None = None,
        slot: Callable[[], int | None] = lambda: None,
    ) -> None:
        """Begin a job; ``given`` are its GPUs, by default those that all cells may use; ``slot``
        returns the process that starts and ends it, below which there are only its own.
        """

        def processes() -> Sequence[int]:
            pid = slot()
            return () if pid is None else process_tree.descendants(pid)

        every = devices_given(self.environment)
        self.devices.begin(key, every if given is None else given, processes)
        self.running.add(key)
        if len(self.running) > 1:
            self.overlapping |= self.running

    def end(self, key: str, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return the energy of a job as plain JSON; empty where it was stopped or not started."""
        if "energy" not in message:
            self.forget(key)
            return {}
        self.running.discard(key)
        found = RunEnergy.from_dict(message["energy"])
        found = found.with_devices(self.devices.end(key, *message["span_s"]))
        if key in self.overlapping and not found.estimated:
            found = found.shared_with_others()
        self.overlapping.discard(key)
        return found.to_dict()

    def forget(self, key: str) -> None:
        """End a job that was stopped or lost."""
        self.running.discard(key)
        self.overlapping.discard(key)
        self.devices.forget(key)

    def clear(self) -> None:
        for key in list(self.running):
            self.forget(key)

    def close(self) -> None:
        self.clear()
        self.devices.close()
        self.devices = DeviceWatch()
