"""Two clocks and a threshold: low while there is little to do, high while tasks queue.

The cluster is *pressed* while  ready tasks / (ready tasks + free devices) > load. Per kind, pools
and numbers of devices, the mode whose clock is nearest to ``high_clock`` is allowed then, nearest
to ``low_clock`` otherwise; modes without a clock are always allowed. Tasks come in the order in
which they become ready, each in the allowed mode that ends first; a task that does not fit is
skipped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import optbench as ob
from optbench.rules import CALM, PRESSED, Rule, RulePolicy, list_rule, within_caps


@dataclass(frozen=True)
class FixedDvfs(RulePolicy):
    """Low clock, high clock (fractions of the top clock) and the load from which on the high one is
    used; all in [0, 1].
    """

    job_by_job: ClassVar[bool] = True

    low_clock: float = 0.6
    high_clock: float = 1.0
    load: float = 0.5

    def __post_init__(self) -> None:
        for name, value in (
            ("low_clock", self.low_clock),
            ("high_clock", self.high_clock),
            ("load", self.load),
        ):
            if not 0.0 <= value <= 1.0:
                raise ob.ParameterError(f"fixed_dvfs: {name} is {value!r}; it must be in [0, 1]")

    def rule(self, instance: ob.Instance, rng: np.random.Generator) -> Rule:
        low, high = (nearest_clock(instance, clock) for clock in (self.low_clock, self.high_clock))
        per_free = math.inf if self.load == 1.0 else self.load / (1.0 - self.load)
        return list_rule(
            instance,
            ready_weight=1.0,
            end_weight=1.0,
            load=per_free,
            allowed=CALM * low + PRESSED * high,
        )


def nearest_clock(instance: ob.Instance, clock: float) -> ob.Bools:
    """Return modes whose clock is nearest, the lower of two, among those that differ in nothing
    else and that caps allow.
    """
    modes = instance.modes
    distance = np.where(np.isnan(modes.clock), 0.0, np.abs(modes.clock - clock))
    distance = np.where(within_caps(instance), distance, math.inf)
    best: dict[tuple[object, ...], tuple[float, float, int]] = {}
    out = np.isnan(modes.clock)
    for k in np.flatnonzero(~out).tolist():
        needs = slice(int(modes.req_ptr[k]), int(modes.req_ptr[k + 1]))
        group = (
            int(modes.kind[k]),
            *modes.req_pool[needs].tolist(),
            *modes.req_count[needs].tolist(),
        )
        rank = (float(distance[k]), float(modes.clock[k]), k)
        best[group] = min(best.get(group, rank), rank)
    out[[k for _, _, k in best.values()]] = True
    return np.asarray(out, dtype=bool)
