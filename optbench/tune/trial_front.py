"""Several goals: the trials that nothing beats in all of them, and the one to take if there must be
one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from optbench.tune.trials import is_candidate

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial


def front_of(trials: Iterable[FrozenTrial]) -> list[FrozenTrial]:
    """Complete trials within the constraints that no other equals or beats in every goal; the first
    of equals.
    """
    found: list[FrozenTrial] = []
    for trial in sorted(
        filter(is_candidate, trials), key=lambda each: (tuple(each.values), each.number)
    ):
        if not any(
            all(a <= b for a, b in zip(other.values, trial.values, strict=True)) for other in found
        ):
            found.append(trial)
    return found


def knee(front: Sequence[FrozenTrial]) -> FrozenTrial | None:
    """The point nearest to the corner where every goal is as good as anywhere, in units of the
    front's extent.
    """
    if not front:
        return None
    lows = [min(values) for values in zip(*(trial.values for trial in front), strict=True)]
    highs = [max(values) for values in zip(*(trial.values for trial in front), strict=True)]

    def distance(trial: FrozenTrial) -> float:
        parts = [
            (value - low) / (high - low)
            for value, low, high in zip(trial.values, lows, highs, strict=True)
            if high > low
        ]
        return math.hypot(*parts)

    return min(front, key=lambda trial: (distance(trial), trial.number))
