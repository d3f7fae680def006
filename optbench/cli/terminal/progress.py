"""The progress line of a solve: bounds and incumbents as they come."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from optbench.cli.terminal.live_line import LiveLine, Step
from optbench.cli.terminal.output import figure, length, percent
from optbench.compiling.compile_meter import compiled_s

if TYPE_CHECKING:
    from optbench.model.result import TrajectoryPoint


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
