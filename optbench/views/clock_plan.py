"""The clock plan of a schedule: the clocks of its modes on devices by interval colouring.

The clock of a mode is that of the devices of its primary pool. The lowest free devices are taken
first, so that none between two that are used stays idle all the time.
"""

from __future__ import annotations

import math
from collections import defaultdict

from optbench.hardware.clock_control.planned_clocks import ClockPlan, PlannedSegment
from optbench.model.instance import Instance
from optbench.model.lanes import assign_lanes
from optbench.model.schedule import Schedule


def clock_plan(instance: Instance, schedule: Schedule) -> ClockPlan:
    """The plan of a feasible schedule."""
    primary, pools = instance.modes.primary, instance.pools.names
    lanes: dict[int, list[int]] = defaultdict(list)
    for block in assign_lanes(instance, schedule):
        mode = int(schedule.mode[block.segment])
        if block.pool == primary[mode] and math.isfinite(instance.modes.clock[mode]):
            lanes[block.segment] += range(block.lane, block.lane + block.height)
    segments = []
    for row in range(schedule.num_segments):
        begin_s, end_s = (float(x[row]) * instance.tick_s for x in (schedule.start, schedule.end))
        task = instance.tasks.name(schedule.task[row])
        if row not in lanes:
            segments.append(PlannedSegment(task, begin_s, end_s))
            continue
        mode = int(schedule.mode[row])
        pool = int(primary[mode])
        where = tuple(sorted(lanes[row]))
        clock = float(instance.modes.clock[mode])
        segments.append(PlannedSegment(task, begin_s, end_s, pools[pool], where, clock))
    order = sorted(segments, key=lambda each: (each.start_s, each.end_s))
    sizes = {name: int(count) for name, count in zip(pools, instance.pools.count, strict=True)}
    sized = zip(pools, instance.pools.memory_gb, strict=True)
    memory_gb = {name: float(memory) for name, memory in sized if math.isfinite(memory)}
    return ClockPlan(instance.name, tuple(order), sizes, memory_gb)
