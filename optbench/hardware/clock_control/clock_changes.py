"""From a plan and its devices to what is set when: supported clocks, and changes in order of time.

A fraction f of the top clock becomes the supported clock c nearest to f · top, the lower one of
two; its deviation is c / (f · top) − 1. Between two segments of a device a short gap keeps the
clock, and a longer one releases it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from optbench.errors import ParameterError
from optbench.hardware.clock_control.device_map import MappedDevices
from optbench.hardware.clock_control.planned_clocks import ClockPlan, PlannedSegment

if TYPE_CHECKING:
    from optbench.hardware.gpus.nvml_session import GpuDevice

MOST_DEVIATION = 0.02
# Fractions are decimal: 0.98 of 1,000 MHz is 980 MHz, a deviation of 2 % and no more.
ROUNDING = 1e-9
KEPT_GAP_S = 1.0
MOST_NAMED = 5


@dataclass(frozen=True)
class SupportedClock:
    """The clock that stands for a fraction; ``deviation`` is relative, with its sign."""

    fraction: float
    mhz: int
    deviation: float


@dataclass(frozen=True)
class ClockChange:
    """At ``at_s`` a device is locked to ``mhz`` for a task, or released after it (None)."""

    at_s: float
    device: GpuDevice
    task: str
    mhz: int | None


def supported_clock(device: GpuDevice, fraction: float) -> SupportedClock:
    """The nearest clock that a device supports, however far it is."""
    if not device.clocks_mhz:
        why = device.missing.get("clocks", "the driver does not list its clocks")
        raise ParameterError(f"device {device.index} ({device.name}, {device.uuid}): {why}")
    wanted = fraction * device.clocks_mhz[-1]
    mhz = min(device.clocks_mhz, key=lambda each: (abs(each - wanted), each))
    return SupportedClock(fraction, mhz, mhz / wanted - 1.0)


def supported_clocks(
    plan: ClockPlan, devices: MappedDevices
) -> dict[tuple[str, float], SupportedClock]:
    """The clock of each device (by UUID) and fraction of the plan; refused above 2 %."""
    out: dict[tuple[str, float], SupportedClock] = {}
    far = []
    for segment in plan.clocked:
        for device in devices_of(segment, devices):
            fraction = clock_of(segment)
            key = (device.uuid, fraction)
            if key in out:
                continue
            out[key] = found = supported_clock(device, fraction)
            if abs(found.deviation) > MOST_DEVIATION + ROUNDING:
                far.append(
                    f"clock {fraction:g} of pool {segment.pool!r} is "
                    f"{fraction * device.clocks_mhz[-1]:,.0f} MHz on device {device.index} "
                    f"({device.name}); the nearest it has is {found.mhz:,} MHz, "
                    f"{found.deviation:+.1%}"
                )
    if far:
        more = f"\n... and {len(far) - MOST_NAMED} more" if len(far) > MOST_NAMED else ""
        lines = "\n".join(far[:MOST_NAMED])
        raise ParameterError(
            f"{lines}{more}\nA deviation of more than {MOST_DEVIATION:.0%} is refused: the "
            "schedule's times and energies would not hold. Declare the pool with clocks that the "
            "device has (`optbench gpu calibrate` writes such a profile), and solve again"
        )
    return out


def clock_changes(
    plan: ClockPlan,
    devices: MappedDevices,
    clocks: Mapping[tuple[str, float], SupportedClock],
    kept_gap_s: float = KEPT_GAP_S,
) -> tuple[ClockChange, ...]:
    """What is set when, in order of time; at one time releases come first."""
    runs: dict[str, list[PlannedSegment]] = defaultdict(list)
    known: dict[str, GpuDevice] = {}
    for segment in plan.clocked:
        for device in devices_of(segment, devices):
            runs[device.uuid].append(segment)
            known[device.uuid] = device
    out: list[ClockChange] = []
    for uuid, own in runs.items():
        out += _changes_of(known[uuid], own, clocks, kept_gap_s)
    return tuple(sorted(out, key=lambda each: (each.at_s, each.mhz is not None)))


def _changes_of(
    device: GpuDevice,
    own: list[PlannedSegment],
    clocks: Mapping[tuple[str, float], SupportedClock],
    kept_gap_s: float,
) -> Iterable[ClockChange]:
    """Changes of one device; equal clocks that follow each other are one change."""
    locked: int | None = None
    for k, segment in enumerate(own):
        mhz = clocks[device.uuid, clock_of(segment)].mhz
        if mhz != locked:
            yield ClockChange(segment.start_s, device, segment.task, mhz)
            locked = mhz
        following = own[k + 1].start_s if k + 1 < len(own) else float("inf")
        if following - segment.end_s > kept_gap_s:
            yield ClockChange(segment.end_s, device, segment.task, None)
            locked = None


def devices_of(segment: PlannedSegment, devices: MappedDevices) -> tuple[GpuDevice, ...]:
    """The devices that a segment runs on."""
    if segment.pool is None:
        return ()
    return tuple(devices.device(segment.pool, place) for place in segment.places)


def clock_of(segment: PlannedSegment) -> float:
    """The fraction of a segment that has one."""
    if segment.clock is None:
        raise ParameterError(f"task {segment.task!r} has no clock in the schedule")
    return segment.clock
