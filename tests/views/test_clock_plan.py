"""The clocks of a schedule on numbered devices."""

from __future__ import annotations

import optbench as ob
from optbench.hardware.clock_control.planned_clocks import PlannedSegment
from optbench.model.schedule import Schedule
from optbench.model.verify import verify
from optbench.views.clock_plan import clock_plan


def test_clocks_are_of_the_devices_of_the_first_pool() -> None:
    m = ob.Model("plan", tick_s=0.5)
    gpu, cpu = m.pool("gpu", count=4), m.pool("cpu", count=8)
    # Ticks are half a second: 2 s are 4 ticks.
    m.task("prepare", modes=[m.mode({cpu: 2}, time_s=1)])
    m.task("wide", modes=[m.mode({gpu: 2, cpu: 1}, time_s=2, clock=0.5)])
    m.task("late", modes=[m.mode(gpu, time_s=1, clock=0.9)])
    m.minimize(makespan_s=1.0)
    instance = m.build()
    mode = [int(instance.modes.kind_ptr[kind]) for kind in instance.tasks.kind]
    schedule = Schedule.of(instance, mode, [0, 2, 2])
    assert verify(instance, schedule).feasible
    plan = clock_plan(instance, schedule)
    # "wide" comes first in the order of starts; "late" gets the next free device.
    assert plan.segments == (
        PlannedSegment("prepare", 0.0, 1.0),
        PlannedSegment("late", 1.0, 2.0, "gpu", (2,), 0.9),
        PlannedSegment("wide", 1.0, 3.0, "gpu", (0, 1), 0.5),
    )
    assert plan.needs == {"gpu": 3}
    assert plan.sizes == {"gpu": 4, "cpu": 8}
    assert [each.task for each in plan.clocked] == ["late", "wide"]
