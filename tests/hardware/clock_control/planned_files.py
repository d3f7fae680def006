"""A small instance with clocks and its schedule, as files in a machine's folder."""

from __future__ import annotations

from pathlib import Path

import optbench as ob
from optbench.model.files.instance_json import write_instance
from optbench.model.files.schedule_json import write_schedule
from optbench.model.instance import Instance
from optbench.model.schedule import Schedule

# Fractions of 1,410 MHz that the made-up device has: 0.5 is 705 MHz, 1 is 1,410 MHz.
HALF_MHZ, FULL_MHZ = 705, 1410


def clocked_instance(count: int, lengths_s: list[float], tick_s: float = 0.001) -> Instance:
    """Tasks of these lengths, each on one of ``count`` devices, at half or full clock."""
    m = ob.Model("clocked", tick_s=tick_s)
    gpu = m.pool("gpu", count=count)
    for k, length_s in enumerate(lengths_s):
        modes = [
            m.mode({gpu: 1}, time_s=length_s, clock=clock, energy_j=10 * clock, power_w=100.0)
            for clock in (0.5, 1.0)
        ]
        m.task(f"task {k}", modes=modes)
    m.minimize(makespan_s=1.0)
    return m.build()


def alternating(instance: Instance, count: int) -> Schedule:
    """The tasks on ``count`` devices in turn, one after the other on each, half and full clock in
    turn.
    """
    pairs, clock = instance.pairs, instance.modes.clock
    start, mode = [0] * instance.num_tasks, [0] * instance.num_tasks
    free = [0] * count
    for task in range(instance.num_tasks):
        device, wanted = task % count, (0.5, 1.0)[(task // count) % 2]
        rows = range(pairs.ptr[task], pairs.ptr[task + 1])
        (row,) = (row for row in rows if clock[pairs.mode[row]] == wanted)
        mode[task] = int(pairs.mode[row])
        start[task], free[device] = free[device], free[device] + int(pairs.duration[row])
    return Schedule.of(instance, mode, start)


def write_plan(folder: Path, count: int, lengths_s: list[float]) -> tuple[Path, Path]:
    """Write ``instance.json`` and ``schedule.json``; return their paths."""
    instance = clocked_instance(count, lengths_s)
    paths = folder / "instance.json", folder / "schedule.json"
    write_instance(instance, paths[0])
    write_schedule(alternating(instance, count), paths[1], instance)
    return paths
