"""The law of clocks: how long a unit of work takes and what it draws, by GPU count n and clock f in (0, 1].

T(1, f) = α_t + β_t / f                       seconds per unit
T(n, f) = (α_t + β_t / f + γ_t n) / n         n > 1: γ_t is the cost of keeping n GPUs in step
P(f)    = α_p f³ + β_p f + γ_p                watts per GPU
E(n, f) = n P(f) T(n, f)                      joules per unit
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from optbench.errors import ParameterError


@dataclass(frozen=True)
class Law:
    """Coefficients of one kind of work on one device; all are at least 0."""

    alpha_t: float
    beta_t: float
    gamma_t: float
    alpha_p: float
    beta_p: float
    gamma_p: float

    def time_per_unit_s(self, gpus: int, clock: float) -> float:
        """T(n, f)."""
        check_operating_point(gpus, clock)
        alone = self.alpha_t + self.beta_t / clock
        return alone if gpus == 1 else (alone + self.gamma_t * gpus) / gpus

    def power_w(self, gpus: int, clock: float) -> float:
        """n P(f): the power of all the GPUs together."""
        check_operating_point(gpus, clock)
        return gpus * (self.alpha_p * clock**3 + self.beta_p * clock + self.gamma_p)

    def energy_per_unit_j(self, gpus: int, clock: float) -> float:
        """n P(f) T(n, f)."""
        return self.power_w(gpus, clock) * self.time_per_unit_s(gpus, clock)


def check_operating_point(gpus: int, clock: float) -> None:
    """Refuse a GPU count or a clock that the law does not know."""
    if gpus < 1 or gpus != int(gpus):
        raise ParameterError(f"gpus is {gpus!r}; it must be a whole number, at least 1")
    if not (math.isfinite(clock) and 0 < clock <= 1):
        raise ParameterError(f"clock is {clock!r}; it must be a fraction of the top clock, above 0 and at most 1")
