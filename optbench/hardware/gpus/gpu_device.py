"""A GPU as its driver describes it, and what it says at a moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class GpuDevice:
    """What does not change of a device while it is there."""

    index: int
    uuid: str
    name: str
    driver: str
    memory_gb: float | None
    power_limit_w: float | None
    # Supported graphics clocks, ascending; empty where the driver does not say.
    clocks_mhz: tuple[int, ...]
    # MIG is enabled: no clock control, and power is that of all instances together.
    mig: bool
    # Capability, such as "energy_counter" or "clock_lock", to the reason why it is missing.
    missing: Mapping[str, str]

    @property
    def title(self) -> str:
        """How messages name the device."""
        known = ", ".join(word for word in (self.name, self.uuid) if word)
        return f"GPU {self.index} ({known})" if known else f"GPU {self.index}"


@dataclass(frozen=True)
class GpuReading:
    """What a device says at a moment; None where the driver does not say."""

    t_s: float  # time.monotonic()
    power_w: float | None
    power_window_s: float  # 0: the power of the moment; else the mean of that long
    energy_j: float | None  # NVML's counter
    clock_mhz: int | None
    memory_clock_mhz: int | None
    temperature_c: float | None
    utilisation: float | None  # 0 to 1
    throttle_reasons: tuple[str, ...]


# Bits of nvmlDeviceGetCurrentClocksEventReasons.
THROTTLE_REASONS: Mapping[int, str] = {
    0x1: "idle",
    0x2: "applications clocks",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
    0x100: "display clock",
    0x200: "board limit",
    0x400: "reliability",
}


def reason_words(bits: int) -> tuple[str, ...]:
    """The reasons why a clock is not higher, in words; unknown bits by their number."""
    known = tuple(words for bit, words in THROTTLE_REASONS.items() if bits & bit)
    rest = bits & ~sum(THROTTLE_REASONS)
    return (*known, f"reason {rest:#x}") if rest else known
