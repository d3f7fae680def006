"""When a schedule that is no worse than a known one has ended.

With the objective Σ_m w_m m over non-negative metrics, and the end C of all tasks:

    w C                     <= objective      w what a tick of the makespan costs by itself,
    Σ_i min_k a_ik + r C    <= objective      a_ik what mode k of task i adds (priced.py), net of
                                              the resting power of its devices, and r = w + what a
                                              tick of all pools at rest costs,

the second where no price varies over time; transfers, flow time and tardiness are not negative. A
fixed horizon makes the resting power a constant, and r = w.
"""

from __future__ import annotations

import numpy as np

from optbench.model.instance import Floats, Instance
from optbench.units import SUM_MARGIN
from optbench.views.milp.frame import ENERGETIC, Frame, frame
from optbench.views.milp.priced import pair_amounts, rest_until


def known_end(instance: Instance, objective: float | None) -> float | None:
    """Return a time by which every schedule no worse than ``objective`` has ended, if there is
    one.
    """
    if objective is None:
        return None
    weights = dict(instance.objective.levels[0])
    own = weights.get("makespan", 0.0) + weights.get("makespan_s", 0.0) * instance.tick_s
    ends = [objective / own * (1 + SUM_MARGIN)] if own > 0 else []
    base = frame(instance)
    if not base.varying:
        least, per_tick = _energetic(base)
        per_tick += own
        if per_tick > 0:
            margin = SUM_MARGIN * (abs(objective) + np.abs(least).sum())
            ends.append((objective - float(least.sum()) + float(margin)) / per_tick)
    return min(ends, default=None)


def _energetic(base: Frame) -> tuple[Floats, float]:
    """Return the least weighted energy, price and carbon of each task, with the constant last; and
    that of a tick of all pools at rest.
    """
    instance = base.instance
    pairs, total = instance.pairs, np.zeros(len(instance.pairs.task))
    constant = per_tick = 0.0
    for metric in sorted(ENERGETIC & base.weights.keys()):
        weight = base.weights[metric]
        total += weight * pair_amounts(base, metric)
        if instance.horizon is None:
            per_tick += weight * float(rest_until(base, metric, np.ones(1))[0])
        else:
            constant += weight * float(rest_until(base, metric, np.asarray([instance.horizon]))[0])
    least = np.full(instance.num_tasks, np.inf)
    np.minimum.at(least, pairs.task, total)
    return np.append(least, constant), per_tick
