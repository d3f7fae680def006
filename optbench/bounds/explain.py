"""Explain the cost of a schedule: the anatomy of its gap, and the marginal value of each
resource.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from optbench.bounds.anatomy import Anatomy, anatomy
from optbench.bounds.combinatorial.merging import merge_pools
from optbench.bounds.fluid.fluid_bound import FluidProof, fluid_bound
from optbench.bounds.marginal import MarginalValue, marginal_values
from optbench.errors import ParameterError, UnknownNameError, UnsupportedError
from optbench.model.instance import Instance, task_instance
from optbench.model.objective import METRICS, Objective
from optbench.model.schedule import Schedule
from optbench.model.verify import Verdict, verify

# Shares of the time for the LP itself, and for that of the energy alone.
MAIN_SHARE, ENERGY_SHARE = 0.6, 0.5
PART_WORDS = {
    "clock": "clocks higher or lower than optimal",
    "count": "more or fewer devices per task than optimal",
    "placement": "dearer pools, and avoidable transfers",
    "idle": "idle devices that could work",
    "waiting": "starts and ends later than predecessors, data and due dates require",
    "tariff": "work in dear periods, rest in cheap ones",
    "unused": "caps, limits and deadlines that are not fully used",
    "relaxation": "metrics above a floor that the LP does not explain",
    "proof": "rounding in the proof",
}


@dataclass(frozen=True, eq=False)
class Explanation:
    """The anatomy of the objective's first level, that of the energy where the objective mixes it
    with other metrics, and prices.

    ``unavoidable`` is the part of the excess that every schedule has, by the best known bound.
    """

    instance: Instance
    objective: Anatomy
    energy: Anatomy | None
    unavoidable: float
    marginal_values: tuple[MarginalValue, ...]
    wall_s: float

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "objective": _anatomy_dict(
                self.instance, self.instance.objective.level(0).label, self.objective
            ),
            "energy": None
            if self.energy is None
            else _anatomy_dict(self.instance, "energy_j", self.energy),
            "unavoidable": self.unavoidable,
            "marginal_values": [self._value_dict(value) for value in self.marginal_values],
            "wall_s": round(self.wall_s, 3),
        }

    def _value_dict(self, value: MarginalValue) -> dict[str, Any]:
        return {
            "resource": value.resource,
            "amount": value.amount,
            "unit": value.unit,
            "floor": value.floor,
            "price": value.price,
            "saves_at_most": self.saves_at_most(value),
            "how": value.how,
        }

    def saves_at_most(self, value: MarginalValue) -> float:
        """Return how much better than this schedule one with one more unit can be; if negative,
        each of them is worse.
        """
        return self.objective.objective - value.floor


def explain(
    instance: Instance,
    schedule: Schedule,
    *,
    metric: str | None = None,
    time_limit_s: float = 30.0,
    best_bound: float | None = None,
) -> Explanation:
    """Explain a feasible schedule: ``ob.explain(instance, result.schedule).objective.parts``.

    The first level of the objective is split, or one ``metric`` alone (``energy_j``: joules).
    ``best_bound`` is the best known bound on it, for example from a solver: what it proves beyond
    the fluid bound is unavoidable.
    """
    began = time.perf_counter()
    instance = task_instance(instance, "an explanation")
    verdict = verify(instance, schedule)
    _refuse(instance, verdict)
    if metric is not None and metric not in METRICS:
        raise UnknownNameError("metric", metric, METRICS)
    objective = instance.objective.level(0) if metric is None else Objective.weighted({metric: 1.0})
    pooled = merge_pools(instance.with_objective(objective))
    level, value = pooled.instance, objective.values(verdict.metrics)[0]
    schedule = pooled.image(schedule)
    proof = fluid_bound(level, MAIN_SHARE * time_limit_s)
    if proof is None:
        why = (
            "it is preemptive"
            if instance.preemptive
            else f"nothing was proved in {time_limit_s:g} s"
        )
        raise UnsupportedError(f"{instance.name!r} has no fluid bound to explain its gap: {why}")
    found = of_original(anatomy(level, schedule, proof), value)
    metrics = level.objective.metrics
    energy = None
    if "energy_j" in metrics and len(metrics) > 1:
        energy = _energy(
            level, schedule, ENERGY_SHARE * (time_limit_s - (time.perf_counter() - began)), proof
        )
        energy = None if energy is None else of_original(energy, verdict.metrics["energy_j"])
    values = marginal_values(level, proof, time_limit_s - (time.perf_counter() - began))
    known = found.bound if best_bound is None else min(best_bound, found.objective)
    return Explanation(
        level,
        found,
        energy,
        max(0.0, known - found.bound),
        tuple(values),
        time.perf_counter() - began,
    )


def _refuse(instance: Instance, verdict: Verdict) -> None:
    """Raise where a schedule cannot be explained."""
    if instance.is_open:
        raise UnsupportedError(
            f"{instance.name!r} may leave work undone, so that no bound on a sum explains it; "
            "require all work completed (geo_dc:drain=yes), or "
            "compare gap_offered and gap_own of its metrics"
        )
    if "waking" in instance.features:
        raise UnsupportedError(
            f"{instance.name!r} has devices that take time or energy to wake, of which no part of "
            "the fluid bound speaks; explain it without wake_s and wake_j"
        )
    if not verdict.feasible:
        raise ParameterError(
            f"only feasible schedules are explained: {'; '.join(map(str, verdict.violations[:3]))}"
        )


def of_original(found: Anatomy, objective: float) -> Anatomy:
    """Convert the anatomy of a merged instance's schedule to that of the original: transfers among
    alike pools are placement.
    """
    more = Fraction(objective) - Fraction(found.objective)
    exact = {**found.exact, "placement": found.exact["placement"] + more}
    return replace(found, objective=objective, exact=exact)


def _energy(
    instance: Instance, schedule: Schedule, time_limit_s: float, main: FluidProof
) -> Anatomy | None:
    """Return the anatomy of the energy alone, in joules, where there is time for its LP."""
    if time_limit_s < sum(main.timings_s.values()):
        return None
    alone = instance.with_objective(Objective.weighted({"energy_j": 1.0}))
    proof = fluid_bound(alone, time_limit_s)
    return None if proof is None else anatomy(alone, schedule, proof)


def mode_words(instance: Instance, mode: int) -> str:
    """Describe a mode: ``2 × a100, clock 60 %``."""
    modes = instance.modes
    needs = range(int(modes.req_ptr[mode]), int(modes.req_ptr[mode + 1]))
    where = (
        " + ".join(
            f"{modes.req_count[r]} × {instance.pools.names[modes.req_pool[r]]}" for r in needs
        )
        or "no device"
    )
    clock = float(modes.clock[mode])
    return where if clock != clock else f"{where}, clock {100 * clock:.3g} %"


def _anatomy_dict(instance: Instance, label: str, found: Anatomy) -> dict[str, Any]:
    return {
        "label": label,
        "value": found.objective,
        "bound": found.bound,
        "source": found.source,
        "excess": found.excess,
        "parts": found.parts,
        "idle_by_pool": found.idle_by_pool,
        "decisions": [
            {
                "task": instance.tasks.name(d.task),
                "mode": mode_words(instance, d.mode),
                "instead": mode_words(instance, d.instead),
                "clock": d.clock,
                "count": d.count,
                "placement": d.placement,
                "waiting": d.waiting,
                "total": d.total,
            }
            for d in found.decisions
        ],
    }
