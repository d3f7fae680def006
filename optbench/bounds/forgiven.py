"""What the verifier's tolerance can add up to where time is seconds, and bounds lowered by it; in ticks it is nothing.

Let n tasks have a longest chain of D tasks, T = max(1, makespan) and ε = TOLERANCE · T. Each comparison of the verifier
forgives at most ε, so that a verified schedule has

    start_i ≥ release_i − ε,     end_i ≥ start_i + d_i − ε,     start_j ≥ end_i + l_ij − ε on edges,

and its segments drawn back to [start_i, end_i − ε) keep every capacity and power cap. They are d_i − 2ε long at least. Hence

* a chain of h tasks begins and ends at most (2h + 1) ε before what its durations say: heads and tails lose (2D + 1) ε each;
* the tasks of a set do at least Σ (work_i − 2ε · devices_i) within capacity · (b − a): their load loses 2nε at most.

Every bound on a time (paths, loads, Jackson's schedule, mean busy times, the rows of the fluid programme) is a chain, a load
and a chain: it loses at most κε, κ = 2 (n + 2D + 2), which leaves 2ε for the rounding of the sums themselves (n terms in
floats lose 1e-16 n T, millions of times less than the 2e-9 n T above). For the makespan B the loss is κ TOLERANCE max(1, B),
since B − κ TOLERANCE max(1, C) ≤ C implies B − κ TOLERANCE max(1, B) ≤ C. Of the other metrics, with τ = κ TOLERANCE
max(1, time horizon) and R the resting power of all devices:

    flow_time_s, tardiness_s    Σ weight_i τ                              each end is early by τ at most
    energy_j                    2 R τ                                     rest until the makespan, and what busy time replaces
    cost_usd, carbon_g          r (2 R τ + Σ_i max_k e_ik min(1, 2 τ / d_ik))      r the highest rate: a task shifted by τ has
                                                                          that share of its energy elsewhere

The fluid programme has to contain a schedule moved to where its tasks do take d_i, so its windows, rooms and limits are
widened by the same amounts (``fluid``), and what it proves is lowered like the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.model.instance import TOLERANCE, Instance
from optbench.model.metrics import J_PER_KWH
from optbench.model.objective import MAKESPANS
from optbench.model.windows import by_source, time_horizon


@dataclass(frozen=True)
class Allowance:
    """κ · TOLERANCE, τ, and by how much each metric of a verified schedule can fall short of a bound."""

    relative: float
    time: float
    metric: dict[str, float]

    def lowered(self, level: tuple[tuple[str, float], ...], value: float) -> float:
        """A bound on one level, proved in exact arithmetic, as a bound on what a verified schedule can show."""
        if self.relative == 0:
            return value
        if {metric for metric, _ in level} <= set(MAKESPANS):
            return value - self.relative * max(sum(weight for _, weight in level), abs(value))
        return value - sum(weight * self.metric[metric] for metric, weight in level)


def allowance(instance: Instance) -> Allowance:
    """What the verifier forgives a whole schedule."""
    wanted = instance.objective.metrics | set(instance.limits.metric_max)
    if instance.domain == "ticks":
        return Allowance(0.0, 0.0, dict.fromkeys(wanted, 0.0))
    relative = 2 * (instance.num_tasks + 2 * longest_chain(instance) + 2) * TOLERANCE
    time = relative * max(1.0, time_horizon(instance))
    return Allowance(relative, time, {metric: _metric(instance, metric, time) for metric in wanted})


def longest_chain(instance: Instance) -> int:
    """Tasks on the longest chain."""
    depth = [1] * instance.num_tasks
    source, target = instance.edges.source.tolist(), instance.edges.target.tolist()
    for e in by_source(instance):
        depth[target[e]] = max(depth[target[e]], depth[source[e]] + 1)
    return max(depth, default=0)


def _metric(instance: Instance, metric: str, time: float) -> float:
    tasks, pairs = instance.tasks, instance.pairs
    rest = 2 * float((instance.pools.rest_w * instance.pools.count).sum()) * time
    if metric == "flow_time_s":
        return float(tasks.weight.sum()) * time
    if metric == "tardiness_s":
        return float(tasks.weight[np.isfinite(tasks.deadline) & ~tasks.deadline_hard].sum()) * time
    if metric == "energy_j":
        return rest
    if metric in ("cost_usd", "carbon_g") and instance.tariffs is not None:
        tariffs = instance.tariffs
        rate = float((tariffs.price_usd_per_kwh if metric == "cost_usd" else tariffs.carbon_g_per_kwh).max())
        moved = pairs.energy_j * np.minimum(1.0, 2 * time / np.maximum(pairs.duration, 2 * time))
        most = np.zeros(instance.num_tasks)
        np.maximum.at(most, pairs.task, moved)
        return rate * (rest + float(most.sum())) / J_PER_KWH
    return time
