"""The DVFS law: time and power of a unit of work by GPU count n, clock f and problem size s.

T(1, f) = α_t + β_t / f                       seconds per unit, of problems that fill the device
T(n, f) = (α_t + β_t / f + γ_t n) / n         n > 1: γ_t is the cost of synchronising n GPUs
P(f)    = α_p f³ + β_p f + γ_p                watts per GPU
E(n, f) = n P(f) T(n, f)                      joules per unit

A problem of size s (GFLOP that can run at once) fills a share of the device, s / n of it on each of
n GPUs:

u(n, s)    = s / (s + n h)                throughput is u of its peak, half of it at s = n h
                                          (Hockney's n½)
T(n, f, s) = T(n, f) / u
P(f, s)    = u (α_p f³ + β_p f) + γ_p     the idle share of the device draws no dynamic power

No size, or h = 0, is u = 1. The clock is a positive share of the nominal one; how far it may go is
for the caller to check, who knows the device.
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
    half_size_gflop: float = 0.0

    def filled(self, gpus: int, size_gflop: float | None) -> float:
        """u(n, s), in (0, 1]."""
        if size_gflop is None:
            return 1.0
        if not (math.isfinite(size_gflop) and size_gflop > 0):
            raise ParameterError(
                f"size_gflop is {size_gflop!r}; it must be a positive number, or none for "
                "problems that fill it"
            )
        return size_gflop / (size_gflop + gpus * self.half_size_gflop)

    def time_per_unit_s(self, gpus: int, clock: float, size_gflop: float | None = None) -> float:
        """T(n, f, s)."""
        alone = self.alpha_t + self.beta_t / clock
        full = alone if gpus == 1 else (alone + self.gamma_t * gpus) / gpus
        return full / self.filled(gpus, size_gflop)

    def power_w(self, gpus: int, clock: float, size_gflop: float | None = None) -> float:
        """n P(f, s): the power of all the GPUs together."""
        return gpus * (
            self.filled(gpus, size_gflop) * (self.alpha_p * clock**3 + self.beta_p * clock)
            + self.gamma_p
        )

    def energy_per_unit_j(self, gpus: int, clock: float, size_gflop: float | None = None) -> float:
        """n P(f, s) T(n, f, s)."""
        return self.power_w(gpus, clock, size_gflop) * self.time_per_unit_s(gpus, clock, size_gflop)
