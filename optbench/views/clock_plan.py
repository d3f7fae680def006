"""The clock plan of a schedule: the clocks of its modes on devices by interval colouring.

The clock of a mode is that of the devices of its primary pool. Devices that no segment uses are
left out, and the others numbered in their order, so that as few devices as possible are needed.
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
    used: dict[int, set[int]] = defaultdict(set)
    for segment, chosen in lanes.items():
        used[int(primary[schedule.mode[segment]])] |= set(chosen)
    place = {pool: {lane: k for k, lane in enumerate(sorted(own))} for pool, own in used.items()}
    segments = []
    for row in range(schedule.num_segments):
        begin_s, end_s = (float(x[row]) * instance.tick_s for x in (schedule.start, schedule.end))
        task = instance.tasks.name(schedule.task[row])
        if row not in lanes:
            segments.append(PlannedSegment(task, begin_s, end_s))
            continue
        mode = int(schedule.mode[row])
        pool = int(primary[mode])
        where = tuple(place[pool][lane] for lane in sorted(lanes[row]))
        clock = float(instance.modes.clock[mode])
        segments.append(PlannedSegment(task, begin_s, end_s, pools[pool], where, clock))
    order = sorted(segments, key=lambda each: (each.start_s, each.end_s))
    sizes = {name: int(count) for name, count in zip(pools, instance.pools.count, strict=True)}
    return ClockPlan(instance.name, tuple(order), sizes)
