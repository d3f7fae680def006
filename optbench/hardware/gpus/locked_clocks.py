"""What is known of a device's locked clocks: NVML sets and resets them and cannot read them.

Known is what our own journal says was set. Without an entry it can be inferred under load alone: a
clock below the highest supported one for which the driver gives no reason was locked by somebody.
Everything else is unknown, and at the highest clock under load nothing below it is locked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from optbench.hardware.gpus.nvml_session import GpuDevice, GpuReading

# A device works where it is used at least this share of the time.
UNDER_LOAD = 0.5


class JournalEntry(Protocol):
    """What a journal says it set on a device."""

    @property
    def low_mhz(self) -> int: ...
    @property
    def high_mhz(self) -> int: ...


@dataclass(frozen=True)
class LockedClocks:
    """A range of clocks, None where it is not known or not locked, and how that is known."""

    state: Literal["locked", "not locked", "unknown"]
    source: Literal["journal", "inferred", "none"]
    low_mhz: int | None
    high_mhz: int | None
    words: str


UNKNOWN = LockedClocks("unknown", "none", None, None, "unknown")


def locked_clocks(
    device: GpuDevice, reading: GpuReading, entry: JournalEntry | None
) -> LockedClocks:
    """What is known of the locked clocks of a device."""
    if entry is not None:
        words = f"{entry.low_mhz} to {entry.high_mhz} MHz, set by optbench"
        if entry.low_mhz == entry.high_mhz:
            words = f"{entry.high_mhz} MHz, set by optbench"
        return LockedClocks("locked", "journal", entry.low_mhz, entry.high_mhz, words)
    clock, works = reading.clock_mhz, (reading.utilisation or 0.0) >= UNDER_LOAD
    if clock is None or not device.clocks_mhz or not works:
        return UNKNOWN
    if clock >= device.clocks_mhz[-1]:
        return LockedClocks("not locked", "inferred", None, None, "not locked (inferred)")
    if reading.throttle_reasons or "throttle_reasons" in device.missing:
        return UNKNOWN
    words = f"{clock} MHz at most (inferred under load)"
    return LockedClocks("locked", "inferred", None, clock, words)
