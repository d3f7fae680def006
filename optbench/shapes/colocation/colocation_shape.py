"""The shape of co-location: allocations of GPUs to jobs, epoch after epoch.

Level 1 of the objective is the shortfall of service, level 2 the energy of the whole cluster up to
the common horizon, the end of ``horizon_epochs``, whoever decides:

    shortfall_s = Σ_i (time in the system − active time × min(1, rate / required))
    energy_j    = Σ rows (P − P_sleep) × busy time  +  Σ_g count_g P_sleep,g × horizon
"""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum
from typing import Any, ClassVar

import numpy as np

from optbench.model.result import Bound
from optbench.model.timegrid import widened
from optbench.rendering import resolve
from optbench.shapes.colocation.allocation_rules import RULES
from optbench.shapes.colocation.allocations import Allocation
from optbench.shapes.colocation.colocation_data import Colocation
from optbench.shapes.colocation.colocation_process import (
    ColocationProcess,
    PublicFacts,
    public_facts,
)
from optbench.shapes.colocation.regret import excess_energy
from optbench.shapes.colocation.trace_replay import (
    TraceReplay,
    offered_load,
    replay,
    required_gpu_s,
)
from optbench.shapes.protocol.data_shape import DataShape, Findings
from optbench.shapes.protocol.shape import Metric
from optbench.shapes.protocol.shaped_instance import ShapedInstance

# The room of the bound stands above this one.
OFFLINE_BOUNDS = "optbench.shapes.colocation_bound.offline_bound:offline_bounds"
PROVE_OFFLINE = "optbench.shapes.colocation_bound.offline_bound:prove_offline"
METRICS = {
    "shortfall_s": Metric(
        "s", "time in the system without the required rate, weighted by its lack"
    ),
    "energy_j": Metric("J", "energy of all GPUs up to the common horizon"),
    "slo_violation": Metric("", "time below the requirement over time in the system, of all jobs"),
    "load": Metric("", "GPU-seconds required per second and GPU, alone on the median GPU type"),
    "busy_energy_j": Metric("J", "energy beyond sleep of GPUs in use"),
    "busy_gpu_s": Metric("GPU s", "time in use, of all GPUs"),
    "allocation_efficiency": Metric(
        "",
        "GPU-seconds required, alone on the median type, per busy one; above 1 with faster types",
    ),
    "drained_s": Metric("s", "end of the last epoch with a job in it"),
    "misfits": Metric("", "jobs that failed because they did not fit"),
    "moves": Metric("", "changes of a job's GPU type, and resumptions after waiting"),
    "profile_runs": Metric("", "short runs of a job alone, to measure it"),
    "shared": Metric("", "share of busy rows that hold two jobs"),
}


class ColocationShape(DataShape):
    """Jobs that share GPUs of several generations."""

    name = "colocation"
    decision = "allocation"
    data, solution = Colocation, Allocation
    metrics: ClassVar[Mapping[str, Metric]] = METRICS
    constraints: ClassVar[Mapping[str, str]] = RULES
    minimize = ("shortfall_s", "energy_j")
    reference = "oracle"

    def describe(self, instance: ShapedInstance) -> str:
        data: Colocation = instance.data
        gpus = sum(each.count for each in data.gpu_types)
        return f"{data.jobs.count:,} jobs, {gpus:,} GPUs of {data.num_gpu_types} types"

    def process(self, data: Colocation, seed: int) -> ColocationProcess:
        return ColocationProcess(data, seed)

    def public(self, data: Colocation) -> PublicFacts:
        return public_facts(data)

    def verify(self, data: Colocation, decision: Allocation) -> Findings:
        played = replay(data, decision)
        return Findings(metrics_of(data, decision, played), list(played.violations))

    def bounds(
        self, instance: ShapedInstance, method: str, time_limit_s: float, best: Any
    ) -> list[Bound]:
        given = (instance.data, instance.level or 0, held_s(instance), time_limit_s)
        found: list[Bound] = resolve(OFFLINE_BOUNDS)(*given)
        return found

    def prove(self, instance: ShapedInstance, certificate: str) -> Bound:
        given = (instance.data, instance.level or 0, held_s(instance), certificate)
        found: Bound = resolve(PROVE_OFFLINE)(*given)
        return found

    def labelled(self, instance: ShapedInstance, bound: Bound) -> Bound:
        return self.labelled_by_proof(instance, bound)

    def pictures(self, instance: ShapedInstance, decision: Allocation) -> Mapping[str, str]:
        from optbench.shapes.colocation.allocation_pictures import pictures_of

        return pictures_of(instance.data, decision)

    def regret(
        self, instance: ShapedInstance, decision: Allocation, reference: Allocation
    ) -> float | None:
        return excess_energy(instance.data, decision, reference)


def held_s(instance: ShapedInstance) -> float | None:
    """The shortfall at which an instance of the second level is held, with the verifier's
    tolerance; None where it is free.
    """
    return widened(instance.held[0]) if instance.held else None


def metrics_of(data: Colocation, decision: Allocation, played: TraceReplay) -> dict[str, float]:
    """Return every metric of a replay."""
    effects = [each.effects for each in played.played]
    sleep, _, _ = data.watts()
    counts = np.array([each.count for each in data.gpu_types])
    asleep = fsum((counts * sleep).tolist()) * data.horizon_epochs * data.epoch_s
    busy_j = fsum(x for each in effects for x in each.energy_j.tolist())
    busy_s = fsum(x for each in effects for x in each.busy_gpu_s.tolist())
    shortfall = fsum(x for each in effects for x in each.shortfall_s.tolist())
    below = fsum(x for each in effects for x in each.below_s.tolist())
    there = fsum(x for each in effects for x in each.present_s.tolist())
    required = fsum(required_gpu_s(data).tolist())
    last = max((each.epoch for each in played.played if each.effects.present_s.any()), default=-1)
    paired = float((decision.second >= 0).mean()) if decision.num_rows else 0.0
    return {
        "shortfall_s": shortfall,
        "energy_j": asleep + busy_j,
        "slo_violation": below / there if there else 0.0,
        "load": offered_load(data),
        "busy_energy_j": busy_j,
        "busy_gpu_s": busy_s,
        "allocation_efficiency": required / busy_s if busy_s else 0.0,
        "drained_s": (last + 1) * data.epoch_s,
        "misfits": float(sum(int(each.members.fails.sum()) for each in effects)),
        "moves": float(sum(each.moves for each in played.played)),
        "profile_runs": float(decision.profile.sum()),
        "shared": paired,
    }
