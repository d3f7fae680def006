"""Names of features that an instance needs and a solver declares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from optbench.model.instance import Bools, Instance, Pools

FEATURES = {
    "precedence": "tasks that wait for others",
    "transfers": "data that takes time or energy between pools",
    "releases": "tasks that arrive later than time 0",
    "deadlines": "deadlines that must hold",
    "modes": "tasks with a choice of modes",
    "multi_resource": "modes that occupy several pools",
    "pooled": "pools of several devices",
    "power_cap": "power caps",
    "limits": "upper limits on energy or another metric",
    "tariffs": "price or carbon that varies over time",
    "preemption": "tasks that may be interrupted",
    "checkpoints": "tasks that keep, of a segment cut short, only what is saved",
    "fixed_horizon": "a fixed horizon",
    "energy": "an objective with energy",
    "due_dates": "an objective with flow time or tardiness",
    "access": "tasks with an ingress latency to pools",
    "congestion": "links whose speed varies over time",
    "cooling": "places that may not become too hot",
    "waking": "devices that sleep, and take time or energy to wake",
    "outages": "devices that fail, or are taken away, for a time",
    "open_end": "work that may be left undone at the horizon",
    "per_unit": "an objective per unit of work done",
}


def features_of(instance: Instance) -> frozenset[str]:
    """Names from FEATURES that this instance uses."""
    tasks, modes, edges, stream = instance.tasks, instance.modes, instance.edges, instance.stream
    wanted = instance.objective.metrics | set(instance.limits.metric_max)
    varying = instance.tariffs is not None and len(instance.tariffs.times) > 1
    tests = {
        "precedence": len(edges.source) > 0,
        "transfers": bool((edges.data_gb > 0).any()) and instance.num_pools > 1,
        "releases": bool((tasks.release > 0).any()),
        "deadlines": bool((np.isfinite(tasks.deadline) & tasks.deadline_hard).any()),
        "modes": bool((np.diff(modes.kind_ptr)[tasks.kind] > 1).any()),
        "multi_resource": bool((np.diff(modes.req_ptr) > 1).any()),
        "pooled": bool((instance.pools.count > 1).any()),
        "power_cap": len(instance.limits.cap_w) > 0,
        "limits": bool(instance.limits.metric_max),
        "tariffs": varying and bool(wanted & {"cost_usd", "carbon_g"}),
        # A policy that never interrupts a task serves tasks with checkpoints, which failures stop.
        "preemption": instance.preemptive and tasks.checkpoint is None,
        "checkpoints": tasks.checkpoint is not None,
        "fixed_horizon": instance.horizon is not None,
        "energy": bool(wanted & {"energy_j", "cost_usd", "carbon_g"}),
        "due_dates": bool(wanted & {"flow_time_s", "tardiness_s"}),
        "access": stream is not None and bool((stream.latency_s > 0).any()),
        "congestion": instance.congestion is not None,
        "cooling": instance.cooling is not None,
        "waking": bool(provisioned(instance.pools).any()),
        "outages": stream is not None and len(stream.outages.time) > 0,
        "open_end": instance.is_open,
        "per_unit": "j_per_unit" in wanted,
    }
    return frozenset(name for name, present in tests.items() if present)


def provisioned(pools: Pools) -> Bools:
    """Pools whose devices take time or energy to wake."""
    out = np.zeros(len(pools.names), dtype=bool)
    for column in (pools.wake_s, pools.wake_j):
        if column is not None:
            out |= column > 0
    return out
