"""Search for the best whole point of a programme over patterns, from its relaxation.

With U the value of the best point known and L the bound of the relaxation, a better point uses no
pattern whose reduced cost is above U − L: the search over the other ones proves the optimum. Before
that, fewer patterns of least reduced cost are tried.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.shapes.colocation.colocation_data import Ints
from optbench.shapes.epoch_allocation.pattern_program import PatternProgram
from optbench.shapes.epoch_allocation.pattern_relaxation import SolvedPatterns
from optbench.shapes.epoch_allocation.pattern_solver import SearchLimits, best_whole

# Patterns per group in the first search for a whole point; each further one has more of them.
PATTERNS_PER_GROUP, GROWTH = 10, 4
# Half a milliwatt: prices are whole milliwatts.
CLOSED_MW = 0.5


@dataclass(frozen=True, eq=False)
class Searched:
    """The best whole point, its value, and a bound on every point's, in mW."""

    point: Ints
    value_mw: int
    bound_mw: float


def whole_bound_mw(relaxed: SolvedPatterns) -> float:
    """The bound of the relaxation, rounded up to whole milliwatts."""
    return float(np.ceil(relaxed.bound_mw - CLOSED_MW))


def waiting_point(program: PatternProgram) -> Ints:
    """Return the point at which every job waits."""
    point = np.zeros(program.num_columns, dtype=np.int64)
    several = program.groups.several[program.groups.class_group[program.waiting]]
    size = program.groups.class_size[program.waiting]
    point[program.column_begin[3] :] = np.where(several, 1, size)
    return point


def value_mw(program: PatternProgram, point: Ints) -> int:
    """Return the surrogate of a point."""
    return int((program.cost_mw * point).sum()) + program.constant_mw


def search(
    program: PatternProgram,
    relaxed: SolvedPatterns,
    known: Ints,
    allowed_mw: float,
    limits: SearchLimits,
) -> Searched:
    """Search until the best point is this close to the bound, or the time is over."""
    count = program.patterns.count
    reduced, used = relaxed.reduced_w[:count], relaxed.values[:count] > 0
    others = np.arange(count, program.num_columns)
    best = Searched(known, value_mw(program, known), whole_bound_mw(relaxed))
    size = PATTERNS_PER_GROUP * program.groups.count
    allowed_mw = max(CLOSED_MW, allowed_mw)
    while best.value_mw - best.bound_mw > allowed_mw:
        if limits.left_s() <= 0:
            break
        limit_w = (best.value_mw - best.bound_mw) / 1000.0
        complete = True
        if size < count:
            limit = float(np.partition(reduced, size)[size])
            complete, limit_w = limit >= limit_w, min(limit, limit_w)
        chosen = np.flatnonzero((reduced <= limit_w) | used | (best.point[:count] > 0))
        found = best_whole(
            program, np.concatenate([chosen, others]), limits, allowed_mw, best.bound_mw, best.point
        )
        if found.point is not None and found.value_mw < best.value_mw:
            best = Searched(found.point, found.value_mw, best.bound_mw)
        if complete or 1000.0 * limit_w >= best.value_mw - best.bound_mw:
            # What was left out is no better than the best point.
            proven = min(float(best.value_mw), np.ceil(found.bound_mw - CLOSED_MW))
            best = Searched(best.point, best.value_mw, max(best.bound_mw, proven))
            if complete:
                break
        size *= GROWTH
    return best
