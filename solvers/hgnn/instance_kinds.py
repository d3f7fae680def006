"""Properties of an instance on which learned list rules depend: whether all work is there when it
begins, and whether a schedule is judged by its end alone.
"""

from __future__ import annotations

from optbench.model.instance import Instance
from optbench.model.objective import MAKESPANS
from optbench.model.schedule import Schedule

# What the event kernel leaves to a rule, so that its schedule may break it.
LEFT_TO_RULES = frozenset({"deadlines", "limits", "fixed_horizon", "open_end"})


def has_arrivals(instance: Instance) -> bool:
    """Whether some task arrives later than the first."""
    release = instance.tasks.release
    return bool((release != release[:1]).any())


def is_judged_by_its_end(instance: Instance) -> bool:
    """Whether the makespan is the objective, and every constraint one that the kernel keeps."""
    objective = instance.objective
    alone = len(objective.levels) == 1 and objective.metrics <= set(MAKESPANS)
    return bool(alone and not instance.features & LEFT_TO_RULES)


def value_of_end(instance: Instance, schedule: Schedule) -> float:
    """Return the objective of a complete schedule of the kernel where its end alone decides."""
    end = float(schedule.end.max(initial=0))
    steps = dict(zip(MAKESPANS, (1.0, instance.tick_s), strict=True))
    return float(instance.objective.values({name: end * step for name, step in steps.items()})[0])
