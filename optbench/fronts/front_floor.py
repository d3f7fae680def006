"""The certified floor of a front and the area between the two.

f*(ε) = min {y : x ≤ ε} never rises in ε. A lower bound b on f*(v) is therefore one on f*(ε) for
every ε ≤ v, and

    floor(ε) = max {b(v) : v ≥ ε}

is a staircase that no schedule is below; between two limits it stands at the bound of the right
one. Front is the least y among the points with x ≤ ε. The undecided area is ∫ (front − floor) over
the range of the points.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

Step = tuple[float, float]


def floor_steps(bounds: Iterable[Step], constant: float) -> tuple[Step, ...]:
    """Rows (x, y), x rising and y falling: with x at most this, no schedule has less y. Bounds are
    pairs (limit, bound).
    """
    steps: list[Step] = []
    for limit, bound in sorted(bounds, key=lambda step: (-step[0], step[1])):
        if bound > (steps[-1][1] if steps else constant):
            if steps and steps[-1][0] == limit:
                steps.pop()
            steps.append((limit, bound))
    return tuple(reversed(steps))


def floor_at(steps: Sequence[Step], x: float, constant: float) -> float:
    """The certified least y with this x."""
    return next((y for limit, y in steps if limit >= x), constant)


def undecided_area(front: Sequence[Step], steps: Sequence[Step], constant: float) -> float:
    """Area between the front (points x rising, y falling) and the floor, from the first point to
    the last.
    """
    if len(front) < 2:
        return 0.0
    first, last = front[0][0], front[-1][0]
    cuts = sorted({first, last, *(x for x, _ in front), *(x for x, _ in steps if first < x < last)})
    area = 0.0
    for a, b in pairwise(cuts):
        best = min(y for x, y in front if x <= a)
        area += (b - a) * max(0.0, best - floor_at(steps, b, constant))
    return area
