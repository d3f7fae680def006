"""The objective: a weighted sum of metrics, or several of them in lexicographic order."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass

from optbench.errors import ModelError, nearest
from optbench.model.timegrid import rounded_sum

# Metrics an objective or a limit may name. ``makespan`` is in ticks, the others as their name says.
METRICS = (
    "makespan",
    "makespan_s",
    "energy_j",
    "flow_time_s",
    "tardiness_s",
    "cost_usd",
    "carbon_g",
)
# Objectives of open instances, whose schedules may leave work undone: one metric with weight 1.
RATIOS = ("j_per_unit",)
# The same metric twice, in ticks and in seconds.
MAKESPANS = ("makespan", "makespan_s")


@dataclass(frozen=True)
class Objective:
    """``levels[k]`` is the k-th sum to minimise: (metric, weight) pairs, weights positive."""

    levels: tuple[tuple[tuple[str, float], ...], ...]

    @classmethod
    def weighted(cls, weights: Mapping[str, float]) -> Objective:
        """One level: the weighted sum."""
        return cls((_level(weights),))

    @classmethod
    def in_order(cls, *metrics: str | Mapping[str, float]) -> Objective:
        """Several levels: each is minimised while those before it are held."""
        if not metrics:
            raise ModelError(
                "minimize_in_order needs at least one metric, for example 'makespan_s'"
            )
        return cls(tuple(_level({m: 1.0} if isinstance(m, str) else m) for m in metrics))

    @property
    def num_levels(self) -> int:
        return len(self.levels)

    @property
    def metrics(self) -> frozenset[str]:
        return frozenset(name for level in self.levels for name, _ in level)

    @property
    def label(self) -> str:
        """Text such as ``1 energy_j + 50 makespan_s``; levels are joined by ``then``."""
        return " then ".join(
            " + ".join(name if weight == 1 else f"{weight:g} {name}" for name, weight in level)
            for level in self.levels
        )

    @property
    def hash(self) -> str:
        levels = tuple(
            tuple(sorted((name, float(weight)) for name, weight in level)) for level in self.levels
        )
        return hashlib.sha256(repr(levels).encode()).hexdigest()

    def in_seconds(self) -> Objective:
        """The same with ``makespan_s`` instead of ``makespan``, for ticks without a meaning."""
        levels = []
        for level in self.levels:
            weights: dict[str, float] = {}
            for name, weight in level:
                name = "makespan_s" if name == "makespan" else name
                weights[name] = weights.get(name, 0.0) + weight
            levels.append(_level(weights))
        return Objective(tuple(levels))

    def level(self, k: int) -> Objective:
        """The k-th level as an objective of its own."""
        return Objective((self.levels[k],))

    def held(self, k: int, value: float) -> dict[str, float]:
        """The limit that holds level k at a value; a makespan in ticks is a whole number."""
        metric, weight = self.levels[k][0]
        limit = value / weight
        return {
            metric: float(round(limit)) if metric == "makespan" and math.isfinite(limit) else limit
        }

    def values(self, metrics: Mapping[str, float]) -> tuple[float, ...]:
        """The value of each level, from a schedule's metrics."""
        return tuple(
            rounded_sum(weight * metrics[name] for name, weight in level) for level in self.levels
        )


def _level(weights: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    if not weights:
        raise ModelError("an objective needs at least one metric, for example energy_j=1.0")
    for name, weight in weights.items():
        if name not in METRICS and name not in RATIOS:
            raise ModelError(
                f"objective: unknown metric {name!r}; {nearest(name, (*METRICS, *RATIOS))}"
            )
        if not (isinstance(weight, (int, float)) and math.isfinite(weight) and weight > 0):
            raise ModelError(
                f"objective: weight of {name} is {weight!r}; it must be a positive finite number"
            )
    return tuple(sorted((name, float(weight)) for name, weight in weights.items()))
