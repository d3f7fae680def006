"""Metrics of what an instance may say beyond work and energy; each only where it says so."""

from __future__ import annotations

import numpy as np

from optbench.model.instance import Instance
from optbench.model.metrics import busy_ticks, requirements
from optbench.model.schedule import Schedule
from optbench.model.task_progress import TaskProgress, late_share, lost_energy_j
from optbench.model.temperature import hottest
from optbench.model.timegrid import rounded_sum
from optbench.model.windows import shortest_durations


def physical_metrics(
    instance: Instance, schedule: Schedule, made: TaskProgress
) -> dict[str, float]:
    """The highest temperature of any cooled place, how users are served, how many failures the busy
    devices have on average, and the energy of work that was interrupted and not saved.
    """
    found: dict[str, float] = {}
    if instance.cooling is not None:
        found["peak_temperature_c"] = max(each.celsius for each in hottest(instance, schedule))
    if instance.tasks.user is not None:
        found["fairness"] = fairness(instance, made)
        found |= service_metrics(instance, schedule, made)
    if instance.pools.failures_per_s is not None:
        row, pool, count = requirements(instance, schedule.mode)
        ticks = np.maximum(schedule.end - schedule.start, 0)[row]
        failures = instance.pools.failures_per_s[pool] * count * ticks
        found["expected_failures"] = rounded_sum(failures) * instance.tick_s
    if instance.tasks.checkpoint is not None:
        found["lost_energy_j"] = rounded_sum(lost_energy_j(instance, schedule, made))
    return found


def service_metrics(instance: Instance, schedule: Schedule, made: TaskProgress) -> dict[str, float]:
    """What users get of a cluster that they share, and how much of it is in use.

    With the A tasks that arrive before the end E (the horizon of an open instance, else the
    makespan), O the opening and n_p the devices of pool p,

        slo_violation     late tasks of A with a deadline / tasks of A with a deadline
        throughput_per_s  completed tasks of A / (E − O)
        utilisation       Σ_p busy device-time of p within [O, E] / Σ_p n_p (E − O)

    each 0 where it would divide by 0.
    """
    tasks = instance.tasks
    end = instance.end_of_time if instance.is_open else int(schedule.end.max(initial=0))
    here = tasks.release < end if instance.is_open else np.ones(len(tasks.release), dtype=bool)
    span = end - instance.opens
    done = int((made.complete & here).sum())
    whole = int(instance.pools.count.sum()) * span
    busy = sum(busy_ticks(instance, schedule, end))
    return {
        "slo_violation": late_share(instance, made.finish(instance), here),
        "throughput_per_s": done / (span * instance.tick_s) if span > 0 else 0.0,
        "utilisation": busy / whole if whole > 0 else 0.0,
    }


def fairness(instance: Instance, made: TaskProgress) -> float:
    """Jain's index of the users' mean slowdowns x,

        (Σ_u x_u)² / (U Σ_u x_u²),

    1 where all are alike, 1 / U where one alone waits. The slowdown of a task is its time from
    release to finish over its shortest length (a tick at least).
    """
    tasks, shortest = instance.tasks, shortest_durations(instance)
    assert tasks.user is not None
    slowdown = (made.finish(instance) - tasks.release) / np.maximum(shortest, 1.0)
    # What comes after the end of an open instance was not there to be served.
    here = tasks.release < instance.end_of_time if instance.is_open else slowdown == slowdown
    total = np.bincount(tasks.user[here], weights=slowdown[here])
    number = np.bincount(tasks.user[here])
    mean = total[number > 0] / number[number > 0]
    squares = rounded_sum(mean * mean) * len(mean)
    return rounded_sum(mean) ** 2 / squares if squares > 0 else 1.0
