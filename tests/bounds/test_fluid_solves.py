"""Which fluid LPs are solved, with what time, and when what they say is dropped: at each edge,
with a clock by hand.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.bounds.fluid import fluid_bound as module
from optbench.bounds.fluid.fluid_bound import fluid_bound, is_bounded, recheck_fluid, solve_fluid
from optbench.bounds.fluid.fluid_program import fluid_model
from optbench.bounds.fluid.fluid_units import solve_program
from optbench.bounds.lp.certificates import dual_fields
from optbench.bounds.lp.exact_check import Certificate
from optbench.model.instance import Instance
from tests.bounds.shops import Operation, shop, without_tasks

# Three tasks, of which one has two modes: four pairs.
JOBS: Sequence[Sequence[Operation]] = [[(0, 2), (0, 3)], [[(0, 4), (1, 5)]]]
PAIRS = 4
Call = tuple[float, bool, Any]


def clock_of(monkeypatch: pytest.MonkeyPatch, readings: Iterator[float]) -> None:
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: next(readings)))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Call]]:
    """Runs ``fluid_bound`` with solves that prove these values; what each was called with."""

    def run(values: list[float | None], seconds: float = 0.0, **sizes: float) -> list[Call]:
        found: list[Call] = []
        left = iter(values)

        def solved(
            instance: Instance, time_limit_s: float, keep_edges: bool, known: Any = None
        ) -> Any:
            found.append((time_limit_s, keep_edges, known))
            value = next(left)
            return (
                None
                if value is None
                else SimpleNamespace(
                    bound=SimpleNamespace(value=value), pool_price=f"prices {value}"
                )
            )

        for name, size in sizes.items():
            monkeypatch.setattr(module, name, size)
        clock_of(monkeypatch, itertools.count(100.0, seconds))
        monkeypatch.setattr(module, "solve_fluid", solved)
        best = fluid_bound(shop(JOBS, [1, 1]), 8.0)
        found.append((-1.0 if best is None else best.bound.value, False, None))
        return found

    return run


def test_a_small_instance_is_solved_with_its_edges_alone(calls: Callable[..., list[Call]]) -> None:
    assert calls([7.0], LARGE=PAIRS) == [(8.0, True, None), (7.0, False, None)]


def test_a_large_instance_is_solved_without_its_edges_first(
    calls: Callable[..., list[Call]],
) -> None:
    # 0.3 of the 8 s for the first; the second knows what the first has found, and is kept if
    # better.
    both = {"LARGE": PAIRS - 1, "HUGE": PAIRS}
    first, second = (pytest.approx(2.4), False, None), (8.0, True, "prices 6.0")
    assert calls([6.0, 7.0], **both) == [first, second, (7.0, False, None)]
    assert calls([6.0, 5.0], **both) == [first, second, (6.0, False, None)]
    assert calls([None, 5.0], **both) == [first, (8.0, True, None), (5.0, False, None)]
    assert calls([None, None], **both) == [first, (8.0, True, None), (-1.0, False, None)]


def test_a_huge_instance_is_solved_without_its_edges_in_all_of_the_time(
    calls: Callable[..., list[Call]],
) -> None:
    huge = {"LARGE": PAIRS - 1, "HUGE": PAIRS - 1, "PAIRS_OF_A_SECOND": 1e-9}
    assert calls([6.0], **huge) == [(8.0, False, None), (6.0, False, None)]


def test_a_huge_instance_keeps_its_edges_where_they_are_expected_to_take_half_of_the_time(
    calls: Callable[..., list[Call]],
) -> None:
    # 4 s of 8 s; then a little more.
    huge = {"LARGE": PAIRS - 1, "HUGE": PAIRS - 1, "GROWTH": 1}
    first, second = (pytest.approx(2.4), False, None), (8.0, True, "prices 6.0")
    assert calls([6.0, 7.0], PAIRS_OF_A_SECOND=PAIRS / 4, **huge) == [
        first,
        second,
        (7.0, False, None),
    ]
    assert calls([6.0, 7.0], PAIRS_OF_A_SECOND=PAIRS / 4.1, **huge) == [
        (8.0, False, None),
        (6.0, False, None),
    ]


def test_with_less_than_half_of_the_time_left_the_first_bound_is_enough(
    calls: Callable[..., list[Call]],
) -> None:
    # Readings 2 s apart: 6 s are left for the first, 4 s, which is half, for the second.
    both = {"LARGE": PAIRS - 1, "HUGE": PAIRS}
    first = (pytest.approx(1.8), False, None)
    assert calls([6.0, 7.0], 2.0, **both) == [first, (4.0, True, "prices 6.0"), (7.0, False, None)]
    # Readings 2.5 s apart: 5.5 s and 3 s. Without a first bound the second is tried in any case.
    first = (pytest.approx(0.3 * 5.5), False, None)
    assert calls([6.0, 7.0], 2.5, **both) == [first, (6.0, False, None)]
    assert calls([None, 7.0], 2.5, **both) == [first, (3.0, True, None), (7.0, False, None)]


def test_what_takes_minutes_is_not_begun(calls: Callable[..., list[Call]]) -> None:
    none = [(-1.0, False, None)]
    assert calls([7.0], MAX_PAIRS=PAIRS) != none
    assert calls([7.0], MAX_PAIRS=PAIRS - 1) == none
    # Half a pair a second makes four in 8 s.
    assert calls([7.0], MAX_PAIRS=PAIRS, PAIRS_PER_S=0.5) != none
    assert calls([7.0], MAX_PAIRS=PAIRS, PAIRS_PER_S=0.49) == none


def test_what_has_no_rows_has_no_bound() -> None:
    instance = shop([[(0, 2)]], [1])
    assert is_bounded(instance)
    unbounded = (replace(instance, preemptive=True), without_tasks(instance), unlinked())
    for each in unbounded:
        assert not is_bounded(each)
        assert fluid_bound(each) is None
        assert recheck_fluid(each, {"keep_edges": True}) is None


def unlinked() -> Instance:
    """A chain over two pools whose link is gone."""
    m = ob.Model("apart")
    a, b = m.pool("a"), m.pool("b")
    m.link(a, b, bandwidth_gbit_s=8)
    first = m.task("first", modes=[m.mode(a, time_s=2)])
    m.task("second", modes=[m.mode(b, time_s=2)], data_gb={first: 1})
    m.minimize(makespan_s=1.0)
    instance = m.build()
    gone = np.where(np.eye(2, dtype=bool), 0.0, np.inf)
    return replace(instance, links=replace(instance.links, latency_s=gone))


def test_what_an_interrupted_solve_says_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two tasks of 2 and 3 ticks on one device: the columns alone say that the makespan is 5 or
    # more.
    instance = shop([[(0, 2)], [(0, 3)]], [1], makespan=2.0)
    for share, kept in ((0.0, True), (0.9e-9, True), (1.1e-9, False)):
        proven = Fraction(10) - Fraction(10 * share)
        monkeypatch.setattr(module, "proven_bound", lambda *_, proven=proven: proven)
        found = solve_fluid(instance, 5.0, True)
        assert (found is not None) is kept
        assert found is None or (found.proven, found.bound.value, found.keep_edges) == (
            proven,
            10.0,
            True,
        )
    monkeypatch.setattr(module, "proven_bound", lambda *_: None)
    assert solve_fluid(instance, 5.0, True) is None


def test_a_bound_of_nothing_is_a_bound() -> None:
    # No joule is drawn: the columns alone say 0, and so do the duals.
    m = ob.Model("free")
    m.task(modes=[m.mode(m.pool("gpu"), time_s=2, energy_j=0)])
    m.minimize(energy_j=1.0)
    found = solve_fluid(m.build(), 5.0, True)
    assert found is not None and found.proven == 0 and found.bound.value == 0.0


def test_a_solve_has_what_building_leaves_and_says_what_each_part_took(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[float] = []
    plain = solve_program

    def solved(fluid: Any, program: Any, time_limit_s: float) -> Any:
        given.append(time_limit_s)
        return plain(fluid, program, time_limit_s)

    # Begun at 1, built at 3, solved at 10, proved at 100.
    clock_of(monkeypatch, iter([1.0, 3.0, 10.0, 100.0]))
    monkeypatch.setattr(module, "solve_program", solved)
    found = solve_fluid(shop([[(0, 2)]], [1]), 9.0, True)
    assert found is not None and given == [7.0]
    assert found.timings_s == {"build": 2.0, "solve": 7.0, "prove": 90.0}
    assert found.pool_price is None


def test_prices_of_devices_are_those_of_a_large_instance_without_edges(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    instance = shop(JOBS, [1, 1])
    monkeypatch.setattr(module, "solve_by_pricing", lambda *_: None)
    monkeypatch.setattr(module, "LARGE", PAIRS)
    for keep in (True, False):
        small = solve_fluid(instance, 5.0, keep)
        assert small is not None and small.pool_price is None
    monkeypatch.setattr(module, "LARGE", PAIRS - 1)
    whole, loose = (solve_fluid(instance, 5.0, keep) for keep in (True, False))
    assert whole is not None and whole.pool_price is None and whole.bound.source == "fluid_lp"
    assert (
        loose is not None
        and loose.pool_price is not None
        and loose.bound.source == "fluid_lp:no_edges"
    )
    # A second of the makespan is paid by the pools together.
    assert loose.pool_price.sum() == pytest.approx(1.0)


def test_only_programmes_of_many_shares_are_priced(monkeypatch: pytest.MonkeyPatch) -> None:
    fluid = fluid_model(shop(JOBS, [1, 1]))
    program = fluid.program()
    monkeypatch.setattr(module, "solve_by_pricing", lambda *_: "priced")
    monkeypatch.setattr(module, "solve_program", lambda *_: "whole")
    for large, expected in ((PAIRS, "whole"), (PAIRS - 1, "priced")):
        monkeypatch.setattr(module, "LARGE", large)
        found: Any = module.solution_of(fluid, program, 5.0)
        assert found == expected


def test_floors_give_way_to_rows_by_two_parts_in_ten_million() -> None:
    m = ob.Model("floors")
    m.task(
        modes=[m.mode(m.pool("gpu", idle_w=1), time_s=10, energy_j=20)], deadline_s=4, hard=False
    )
    m.minimize(energy_j=1.0, tardiness_s=1.0)
    m.limit(flow_time_s=100)
    fluid = fluid_model(m.build())
    program = fluid.program()
    lower = program.lower.copy()
    # Ends at 10, 6 late, after 10; the energy has no floor of its own, and gives way by the least.
    for column, floor, less in (
        (fluid.makespan, 10, 2e-6), (fluid.metric["tardiness_s"], 6, 1.2e-6),
        (fluid.metric["flow_time_s"], 10, 2e-6),
        (fluid.metric["energy_j"], 0, 2e-7),
    ):  # fmt: skip
        assert lower[column] == pytest.approx(floor)
        lower[column] = floor - less
    told = module._with_rows_for_floors(fluid, program)
    assert told.lower == pytest.approx(lower, rel=1e-10, abs=1e-10)
    assert program.lower[fluid.makespan] == 10


def test_a_kept_proof_is_proved_again_with_the_edges_that_it_had() -> None:
    # One after the other 2 + 3 on two machines of which each has one: without edges 3 + 2 ends as
    # heads and tails say.
    instance = shop([[(0, 2), (1, 3)]], [1, 1])
    for keep in (True, False):
        found = solve_fluid(instance, 5.0, keep)
        assert found is not None
        fields = {
            "keep_edges": keep,
            **dual_fields(fluid_model(instance, keep).program(), found.certificate),
        }
        again = recheck_fluid(instance, fields)
        assert again is not None and (again.value, again.source) == (
            found.bound.value,
            found.bound.source,
        )


def test_duals_that_prove_nothing_finite_are_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = shop([[(0, 2)]], [1])
    found = solve_fluid(instance, 5.0, True)
    assert found is not None
    fields = {
        "keep_edges": True,
        **dual_fields(fluid_model(instance).program(), found.certificate),
    }
    monkeypatch.setattr(module, "proven_bound", lambda *_: None)
    assert recheck_fluid(instance, fields) is None
    monkeypatch.undo()
    monkeypatch.setattr(
        module, "read_duals", lambda data, program: Certificate((0,) * program.num_rows, 0)
    )
    none = recheck_fluid(instance, fields)
    assert none is not None and none.value == 2
