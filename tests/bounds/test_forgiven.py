"""Seconds: what the verifier forgives adds up along a device and a chain, and no bound may rise above it."""

from __future__ import annotations

import numpy as np
import pytest

import optbench as ob
from optbench.bounds.auto import lower_bounds
from optbench.bounds.combinatorial import combinatorial_bounds
from optbench.bounds.forgiven import allowance, longest_chain
from optbench.bounds.makespan import makespan_bounds
from optbench.bounds.relaxation import relax
from optbench.model.instance import Instance
from optbench.model.objective import Objective
from optbench.model.schedule import Schedule
from optbench.model.verify import verify

NUMBER = 400


def line(chained: bool, **objective: float) -> Instance:
    """Unit tasks on one device of 10 W at rest and 100 W at work; chained, or only kept apart by the device."""
    m = ob.Model(time="seconds")
    gpu = m.pool("gpu", idle_w=10)
    before = None
    for _ in range(NUMBER):
        task = m.task(modes=[m.mode(gpu, time_s=1, energy_j=100)], after=before if chained and before is not None else ())
        before = task
    m.tariff(price_usd_per_kwh=(0.3, 0.2), times_s=(0, NUMBER / 2))
    m.minimize(**objective)
    return m.build()


def overlapped(instance: Instance) -> Schedule:
    """One after the other, each begun 0.9e-9 of the time before the one in front of it ends, and that much too short."""
    start, end, now = np.zeros(NUMBER), np.zeros(NUMBER), 0.0
    for i in range(NUMBER):
        start[i] = now
        end[i] = now + 1 - 0.9e-9 * max(1.0, now)
        now = end[i] - 0.9e-9 * max(1.0, end[i])
    return Schedule(np.arange(NUMBER), np.zeros(NUMBER, dtype=np.int64), start, end, np.ones(NUMBER))


OBJECTIVES = [
    {"makespan": 1.0}, {"makespan_s": 2.0}, {"flow_time_s": 1.0}, {"energy_j": 1.0}, {"cost_usd": 1.0},
    {"energy_j": 1.0, "makespan_s": 5.0},
]


@pytest.mark.parametrize("chained", [False, True])
@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: "+".join(o))
def test_no_bound_exceeds_a_schedule_that_uses_every_tolerance(objective: dict[str, float], chained: bool) -> None:
    instance = line(chained, **objective)
    verdict = verify(instance, overlapped(instance))
    assert verdict.feasible, verdict.violations
    for bound in lower_bounds(instance, "auto", 10.0):
        assert bound.value <= verdict.objectives[0], bound
        # What is given away stays small: κ = 2 (n + 2 D + 2) is 808 or 2,404, of 1e-9 each and of at most n seconds.
        assert bound.value >= 0 if bound.source == "critical_path" else bound.value > 0.5 * verdict.objectives[0]


def test_the_exact_bound_would_be_a_contradiction() -> None:
    instance = line(True, makespan=1.0)
    # 400 tasks lose 1.8e-9 of the time reached each: 1.8e-9 · 400² / 2 = 1.4e-4.
    reached = verify(instance, overlapped(instance)).objectives[0]
    assert reached == pytest.approx(NUMBER - 1.44e-4, abs=1e-6)
    assert max(value for value, _ in makespan_bounds(relax(instance))) > reached + 1e-4


def test_the_allowance_counts_tasks_and_the_longest_chain() -> None:
    assert (longest_chain(line(True, makespan=1.0)), longest_chain(line(False, makespan=1.0))) == (NUMBER, 1)
    assert allowance(line(False, makespan=1.0)).relative == pytest.approx(2 * (NUMBER + 4) * 1e-9)


def test_ticks_are_exact() -> None:
    m = ob.Model()
    gpu = m.pool("gpu")
    for _ in range(3):
        m.task(modes=[m.mode(gpu, time_s=2)])
    m.minimize(makespan=1.0)
    instance = m.build()
    assert allowance(instance).metric == {"makespan": 0.0}
    assert combinatorial_bounds(instance)[0].value == 6
    assert combinatorial_bounds(instance.with_objective(Objective.weighted({"makespan": 0.5})))[0].value == 3
