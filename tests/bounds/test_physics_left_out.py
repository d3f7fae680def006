"""Bounds, infeasibility proofs and explanations where places are cooled and links are busy: both
are left out, so that what is proved of the relaxation holds of the instance.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

import optbench as ob
from optbench.bounds.auto import lower_bounds
from optbench.bounds.infeasible import certify_infeasible
from optbench.model.instance import Instance
from tests.sim.test_busy_links import graph
from tests.sim.test_heat import nodes


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
