"""What the numbers of a network say of the tasks of a schedule: what each would cost in each set.

With the numbers of ``hgnn.milestone_rule`` a task i that starts at t costs in a set s of alike
modes

    c_is(t) = ρ net_is + (w + Σ_p n_p λ_p) d_is + extra_is
              + late_i (t + d_is − due_i)⁺ + tardy_i (t + d_is − deadline_i)⁺

with ρ the price of a joule, net_is the joules above those at rest, d_is the ticks, w the price of
time, λ_p the price of the pools that the set uses, extra_is the cost that the network gives the
pair, and late_i and tardy_i the prices of a tick after the network's due date and after the
deadline. The *loss* of a task is c of its own set minus the least c of all sets that it fits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.model.classes import class_view
from optbench.model.instance import Floats, Instance, Ints
from optbench.model.schedule import Schedule
from optbench.model.windows import windows

from .._lp_guide import Guide
from ..hgnn.milestone_rule import RuleNumbers

# Shares of sets in the search fall by e per this share of the mean cost of a task.
SHARE_SCALE = 0.01


@dataclass(frozen=True, eq=False)
class NetworkScores:
    """Rows of (task, set) that fit; those of task i are ``ptr[i]`` to ``ptr[i + 1]``.

    ``place`` is the row of the first set of a task's kind in the table of all pairs, and ``row``
    where a pair of that table stands here, -1 where it does not fit.
    """

    instance: Instance
    numbers: RuleNumbers
    ptr: Ints
    task: Ints
    place: Ints
    row: Ints
    length: Floats
    fixed_cost: Floats

    def row_of(self, mode: Ints) -> Ints:
        """Return the row of each task in this mode."""
        view, kind = class_view(self.instance), self.instance.tasks.kind
        return np.asarray(self.row[self.place + view.mode_set[mode] - view.kind_ptr[kind]])

    def costs(self, start: Floats) -> Floats:
        """Return c of every row where its task starts at this tick."""
        made, tasks = self.numbers, self.instance.tasks
        end = start[self.task] + self.length
        late = made.late_price[self.task] * np.maximum(0.0, end - made.due[self.task])
        tardy = made.late_weight * tasks.weight[self.task]
        return np.asarray(
            self.fixed_cost + late + tardy * np.maximum(0.0, end - tasks.deadline[self.task])
        )

    def loss(self, mode: Ints, start: Floats) -> Floats:
        """Return the loss of each task."""
        cost = self.costs(start)
        least = np.minimum.reduceat(cost, self.ptr[:-1])
        return np.asarray(np.maximum(0.0, cost[self.row_of(mode)] - least))

    def guide(self, schedule: Schedule) -> Guide:
        """Return weights of modes for the search around a schedule: alike modes alike."""
        instance, pairs, view = self.instance, self.instance.pairs, class_view(self.instance)
        start = np.asarray(schedule.start, dtype=float)
        cost = self.costs(start)
        value = float(np.abs(cost[self.row_of(schedule.mode)]).sum())
        loss = cost - np.minimum.reduceat(cost, self.ptr[:-1])[self.task]
        first = self.place - view.kind_ptr[instance.tasks.kind]
        loss = loss[self.row[first[pairs.task] + view.mode_set[pairs.mode]]]
        scale = SHARE_SCALE * value / max(1, instance.num_tasks)
        return Guide(
            value,
            pairs.ptr,
            pairs.mode,
            np.exp(-loss / max(1e-12, scale)),
            loss,
            start,
            windows(instance).tail,
            float(schedule.end.max(initial=0)),
            self.numbers.pool_cost,
            np.zeros(instance.num_tasks),
        )


def scores_of(instance: Instance, numbers: RuleNumbers) -> NetworkScores:
    """Return the table of costs of an instance."""
    view, tasks, modes = class_view(instance), instance.tasks, instance.modes
    size = np.diff(view.kind_ptr)[tasks.kind]
    place = np.cumsum(size) - size
    task = np.repeat(np.arange(instance.num_tasks), size)
    which = np.arange(len(task)) - np.repeat(place - view.kind_ptr[tasks.kind], size)
    first = view.first_mode[which]
    pairs = instance.pairs
    fits = np.zeros(len(task), dtype=bool)
    fits[(place - view.kind_ptr[tasks.kind])[pairs.task] + view.mode_set[pairs.mode]] = True
    row = np.where(fits, np.cumsum(fits) - 1, -1)
    need = np.repeat(np.arange(instance.num_modes), np.diff(modes.req_ptr))
    price = np.bincount(
        need,
        weights=modes.req_count * numbers.pool_cost[modes.req_pool],
        minlength=instance.num_modes,
    )[first]
    units = tasks.units[task]
    length = np.ceil(units * instance.ticks_per_unit[first])
    net_j = units * modes.energy_per_unit_j[first]
    net_j = net_j - instance.mode_rest_w[first] * length * instance.tick_s
    cost = numbers.energy_weight * net_j + (numbers.end_weight + price) * length + numbers.set_cost
    kept = np.bincount(task[fits], minlength=instance.num_tasks)
    return NetworkScores(
        instance,
        numbers,
        np.concatenate(([0], np.cumsum(kept))),
        task[fits],
        place,
        row,
        length[fits],
        cost[fits],
    )
