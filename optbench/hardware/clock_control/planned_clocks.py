"""A schedule's clocks as plain data: which task runs when, on which devices, at what clock.

Clocks are fractions of the top clock of a device; ``None`` is a segment without a clock. The
devices of a pool are numbered from 0. Each runs one segment at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

# How segments get devices, in words for those who have to check it.
COLOURING = (
    "segments take free devices of their pool in order of start, neighbouring ones if there are "
    "any, the first ones first (interval colouring: no device has two at once)"
)


@dataclass(frozen=True)
class PlannedSegment:
    """A segment of the schedule: ``places`` are the devices of ``pool`` that it runs on."""

    task: str
    start_s: float
    end_s: float
    pool: str | None = None
    places: tuple[int, ...] = ()
    clock: float | None = None


@dataclass(frozen=True)
class ClockPlan:
    """Segments in order of start; times are seconds from time 0 of the schedule."""

    name: str
    segments: tuple[PlannedSegment, ...]
    sizes: dict[str, int] = field(default_factory=dict)
    # Of a device of each pool, where the instance says it.
    memory_gb: dict[str, float] = field(default_factory=dict)

    @cached_property
    def clocked(self) -> tuple[PlannedSegment, ...]:
        """Segments that say a clock."""
        return tuple(each for each in self.segments if each.clock is not None)

    @cached_property
    def needs(self) -> dict[str, int]:
        """Devices that the clocks of each pool need."""
        out: dict[str, int] = {}
        for each in self.clocked:
            if each.pool is not None:
                out[each.pool] = max(out.get(each.pool, 0), *(k + 1 for k in each.places))
        return dict(sorted(out.items()))
