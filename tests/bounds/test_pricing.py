"""Large programmes by pricing: the value of the whole programme, from a few of its columns."""

from __future__ import annotations

import numpy as np
import pytest

import optbench as ob
from optbench.bounds.fluid import fluid_bound as bounding
from optbench.bounds.fluid import pricing
from optbench.bounds.fluid.fluid_program import fluid_model
from optbench.bounds.fluid.pricing import (
    first_columns,
    lower_hull,
    ranked,
    restricted,
    solve_by_pricing,
    worth_adding,
)
from optbench.bounds.lp.linear_program import LinearProgram, solve
from optbench.model.instance import Bools, Instance
from optbench.plugins.discovery import load_problem

SPECS = (
    "gpu_dag:tasks=60,gpus=12,types=4,gang=4",
    "gpu_dag:tasks=40,gpus=8,types=4,deadlines=tight,hard=yes",
    "gpu_dag:tasks=40,gpus=9,price=yes,power_cap=0.6",
    "flexible_jobshop:jobs=8,machines=6",
)


def instance_of(spec: str) -> Instance:
    made: Instance = load_problem(spec).instance(4)
    return made


@pytest.mark.parametrize("keep_edges", [True, False])
@pytest.mark.parametrize("spec", SPECS)
def test_pricing_proves_as_much_as_the_whole_programme(
    spec: str, keep_edges: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = instance_of(spec)
    whole = bounding.solve_fluid(instance, 60.0, keep_edges)
    monkeypatch.setattr(bounding, "LARGE", 0)
    priced = bounding.solve_fluid(instance, 60.0, keep_edges)
    assert whole is not None and priced is not None
    assert priced.bound.value == pytest.approx(whole.bound.value, rel=2 * pricing.NEAR)
    assert priced.proven <= whole.proven * (1 + 10**-6)


def test_one_round_proves_a_bound_and_not_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped after the first round the restricted value is no bound; what is proved is one."""
    instance = instance_of(SPECS[0])
    whole = bounding.solve_fluid(instance, 60.0, True)
    monkeypatch.setattr(bounding, "LARGE", 0)
    monkeypatch.setattr(pricing, "NEAR", np.inf)
    monkeypatch.setattr(pricing, "PRICE_SHARES", ((0.0, 1.0),))
    early = bounding.solve_fluid(instance, 60.0, True)
    assert whole is not None and early is not None
    assert 0.3 * float(whole.proven) < float(early.proven) < float(whole.proven)
    fluid = fluid_model(instance)
    program = fluid.program()
    keep = np.ones(program.num_columns, dtype=bool)
    keep[fluid.share] = first_columns(fluid)
    assert solve(restricted(program, keep), 10.0).value > float(whole.proven)


def test_prices_known_without_edges_choose_the_first_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounding, "LARGE", 0)
    instance = instance_of(SPECS[0])
    first = bounding.solve_fluid(instance, 60.0, False)
    assert first is not None and first.pool_price is not None and first.pool_price.max() > 0
    fluid = fluid_model(instance)
    monkeypatch.setattr(pricing, "PRICE_SHARES", ((1.0, 0.0),))
    kept: list[Bools] = []

    def watched(lp: LinearProgram, keep: Bools) -> LinearProgram:
        kept.append(keep[fluid.share].copy())
        return restricted(lp, keep)

    monkeypatch.setattr(pricing, "restricted", watched)
    bounding.solve_fluid(instance, 60.0, True, first.pool_price)
    assert kept[0].tolist() == first_columns(fluid, first.pool_price).tolist()
    assert kept[0].tolist() != first_columns(fluid).tolist()


def test_the_primal_of_a_restricted_programme_is_scattered() -> None:
    fluid = fluid_model(instance_of(SPECS[0]))
    program = fluid.program()
    found = solve_by_pricing(fluid, program, 60.0)
    assert found is not None and len(found.primal) == program.num_columns
    lies = program.times(found.primal) - program.right
    assert np.abs(lies[program.equal]).max() < 1e-5 and lies.min() > -1e-4 * found.value
    assert float(program.cost @ found.primal) == pytest.approx(found.value, rel=1e-4)


def test_no_time_no_duals() -> None:
    fluid = fluid_model(instance_of(SPECS[0]))
    assert solve_by_pricing(fluid, fluid.program(), 0.0) is None


def test_ranks_are_within_groups() -> None:
    assert ranked(np.array([0, 0, 1, 1, 1]), np.array([5.0, 4.0, 1.0, 9.0, 3.0])).tolist() == [
        1,
        0,
        0,
        2,
        1,
    ]


def priced_modes() -> Instance:
    """A task of 2 s and 60 J, 1 s and 100 J, or 10 s and nothing; one of no time and 60 or
    100 J.
    """
    m = ob.Model()
    gpu = m.pool("gpu", count=4)
    m.task(modes=[m.mode(gpu, 2, 60.0), m.mode(gpu, 1, 100.0), m.mode(gpu, 10, 0.0)])
    m.task(modes=[m.mode(gpu, 0, 60.0), m.mode({gpu: 2}, 0, 100.0)])
    m.minimize(energy_j=1.0)
    return m.build()


@pytest.mark.parametrize(
    ("cost", "inside"),
    [
        # From (10 s, 0 J): to (2, 60) at 7.5 J per second, then to (1, 100) at 40.
        ([60.0, 100.0, 0.0], [True, True, True]),
        # To (2, 95) at 11.9 J per second is steeper than to (1, 100) at 11.1: left out.
        ([95.0, 100.0, 0.0], [False, True, True]),
        # The shortest is the cheapest: nothing else is best for any price.
        ([60.0, 0.0, 5.0], [False, True, False]),
        # Of equal costs the shortest.
        ([7.0, 7.0, 7.0], [False, True, False]),
    ],
)
def test_the_hull_holds_what_is_best_for_some_price_of_time(
    cost: list[float], inside: list[bool]
) -> None:
    length = np.array([2.0, 1.0, 10.0])
    ptr = np.array([0, 3])
    assert lower_hull(ptr, length, np.asarray(cost)).tolist() == inside
    # Beside another group, of one entry.
    both = lower_hull(np.array([0, 1, 4]), np.append(5.0, length), np.append(3.0, np.asarray(cost)))
    assert both.tolist() == [True, *inside]


@pytest.mark.parametrize("seed", range(5))
def test_the_hull_is_that_of_trying_every_price(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ptr = np.concatenate(([0], np.cumsum(rng.integers(1, 9, 30))))
    length, cost = rng.integers(0, 12, ptr[-1]).astype(float), rng.random(ptr[-1])
    inside = lower_hull(ptr, length, cost)
    for price in (0.0, *10.0 ** rng.uniform(-4, 3, 200)):
        for g in range(len(ptr) - 1):
            mine = slice(ptr[g], ptr[g + 1])
            worth = cost[mine] + price * length[mine]
            assert worth[inside[mine]].min() <= worth.min() + 1e-9 * (1 + price)


def test_first_columns_may_save_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    # 1 s on 4 devices is the shortest, 3 s on one the least device-time.
    monkeypatch.setattr(pricing, "PRICE_SHARES", ((0.0, 0.0),))
    m = ob.Model()
    gpu = m.pool("gpu", count=4)
    m.task(modes=[m.mode({gpu: n}, time_s, energy_j=5.0) for n, time_s in ((3, 2), (4, 1), (1, 3))])
    m.minimize(energy_j=1.0)
    fluid = fluid_model(m.build())
    assert first_columns(fluid).tolist() == [False, True, True]


def test_columns_below_the_best_that_is_in_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    fluid, inside = fluid_model(priced_modes()), np.array([False, True, False, True, False])
    reduced = np.array([1.0, 2.0, 0.5, 3.0, 3.0])
    assert worth_adding(fluid, reduced, inside).tolist() == [True, False, True, False, False]
    monkeypatch.setattr(pricing, "ADDED", 1)
    assert worth_adding(fluid, reduced, inside).tolist() == [False, False, True, False, False]
