"""Views of devices that are read again and again: a table that is refreshed on a terminal, lines
elsewhere, or nothing.
"""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Self

from optbench.cli.terminal.gpu_devices import unit
from optbench.cli.terminal.output import BAD, console_for, emit, escape, percent, table
from optbench.hardware.gpus.device_reader import DeviceReader, QuickValues, SlowValues
from optbench.hardware.gpus.energy_integral import EnergyIntegral
from optbench.hardware.gpus.gpu_device import reason_words
from optbench.hardware.gpus.nvml_errors import GpuError
from optbench.hardware.gpus.sampling_loop import SamplingListener

BARS = "▁▂▃▄▅▆▇█"
# Readings in the course of the power, and seconds between two refreshed views or two lines.
COURSE, REFRESH_S, LINE_EVERY_S = 40, 0.25, 1.0
HEADS = ("GPU", "", "power", "course", "energy", "clock", "temp", "used", "not higher for")
RIGHT = ("GPU", "power", "energy", "clock", "temp", "used")


@dataclass
class WatchedGpu:
    """What has been seen of a device."""

    reader: DeviceReader
    energy: EnergyIntegral
    course_w: deque[float] = field(default_factory=lambda: deque(maxlen=COURSE))
    moment: QuickValues | None = None
    slow: SlowValues | None = None
    error: GpuError | None = None

    @property
    def name(self) -> str:
        return f"GPU {self.reader.device.index} {self.reader.device.name}"

    def cells(self) -> tuple[str, ...]:
        """The cells of its row, as text."""
        moment, slow = self.moment, self.slow
        if moment is None or slow is None:
            return ("-",) * (len(HEADS) - 2)
        energy_j = self.energy.account().energy_j
        return (
            watts(moment.power_w),
            bars(self.course_w).ljust(COURSE),
            "-" if energy_j is None else f"{energy_j:,.0f} J",
            unit(known(moment.clock_mhz), "MHz"),
            unit(known(slow.temperature_c), "°C"),
            percent(known(slow.utilisation)),
            ", ".join(reason_words(moment.reasons)) or "-",
        )


class GpuView(SamplingListener, AbstractContextManager["GpuView"]):
    """Takes readings and shows nothing; subclasses show them."""

    every_s = math.inf

    def __init__(self, watched: Sequence[WatchedGpu]) -> None:
        self.watched = watched
        self._due_s = 0.0

    def __exit__(self, *_: object) -> None:
        return None

    def take(self, position: int, moment: QuickValues, slow: SlowValues) -> None:
        import numpy as np

        each = self.watched[position]
        each.moment, each.slow = moment, slow
        each.course_w.append(moment.power_w)
        each.energy.add(*(np.array([value]) for value in moment[:3]))

    def lose(self, position: int, error: GpuError) -> None:
        self.watched[position].error = error

    def tick(self, passed_s: float) -> None:
        if passed_s >= self._due_s:
            self._due_s = passed_s + self.every_s
            self.show(passed_s)

    def show(self, passed_s: float) -> None:
        """Show the readings."""


class LineView(GpuView):
    """A line per device and second, for logs."""

    every_s = LINE_EVERY_S

    def show(self, passed_s: float) -> None:
        for each in self.watched:
            if each.error is None:
                power, _, *more = each.cells()
                emit(f"{passed_s:8.1f} s  {each.name}  {'  '.join([power, *more])}")

    def lose(self, position: int, error: GpuError) -> None:
        super().lose(position, error)
        emit(f"{self.watched[position].name}: {error.call}: {error.words}")


class TableView(GpuView):
    """A table that is refreshed in its place."""

    every_s = REFRESH_S

    def __enter__(self) -> Self:
        from rich.live import Live

        self.passed_s = 0.0
        console = console_for(sys.stdout)
        self.live = Live(self, console=console, auto_refresh=False, transient=True)
        self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.live.stop()

    def show(self, passed_s: float) -> None:
        self.passed_s = passed_s
        self.live.refresh()

    def __rich__(self) -> Any:
        from rich.console import Group

        rows = []
        for each in self.watched:
            device = each.reader.device
            cells = tuple(map(escape, each.cells()))
            if each.error is not None:
                cells = (*cells[:-1], f"[{BAD}]{escape(each.error.words)}[/]")
            rows.append((str(device.index), escape(device.name), *cells))
        return Group(
            table(HEADS, rows, right=RIGHT), f"\n{self.passed_s:,.0f} s watched; Ctrl-C ends it"
        )


def view_of(watched: Sequence[WatchedGpu], silent: bool) -> GpuView:
    """The view that fits standard output."""
    if silent:
        return GpuView(watched)
    return (TableView if sys.stdout.isatty() else LineView)(watched)


def known(value: float) -> float | None:
    return None if math.isnan(value) else value


def watts(value_w: float) -> str:
    return "-" if math.isnan(value_w) else f"{value_w:,.1f} W"


def bars(values: Sequence[float]) -> str:
    """The course of values from 0 to the highest of them, a character each."""
    top = max((value for value in values if not math.isnan(value)), default=0.0)
    if top <= 0:
        return ""
    last = len(BARS) - 1
    return "".join(
        " " if math.isnan(value) else BARS[min(last, round(last * value / top))] for value in values
    )
