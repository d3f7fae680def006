"""``ob.explain``: what it says, in which units, and whom it refuses."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

import optbench as ob
from optbench.api import load_target
from optbench.bounds import explain as module
from optbench.bounds.anatomy import PARTS, Anatomy
from optbench.bounds.explain import PART_WORDS, mode_words, of_original
from optbench.bounds.fluid.fluid_bound import FluidProof, fluid_bound
from optbench.bounds.marginal import MarginalValue
from optbench.errors import ParameterError, UnknownNameError, UnsupportedError
from optbench.model.instance import Instance
from optbench.model.objective import Objective
from optbench.model.schedule import Schedule


def one_task() -> Instance:
    """100 J in 2 s or 20 J in 10 s, and 5 J per second of makespan."""
    m = ob.Model("one")
    gpu = m.pool("gpu")
    m.task(
        "only",
        modes=[
            m.mode(gpu, time_s=2, energy_j=100, clock=1.0),
            m.mode(gpu, time_s=10, energy_j=20, clock=0.5),
        ],
    )
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
    # Two tasks of 3 s on two of three devices each: the programme says 4 s, no schedule ends before
    # 6.
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
    assert found.instance.objective.label == "energy_j" and found.objective.excess == pytest.approx(
        80
    )


def test_an_infeasible_schedule_is_refused() -> None:
    instance = one_task()
    with pytest.raises(ParameterError, match="only feasible schedules are explained: release"):
        ob.explain(instance, Schedule.of(instance, [0], [-1]))


def test_a_preemptive_instance_has_no_fluid_bound() -> None:
    m = ob.Model("pieces", preemptive=True)
    m.task(modes=[m.mode(m.pool("gpu"), time_s=2, energy_j=1)])
    m.minimize(energy_j=1.0)
    instance = m.build()
    with pytest.raises(
        UnsupportedError, match="'pieces' has no fluid bound to explain its gap: it is preemptive"
    ):
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


def test_every_part_has_its_words() -> None:
    assert tuple(PART_WORDS) == PARTS


def watched(monkeypatch: pytest.MonkeyPatch, readings: Iterator[float]) -> dict[str, list[Any]]:
    """The times that the parts of an explanation are given, by a clock that reads thus."""
    given: dict[str, list[Any]] = {"bound": [], "energy": [], "prices": []}
    plain = module._energy

    def bounded(instance: Instance, time_limit_s: float) -> FluidProof | None:
        given["bound"].append((instance.objective.label, time_limit_s))
        return fluid_bound(instance, 10.0)

    def energy(
        instance: Instance, schedule: Schedule, time_limit_s: float, main: FluidProof
    ) -> Anatomy | None:
        given["energy"].append(time_limit_s)
        return plain(instance, schedule, time_limit_s, main)

    def priced(level: Instance, proof: FluidProof, time_limit_s: float) -> list[MarginalValue]:
        given["prices"].append(time_limit_s)
        return [MarginalValue("gpu", 1.0, "device", 65.0, 4.0, "same duals")]

    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: next(readings)))
    monkeypatch.setattr(module, "fluid_bound", bounded)
    monkeypatch.setattr(module, "_energy", energy)
    monkeypatch.setattr(module, "marginal_values", priced)
    return given


def test_each_part_has_its_share_of_the_time_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    # Begun at 100 s, the bound found by 102, the energy explained by 107, all done by 110.1236.
    given = watched(monkeypatch, iter([100.0, 102.0, 107.0, 110.1236]))
    instance = one_task()
    found = ob.explain(instance, Schedule.of(instance, [0], [0]), time_limit_s=40.0)
    # 0.6 of 40 s; half of the 38 s that are left, for the energy all of it; then 33 s.
    assert given["bound"] == [(instance.objective.label, 24.0), ("energy_j", 19.0)]
    assert given["energy"] == [19.0] and given["prices"] == [33.0]
    assert found.wall_s == pytest.approx(10.1236)
    document = found.to_dict()
    assert document["wall_s"] == 10.124
    # The schedule costs 110: 45 more than anything can with one device more.
    (value,) = document["marginal_values"]
    assert (value["floor"], value["price"]) == (65.0, 4.0)
    assert value["saves_at_most"] == pytest.approx(45)
    assert document["objective"]["value"] == 110 and document["energy"]["label"] == "energy_j"
    assert document["energy"]["bound"] == pytest.approx(20) and document["energy"]["value"] == 100


def test_energy_is_explained_apart_only_where_it_is_one_of_several(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = watched(monkeypatch, itertools.count(100.0, 1.0))
    instance = one_task()
    schedule = Schedule.of(instance, [0], [0])
    for weights, number in (
        ({"energy_j": 1.0}, 0), ({"makespan_s": 1.0, "flow_time_s": 1.0}, 0),
        ({"makespan_s": 1.0, "energy_j": 2.0}, 1),
    ):  # fmt: skip
        given["energy"].clear()
        found = ob.explain(instance.with_objective(Objective.weighted(weights)), schedule)
        assert len(given["energy"]) == number and (found.energy is not None) is (number == 1)
        assert (found.to_dict()["energy"] is not None) is (number == 1)


def test_energy_is_left_out_where_its_time_is_less_than_the_main_bound_took() -> None:
    instance = one_task()
    schedule = Schedule.of(instance, [0], [0])
    main = SimpleNamespace(timings_s={"build": 1.0, "solve": 4.0, "prove": 2.0})
    for time_limit_s, done in ((7.0, True), (6.9, False)):
        found = module._energy(instance, schedule, time_limit_s, main)  # type: ignore[arg-type]
        assert (found is not None) is done
        assert found is None or found.excess == pytest.approx(80)


def test_what_is_unavoidable_lies_between_nothing_and_the_excess() -> None:
    # 110 where the fluid LP says 70.
    instance = one_task()
    schedule = Schedule.of(instance, [0], [0])
    for known, expected in ((60.0, 0), (70.0, 0), (75.0, 5), (110.0, 40), (500.0, 40)):
        assert ob.explain(instance, schedule, best_bound=known).unavoidable == pytest.approx(
            expected, abs=1e-6
        )
    assert ob.explain(instance, schedule, best_bound=60.0).unavoidable == 0


def test_transfers_among_merged_pools_are_placement() -> None:
    exact = dict.fromkeys(PARTS, Fraction(0)) | {"placement": Fraction(1), "idle": Fraction(2)}
    found = of_original(Anatomy(8.0, 5.0, "fluid_lp", exact, {"gpu": 2.0}, ()), 12.0)
    assert (found.objective, found.bound, found.excess) == (12.0, 5.0, 7.0)
    assert found.exact["placement"] == 5 and found.exact["idle"] == 2
    assert found.idle_by_pool == {"gpu": 2.0} and sum(found.exact.values()) == found.exact_excess


def test_clocks_have_three_digits() -> None:
    m = ob.Model()
    a = m.pool("a", count=4)
    m.task(
        modes=[
            m.mode({a: 2}, time_s=1),
            m.mode(a, time_s=1, clock=2 / 3),
            m.mode({a: 3}, time_s=1, clock=1.0),
        ]
    )
    m.minimize(makespan=1.0)
    instance = m.build()
    assert [mode_words(instance, k) for k in range(3)] == [
        "2 × a",
        "1 × a, clock 66.7 %",
        "3 × a, clock 100 %",
    ]


def test_a_gap_that_is_nothing_has_no_decisions() -> None:
    instance = one_task()
    document = ob.explain(instance, Schedule.of(instance, [1], [0])).to_dict()
    assert document["objective"]["decisions"] == [] and document["unavoidable"] == 0
    assert document["objective"]["excess"] == pytest.approx(0, abs=1e-6)


def test_open_instances_have_nothing_to_explain() -> None:
    instance = load_target("geo_dc:days=0.02")
    with pytest.raises(UnsupportedError, match="may leave work undone"):
        ob.explain(instance, Schedule.of(one_task(), [0], [0]))
