"""Live progress on stderr: one refreshed line on a terminal, one line per improvement elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from optbench.cli.terminal.output import console_for, figure, length, percent
from optbench.compiling.compile_meter import compiled_s

if TYPE_CHECKING:
    from optbench.model.result import TrajectoryPoint

REFRESH_HZ = 8
# Elsewhere than on a terminal, bounds and quick successions of incumbents are written at most this often.
LINE_EVERY_S = 0.25


class SolveProgress:
    """Shows trajectory points as they come; use as a context."""

    def __init__(self, solver: str, time_limit_s: float | None, levels: tuple[str, ...], quiet: bool = False) -> None:
        self.solver, self.limit_s, self.levels = solver, time_limit_s, levels
        self.quiet = quiet
        self.point: TrajectoryPoint | None = None
        self._began = time.perf_counter()
        self._written: tuple[Any, ...] = ()
        self._written_at = -LINE_EVERY_S
        self._live: Any = None

    def __enter__(self) -> SolveProgress:
        if not self.quiet and sys.stderr.isatty():
            from rich.live import Live

            self._live = Live(self, console=console_for(sys.stderr), refresh_per_second=REFRESH_HZ, transient=True)
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()
        elif self.point is not None:
            self._write(self.point)

    def __call__(self, point: TrajectoryPoint) -> None:
        """Take a point; called from any thread of the solver."""
        self.point = point
        if self._live is None and time.perf_counter() - self._written_at >= LINE_EVERY_S:
            self._write(point)

    def _write(self, point: TrajectoryPoint) -> None:
        shown = (point.objective, point.bound, point.level)
        if self.quiet or shown == self._written:
            return
        self._written, self._written_at = shown, time.perf_counter()
        try:
            sys.stderr.write(f"{length(point.t_s):>10}  {self._state(point)}\n")
            sys.stderr.flush()
        except BrokenPipeError:  # nobody reads it any more; the search goes on
            self.quiet = True

    def _state(self, point: TrajectoryPoint) -> str:
        from optbench.model.measures import gap

        distance = percent(gap(point.objective, point.bound))
        words = f"incumbent {figure(point.objective)}   bound {figure(point.bound)}   gap {distance}"
        return f"{words}   {self.levels[point.level]}" if len(self.levels) > 1 else words

    def __rich__(self) -> Any:
        """The refreshed line: time used, a bar of the budget, and where the search stands."""
        from rich.progress_bar import ProgressBar
        from rich.spinner import Spinner
        from rich.table import Table

        spent = max(0.0, time.perf_counter() - self._began - compiled_s())
        grid = Table.grid(padding=(0, 1))
        budget = "" if self.limit_s is None else f" of {length(self.limit_s)}"
        cells: list[Any] = [Spinner("dots", style="cyan"), f"[bold]{self.solver}[/]", f"{length(spent)}{budget}"]
        if self.limit_s is not None:
            cells.append(ProgressBar(total=self.limit_s, completed=min(spent, self.limit_s), width=20))
        cells.append(self._state(self.point) if self.point is not None else "looking for a first schedule")
        grid.add_row(*cells)
        return grid
