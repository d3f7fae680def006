"""Metrics of what an instance may say beyond work and energy; each only where it says so."""

from __future__ import annotations

from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.model.task_progress import TaskProgress
from optbench.model.temperature import hottest


def physical_metrics(
    instance: Instance, schedule: Schedule, made: TaskProgress
) -> dict[str, float]:
    """The highest temperature of any cooled place."""
    found: dict[str, float] = {}
    if instance.cooling is not None:
        found["peak_temperature_c"] = max(each.celsius for each in hottest(instance, schedule))
    return found
