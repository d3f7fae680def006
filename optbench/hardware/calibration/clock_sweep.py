"""A calibration from start to end: idle power, rounds of runs, and the fits of power and time.

After the least number of rounds the law is fitted, and rounds follow until the intervals of all
coefficients are narrow enough, or more rounds would not narrow them because the device does not
follow the law exactly, or the most rounds are done. A refused run is repeated, with twice
the time if the program takes it; a point that stays refused ends the sweep after the first round,
or is left out on request.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from optbench.errors import OptbenchError
from optbench.hardware.calibration.calibration_target import CalibrationTarget, ClockHolder
from optbench.hardware.calibration.coefficient_fit import (
    LawFit,
    constant_power,
    constant_time,
    fit_power,
    fit_time,
)
from optbench.hardware.calibration.load_program import command_of
from optbench.hardware.calibration.run_trace import (
    MeasuredRun,
    RunSettings,
    judge_run,
    trace_idle,
    trace_load,
)
from optbench.hardware.calibration.sweep_plan import LEAST_CLOCKS, SweepPlan, SweepPoint

# A device that works more than this while it should be idle is in use.
IN_USE = 0.05
# A law that misses the mean of a point by more than this does not describe the device.
LAW_OFF = 0.10
# Seconds between reports of progress.
REPORT_EVERY_S = 0.25


class CalibrationRefusedError(OptbenchError):
    """Measurements that no law is fitted to: names the points and the reasons."""


@dataclass(frozen=True)
class SweepProgress:
    """Where a sweep stands."""

    words: str
    done: float
    total: float
    is_result: bool = False


@dataclass(frozen=True)
class CalibrationResult:
    """All that a sweep found."""

    plan: SweepPlan
    runs: tuple[MeasuredRun, ...]
    idle_w: float
    idle_source: str
    power: LawFit
    time: LawFit
    rounds: int
    spent_s: float
    left_out: tuple[str, ...] = ()

    @property
    def half_width(self) -> float:
        return max(self.power.half_width, self.time.half_width)

    @property
    def used(self) -> list[MeasuredRun]:
        return [run for run in self.runs if not run.refused]

    @property
    def precise(self) -> bool:
        return self.half_width <= self.plan.settings.precision

    @property
    def settled(self) -> bool:
        """Whether more rounds would not narrow an interval that is too wide."""
        precision = self.plan.settings.precision
        return self.power.is_settled(precision) and self.time.is_settled(precision)


OnProgress = Callable[[SweepProgress], None]


@dataclass
class ClockSweep:
    """A sweep in progress."""

    target: CalibrationTarget
    plan: SweepPlan
    on_progress: OnProgress = field(default=lambda progress: None)
    began_s: float = field(default_factory=time.monotonic)
    runs: list[MeasuredRun] = field(default_factory=list)
    reported_s: float = 0.0
    expected_s: float = 0.0
    words: str = ""

    def calibrate(self) -> CalibrationResult:
        """Measure and fit; clocks are reset at the end, whatever happens."""
        least, most = self.plan.settings.rounds
        self.expected_s = self.plan.duration_s(least)
        with ending_signals(), self.target.clocks() as holder:
            self._try_clocks(holder)
            idle_w, idle_source = self._idle()
            for number in range(1, most + 1):
                self._round(holder, number)
                refuse_points(self._refused(), self.plan.settings.leave_out)
                if number < least:
                    continue
                found = self._fitted(idle_w, idle_source, number)
                if found.settled or number == most:
                    break
                self._expect_more(found)
        refuse_law(found)
        return found

    def _try_clocks(self, holder: ClockHolder) -> None:
        """A missing permission shows before anything is measured."""
        if self.plan.clocks_mhz:
            holder.hold(max(self.plan.counts), self.plan.clocks_mhz[-1])
            holder.release()

    def _idle(self) -> tuple[float, str]:
        self.words = "idle power"
        settings = self.plan.settings
        trace = trace_idle(self.target, self.plan.idle_s, settings.period_s, self._tick)
        for device, samples in zip(self.target.devices, trace.samples, strict=False):
            busy = [each.utilisation for each in samples if each.utilisation is not None]
            if busy and float(np.mean(busy)) > IN_USE:
                raise CalibrationRefusedError(
                    f"device {device.place} ({device.name}) is in use: {100 * np.mean(busy):.0f} % "
                    "busy without our load; calibrate while nothing else runs on it"
                )
        judged = judge_run(
            trace,
            None,
            self.target.window_s,
            replace(self._run_settings(), measure_s=0.4 * self.plan.idle_s, settle_s=0.0),
        )
        if not judged.watts:
            raise CalibrationRefusedError(f"idle power of {self.target.model}: {judged.refused}")
        self._say(f"idle: {judged.watts:.1f} W per device")
        return judged.watts, judged.source

    def _run_settings(self) -> RunSettings:
        s = self.plan.settings
        return RunSettings(
            s.period_s, self.plan.measure_s, s.noise, self.plan.run_limit_s, s.settle_s
        )

    def _round(self, holder: ClockHolder, number: int) -> None:
        out = {_place(run) for run in self._refused()}
        for point in self.plan.order(number):
            if (point.clock_mhz or 0, point.count) in out:
                continue
            for attempt in range(self.plan.settings.retries + 1):
                run = self._run(holder, point, number, attempt)
                if not run.refused:
                    break
            self.runs.append(run)
            self._say(f"round {number}, {point}: {run_words(run)}")

    def _run(
        self, holder: ClockHolder, point: SweepPoint, number: int, attempt: int
    ) -> MeasuredRun:
        settings = self.plan.settings
        again = f", attempt {attempt + 1}" if attempt else ""
        self.words = f"round {number}, {point}{again}"
        if point.clock_mhz is not None:
            holder.hold(point.count, point.clock_mhz)
        places = ",".join(device.place for device in self.target.devices[: point.count])
        command = command_of(settings.workload, places, settings.size, self.plan.load_s(attempt))
        trace = trace_load(self.target, point.count, command, self._run_settings(), self._tick)
        return judge_run(trace, point.clock_mhz, self.target.window_s, self._run_settings(), number)

    def _refused(self) -> list[MeasuredRun]:
        """Refused runs, and those whose repeats differ."""
        noise = self.plan.settings.noise
        return [
            *(run for run in self.runs if run.refused),
            *differing([run for run in self.runs if not run.refused], noise),
        ]

    def _fitted(self, idle_w: float, idle_source: str, rounds: int) -> CalibrationResult:
        refused = self._refused()
        out = {_place(run): run.refused for run in refused}
        runs = [replace(run, refused=out.get(_place(run), "")) for run in self.runs]
        used = [run for run in runs if not run.refused]
        enough = len({run.clock_mhz for run in used if run.count == 1})
        if self.plan.clocks_mhz and enough < LEAST_CLOCKS:
            refuse_points(refused)
        power, seconds = fit_runs(used, self.target.levels_mhz)
        left_out = tuple(f"{_named(run)}: {run.refused}" for run in refused)
        spent_s = time.monotonic() - self.began_s
        return CalibrationResult(
            self.plan, tuple(runs), idle_w, idle_source, power, seconds, rounds, spent_s, left_out
        )

    def _expect_more(self, found: CalibrationResult) -> None:
        """Widths fall with the square root of the number of rounds."""
        settings = self.plan.settings
        width = max(
            fit.half_width
            for fit in (found.power, found.time)
            if not fit.is_settled(settings.precision)
        )
        wanted = found.rounds * (width / settings.precision) ** 2
        rounds = min(settings.rounds[1], max(found.rounds + 1, math.ceil(wanted)))
        per_round = (time.monotonic() - self.began_s - self.plan.idle_s) / found.rounds
        self.expected_s = self.plan.idle_s + rounds * per_round
        self._say(
            f"widest interval after {found.rounds} rounds: ±{100 * width:.2f} %, "
            f"wanted ±{100 * settings.precision:.2g} %: about {rounds - found.rounds} more"
        )

    def _tick(self) -> None:
        if time.monotonic() - self.reported_s > REPORT_EVERY_S:
            self.reported_s = time.monotonic()
            self._report(self.words, False)

    def _say(self, words: str) -> None:
        self._report(words, True)

    def _report(self, words: str, is_result: bool) -> None:
        spent_s = time.monotonic() - self.began_s
        self.on_progress(SweepProgress(words, spent_s, max(self.expected_s, spent_s), is_result))


@contextmanager
def ending_signals() -> Iterator[None]:
    """A termination or a hang-up ends the work as Ctrl-C does: what is open is closed, clocks are
    reset, the load is ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    # What the process ignores already stays ignored: `nohup` means that a hang-up ends nothing.
    before = {
        each: signal.signal(each, end)
        for each in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(each) != signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def fit_runs(runs: Sequence[MeasuredRun], levels_mhz: Sequence[int]) -> tuple[LawFit, LawFit]:
    """The laws of power and time of the runs, with clocks as fractions of the top level."""
    watts, seconds = [run.watts for run in runs], [run.seconds_per_unit for run in runs]
    if not levels_mhz:
        return constant_power(watts), constant_time(seconds)
    clocks = [run.clock_mhz / levels_mhz[-1] for run in runs]
    return fit_power(clocks, watts), fit_time([run.count for run in runs], clocks, seconds)


def differing(runs: Sequence[MeasuredRun], noise: float) -> list[MeasuredRun]:
    """One run of each point whose runs differ from their median by more than ``noise``."""
    out = []
    for place in sorted({_place(run) for run in runs}):
        same = [run for run in runs if _place(run) == place]
        for words, values in (
            ("power", np.array([run.watts for run in same])),
            ("time per unit", np.array([run.seconds_per_unit for run in same])),
        ):
            off = float(np.abs(values / np.median(values) - 1).max())
            if off > noise:
                reason = (
                    f"noisy: the {words} of its {len(same)} runs differs from their median by "
                    f"{100 * off:.1f} %, more than {100 * noise:.1f} %"
                )
                out.append(replace(same[0], refused=reason))
                break
    return out


def refuse_points(refused: Sequence[MeasuredRun], leave_out: bool = False) -> None:
    """Raise an error that names every refused point and its reason."""
    if not refused or leave_out:
        return
    rows = "".join(f"\n  {_named(run)}: {run.refused}" for run in refused)
    remedy = "Keep other work off the device, or measure longer (--measure)"
    if any(run.clock_mhz for run in refused):
        remedy += (
            ". Or choose clocks that it holds under this load (--clocks, --span), or fit the other "
            f"points with --leave-out (at least {LEAST_CLOCKS} clocks must remain)"
        )
    raise CalibrationRefusedError(
        f"no law is fitted: {len(refused)} point{'s were' if len(refused) > 1 else ' was'} "
        f"refused{rows}\n{remedy}"
    )


def refuse_law(found: CalibrationResult) -> None:
    """Raise an error if the law misses a point by far."""
    for words, fit in (("power", found.power), ("time per unit", found.time)):
        if fit.worst > LAW_OFF:
            worst = int(np.argmax(np.abs(fit.residuals)))
            raise CalibrationRefusedError(
                f"the law of {words} misses {_named(found.used[worst])} by "
                f"{100 * fit.residuals[worst]:+.1f} %, more than {100 * LAW_OFF:.0f} %: this load "
                "does not follow the law over these clocks; calibrate a narrower range (--span)"
            )


def run_words(run: MeasuredRun) -> str:
    if run.refused:
        return f"refused: {run.refused}"
    return f"{run.watts:.1f} W per device, {run.seconds_per_unit:.4g} s per unit"


def _place(run: MeasuredRun) -> tuple[int, int]:
    return run.clock_mhz, run.count


def _named(run: MeasuredRun) -> str:
    return str(SweepPoint(run.clock_mhz or None, run.count))
