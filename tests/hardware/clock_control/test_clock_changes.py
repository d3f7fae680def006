"""Fractions become supported clocks; segments become changes, with kept and released gaps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optbench.errors import ParameterError
from optbench.hardware.clock_control.clock_changes import (
    clock_changes,
    supported_clock,
    supported_clocks,
)
from optbench.hardware.clock_control.device_map import MappedDevices
from optbench.hardware.clock_control.planned_clocks import ClockPlan
from tests.hardware.clock_control.plans import A100, device, plan_of, segment

DEVICES = MappedDevices({"p": (device(0), device(1))}, True)


def changes_of(plan: ClockPlan, kept_gap_s: float = 1.0) -> list[tuple[float, int, int | None]]:
    """Time, device and clock of each change."""
    clocks = supported_clocks(plan, DEVICES)
    found = clock_changes(plan, DEVICES, clocks, kept_gap_s)
    return [(each.at_s, each.device.index, each.mhz) for each in found]


def test_a_fraction_is_the_nearest_clock_and_the_lower_of_two() -> None:
    # Clocks are 210, 225, ..., 1410. 0.5 is 705; 0.6 is 846: 840 is nearer than 855.
    assert supported_clock(A100, 0.5).mhz == 705
    found = supported_clock(A100, 0.6)
    assert found.mhz == 840
    assert found.deviation == pytest.approx(840 / 846 - 1)
    # 0.75 of 1000 lies in the middle between 700 and 800.
    assert supported_clock(replace(A100, clocks_mhz=(700, 800, 1000)), 0.75).mhz == 700


def test_two_per_cent_is_allowed_and_more_is_refused_with_every_figure() -> None:
    # 0.98 of 1000 MHz is 980; 0.5 is 500, and 510 is 2 % more.
    edge = replace(A100, clocks_mhz=(510, 1000))
    plan = plan_of(segment("x", 0, 1, (0,), 0.5))
    assert supported_clocks(plan, MappedDevices({"p": (edge,)}, True))[edge.uuid, 0.5].mhz == 510
    far = replace(A100, clocks_mhz=(511, 1000))
    told = (
        r"clock 0\.5 of pool 'p' is 500 MHz on device 0 \(A100\); the nearest .* 511 MHz, \+2\.2%"
    )
    with pytest.raises(ParameterError, match=told):
        supported_clocks(plan, MappedDevices({"p": (far,)}, True))
    with pytest.raises(ParameterError, match="more than 2% is refused"):
        supported_clocks(plan, MappedDevices({"p": (far,)}, True))


def test_a_device_without_a_list_of_clocks_is_refused_with_the_reason() -> None:
    mute = replace(A100, clocks_mhz=(), missing={"clocks": "too old a driver"})
    with pytest.raises(ParameterError, match="GPU-a0\\): too old a driver"):
        supported_clock(mute, 1.0)


def test_segments_that_follow_each_other_are_locked_without_a_release() -> None:
    plan = plan_of(segment("x", 0, 2, (0,), 0.5), segment("y", 2, 3, (0,), 1.0))
    assert changes_of(plan) == [(0, 0, 705), (2, 0, 1410), (3, 0, None)]


def test_the_same_clock_is_not_set_again() -> None:
    plan = plan_of(segment("x", 0, 2, (0,), 0.5), segment("y", 2.5, 3, (0,), 0.5))
    assert changes_of(plan) == [(0, 0, 705), (3, 0, None)]


def test_a_gap_keeps_the_clock_up_to_a_length_and_releases_it_beyond() -> None:
    plan = plan_of(segment("x", 0, 2, (0,), 0.5), segment("y", 3, 4, (0,), 1.0))
    kept = [(0, 0, 705), (3, 0, 1410), (4, 0, None)]
    released = [(0, 0, 705), (2, 0, None), (3, 0, 1410), (4, 0, None)]
    assert changes_of(plan, kept_gap_s=1.0) == kept
    assert changes_of(plan, kept_gap_s=0.5) == released
    assert changes_of(plan, kept_gap_s=0.0) == released


def test_a_segment_on_two_devices_changes_both_and_releases_come_first() -> None:
    plan = plan_of(segment("x", 0, 2, (0, 1), 0.5), segment("y", 2, 3, (1,), 1.0))
    assert changes_of(plan) == [
        (0, 0, 705),
        (0, 1, 705),
        (2, 0, None),
        (2, 1, 1410),
        (3, 1, None),
    ]
