"""What is known of locked clocks: from the journal, inferred under load, or unknown."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from optbench.hardware.gpus.locked_clocks import locked_clocks
from optbench.hardware.gpus.nvml_session import GpuDevice, GpuReading

DEVICE = GpuDevice(0, "GPU-1", "A100", "575", 40.0, 400.0, (210, 900, 1410), False, {})
BUSY = GpuReading(0.0, 250.0, 0.0, 1.0, 900, 1215, 55.0, 1.0, ())


@dataclass(frozen=True)
class Entry:
    low_mhz: int
    high_mhz: int


@pytest.mark.parametrize(
    ("reading", "expected"),
    [
        (BUSY, ("locked", "inferred", None, 900)),
        (replace(BUSY, clock_mhz=1410), ("not locked", "inferred", None, None)),
        (replace(BUSY, throttle_reasons=("power cap",)), ("unknown", "none", None, None)),
        (replace(BUSY, utilisation=0.1), ("unknown", "none", None, None)),
        (replace(BUSY, utilisation=None), ("unknown", "none", None, None)),
        (replace(BUSY, clock_mhz=None), ("unknown", "none", None, None)),
    ],
)
def test_without_an_entry_it_is_inferred_under_load(
    reading: GpuReading, expected: tuple[object, ...]
) -> None:
    found = locked_clocks(DEVICE, reading, None)
    assert (found.state, found.source, found.low_mhz, found.high_mhz) == expected


def test_nothing_is_inferred_where_the_driver_gives_no_reasons_or_clocks() -> None:
    mute = replace(DEVICE, missing={"throttle_reasons": "too old"})
    assert locked_clocks(mute, BUSY, None).state == "unknown"
    assert locked_clocks(replace(DEVICE, clocks_mhz=()), BUSY, None).state == "unknown"


def test_the_journal_counts_for_more_than_the_reading() -> None:
    found = locked_clocks(DEVICE, replace(BUSY, utilisation=0.0), Entry(600, 900))
    assert (found.state, found.source, found.low_mhz) == ("locked", "journal", 600)
    assert found.words == "600 to 900 MHz, set by optbench"
    assert locked_clocks(DEVICE, BUSY, Entry(900, 900)).words == "900 MHz, set by optbench"
