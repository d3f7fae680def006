"""Brute force, CP-SAT and HiGHS agree on tiny random instances, and no bound exceeds the optimum.

A slice of what `benchmarks/exact_agreement.py` does on 300 seeds.
"""

from __future__ import annotations

import numpy as np
import pytest

from optbench.api import solve
from optbench.model.instance import Instance
from optbench.model.objective import METRICS, Objective
from optbench.model.validate import validate
from tests.reference.agreement import compare
from tests.reference.brute_force import brute_force
from tests.reference.random_instances import feature_names, tiny_instance, tiny_with_ways

SEEDS = range(40)
# Where something was once found wrong: the presolve of HiGHS 1.14.0 (383, 812), its bounds at a
# feasibility tolerance of 1e-9 (755), loose bounds (93, 1043), a bound below 0 (1158).
FOUND = (93, 383, 755, 812, 1043, 1158)


@pytest.mark.parametrize("seed", [*SEEDS, *FOUND])
def test_brute_force_cpsat_and_highs_agree(seed: int) -> None:
    assert compare(seed, ("cpsat", "highs"), ("highs:first=no",), ("highs",)).wrong == []


@pytest.mark.parametrize("seed", range(30))
def test_they_agree_where_tasks_come_in_from_afar(seed: int) -> None:
    forms = ("highs:form=disjunctive", "highs:form=time_indexed")
    assert compare(seed, ("cpsat", "highs"), forms, ("highs",), tiny_with_ways).wrong == []


def test_the_slice_meets_every_feature() -> None:
    met = frozenset().union(*(feature_names(tiny_instance(seed)) for seed in SEEDS))
    every = frozenset().union(*(feature_names(tiny_instance(seed)) for seed in range(300)))
    assert met == every


def in_order(seed: int) -> Instance:
    """The instance of a seed with two or three aims in order; the last may be a weighted sum."""
    instance = tiny_instance(seed)
    usable = [
        m for m in METRICS if instance.tariffs is not None or m not in ("cost_usd", "carbon_g")
    ]
    a, b, c = np.random.default_rng(seed).permutation(usable)[:3].tolist()
    levels: tuple[str | dict[str, float], ...] = (a, {b: 2.0, c: 1.0}) if seed % 2 else (a, b, c)
    return validate(instance.with_objective(Objective.in_order(*levels)))


@pytest.mark.parametrize("solver", ["cpsat", "highs"])
@pytest.mark.parametrize("seed", range(16))
def test_aims_in_order_agree_level_by_level(seed: int, solver: str) -> None:
    instance = in_order(seed)
    best = brute_force(instance)
    result = solve(instance, solver, time_limit_s=60)
    if best is None:
        assert result.status == "infeasible"
        return
    assert result.objective == pytest.approx(best.objectives, rel=1e-6, abs=1e-9)
    assert isinstance(result.bound, tuple)
    for bound, value in zip(result.bound, best.objectives, strict=True):
        assert value - 1e-6 * max(1.0, value) <= bound <= value + 1e-6 * max(1.0, value)
