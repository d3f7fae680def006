"""Every task in its mode of least energy, longest remaining path first; a task may wait for the
devices of that mode.

Where the horizon is fixed, devices draw their rest in any case: a mode is charged with its energy
less the rest of the devices it takes, and the first to end of equal ones is taken. Where rest is
paid until everything has ended, time costs:

    energy_ik + hold · R · end,      R the resting power of all devices

with the whole energy (on a full cluster device-time taken is time added) and a part ``hold`` of R,
because not every task is the last. Without it tasks queue for the most efficient pool while the
others idle: a third more energy on gpu_dag. Transfers, tariffs and deadlines are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import optbench as ob
from optbench.rules import Rule, RulePolicy, has_choice, list_rule, windows

# What a second of time is charged with, as a share of the least power of any mode: it only breaks
# ties.
TIE = 1e-9


@dataclass(frozen=True)
class MinEnergy(RulePolicy):
    """The mode of least energy; ``hold`` is the share of all resting power that the end of a task
    is charged with.
    """

    job_by_job: ClassVar[bool] = True

    hold: float = 0.3

    def __post_init__(self) -> None:
        if not 0.0 <= self.hold <= 1.0:
            raise ob.ParameterError(f"min_energy: hold is {self.hold!r}; it must be in [0, 1]")

    def rule(self, instance: ob.Instance, rng: np.random.Generator) -> Rule:
        known, modes, pools = windows(instance), instance.modes, instance.pools
        running = (modes.time_per_unit_s > 0) & (modes.energy_per_unit_j > 0)
        power_w = modes.energy_per_unit_j[running] / modes.time_per_unit_s[running]
        tie = TIE * float(power_w.min()) * instance.tick_s if running.any() else 0.0
        fixed = instance.horizon is not None
        time_j = (
            0.0
            if fixed
            else self.hold * float((pools.rest_w * pools.count).sum()) * instance.tick_s
        )
        return list_rule(
            instance,
            base=-(known.shortest + known.tail),
            end_weight=max(time_j, tie) or 1.0,
            energy_weight=1.0 if fixed else 0.0,
            mode_cost=0.0 if fixed else modes.energy_per_unit_j,
            lookahead=has_choice(instance),
        )
