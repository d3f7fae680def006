"""What an honest solver would return: a schedule of the event kernel."""

from __future__ import annotations

from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.sim.rules import list_rule, run_rule


def honest(instance: Instance) -> Schedule:
    schedule = run_rule(instance, list_rule(instance, ready_weight=1.0, end_weight=1.0)).schedule
    assert schedule is not None
    return schedule
