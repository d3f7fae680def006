"""Every task in its mode of least energy, longest remaining path first; a task waits for the devices of that mode.

Where the horizon is fixed, a mode is charged with its energy less the rest of the devices it takes, which they would draw anyway.
Where rest is paid until everything has ended, with all of it: on a full cluster, device-time taken is time added.
Of modes that cost the same the one that ends first is taken. Transfers and tariffs are not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.model.instance import Instance
from optbench.model.windows import windows
from optbench.plugins.policy import RulePolicy
from optbench.sim.kernel.dispatch import Rule
from optbench.sim.rules import list_rule

# What all the time there is weighs, against the energy of the average task: it breaks ties only.
TIE = 1e-6


@dataclass(frozen=True)
class MinEnergy(RulePolicy):
    """The mode of least energy, whatever the time it takes; makespan and deadlines are not looked at."""

    def rule(self, instance: Instance, rng: np.random.Generator) -> Rule:
        known, energy = windows(instance), instance.pairs.energy_j
        path = known.shortest + known.tail
        span = float(known.longest.sum()) + float(np.asarray(instance.tasks.release).max(initial=0.0))
        tie = TIE * (float(np.abs(energy).mean()) if len(energy) else 0.0) / max(span, 1e-9)
        fixed = instance.horizon is not None
        return list_rule(
            instance,
            base=-path,
            end_weight=tie if tie > 0 else 1.0,
            energy_weight=1.0 if fixed else 0.0,
            mode_cost=0.0 if fixed else instance.modes.energy_per_unit_j,
            lookahead=True,
        )
