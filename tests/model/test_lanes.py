"""Segments get devices of their pools, and no device has two at once."""

from __future__ import annotations

import optbench as ob
from optbench.model import lanes
from optbench.model.schedule import Schedule
from optbench.model.verify import verify


def test_every_segment_gets_its_devices_and_none_is_shared() -> None:
    m = ob.Model("lanes")
    gpu = m.pool("gpu", count=4)
    # 1 device [0, 10), 2 devices [0, 4), 1 device [0, 6), then 2 devices [4, 8) fit beside the
    # first and the third.
    for count, length in ((1, 10), (2, 4), (1, 6), (2, 4)):
        m.task(modes=[m.mode({gpu: count}, time_s=length)])
    m.minimize(makespan_s=1.0)
    instance = m.build()
    schedule = Schedule.of(instance, [0, 1, 2, 1], [0, 0, 0, 4])
    assert verify(instance, schedule).feasible
    blocks = lanes.assign_lanes(instance, schedule)
    held: dict[int, list[int]] = {}
    for block in blocks:
        held.setdefault(block.segment, []).extend(range(block.lane, block.lane + block.height))
    assert {segment: len(rows) for segment, rows in held.items()} == {0: 1, 1: 2, 2: 1, 3: 2}
    assert max(max(rows) for rows in held.values()) == 3
    for a in held:
        for b in held:
            overlap = (
                a != b
                and schedule.start[a] < schedule.end[b]
                and schedule.start[b] < schedule.end[a]
            )
            assert not (overlap and set(held[a]) & set(held[b]))
    assert held[3] == held[1]  # the two devices that are free again, side by side
