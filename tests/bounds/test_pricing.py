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
    monkeypatch.setattr(pricing, "TIME_PRICES", (0.3,))
    early = bounding.solve_fluid(instance, 60.0, True)
    assert whole is not None and early is not None
    assert 0.5 * float(whole.proven) < float(early.proven) < float(whole.proven)
    fluid = fluid_model(instance)
    program = fluid.program()
    keep = np.ones(program.num_columns, dtype=bool)
    keep[fluid.share] = first_columns(fluid)
    assert solve(restricted(program, keep), 10.0).value > float(whole.proven)


def test_what_is_known_without_edges_is_where_the_search_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounding, "LARGE", 0)
    monkeypatch.setattr(pricing, "TIME_PRICES", ())
    instance = instance_of(SPECS[0])
    first = bounding.solve_fluid(instance, 60.0, False)
    assert first is not None and first.reduced is not None
    fluid = fluid_model(instance, keep_edges=False)
    program = fluid.program()
    dual = np.asarray([n / 2**first.certificate.shift for n in first.certificate.numerator])
    # Re-priced, the least reduced cost of every task is 0; the duals before that differ by one
    # number per task.
    known, again = first.reduced, pricing.by_pair(fluid, program, dual)
    pairs = instance.pairs
    for i in range(instance.num_tasks):
        mine = slice(int(pairs.ptr[i]), int(pairs.ptr[i + 1]))
        assert again[mine].min() == pytest.approx(0.0, abs=1e-6)
        assert known[mine] - known[mine].min() == pytest.approx(again[mine], abs=1e-5)
    kept: list[Bools] = []

    def watched(lp: LinearProgram, keep: Bools) -> LinearProgram:
        kept.append(keep.copy())
        return restricted(lp, keep)

    monkeypatch.setattr(pricing, "restricted", watched)
    bounding.solve_fluid(instance, 60.0, True, known)
    whole = fluid_model(instance)
    inside = np.zeros(len(pairs.task), dtype=bool)
    inside[whole.groups.pair] = kept[0][whole.share]
    for i in range(instance.num_tasks):
        mine = slice(int(pairs.ptr[i]), int(pairs.ptr[i + 1]))
        assert inside[mine][np.argsort(known[mine], kind="stable")[: pricing.KNOWN]].all()


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
    ("prices", "first", "inside"),
    [
        # The shortest, first of equals.
        ((), 1, [False, True, False, True, False]),
        # The median of 30 W and 100 W, of what takes time and energy, is 65 W: 190, 165 and 650 J.
        ((1.0,), 1, [False, True, False, True, False]),
        # For a tenth of that 73, 106.5 and 65 J.
        ((0.1,), 1, [False, True, True, True, False]),
        # At 0.3 times: 99, 119.5 and 195 J.
        ((0.3,), 1, [True, True, False, True, False]),
        ((), 2, [True, True, False, True, True]),
    ],
)
def test_first_columns_are_best_for_some_price_of_time(
    prices: tuple[float, ...], first: int, inside: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pricing, "TIME_PRICES", prices)
    monkeypatch.setattr(pricing, "FIRST", first)
    assert first_columns(fluid_model(priced_modes())).tolist() == inside


def test_first_columns_may_save_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    # 1 s on 4 devices is the shortest, 3 s on one the least device-time.
    monkeypatch.setattr(pricing, "TIME_PRICES", ())
    monkeypatch.setattr(pricing, "FIRST", 1)
    m = ob.Model()
    gpu = m.pool("gpu", count=4)
    m.task(modes=[m.mode({gpu: n}, time_s, energy_j=5.0) for n, time_s in ((3, 2), (4, 1), (1, 3))])
    m.minimize(energy_j=1.0)
    assert first_columns(fluid_model(m.build())).tolist() == [False, True, True]


def test_columns_below_the_best_that_is_in_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    fluid, inside = fluid_model(priced_modes()), np.array([False, True, False, True, False])
    reduced = np.array([1.0, 2.0, 0.5, 3.0, 3.0])
    assert worth_adding(fluid, reduced, inside).tolist() == [True, False, True, False, False]
    monkeypatch.setattr(pricing, "ADDED", 1)
    assert worth_adding(fluid, reduced, inside).tolist() == [False, False, True, False, False]


def test_of_known_reduced_costs_the_least_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pricing, "TIME_PRICES", ())
    monkeypatch.setattr(pricing, "FIRST", 0)
    monkeypatch.setattr(pricing, "KNOWN", 1)
    fluid = fluid_model(priced_modes())
    kept: list[Bools] = []

    def watched(lp: LinearProgram, keep: Bools) -> LinearProgram:
        kept.append(keep[fluid.share].copy())
        return restricted(lp, keep)

    monkeypatch.setattr(pricing, "restricted", watched)
    known = np.array([3.0, 2.0, 1.0, 5.0, 4.0])
    assert solve_by_pricing(fluid, fluid.program(), 10.0, known) is not None
    assert kept[0].tolist() == [False, False, True, False, True]
