"""The progress line of every verb, on stderr: refreshed on a terminal; elsewhere a new line now and
then. Below, that of a solve: bounds and incumbents as they come.
"""

from __future__ import annotations

import math
import sys
import time
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from optbench.cli.terminal.output import console_for, figure, length, percent
from optbench.compiling.compile_meter import compiled_s

if TYPE_CHECKING:
    from optbench.model.result import TrajectoryPoint


class Step(NamedTuple):
    """How far the work is: in words, and what is done of how much, if that is known."""

    words: str
    done: float = 0
    total: float | None = None
    # Whether a line is written for it in any case.
    is_result: bool = False


class LiveLine:
    """Use as a context and call it with what the work reports, from any thread.

    A subclass describes a report; ``waiting`` is shown before the first one.
    """

    waiting: ClassVar[str] = ""
    # Seconds between two lines where nothing is refreshed.
    line_every_s: ClassVar[float] = 5.0
    refresh_hz: ClassVar[float] = 4
    bar_width: ClassVar[int] = 24

    def __init__(self, name: str, quiet: bool = False) -> None:
        self.name, self.quiet = name, quiet
        self.report: tuple[Any, ...] = ()
        self.live: Any = None
        self.written = ""
        self.began = self.written_at = time.monotonic()

    def __call__(self, *report: Any) -> None:
        self.report = report
        step = self.step()
        if step.is_result:
            self.say(step.words)
        else:
            self.now_and_then()

    def describe(self, *report: Any, **_: Any) -> Step:
        """Describe a report of the work."""
        raise NotImplementedError

    def step(self) -> Step:
        return self.describe(*self.report) if self.report else Step(self.waiting)

    def share(self) -> tuple[float, float | None] | None:
        """Return what is done, and of how much if that is known; None for no bar."""
        _, done, total, _ = self.step()
        return done, total or None

    def has_more(self) -> bool:
        """Whether a last line is worth writing."""
        return bool(self.report)

    def spent_s(self) -> float:
        """The time that the refreshed line shows."""
        return time.monotonic() - self.began

    def budget(self) -> str:
        """What follows the time on the refreshed line."""
        return ""

    def line_time_s(self) -> float:
        """The time that a written line begins with."""
        return time.monotonic() - self.began

    def __enter__(self) -> Self:
        if not self.quiet and sys.stderr.isatty():
            from rich.live import Live

            console = console_for(sys.stderr)
            hz = self.refresh_hz
            self.live = Live(self, console=console, refresh_per_second=hz, transient=True)
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()
        elif self.has_more():
            self.write(self.step().words)

    def now_and_then(self) -> None:
        """Write a line if the last one is old enough and nothing is refreshed."""
        if self.live is None and time.monotonic() - self.written_at >= self.line_every_s:
            self.write(self.step().words)

    def say(self, words: str, style: str = "") -> None:
        """Write a line at once, above the refreshed one."""
        if self.quiet:
            return
        if self.live is not None:
            from rich.text import Text

            self.live.console.print(Text(words, style=style))
        else:
            self.write(words)

    def write(self, words: str) -> None:
        """Write a line, unless it repeats the last one."""
        self.written_at = time.monotonic()
        if self.quiet or words == self.written:
            return
        self.written = words
        try:
            sys.stderr.write(f"{length(self.line_time_s()):>10}  {words}\n")
            sys.stderr.flush()
        except BrokenPipeError:  # the reader has gone; the work goes on
            self.quiet = True

    def __rich__(self) -> Any:
        """The refreshed line: name, time, a bar, and where the work stands."""
        from rich.progress_bar import ProgressBar
        from rich.spinner import Spinner
        from rich.table import Table
        from rich.text import Text

        spent = f"{length(self.spent_s())}{self.budget()}"
        cells: list[Any] = [Spinner("dots", style="cyan"), Text(self.name, style="bold"), spent]
        share = self.share()
        if share is not None:
            done, total = share
            cells.append(ProgressBar(total=total, completed=done, width=self.bar_width))
        cells.append(Text(self.step().words, overflow="ellipsis", no_wrap=True))
        grid = Table.grid(padding=(0, 1))
        grid.add_row(*cells)
        return grid


class SolveProgress(LiveLine):
    """Takes the points of the trajectory, from any thread of the solver."""

    waiting: ClassVar[str] = "looking for a first schedule"
    line_every_s: ClassVar[float] = 0.25
    refresh_hz: ClassVar[float] = 8
    bar_width: ClassVar[int] = 20

    def __init__(
        self, solver: str, time_limit_s: float | None, levels: tuple[str, ...], quiet: bool = False
    ) -> None:
        super().__init__(solver, quiet)
        self.limit_s, self.levels = time_limit_s, levels
        self.written_at = -math.inf  # the first point is written at once

    def spent_s(self) -> float:
        return max(0.0, super().spent_s() - compiled_s())

    def budget(self) -> str:
        return "" if self.limit_s is None else f" of {length(self.limit_s)}"

    def share(self) -> tuple[float, float | None] | None:
        limit_s = self.limit_s
        return None if limit_s is None else (min(self.spent_s(), limit_s), limit_s)

    def line_time_s(self) -> float:
        return self.report[0].t_s if self.report else super().line_time_s()

    def describe(self, point: TrajectoryPoint) -> Step:
        """``incumbent 120   bound 100   gap 16.7 %``, and the level where there are several."""
        from optbench.model.measures import gap

        distance = percent(gap(point.objective, point.bound))
        words = (
            f"incumbent {figure(point.objective)}   bound {figure(point.bound)}   gap {distance}"
        )
        return Step(f"{words}   {self.levels[point.level]}" if len(self.levels) > 1 else words)
