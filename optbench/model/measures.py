"""Measures of a result, one definition each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from optbench.errors import ContradictionError
from optbench.model.instance import Instance
from optbench.model.metric_scales import level_tolerance
from optbench.model.timegrid import RELATIVE_TOLERANCE

Value = float | tuple[float, ...]

# A verified objective within this gap of its bound is called optimal.
OPTIMAL_GAP = 1e-6


def gap(objective: float | None, bound: float | None) -> float | None:
    """0 where both are equal, 1 where their signs differ, else |UB − LB| / max(|UB|, |LB|); None when either is missing."""
    if objective is None or bound is None:
        return None
    return relative_distance(objective, bound)


def relative_distance(a: float, b: float) -> float:
    """The relative difference of two numbers, from 0 to 1, without an absolute threshold."""
    if a == b:
        return 0.0
    if (a > 0) != (b > 0):
        return 1.0
    return abs(a - b) / max(abs(a), abs(b))


def is_closed(instance: Instance, objective: float | None, bound: float | None) -> bool:
    """Whether a bound proves the first level's objective: within OPTIMAL_GAP or within rounding.

    Rounding is estimated from the data, not from the two numbers: if an objective is small compared
    with its terms, the difference may be their rounding.
    """
    reached = gap(objective, bound)
    if reached is None or objective is None or bound is None:
        return False
    return reached <= OPTIMAL_GAP or objective - bound <= level_tolerance(instance, objective)


def rpd(objective: float, best_known: float) -> float:
    """Relative percentage deviation, as a fraction. It is not a proof of quality."""
    return (objective - best_known) / best_known


def shifted_geomean(values: Sequence[float], shift: float) -> float:
    """exp(mean(log(v + shift))) − shift."""
    return math.exp(float(np.mean(np.log(np.asarray(values, dtype=float) + shift)))) - shift


def primal_integral(trajectory: Iterable[tuple[float, float]], best_known: float, end_s: float) -> float:
    """∫ of the primal gap over [0, end]: 1 before the first incumbent, then |obj − best| / max(|obj|, |best|)."""
    total, last_t, last_gap = 0.0, 0.0, 1.0
    for t_s, objective in trajectory:
        t_s = min(t_s, end_s)
        total += (t_s - last_t) * last_gap
        last_t, last_gap = t_s, relative_distance(objective, best_known)
    return total + (end_s - last_t) * last_gap


def contradicts(objective: float, bound: float) -> bool:
    """Whether a lower bound is above a verified objective, beyond the rounding of its terms."""
    return bound > objective + RELATIVE_TOLERANCE * abs(objective)


def check_bound(objective: float, bound: float, source: str, where: str) -> None:
    """Raise an error if a bound exceeds a verified objective: one of the two must be wrong."""
    if contradicts(objective, bound):
        raise ContradictionError(f"{where}: bound {bound!r} from {source} exceeds the verified objective {objective!r}")
