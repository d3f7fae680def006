"""Bounds, infeasibility proofs and explanations where places are cooled and links are busy, where
devices take time to wake, and where work is lost without a checkpoint: all of it is left out, so
that what is proved of the relaxation holds of the instance.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

import optbench as ob
from optbench.bounds.auto import lower_bounds
from optbench.bounds.infeasible import certify_infeasible
from optbench.model.instance import Instance
from optbench.sim.rules import list_rule, run_rule
from tests.sim.event_runs import run
from tests.sim.test_awake_devices import waking
from tests.sim.test_busy_links import graph
from tests.sim.test_heat import nodes
from tests.sim.test_saved_work import mixed


@pytest.mark.parametrize("make", [nodes, graph])
@pytest.mark.parametrize("seed", range(2))
def test_what_is_proved_holds(make: Callable[[int], Instance], seed: int) -> None:
    instance = make(seed)
    found = ob.simulate(instance, "heft", bound=False)
    assert found.schedule is not None
    value = ob.verify(instance, found.schedule).objective
    assert isinstance(value, float)
    bounds = lower_bounds(instance, "auto", 3.0)
    assert bounds and max(bound.value for bound in bounds) <= value
    assert certify_infeasible(instance, 2.0) is None
    parts = ob.explain(instance, found.schedule, time_limit_s=5.0).objective
    assert sum(parts.parts.values()) == pytest.approx(parts.objective - parts.bound, rel=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_what_is_proved_holds_of_devices_that_sleep(seed: int) -> None:
    instance = waking(seed)
    found = run_rule(instance, list_rule(instance, end_weight=1.0)).schedule
    if found is None:
        return
    value = ob.verify(instance, ob.with_sleep(instance, found)).objectives
    bounds = lower_bounds(instance.with_objective(instance.objective.level(0)), "auto", 2.0)
    assert bounds and (not value or max(b.value for b in bounds) <= value[0] * (1 + 1e-12))


@pytest.mark.parametrize("seed", [0, 2, 5, 6])
def test_what_is_proved_holds_of_interrupted_work(seed: int) -> None:
    """Random stops: what is lost costs energy and time that the bound knows nothing of."""
    instance = mixed(seed)
    _, found = run(instance, seed, stops=20)
    verdict = None if found is None else ob.verify(instance, found)
    if verdict is None or not verdict.feasible:
        return
    bounds = lower_bounds(instance.with_objective(instance.objective.level(0)), "auto", 2.0)
    assert max(bound.value for bound in bounds) <= verdict.objectives[0] * (1 + 1e-12)
