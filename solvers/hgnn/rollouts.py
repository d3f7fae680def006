"""Runs of a rule on one instance, many times over: the tables are made once."""

from __future__ import annotations

import numpy as np

from optbench.model.instance import Instance
from optbench.sim.kernel.dispatch import Rule, run
from optbench.sim.kernel.plant import plant_of
from optbench.sim.kernel.pointers import addresses
from optbench.sim.kernel.state import (
    BUSY_J, DONE, MAKESPAN, REST_J, TARDY, TRANSFER_J, new_state, schedule_of,
)  # fmt: skip


class Player:
    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.plant = plant_of(instance)
        self.state = new_state(self.plant)
        self.rows = addresses(self.plant), addresses(self.state)
        w = dict(instance.objective.levels[0])
        self.w = w.get("energy_j", 0.0), w.get("makespan_s", 0.0) * instance.tick_s, w.get("tardiness_s", 0.0)

    def value(self, rule: Rule) -> float:
        """The kernel's own account of the objective; inf where something never ran."""
        run(*self.rows, addresses(rule), np.inf)
        t = self.state.total
        if not (self.state.status == DONE).all():
            return np.inf
        return float(self.w[0] * (t[BUSY_J] + t[TRANSFER_J] + t[REST_J]) + self.w[1] * t[MAKESPAN] + self.w[2] * t[TARDY])

    def schedule(self):
        return schedule_of(self.instance, self.plant, self.state)
