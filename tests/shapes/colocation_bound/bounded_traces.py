"""A trace whose bounds are known by hand, and bounds of energy by source."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from optbench.model.result import Bound
from optbench.shapes.colocation.colocation_data import Colocation
from optbench.shapes.colocation_bound.offline_bound import offline_bounds
from tests.shapes.colocation.two_gpus import HEAVY, cluster

FREE, HELD = "offline_lp", "offline_lp_held"
# Sleep of one fast and two slow GPUs over 8 epochs of 100 s: (10 + 2 × 5) W × 800 s.
ASLEEP_J = 16_000.0


def by_source(data: Colocation, held_s: float | None, **settings: Any) -> dict[str, Bound]:
    found = offline_bounds(data, 1, held_s, 20.0, **settings)
    return {each.source: each for each in found}


def slow_is_cheap() -> Colocation:
    """300 units at 35 J on the fast GPU at 2 per second, or at 25 J on a slow one at 1 per second,
    where the requirement of 1.5 lacks a third: 20 + 0.5 × 20 − 5 = 25 W."""
    data = cluster([(HEAVY, 0.0, 1.5, 300.0, 0.0)])
    fast, slow = data.gpu_types
    return replace(data, gpu_types=(fast, replace(slow, full_w=40.0)))
