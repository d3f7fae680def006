"""A table of values for a tiny plant, learned from its arrivals alone under a Lagrange multiplier
for time in the system.

The learner (``kernel.site_chain``) sees what happens in the kernel of sites and nothing of rates or
laws. Every other pass tries nothing; what it shows of the mean time in the system moves the
multiplier, λ = [λ + η (W / τ − 1)]₊, during the first part of the passes. Then λ stays at the mean
of its last third while values settle. The greedy policy of the table is stationary and
deterministic; ``OccupancyProgramme.value`` says exactly what it is worth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from optbench.model.instance import Floats, Instance
from tests.tiny_plants import chain_kernel as kernel
from tests.tiny_plants.chain import Chain
from tests.tiny_plants.chain_play import lookup_of, play_lookup

# Share of the passes in which the multiplier moves, and share of those whose mean it keeps.
MOVING, KEPT = 0.5, 1.0 / 3.0


@dataclass(frozen=True)
class Pace:
    """How the learner's numbers change over its passes: from the first to the last, in squares of
    what is left.
    """

    explore: tuple[float, float] = (0.6, 0.02)
    step: tuple[float, float] = (0.02, 3e-4)
    dual_step_w: float = 10.0


@dataclass(frozen=True, eq=False)
class Table:
    """Values by state of the chain, the multiplier (W per job in the system), and how it went."""

    value: Floats
    price_w: float
    price_trace: Floats
    events: int


def learn_table(
    instances: Callable[[int], Instance],
    chain: Chain,
    *,
    sojourn_s: float | None = None,
    price_w: float = 0.0,
    passes: int = 300,
    seed: int = 1000,
    how: Pace | None = None,
) -> Table:
    """Learn on one instance after another, ``instances(k)`` in pass k; without a budget the
    multiplier stays at ``price_w``.
    """
    how = how or Pace()
    lookup = lookup_of(instances(0), chain)
    number, trace = lookup.number, []
    lookup.shape[kernel.LEARNS] = kernel.LEARNING
    number[[kernel.LAMBDA, kernel.FORGET]] = price_w, 1.0 - 1e-5
    for k in range(passes):
        left, tries = 1.0 - k / passes, k % 2 == 0
        number[kernel.EXPLORE] = (
            how.explore[1] + (how.explore[0] - how.explore[1]) * left if tries else 0.0
        )
        number[kernel.STEP] = how.step[1] + (how.step[0] - how.step[1]) * left**2
        number[kernel.CROWD], lookup.shape[kernel.ARRIVED] = 0.0, 0
        play_lookup(instances(k), lookup, np.random.default_rng((seed, k)))
        if sojourn_s is not None and k < MOVING * passes:
            if not tries:
                mean_s = number[kernel.CROWD] / max(1, lookup.shape[kernel.ARRIVED])
                number[kernel.LAMBDA] = max(
                    0.0, number[kernel.LAMBDA] + how.dual_step_w * left * (mean_s / sojourn_s - 1.0)
                )
            trace.append(float(number[kernel.LAMBDA]))
        elif trace:
            number[kernel.LAMBDA] = float(np.mean(trace[-max(1, int(KEPT * len(trace))) :]))
    return Table(
        lookup.value, float(number[kernel.LAMBDA]), np.array(trace), int(lookup.visits.sum())
    )
