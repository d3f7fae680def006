"""The energy of one run of a program: of its processors and, where it used some, of its GPUs.

It is measured by the process that started the run, never by the run itself. What can only be
measured stands apart from the verified metrics: it enters no objective, bound or gap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

CpuSource = Literal["powercap", "estimate"]
# NVML's counter; the integral of sampled power; both, on different devices.
DeviceSource = Literal["counter", "power", "counter and power"]


@dataclass(frozen=True)
class DeviceEnergy:
    """Joules of GPUs during a run by UUID; without devices nothing was used or measured.

    ``error_j`` is how far an integral of power, or a counter that moves in steps, may be off;
    ``shared``: others used a device at the same time. It is not ``complete`` where a device that
    the run may have used was not measured, or where a figure is only a lower bound.
    """

    by_device_j: Mapping[str, float] = field(default_factory=dict)
    source: DeviceSource | None = None
    error_j: float = 0.0
    shared: bool = False
    notes: tuple[str, ...] = ()
    complete: bool = True

    @property
    def energy_j(self) -> float | None:
        return sum(self.by_device_j.values()) if self.by_device_j else None


@dataclass(frozen=True)
class RunEnergy:
    """Joules of a run, where they come from, and what is uncertain about them in ``notes``.

    ``cpu_j`` is the run's share (``cpu_share``) of what its packages and their memory drew, or its
    ``cpu_s`` processor seconds times ``assumed_w``. A package is ``cpu_shared`` if other processes
    used it meanwhile. ``cpu_complete`` is False where ``cpu_j`` is only a lower bound.
    """

    cpu_j: float
    cpu_source: CpuSource
    cpu_s: float
    cpu_share: float | None = None
    cpu_shared: bool = False
    assumed_w: float | None = None
    devices: DeviceEnergy = DeviceEnergy()
    notes: tuple[str, ...] = ()
    cpu_complete: bool = True

    @property
    def energy_j(self) -> float:
        return self.cpu_j + (self.devices.energy_j or 0.0)

    @property
    def estimated(self) -> bool:
        """Whether a part of it was not measured."""
        return self.cpu_source == "estimate"

    @property
    def complete(self) -> bool:
        """Whether nothing is missing: an estimate counts, a lower bound does not."""
        return self.cpu_complete and self.devices.complete

    def with_devices(self, devices: DeviceEnergy) -> RunEnergy:
        return replace(self, devices=devices)

    def shared_with_others(self) -> RunEnergy:
        """Return it marked as shared: another run was going on at the same time."""
        return replace(self, cpu_shared=True)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON, with joules to the microjoule, the resolution of the counters."""
        devices = self.devices
        return {
            "energy_j": round(self.energy_j, 6),
            "estimated": self.estimated,
            "complete": self.complete,
            "cpu_j": round(self.cpu_j, 6),
            "cpu_source": self.cpu_source,
            "cpu_s": round(self.cpu_s, 6),
            "cpu_share": None if self.cpu_share is None else round(self.cpu_share, 6),
            "cpu_shared": self.cpu_shared,
            "assumed_w": self.assumed_w,
            "device_j": None if devices.energy_j is None else round(devices.energy_j, 6),
            "device_source": devices.source,
            "device_error_j": round(devices.error_j, 6),
            "device_shared": devices.shared,
            "by_device_j": {name: round(each, 6) for name, each in devices.by_device_j.items()},
            "notes": [*self.notes, *devices.notes],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RunEnergy:
        """Read what ``to_dict`` wrote; notes and completeness of both parts are kept
        together.
        """
        devices = DeviceEnergy(
            dict(data["by_device_j"]),
            data["device_source"],
            data["device_error_j"],
            data["device_shared"],
        )
        names = ("cpu_j", "cpu_source", "cpu_s", "cpu_share", "cpu_shared", "assumed_w")
        known = {name: data[name] for name in names}
        notes, complete = tuple(data["notes"]), bool(data.get("complete", True))
        return cls(**known, devices=devices, notes=notes, cpu_complete=complete)
