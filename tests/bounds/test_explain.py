"""``ob.explain``: what it says, in which units, and whom it refuses."""

from __future__ import annotations

import itertools
import json
import math
from types import SimpleNamespace

import pytest

import optbench as ob
from optbench.bounds.explain import mode_words
from optbench.bounds.fluid.fluid_bound import FluidProof
from optbench.bounds.marginal import MarginalValue
from optbench.errors import ParameterError, UnknownNameError, UnsupportedError
from optbench.model.instance import Instance
from optbench.model.objective import Objective
from optbench.model.schedule import Schedule


def one_task() -> Instance:
    """100 J in 2 s or 20 J in 10 s, and 5 J per second of makespan."""
    m = ob.Model("one")
    gpu = m.pool("gpu")
    m.task("only", modes=[m.mode(gpu, time_s=2, energy_j=100, clock=1.0), m.mode(gpu, time_s=10, energy_j=20, clock=0.5)])
    m.minimize(energy_j=1.0, makespan_s=5.0)
    return m.build()


def test_the_objective_and_its_energy() -> None:
    instance = one_task()
    found = ob.explain(instance, Schedule.of(instance, [0], [0]))
    assert found.objective.parts["clock"] == pytest.approx(40)
    # The energy alone: 100 J where 20 J would do.
    assert found.energy is not None and found.energy.parts["clock"] == pytest.approx(80)
    assert found.unavoidable == 0
    document = found.to_dict()
    json.dumps(document, allow_nan=False)
    assert math.fsum(document["objective"]["parts"].values()) == document["objective"]["excess"]
    assert document["objective"]["decisions"][0] | {"clock": 40.0, "total": 40.0} == {
        "task": "only", "mode": "1 × gpu, clock 100 %", "instead": "1 × gpu, clock 50 %",
        "clock": 40.0, "count": 0.0, "placement": 0.0, "waiting": 0.0, "total": 40.0,
    }  # fmt: skip


def test_one_metric_alone() -> None:
    instance = one_task()
    found = ob.explain(instance, Schedule.of(instance, [0], [0]), metric="energy_j")
    assert found.objective.excess == pytest.approx(80) and found.energy is None
    with pytest.raises(UnknownNameError, match="unknown metric 'energy'; did you mean 'energy_j'"):
        ob.explain(instance, Schedule.of(instance, [0], [0]), metric="energy")


def test_what_a_better_bound_proves_is_unavoidable() -> None:
    # Two tasks of 3 s on two of three devices each: the programme says 4 s, no schedule ends before 6.
    m = ob.Model()
    gpu = m.pool("gpu", count=3)
    for _ in range(2):
        m.task(modes=[m.mode({gpu: 2}, time_s=3, energy_j=1)])
    m.minimize(makespan_s=1.0, energy_j=1.0)
    instance = m.build()
    schedule = Schedule.of(instance, [0, 0], [0, 3])
    plain, better = ob.explain(instance, schedule), ob.explain(instance, schedule, best_bound=8.0)
    assert plain.objective.excess == pytest.approx(2, abs=1e-6) and plain.unavoidable == 0
    assert better.unavoidable == pytest.approx(2, abs=1e-6)


def test_the_first_of_several_levels_is_explained() -> None:
    instance = one_task().with_objective(Objective.in_order("energy_j", "makespan_s"))
    found = ob.explain(instance, Schedule.of(instance, [0], [0]))
    assert found.instance.objective.label == "energy_j" and found.objective.excess == pytest.approx(80)


def test_an_infeasible_schedule_is_refused() -> None:
    instance = one_task()
    with pytest.raises(ParameterError, match="only feasible schedules are explained: release"):
        ob.explain(instance, Schedule.of(instance, [0], [-1]))


def test_a_preemptive_instance_has_no_fluid_bound() -> None:
    m = ob.Model("pieces", preemptive=True)
    m.task(modes=[m.mode(m.pool("gpu"), time_s=2, energy_j=1)])
    m.minimize(energy_j=1.0)
    instance = m.build()
    with pytest.raises(UnsupportedError, match="'pieces' has no fluid bound to explain its gap by: it is preemptive"):
        ob.explain(instance, Schedule.of(instance, [0], [0]))


def test_modes_in_words() -> None:
    m = ob.Model()
    a, b = m.pool("a", count=4), m.pool("b")
    m.task(modes=[m.mode({a: 2, b: 1}, time_s=1, clock=0.65), m.mode(None, time_s=1)])
    m.minimize(makespan=1.0)
    instance = m.build()
    assert [mode_words(instance, k) for k in range(2)] == ["2 × a + 1 × b, clock 65 %", "no device"]


def test_prices_have_what_is_left_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # The clock begins at 100 s and shows 3 s more whenever it is read: of 30 s 27 are left.
    clock = itertools.count(100, 3)
    given: list[float] = []

    def priced(level: Instance, proof: FluidProof, time_limit_s: float) -> list[MarginalValue]:
        given.append(time_limit_s)
        return []

    fake = SimpleNamespace(perf_counter=lambda: next(clock))
    monkeypatch.setattr("optbench.bounds.explain.time", fake)
    monkeypatch.setattr("optbench.bounds.explain.marginal_values", priced)
    instance = one_task()
    schedule = Schedule.of(instance, [0], [0])
    found = ob.explain(instance, schedule, metric="energy_j", time_limit_s=30.0)
    assert given == [27] and found.wall_s == 6
