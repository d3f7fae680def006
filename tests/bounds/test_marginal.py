"""Marginal values: prices by hand, and floors that neither the changed programme nor its optimum
undercuts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import optbench as ob
from optbench.bounds import marginal
from optbench.bounds.fluid.fluid_bound import fluid_bound
from optbench.bounds.fluid.fluid_program import fluid_model
from optbench.bounds.marginal import (
    MarginalValue,
    ResourceChange,
    changes,
    column_of,
    floor_by_duals,
    marginal_values,
    pool_duals,
)
from optbench.model.instance import Instance
from tests.reference.brute_force import brute_force
from tests.reference.random_instances import tiny_instance


def values(instance: Instance) -> dict[str, MarginalValue]:
    proof = fluid_bound(instance)
    assert proof is not None
    return {value.resource: value for value in marginal_values(instance, proof)}


def test_one_more_gpu_shortens_the_load() -> None:
    # 12 tasks of 1 s on 3 devices take 4 s at 10 J/s; on 4 they take 3 s. Nothing rests, so nothing
    # else changes.
    m = ob.Model(time="seconds")
    gpu = m.pool("gpu", count=3)
    m.tasks(np.ones(12), modes=[m.mode(gpu, time_s=1, energy_j=7)])
    m.minimize(energy_j=1.0, makespan_s=10.0)
    value = values(m.build())["devices of gpu"]
    assert value.floor == pytest.approx(12 * 7 + 30, rel=1e-6)
    assert value.price == pytest.approx(10, rel=1e-6)


def test_a_gpu_nobody_waits_for_costs_its_rest() -> None:
    # One task of 5 s on one device: a second one draws 10 W for 5 s more.
    m = ob.Model()
    gpu = m.pool("gpu", idle_w=10)
    m.task(modes=[m.mode(gpu, time_s=5, energy_j=100)])
    m.minimize(energy_j=1.0)
    assert values(m.build())["devices of gpu"].price == pytest.approx(-50, rel=1e-6)


def test_a_watt_of_cap() -> None:
    # 4,000 J under a cap of 250 W take 16 s at 1 per second; under 251 W 4000 / 251.
    m = ob.Model(time="seconds")
    gpu = m.pool("gpu", count=8)
    for _ in range(4):
        m.task(modes=[m.mode(gpu, time_s=10, energy_j=1000)])
    m.limit(power_w=250)
    m.minimize(makespan_s=1.0)
    assert values(m.build())["power cap of cluster"].price == pytest.approx(
        16 - 4000 / 251, rel=1e-5
    )


def test_a_second_of_deadline_and_a_joule_of_budget() -> None:
    # 100 J in 2 s or 20 J in 10 s by a deadline of 6 s: half of each, 60 J, and each further second
    # saves 10 J.
    m = ob.Model()
    gpu = m.pool("gpu")
    m.task(
        modes=[m.mode(gpu, time_s=2, energy_j=100), m.mode(gpu, time_s=10, energy_j=20)],
        deadline_s=6,
    )
    m.minimize(energy_j=1.0)
    found = values(m.build())["hard deadlines"]
    assert (found.amount, found.unit) == (1, "s")
    assert found.price == pytest.approx(10, rel=1e-6)
    # With a budget of 60 J instead of a deadline: 6 s, and each further joule saves 0.1 s.
    m = ob.Model()
    gpu = m.pool("gpu")
    m.task(modes=[m.mode(gpu, time_s=2, energy_j=100), m.mode(gpu, time_s=10, energy_j=20)])
    m.limit(energy_j=60)
    m.minimize(makespan_s=1.0)
    assert values(m.build())["limit on energy_j"].price == pytest.approx(0.1, rel=1e-5)


def every_change(instance: Instance) -> list[ResourceChange]:
    return list(changes(instance, np.zeros(instance.num_pools)))


def test_no_floor_exceeds_the_changed_bound_or_optimum() -> None:
    kinds: Counter[str] = Counter()
    for seed in range(70):
        instance = tiny_instance(seed)
        proof = fluid_bound(instance)
        if proof is None:
            continue
        found = {value.resource: value for value in marginal_values(instance, proof)}
        for change in every_change(instance):
            if change.resource not in found:
                continue
            value = found[change.resource]
            slack = 1e-6 * max(1.0, abs(value.floor))
            optimum = brute_force(change.instance)
            if optimum is not None:
                assert value.floor <= optimum.objective + 1e-9 * max(1.0, abs(optimum.objective)), (
                    seed,
                    change.resource,
                )
            again = fluid_bound(change.instance)
            assert again is None or value.floor <= again.bound.value + slack, (
                seed,
                change.resource,
            )
            kinds[change.resource.split()[0]] += 1
    assert min(kinds[kind] for kind in ("devices", "power", "limit", "horizon", "hard", "due")) > 5


def test_the_price_of_a_limit_is_a_slope() -> None:
    # The same duals prove y·b: twice the change, twice the price; and the bound itself, convex in
    # b, never falls below.
    instance = next(i for i in map(tiny_instance, range(1000)) if slope_of(i, 1.0) > 1e-3)
    assert slope_of(instance, 3.0) == pytest.approx(3 * slope_of(instance, 1.0), rel=1e-6)


def slope_of(instance: Instance, amount: float) -> float:
    """Price of a larger energy budget by the duals alone; 0 where it has none."""
    limit = instance.limits.metric_max.get("energy_j")
    proof = fluid_bound(instance) if limit is not None else None
    if limit is None or proof is None:
        return 0.0
    budget = {**instance.limits.metric_max, "energy_j": limit + amount}
    more = replace(instance, limits=replace(instance.limits, metric_max=budget))
    program = fluid_model(instance, proof.keep_edges).program()
    value = floor_by_duals(ResourceChange("limit on energy_j", amount, "J", more), program, proof)
    return 0.0 if value is None else value.price


def test_pools_of_greatest_dual_come_first() -> None:
    m = ob.Model()
    a, b = m.pool("a"), m.pool("b")
    m.task(modes=[m.mode(a, time_s=1)])
    m.tasks(np.ones(3), modes=[m.mode(b, time_s=3)])
    m.minimize(makespan=1.0)
    instance = m.build()
    proof = fluid_bound(instance)
    assert proof is not None
    weight = pool_duals(
        fluid_model(instance, proof.keep_edges).program(), proof, instance.num_pools
    )
    assert next(changes(instance, weight)).resource == "devices of b"


def test_the_makespan_counts_in_capacity_and_completion() -> None:
    # 3 C ≥ the work of 12 tasks on 3 devices, and 12 C ≥ the sum of their ends.
    m = ob.Model(time="seconds")
    m.tasks(np.ones(12), modes=[m.mode(m.pool("gpu", count=3), time_s=1, energy_j=7)])
    m.minimize(energy_j=1.0, makespan_s=10.0)
    fluid = fluid_model(m.build())
    program = fluid.program()
    found = dict(zip(program.family, column_of(program, fluid).tolist(), strict=True))
    assert found == {"assign": 0.0, "capacity": 3.0, "completion": 12.0, "energy": 0.0}


def test_hard_deadlines_and_due_dates_move_apart() -> None:
    m = ob.Model(tick_s=0.5)
    mode = m.mode(m.pool("gpu", count=3), time_s=1)
    m.task(modes=[mode], deadline_s=4, hard=True)
    m.task(modes=[mode], deadline_s=6, hard=False)
    m.task(modes=[mode])
    m.minimize(tardiness_s=1.0)
    found = {change.resource: change for change in every_change(m.build())}
    # In ticks of half a second: one second more is two of them.
    assert found["hard deadlines"].instance.tasks.deadline.tolist() == [10.0, 12.0, np.inf]
    assert found["due dates"].instance.tasks.deadline.tolist() == [8.0, 14.0, np.inf]
    for name in ("hard deadlines", "due dates"):
        assert (found[name].amount, found[name].unit) == (1.0, "s")


def test_a_changed_programme_is_solved_again_where_time_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    instance = tiny_instance(0)
    proof = fluid_bound(instance)
    assert proof is not None
    proof = replace(proof, timings_s={"solve": 2.0, "proof": 2.0})
    change = every_change(instance)[0]
    value = MarginalValue(change.resource, 1.0, "", proof.bound.value - 1.0, 1.0, "same duals")
    calls = []

    def solved(asked: Instance, time_limit_s: float, keep_edges: bool) -> object:
        calls.append((asked, time_limit_s, keep_edges))
        return proof

    monkeypatch.setattr(marginal, "solve_fluid", solved)
    # Four seconds were needed; below one and a half times that it is not begun.
    assert marginal._solved_again(value, change, proof, 5.9) is value and not calls
    again = marginal._solved_again(value, change, proof, 6.1)
    assert calls == [(change.instance, 6.1, proof.keep_edges)]
    assert (again.how, again.floor, again.price) == ("solved again", proof.bound.value, 0.0)
    # What is no better changes nothing.
    same = replace(value, floor=proof.bound.value)
    assert marginal._solved_again(same, change, proof, 6.1) is same


def test_without_time_the_first_change_alone_is_judged() -> None:
    m = ob.Model(horizon_s=50)
    m.task(modes=[m.mode(m.pool("gpu"), time_s=5, energy_j=100)], deadline_s=20)
    m.minimize(energy_j=1.0)
    instance = m.build()
    proof = fluid_bound(instance)
    assert proof is not None
    everything = [value.resource for value in marginal_values(instance, proof)]
    assert sorted(everything) == ["devices of gpu", "hard deadlines", "horizon"]
    found = marginal_values(instance, proof, time_limit_s=0.0)
    assert [value.resource for value in found] == ["devices of gpu"]


def test_a_longer_horizon_is_counted_in_seconds() -> None:
    m = ob.Model(tick_s=0.5, horizon_s=10)
    m.task(modes=[m.mode(m.pool("gpu", idle_w=1.0), time_s=1, energy_j=5.0)])
    m.minimize(energy_j=1.0)
    found = {change.resource: change for change in every_change(m.build())}["horizon"]
    assert (found.amount, found.unit, found.instance.horizon) == (1.0, "s", 22)
