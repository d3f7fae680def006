"""What a sweep does: clocks, device counts, runs and their order, and how long it takes.

Clocks are given in MHz, or as fractions of the top clock, or are spread evenly over a range. Each
becomes the nearest clock that the device supports. A round runs every point (clock, count) once, in
an order of its own that depends on the seed alone, so that a slow drift of temperature is not taken
for an effect of the clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optbench.errors import ParameterError, UnsupportedError
from optbench.hardware.calibration.calibration_target import CalibrationTarget
from optbench.hardware.calibration.load_program import check_workload

# A clock may be off from the one asked for by this share, as in `gpu apply`.
MOST_OFF = 0.02
# The cubic of power has three coefficients, and a fourth clock shows whether it holds.
LEAST_CLOCKS = 4
# Runs of one point whose scatter can be estimated.
LEAST_RUNS = 2
# A load works longer than it is measured, for the ends that are left out.
ROOM = 1.4
RUN_LIMIT_S = 600.0
# Steadiness shows in blocks as long as the window of the readings, and in four of them at least.
WINDOWS = 4.5


@dataclass(frozen=True)
class SweepSettings:
    """What a sweep measures, and how well."""

    workload: str
    size: int = 1000
    clocks: tuple[float, ...] = ()  # MHz above 1, else fractions; empty: ``levels`` over ``span``
    span: tuple[float, float] = (0.0, 1.0)
    levels: int = 8
    counts: tuple[int, ...] = ()  # empty: 1, 2, 4, ... up to all devices
    rounds: tuple[int, int] = (2, 12)
    precision: float = 0.005
    noise: float = 0.03
    measure_s: float = 8.0
    settle_s: float = 1.0
    idle_s: float = 10.0
    period_s: float = 0.02
    run_limit_s: float | None = None  # None: ten minutes, or twice what the longest run should take
    retries: int = 1
    leave_out: bool = False
    seed: int = 0
    start_s: float = 0.5  # about what the program takes before it works

    def __post_init__(self) -> None:
        check_workload(self.workload)
        low, high = self.rounds
        if not 1 <= low <= high:
            raise ParameterError(f"rounds are {low} to {high}; the first must not exceed the last")


@dataclass(frozen=True)
class SweepPoint:
    """A clock that is set (None: the one there is) and a number of devices."""

    clock_mhz: int | None
    count: int

    def __str__(self) -> str:
        clock = "the fixed clock" if self.clock_mhz is None else f"{self.clock_mhz} MHz"
        return f"{clock} on {self.count} device{'s' if self.count > 1 else ''}"


@dataclass(frozen=True)
class SweepPlan:
    """The points of a round."""

    settings: SweepSettings
    clocks_mhz: tuple[int, ...]  # empty: the one there is
    counts: tuple[int, ...]
    window_s: float

    @property
    def points(self) -> tuple[SweepPoint, ...]:
        clocks: Sequence[int | None] = self.clocks_mhz or (None,)
        return tuple(SweepPoint(clock, count) for count in self.counts for clock in clocks)

    def order(self, round_number: int) -> list[SweepPoint]:
        rng = np.random.default_rng([self.settings.seed, round_number])
        return [self.points[k] for k in rng.permutation(len(self.points))]

    @property
    def measure_s(self) -> float:
        """Least steady time of a run: several windows, whatever the settings say."""
        return max(self.settings.measure_s, WINDOWS * self.window_s)

    @property
    def idle_s(self) -> float:
        return max(self.settings.idle_s, (2 * WINDOWS + 1) * self.window_s)

    def load_s(self, attempt: int = 0) -> float:
        """Seconds that a program with the place {seconds} is to work; longer after a refusal."""
        wanted_s = self.settings.settle_s + self.window_s + ROOM * self.measure_s
        return wanted_s * float(1 << attempt)

    @property
    def run_limit_s(self) -> float:
        """A program that takes longer is ended."""
        given = self.settings.run_limit_s
        return max(RUN_LIMIT_S, 2 * self.load_s(self.settings.retries)) if given is None else given

    def duration_s(self, rounds: int) -> float:
        """About how many seconds these rounds take."""
        runs = rounds * len(self.points)
        return self.idle_s + runs * (self.load_s() + self.settings.start_s)

    def fractions(self, target: CalibrationTarget) -> list[float]:
        """The clocks as a profile has them."""
        return fractions_of(target.levels_mhz, self.clocks_mhz)


def fractions_of(levels_mhz: Sequence[int], clocks_mhz: Sequence[int]) -> list[float]:
    """Clocks as fractions of the top level; 1 where there is one clock."""
    if not levels_mhz:
        return [1.0]
    return [round(mhz / levels_mhz[-1], 6) for mhz in clocks_mhz]


def plan_sweep(target: CalibrationTarget, settings: SweepSettings) -> SweepPlan:
    """The plan of a sweep, or an error that says why the target cannot be swept in this way."""
    counts = settings.counts or _doubling(len(target.devices))
    for count in counts:
        if not 1 <= count <= len(target.devices):
            raise ParameterError(
                f"counts are {', '.join(map(str, counts))}, but {len(target.devices)} device"
                f"{'s are' if len(target.devices) > 1 else ' is'} given; name more with --device"
            )
    if 1 not in counts:
        raise ParameterError(
            f"counts are {', '.join(map(str, counts))}; 1 must be among them: the cost of several "
            "devices is measured against one"
        )
    if not target.levels_mhz:
        return _fixed(target, settings, counts)
    clocks = _clocks(target, settings)
    if len(clocks) < LEAST_CLOCKS:
        raise ParameterError(
            f"{len(clocks)} clocks ({', '.join(map(str, clocks))} MHz); a fit of three "
            f"coefficients needs at least {LEAST_CLOCKS}, so that it can be checked"
        )
    return SweepPlan(settings, clocks, tuple(sorted(counts)), target.window_s)


def _fixed(
    target: CalibrationTarget, settings: SweepSettings, counts: tuple[int, ...]
) -> SweepPlan:
    if settings.clocks:
        raise UnsupportedError(f"{target.model}: no clock can be set: {target.fixed_clock}")
    if settings.rounds[0] < LEAST_RUNS:
        raise ParameterError(
            f"rounds are {settings.rounds[0]}; at the one clock that there is, at least "
            f"{LEAST_RUNS} are needed for an interval"
        )
    if counts != (1,) and settings.counts:
        raise UnsupportedError(
            f"{target.model}: several devices need a sweep of clocks, and none can be set: "
            f"{target.fixed_clock}; give --counts 1"
        )
    return SweepPlan(settings, (), (1,), target.window_s)


def _doubling(devices: int) -> tuple[int, ...]:
    """1, 2, 4, ... and all."""
    powers = [1 << k for k in range(devices.bit_length()) if 1 << k <= devices]
    return tuple(dict.fromkeys([*powers, devices]))


def _clocks(target: CalibrationTarget, settings: SweepSettings) -> tuple[int, ...]:
    levels = np.array(target.levels_mhz, dtype=float)
    top = float(levels[-1])
    if not settings.clocks:
        low, high = (share * top for share in settings.span)
        inside = levels[(levels >= low - 0.5) & (levels <= high + 0.5)]
        if not len(inside):
            raise ParameterError(
                f"no supported clock lies between {low:.0f} and {high:.0f} MHz; supported: "
                f"{levels[0]:.0f} to {top:.0f} MHz"
            )
        wanted = np.linspace(inside[0], inside[-1], settings.levels)
        return tuple(sorted({int(inside[np.abs(inside - mhz).argmin()]) for mhz in wanted}))
    chosen = set()
    for asked in settings.clocks:
        mhz = asked if asked > 1 else asked * top
        nearest = float(levels[np.abs(levels - mhz).argmin()])
        if abs(nearest / mhz - 1) > MOST_OFF:
            raise ParameterError(
                f"clock {asked:g} is {mhz:.0f} MHz, and the nearest that {target.model} supports "
                f"is {nearest:.0f} MHz, more than {100 * MOST_OFF:.0f} % off; supported: "
                f"{levels[0]:.0f} to {top:.0f} MHz"
            )
        chosen.add(int(nearest))
    return tuple(sorted(chosen))
