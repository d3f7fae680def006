"""Multipliers of constraints E[c] ≤ τ: how much a unit of cost is worth.

    projected (the paper's) λ ← [λ + η (c − τ)]₊
    clipped                 λ ← [λ + η (c − τ)₊]₊    only the error's positive part: λ never falls
    signed                  log λ ← log λ + K e      e = (c − τ) / τ

The last is integral control of the logarithm: λ stays positive, falls where there is room, and a
step is relative, so that one gain serves prices from 1 W to 100 W.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass
class ProjectedDual:
    """The projected step on the mean error, as printed; ``clipped``: on its positive part."""

    value: float = 0.0
    rate: float = 0.01
    clipped: bool = False

    def update(self, cost: float, threshold: float) -> float:
        error = cost - threshold
        self.value = max(0.0, self.value + self.rate * (max(0.0, error) if self.clipped else error))
        return self.value


@dataclass
class SignedDual:
    """Integral control of the logarithm by the relative error."""

    value: float = 10.0
    integral: float = 0.05
    least: float = 0.01
    most: float = 1e4

    def update(self, cost: float, threshold: float) -> float:
        error = max(-1.0, min(1.0, (cost - threshold) / threshold))
        self.value = min(self.most, max(self.least, self.value * math.exp(self.integral * error)))
        return self.value
