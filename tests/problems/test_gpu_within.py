"""gpu_dag within a time: a front point by point, each an instance of its own."""

from __future__ import annotations

import math

import pytest

import optbench as ob
from optbench.errors import ParameterError
from optbench.model.instance import Instance
from optbench.plugins.discovery import load_problem
from optbench.plugins.problems._gpu_time import fast_ticks

SMALL = "gpu_dag:tasks=5,gpus=4,transfers=no,deadlines=none"


def make(extra: str = "", seed: int = 0) -> Instance:
    made: Instance = load_problem(SMALL + extra).instance(seed)
    return made


def least_energy(instance: Instance) -> float:
    result = ob.solve(instance, "cpsat", time_limit_s=60)
    assert result.status == "optimal" and isinstance(result.objective, float)
    return result.objective


def test_it_limits_the_makespan_and_prices_it_no_longer() -> None:
    fast = fast_ticks(make())
    instance = make(",within=1.25")
    assert instance.limits.metric_max == {"makespan_s": math.floor(1.25 * fast)}
    assert instance.objective.label == "energy_j"
    assert instance.horizon is not None and instance.horizon >= fast
    due = load_problem("gpu_dag:tasks=5,deadlines=tight,within=2").instance(0)
    assert due.objective.label == "energy_j + 500 tardiness_s"


def test_the_fast_rule_keeps_its_own_time_and_more_time_never_costs() -> None:
    values = [least_energy(make(f",within={multiple}")) for multiple in (1, 1.5, 2, 4, 100)]
    assert values == sorted(values, reverse=True) and values[0] > values[-1]
    assert len({make(f",within={multiple}").horizon for multiple in (1, 4, 100)}) == 1


def test_it_draws_the_front_of_ob_pareto() -> None:
    front = ob.pareto(SMALL, points=3, time_limit_s=30)
    left, middle, right = front.points
    fast = fast_ticks(make())
    assert front.proven == 3 and front.horizon_s == make(",within=1").horizon
    for point in (middle, right):
        assert least_energy(make(f",within={point.limit / fast!r}")) == pytest.approx(
            point.y, rel=1e-9
        )
    assert left.x <= fast


def test_a_cap_is_kept_and_too_little_time_is_infeasible() -> None:
    capped = make(",within=1,power_cap=0.4")
    assert len(capped.limits.cap_w) == 1
    assert least_energy(capped) > 0
    assert ob.solve(make(",within=0.1"), "cpsat", time_limit_s=60).status == "infeasible"


REFUSED = {
    "within=0": "within is 0",
    "within=inf": "within is inf",
    "within=2,price=yes": "prices or carbon",
    "within=2,carbon=yes": "prices or carbon",
}


@pytest.mark.parametrize("extra", REFUSED)
def test_what_makes_no_sense_is_refused(extra: str) -> None:
    with pytest.raises(ParameterError, match=REFUSED[extra]):
        load_problem(f"gpu_dag:{extra}")
