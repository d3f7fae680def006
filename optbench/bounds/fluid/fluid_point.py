"""A schedule as a point of the fluid LP: every verified schedule satisfies every row, at no higher
cost.
"""

from __future__ import annotations

import numpy as np

from optbench.bounds.fluid.fluid_program import Fluid
from optbench.model.instance import Floats
from optbench.model.metrics import integral, metrics_of
from optbench.model.schedule import Schedule


def point_of(fluid: Fluid, schedule: Schedule) -> Floats:
    """Return the columns' values for a schedule of one segment per task."""
    instance, groups = fluid.instance, fluid.groups
    point = np.zeros(fluid.columns.count)
    group = groups.group[schedule.task]
    start, end = schedule.start.astype(float), schedule.end.astype(float)
    metrics = metrics_of(instance, schedule)
    size = len(groups.size)
    key = groups.of * instance.num_modes + groups.mode
    order = np.argsort(key)
    entry = order[np.searchsorted(key[order], group * instance.num_modes + schedule.mode)]
    np.add.at(point, fluid.share[entry], 1.0)
    point[fluid.start] = np.bincount(group, weights=start, minlength=size)
    point[fluid.makespan] = metrics["makespan"]
    for name, column in fluid.metric.items():
        point[column] = metrics[name]
    if len(fluid.late):
        deadline = instance.tasks.deadline[schedule.task]
        soft = np.isfinite(deadline) & ~instance.tasks.deadline_hard[schedule.task]
        late = np.where(soft, np.maximum(0.0, end - np.where(soft, deadline, 0.0)), 0.0)
        point[fluid.late] = np.bincount(group, weights=late, minlength=size)
    _tariff_part(fluid, schedule, point)
    return point


def _tariff_part(fluid: Fluid, schedule: Schedule, point: Floats) -> None:
    instance, tariffs = fluid.instance, fluid.instance.tariffs
    if tariffs is None or not len(fluid.slot):
        return
    slots = fluid.slot.reshape(instance.num_modes, -1)
    begins = fluid.slot_begins
    ends = np.append(begins[1:], np.inf)
    for t in range(len(begins)):
        inside = np.maximum(
            0.0, np.minimum(schedule.end, ends[t]) - np.maximum(schedule.start, begins[t])
        )
        np.add.at(point, slots[schedule.mode, t], inside)
    horizon = point[fluid.makespan] if instance.horizon is None else float(instance.horizon)
    for name, column in fluid.rest.items():
        rates = tariffs.price_usd_per_kwh if name == "cost_usd" else tariffs.carbon_g_per_kwh
        watts = instance.pools.rest_w * instance.pools.count * instance.tick_s
        point[column] = sum(
            watts[p] * float(integral(tariffs.times, rates[p], np.asarray([horizon]))[0])
            for p in range(instance.num_pools)
        )
