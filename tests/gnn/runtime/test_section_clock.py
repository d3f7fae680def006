"""A throttled process has the seconds of a slower device."""

from __future__ import annotations

import time

import pytest

from optbench.errors import ParameterError
from optbench.gnn.runtime.section_clock import SectionClock, solo_speed


def spin(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_seconds_at_work_are_those_of_the_device() -> None:
    clock = SectionClock(0.25)
    wall = time.perf_counter()
    spin(0.01)
    clock.end()
    # 0.01 s of a core are 0.04 s of a device of speed 1/4; a clock that is late stays later.
    assert clock.busy_s >= 0.04 and time.perf_counter() - wall >= 0.04
    busy = clock.busy_s
    with clock.waiting():
        spin(0.005)
    assert clock.busy_s - busy < 0.02


def test_a_fast_device_never_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("it sleeps"))
    clock = SectionClock()
    spin(0.002)
    clock.end()
    assert clock.busy_s >= 0.002


def test_measured_speed_is_at_most_that_of_the_device() -> None:
    # Other load lowers it; nothing raises it but the clocks' resolution.
    assert 0 < solo_speed(0.5, sections=5, tries=1) < 0.55


@pytest.mark.parametrize(("speed", "gpu"), [(0.0, False), (1.5, False), (0.5, True)])
def test_speeds_that_no_device_has(speed: float, gpu: bool) -> None:
    with pytest.raises(ParameterError, match=f"speed is {speed}; it must be"):
        SectionClock(speed, gpu)
