"""How much of a log's GPU-hours an audit speaks of, and why not of the rest.

A headline saving is one of the cluster. Where the runs that are left out held more than 5 % of the
GPU-hours, there is none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.audit.window import Window
from optbench.formats.sacct_fields import gpus_of
from optbench.formats.sacct_runs import Runs
from optbench.formats.sacct_types import UNTYPED
from optbench.units import HOUR_S

# Share of the GPU-hours that a headline saving needs.
ENOUGH = 0.95
UNREAD = "rows whose times cannot be read, each counted as a mean row"


@dataclass(frozen=True)
class LeftOut:
    """Runs that are not audited for one reason."""

    why: str
    runs: int
    gpu_hours: float

    def __str__(self) -> str:
        return f"{self.gpu_hours:,.1f} GPU-hours, {self.runs:,} {self.why}"


@dataclass(frozen=True)
class Coverage:
    """GPU-hours within the time that is audited. ``complete`` is False where the log may miss runs
    in that time.
    """

    gpu_hours: float
    left_out: tuple[LeftOut, ...]
    complete: bool = True

    @property
    def covered(self) -> float:
        return self.gpu_hours - sum(each.gpu_hours for each in self.left_out)

    @property
    def share(self) -> float:
        """1 where nothing is left out, else below 1 also where rounding says otherwise."""
        return float(self.covered / self.gpu_hours) if self.left_out else 1.0

    @property
    def enough(self) -> bool:
        """Whether what is audited says enough of the cluster for a headline saving."""
        return self.complete and bool(self.share >= ENOUGH)

    @property
    def words(self) -> str:
        """What is covered, as a clause."""
        if not self.left_out:
            return f"all {self.gpu_hours:,.0f} GPU-hours of that time are covered"
        return (
            f"{percent(self.share)} of the {self.gpu_hours:,.0f} GPU-hours of that time are covered"
        )

    @property
    def too_little(self) -> str:
        """Why there is no headline saving, in short."""
        if self.share < ENOUGH:
            needed = f"{100 * ENOUGH:.0f} % are needed"
            return f"only {percent(self.share)} of the GPU-hours are covered, and {needed}"
        return "the log does not show from when to when it lists every run"

    def why_not(self) -> str:
        """Why there is no headline saving; empty where there is one."""
        parts = []
        if self.share < ENOUGH:
            rest = "; ".join(map(str, self.left_out))
            parts.append(
                f"only {percent(self.share)} of the GPU-hours are covered (left out: {rest})"
            )
        if not self.complete:
            parts.append(
                "the log does not show from when to when it lists every run; say it with --since "
                "and --until"
            )
        return "; ".join(parts)


def percent(share: float) -> str:
    """Rounded down to a tenth, so that 100 % is all of it and 95 % is enough."""
    return f"{np.floor(1000 * share) / 10:.1f} %"


def unread_of(runs: Runs, readable: int, gpu_runs: int, gpu_hours: float) -> LeftOut | None:
    """Rows that held GPUs for a time that cannot be read count with the mean of those that
    can be.
    """
    if not runs.unread or not readable:
        return None
    known = [text for text in runs.unread if text]
    bare = len(runs.unread) - len(known)
    with_gpus = sum(bool(gpus_of(text)) for text in known)
    hours = with_gpus * gpu_hours / max(1, gpu_runs) + bare * gpu_hours / readable
    return LeftOut(UNREAD, with_gpus + bare, hours) if hours > 0 else None


def lost_of(runs: Runs, lost: list[tuple[int, int]], window: Window) -> LeftOut | None:
    """Runs without a type, as far as they lie within the window."""
    rows = np.asarray([row for row, _ in lost], dtype=np.int64)
    start, end = (np.asarray(column, dtype=float)[rows] for column in (runs.start, runs.end))
    length = window.clip(end) - window.clip(start)
    hours = (
        float((np.asarray([count for _, count in lost]) * length).sum()) / HOUR_S if lost else 0.0
    )
    return LeftOut(UNTYPED, int((length > 0).sum()), hours) if hours > 0 else None
