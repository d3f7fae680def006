"""What a policy remembers of work that arrives over time: means over the last jobs, the load, and
shadow prices of classes.

The answers for classes and for the whole hold for all that waits, but each is made at one arrival:
their means over the last REMEMBERED tasks count. With dt the ticks since the arrival before, w the
mean device-time of a task, n_c the devices of class c, and D_c the device-time there of the tasks
that arrive, each in the set that is the cheapest at the prices of that moment,

    shadow_c = max(0, shadow_c + pace · (D_c / n_c − room · dt) / w)

rises while more work prefers the class than it can do: the dual ascent of the fluid programme of
the traffic, in which shadow_c ends as what a device of the class is worth, in units of R / N.
"""

from __future__ import annotations

import math

import numpy as np

from optbench.model.instance import Floats, Instance
from optbench.model.objective_prices import joule_price
from optbench.model.ragged import ragged

from .answers import Answers
from .class_tables import ClassTables
from .seen_arrays import CLASS_COLUMNS
from .situation import Situation

# Tasks over which means are taken, and mean device-times of a task over which the load is.
REMEMBERED, LOAD_SPAN = 300.0, 60.0
# No device is worth more than this many times what a tick of the makespan costs per device.
MOST_SHADOW = 50.0
# Columns of classes that are those of the moment.
NOW = [CLASS_COLUMNS.index(name) for name in ("free", "backlog", "heat")]
# Answers for the whole that hold for all that waits: the price of time and that of tardiness.
LASTING = slice(5, 7)


class ClassTraffic:
    """The memory of one run; ``pace`` and ``room`` are those of the formula above."""

    def __init__(self, instance: Instance, tables: ClassTables, pace: float, room: float) -> None:
        view, self.tables, self.pace, self.room = tables.view, tables, pace, room
        first = view.first_mode
        rest_j = instance.mode_rest_w[first] * view.time_per_unit_s
        self.net = joule_price(instance) * (view.energy_per_unit_j - rest_j)
        count = np.maximum(1, view.devices)
        self.device_ticks = instance.ticks_per_unit[first] * count
        self.set_class = np.maximum(0, view.primary_class)
        self.count = np.maximum(1.0, tables.num_devices)
        self.shadow = np.zeros(view.num_classes)
        self.tasks, self.work, self.last, self.begun = 0.0, 0.0, 0.0, -1.0
        self.mean_work = 1.0
        self.classes: Floats | None = None
        self.device = np.zeros(view.num_classes)
        self.lasting = np.zeros(2)

    def arrive(self, found: Situation, answers: Answers, now: float) -> tuple[Floats, Answers]:
        """Take in the tasks that arrive; return the table of classes and the answers, both with
        means over the last jobs in place of what concerns all that waits.
        """
        seen, number = found.seen.device.astype(float), float(len(found.load))
        if self.classes is None:
            self.classes, self.begun, self.last = seen.copy(), now, now
        waited, self.last = now - self.last, now
        self.tasks = min(REMEMBERED, self.tasks + number)
        share = min(1.0, number / max(1.0, self.tasks))
        self.mean_work += share * (float(found.load.mean()) - self.mean_work)
        self.mean_work = max(1.0, self.mean_work)
        self.work *= math.exp(-waited / (LOAD_SPAN * self.mean_work))
        self.work += float(found.load.sum())
        self.classes += share * (seen - self.classes)
        self.device += share * (answers.device - self.device)
        self.lasting += share * (answers.whole[LASTING] - self.lasting)
        classes, whole = self.classes.copy(), answers.whole.copy()
        classes[:, NOW] = seen[:, NOW]
        whole[LASTING] = self.lasting
        self.shadow -= self.pace * self.room * waited / self.mean_work
        return classes, Answers(
            whole, self.device, answers.task, answers.task_factor, answers.set_factor
        )

    def load(self) -> float:
        """Return the work that arrives in the cheapest sets at the plain price, over what the
        devices can do in that time.
        """
        span = LOAD_SPAN * self.mean_work
        passed = span * (1.0 - math.exp(-(self.last - self.begun) / span)) + self.mean_work
        return self.work / (passed * float(self.count.sum()))

    def crowd(self, waiting: float) -> float:
        """Return how many mean tasks wait per device, by their device-time."""
        return waiting / (self.mean_work * float(self.count.sum()))

    def ask(self, instance: Instance, found: Situation, price: Floats) -> None:
        """Add to the shadow prices what the tasks that arrive ask for at these prices of classes,
        which are in units of R / N.
        """
        ptr, kind = self.tables.view.kind_ptr, instance.tasks.kind
        size = np.diff(ptr)[kind]
        task, row = ragged(ptr[kind], size)
        place = self.set_class[row]
        per_unit = self.net[row] + self.tables.device_price * price[place] * self.device_ticks[row]
        cost = np.where(found.seen.fits[task, place], per_unit, np.inf)
        least = np.minimum.reduceat(cost, np.cumsum(size) - size)
        cheapest = np.flatnonzero(cost == least[task])
        _, first = np.unique(task[cheapest], return_index=True)
        chosen = row[cheapest[first]]
        asked = instance.tasks.units * self.device_ticks[chosen]
        demand = np.bincount(self.set_class[chosen], weights=asked, minlength=len(self.shadow))
        self.shadow += self.pace * demand / self.count / self.mean_work
        self.shadow = np.clip(self.shadow, 0.0, MOST_SHADOW)
