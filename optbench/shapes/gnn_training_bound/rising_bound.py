"""When a search for a bound stands still: cuts are whole, so only the next whole number counts.

A bound that was v at half of the work and is w now has risen by w − v in a doubling. Where what is
missing shrinks like 1 / work, a rise of w − v is left, and like 1 / √work, 2.4 (w − v). A search
ends where ``REACH`` times its last rise does not lead past the next whole number. It is asked only
when to end: what was proved until then stays a proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

REACH = 2.5
# Bounds often tend to a whole number from below: they have to be expected this much above it.
LEAST_PASSING = 0.01


@dataclass
class RisingBound:
    """The best values proved so far by the work that they took, in any unit."""

    best: list[tuple[float, float]] = field(default_factory=list)

    def stands_still(self, work: float, value: float) -> bool:
        """Take a value after so much work; return whether the next whole number is out of reach."""
        value = max([value, *(each for _, each in self.best[-1:])])
        self.best.append((work, value))
        before = [each for done, each in self.best if 2 * done <= work]
        if not before:
            return False
        return value + REACH * (value - before[-1]) <= math.ceil(value) + LEAST_PASSING
