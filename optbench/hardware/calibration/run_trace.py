"""One run of the load at one clock on some devices: sampled, and judged.

A run is refused, with the reason in words, if a device was throttled or did not hold the clock that
was set, if its power was never steady, or if power or time scatter too much to be measured.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import numpy as np

from optbench.hardware.calibration.calibration_target import CalibrationTarget, DeviceSample
from optbench.hardware.calibration.load_program import LoadError, LoadLine, running_load
from optbench.hardware.calibration.steady_state import (
    PowerSeries,
    SteadyPart,
    by_counter,
    by_readings,
    steady_part,
)

# A run is throttled if a reason was given in more than this share of its readings, or if its clock
# is off by more than this share.
THROTTLED_SHARE, CLOCK_OFF = 0.01, 0.02
# The last line of a load arrives a moment after the work has ended, when the device is idle: the
# end of the work is left out, this share of it, and at most so many seconds.
END_SHARE, END_S = 0.15, 0.3
# A device that works less than this has not got the load; utilisation is late by about a second,
# and some readings of it are needed.
IDLE_SHARE, IDLE_AFTER_S, IDLE_READINGS = 0.1, 1.0, 10


@dataclass(frozen=True)
class RunSettings:
    """How one run is measured."""

    period_s: float  # of samples
    measure_s: float  # least steady time
    noise: float  # largest relative scatter of blocks of power, and error of the time per unit
    limit_s: float  # a program that takes longer is ended
    settle_s: float = 0.0  # left out from the beginning of the work


@dataclass
class RunTrace:
    """Samples of each device, and the lines of the load."""

    samples: list[list[DeviceSample]]
    lines: list[LoadLine] = field(default_factory=list)

    @property
    def begin_s(self) -> float:
        return min(line.begin_s for line in self.lines)

    @property
    def end_s(self) -> float:
        return max(line.at_s for line in self.lines)


@dataclass(frozen=True)
class MeasuredRun:
    """What one run says: mean power of a device, and seconds per unit of all together."""

    clock_mhz: int  # as it was set; 0 where no clock can be set
    count: int
    round: int
    watts: float
    seconds_per_unit: float
    units: float
    steady_s: float
    scatter: float  # of blocks of power, relative
    source: str  # of the power: "counter" or "readings"
    seen_mhz: float | None
    temperature_c: float | None
    refused: str = ""


def trace_idle(
    target: CalibrationTarget, seconds: float, period_s: float, on_sample: Callable[[], None]
) -> RunTrace:
    """Sample all devices without a load."""
    trace = RunTrace([[] for _ in target.devices])
    began_s = time.monotonic()
    while (now := time.monotonic()) < began_s + seconds:
        _sample(target, trace)
        on_sample()
        time.sleep(max(0.0, now + period_s - time.monotonic()))
    trace.lines.append(LoadLine(now, 1.0, now - began_s))
    return trace


def trace_load(
    target: CalibrationTarget,
    count: int,
    command: Sequence[str],
    settings: RunSettings,
    on_sample: Callable[[], None],
) -> RunTrace:
    """Run the load on the first ``count`` devices, and sample them until it ends."""
    trace = RunTrace([[] for _ in range(count)])
    with ExitStack() as stack:
        with target.placed(count):
            load = stack.enter_context(running_load(command, target.environment()))
        following_s = load.began_s
        while not load.ended:
            following_s = max(following_s + settings.period_s, time.monotonic())
            _sample(target, trace)
            on_sample()
            load.read_until(following_s)
            if time.monotonic() - load.began_s > settings.limit_s:
                raise LoadError(
                    f"{load.name} still runs after {settings.limit_s:.0f} s; give it less work, "
                    "or allow more time with --run-limit"
                )
        load.check_end()
        trace.lines += load.lines
    return trace


def _sample(target: CalibrationTarget, trace: RunTrace) -> None:
    for device, samples in enumerate(trace.samples):
        samples.append(target.read(device))


def judge_run(
    trace: RunTrace,
    clock_mhz: int | None,
    window_s: float,
    settings: RunSettings,
    round_number: int = 0,
) -> MeasuredRun:
    """Power and time of a run in its steady part; ``clock_mhz`` is the one that was set."""
    begin_s = trace.begin_s + settings.settle_s
    end_s = trace.end_s - min(END_S, END_SHARE * (trace.end_s - trace.begin_s))
    power = [
        _device_power(samples, begin_s, end_s, window_s, settings) for samples in trace.samples
    ]
    steady = [part for part, _ in power if isinstance(part, SteadyPart)]
    reason = next((part for part, _ in power if isinstance(part, str)), "")
    lines = [
        line
        for line in trace.lines
        if not steady or line.begin_s >= min(part.begin_s for part in steady) - window_s
    ] or trace.lines
    units, seconds = sum(line.units for line in lines), sum(line.seconds for line in lines)
    during = [
        [each for each in samples if trace.begin_s <= each.t_s <= end_s]
        for samples in trace.samples
    ]
    reason = (
        _throttled(during, clock_mhz)
        or _unused(during)
        or reason
        or _noisy(steady, lines, settings.noise)
    )
    warmth = [s.temperature_c for samples in during for s in samples if s.temperature_c is not None]
    watts = float(np.mean([part.watts for part in steady])) if steady else 0.0
    return MeasuredRun(
        clock_mhz=clock_mhz or 0,
        count=len(trace.samples),
        round=round_number,
        watts=watts,
        seconds_per_unit=seconds / units,
        units=units,
        steady_s=min((part.end_s - part.begin_s for part in steady), default=0.0),
        scatter=max((part.scatter for part in steady), default=0.0),
        source=power[0][1],
        seen_mhz=_median_clock(during),
        temperature_c=max(warmth, default=None),
        refused=reason,
    )


def _device_power(
    samples: Sequence[DeviceSample],
    begin_s: float,
    end_s: float,
    window_s: float,
    settings: RunSettings,
) -> tuple[SteadyPart | str, str]:
    """The steady part of one device and the source of its power: the counter where there is one,
    else readings."""
    series, source = power_series(samples, window_s)
    if series is None:
        return "the device says neither its power nor its energy", source
    window_s = 0.0 if source == "counter" else window_s
    return steady_part(series, begin_s, end_s, window_s, settings.measure_s), source


def power_series(
    samples: Sequence[DeviceSample], window_s: float
) -> tuple[PowerSeries | None, str]:
    """Power over time and its source."""
    counted = [(s.t_s, s.energy_j) for s in samples if s.energy_j is not None]
    if len(counted) > 1:
        times_s, energy_j = zip(*counted, strict=True)
        return by_counter(times_s, energy_j), "counter"
    read = [(s.t_s, s.power_w) for s in samples if s.power_w is not None]
    if read:
        times_s, watts = zip(*read, strict=True)
        return by_readings(times_s, watts, window_s), "readings"
    return None, "none"


def _throttled(during: Sequence[Sequence[DeviceSample]], clock_mhz: int | None) -> str:
    for samples in during:
        reasons = Counter(reason for each in samples for reason in set(each.throttled))
        if reasons:
            reason, times = reasons.most_common(1)[0]
            if times > THROTTLED_SHARE * len(samples):
                share = 100 * times / len(samples)
                return f"throttled by {reason} in {share:.0f} % of the readings"
        clocks = [each.clock_mhz for each in samples if each.clock_mhz is not None]
        if clock_mhz is not None and clocks:
            seen = float(np.median(clocks))
            if abs(seen / clock_mhz - 1) > CLOCK_OFF:
                return f"ran at {seen:.0f} MHz, not at the {clock_mhz:.0f} MHz that were set"
    return ""


def _unused(during: Sequence[Sequence[DeviceSample]]) -> str:
    for samples in during:
        after_s = samples[0].t_s + IDLE_AFTER_S if samples else 0.0
        late = [each for each in samples if each.t_s > after_s]
        shares = [each.utilisation for each in late if each.utilisation is not None]
        if len(shares) >= IDLE_READINGS and float(np.mean(shares)) < IDLE_SHARE:
            return (
                f"the device was only {100 * np.mean(shares):.0f} % busy: the load does not use "
                "{device}, or it waits"
            )
    return ""


def _median_clock(during: Sequence[Sequence[DeviceSample]]) -> float | None:
    clocks = [s.clock_mhz for samples in during for s in samples if s.clock_mhz is not None]
    return float(np.median(clocks)) if clocks else None


def _noisy(steady: Sequence[SteadyPart], lines: Sequence[LoadLine], noise: float) -> str:
    for part in steady:
        if part.scatter > noise:
            return (
                f"noisy: the power in blocks of {part.block_s:.2g} s scatters by "
                f"{100 * part.scatter:.1f} %, more than {100 * noise:.1f} %"
            )
    per_unit = np.array([line.seconds / line.units for line in lines])
    if len(per_unit) > 1:
        error = float(per_unit.std(ddof=1) / per_unit.mean() / len(per_unit) ** 0.5)
        if error > noise:
            return (
                f"noisy: the mean time per unit of {len(per_unit)} lines is known to "
                f"{100 * error:.1f} % only, more than {100 * noise:.1f} %"
            )
    return ""
