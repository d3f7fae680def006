"""Parts of the programme over streams by hand: traffic, rates, waiting, slots, scales and repaired
prices.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.bounds.lp.linear_program import (
    LinearProgram,
    LpColumns,
    LpRows,
    LpSolution,
    assemble,
    solve_in_units,
)
from optbench.bounds.streams import stream_duals
from optbench.bounds.streams.stream_duals import _rising, repaired, solve_scaled
from optbench.bounds.streams.stream_per_unit import per_unit
from optbench.bounds.streams.stream_program import Demand, stream_program
from optbench.bounds.streams.stream_rates import rates_of, waste_may_pay
from optbench.bounds.streams.stream_slots import Slots, devices_in, single_slot, slots_of
from optbench.bounds.streams.stream_traffic import MAX_WEIGHTS, traffic
from optbench.bounds.streams.stream_waiting import MOST_GROUPS, add_waiting, groups_of
from optbench.model.instance import Floats, Instance
from optbench.model.objective import Objective
from optbench.model.streams import with_stream
from optbench.units import SUM_MARGIN
from tests.bounds.stream_farms import HOUR, farm, priced, worth

EXACT = 1e-12


def weighted(number: int) -> Instance:
    instance = farm([5] * number, [0] * number, 1000.0)
    return replace(instance, tasks=replace(instance.tasks, weight=np.arange(1.0, number + 1)))


def test_weights_make_classes_unless_they_are_many() -> None:
    found = traffic(weighted(MAX_WEIGHTS))
    assert found.num_classes == MAX_WEIGHTS and sorted(found.weight.tolist()) == list(
        range(1, MAX_WEIGHTS + 1)
    )
    found = traffic(weighted(MAX_WEIGHTS + 1))
    assert found.weight.tolist() == [1.0] and found.units.tolist() == [5.0 * (MAX_WEIGHTS + 1)]


def test_traffic_knows_when_work_is_there_and_how_long_it_runs() -> None:
    # 2 units at 10 s each, 3 units: 20 and 30 s at the high clock; the way in takes 4 s. What comes
    # at the horizon is not here.
    found = traffic(farm([2, 3, 4], [1, 7, 1000], 1000.0, way_s=4.0))
    assert found.of.tolist() == [0, 0, -1] and found.here.tolist() == [True, True, False]
    assert found.units.tolist() == [5.0] and found.ingress_s.tolist() == [4.0] * 3
    assert found.there_s[:2] == pytest.approx([5.0, 11.0], rel=EXACT)
    assert found.shortest_s == pytest.approx([20.0, 30.0, 40.0], rel=EXACT)


def test_tasks_of_another_ingress_take_their_own_nearest_way() -> None:
    m = ob.Model(time="seconds")
    pools = [m.pool(name) for name in ("near", "far", "cut off")]
    m.tasks(np.ones(3), kind=m.kind(modes=[m.mode(pool, 1.0) for pool in pools]))
    m.minimize(energy_j=1.0)
    ways = [[1.0, 5.0, np.inf], [np.inf, 3.0, np.inf]]
    found = traffic(
        with_stream(m.build(), ingress=[0, 1, 0], latency_s=ways, ingress_names=("north", "south"))
    )
    assert found.ingress_s.tolist() == [1.0, 3.0, 1.0]
    assert found.of[0] == found.of[2] != found.of[1]
    assert found.allowed[found.of].tolist() == [
        [True, True, False],
        [False, True, False],
        [True, True, False],
    ]


def test_units_of_like_size_make_a_group() -> None:
    # Levels by factors of 1.5 above the least of the class: 1 and 1.4 in the first, 1.6 in the
    # second, 8 above 1.5^5 = 7.6.
    instance = farm([1, 1.4, 1.6, 8, 3, 3], [0] * 6, None)
    instance = replace(
        instance, tasks=replace(instance.tasks, weight=np.array([1.0] * 4 + [2.0] * 2))
    )
    group, of, largest = groups_of(instance, traffic(instance))
    assert group.tolist() == [0, 0, 1, 2, 3, 3] and of.tolist() == [0, 0, 0, 1]
    assert largest.tolist() == [1.4, 1.6, 8.0, 3.0]
    wide = farm(10.0 ** np.arange(0, 40), [0] * 40, None)
    assert groups_of(wide, traffic(wide))[1].tolist() == [0] * (MOST_GROUPS + 1)


def waiting_rows(instance: Instance, slots: list[float]) -> tuple[LinearProgram, Any]:
    columns, rows, work = LpColumns(), LpRows(), traffic(instance)
    x = columns.add(len(slots) - 1, 0.0, np.inf)
    slot = np.searchsorted(slots, work.there_s, side="right") - 1
    found = add_waiting(
        columns, rows, instance, work, np.array(slots), slot, x, np.arange(len(slots) - 1)
    )
    return assemble(columns, rows), found


def test_undone_units_wait_until_the_end_of_their_slot() -> None:
    # Two tasks of 5 units, there at 0 and at 60, slots to 100, to 150 and without an end. Undone at
    # 100 they have been there for 5 · 100 + 5 · 40 = 700 unit-seconds, 300 less than had they come
    # at 0.
    lp, found = waiting_rows(farm([5, 5], [0, 60], None), [0.0, 100.0, 150.0, np.inf])
    slack = 1 + SUM_MARGIN
    # Columns: x, g, q per slot; h per slot that ends.
    assert lp.upper[3:6] == pytest.approx([10 * slack] * 3, rel=EXACT)
    assert lp.upper[6:9] == pytest.approx([10 * slack, 10 * slack, 3 * SUM_MARGIN * 10], rel=1e-8)
    assert lp.upper[9:] == pytest.approx([100 * 10 * slack * 2, 50 * 10 * slack * 2], rel=EXACT)
    rows = [f for f, name in enumerate(lp.family) if name == "waiting"]
    # Rounding of sums, 3e-9 of each width, is allowed for.
    assert lp.right[rows] == pytest.approx([-300 - 3e-9 * 100 * 10, -3e-9 * 50 * 10], abs=1e-10)
    undone = [f for f, name in enumerate(lp.family) if name == "undone"]
    assert lp.right[undone] == pytest.approx([10 * slack, 0.0, 0.0], rel=EXACT)
    # Done in the first slot, all has waited nothing that is sure; undone throughout for 700 and
    # then 500.
    point = np.zeros(lp.num_columns)
    point[6:9], point[9:] = 10.0, (700.0, 500.0)
    assert lp.times(point)[rows] == pytest.approx([-300.0, 0.0])
    assert found.column.tolist() == [9, 10] and found.of.tolist() == [0, 0]
    assert (found.per_unit < 0.2).all() and found.per_unit == pytest.approx([0.2, 0.2], rel=EXACT)


def test_in_the_last_slot_nothing_stays_undone_that_has_come() -> None:
    lp, _ = waiting_rows(farm([5, 5], [0, 160], None), [0.0, 100.0, 150.0, np.inf])
    assert lp.upper[6:9] == pytest.approx([5.0, 5.0, 3 * SUM_MARGIN * 10], rel=1e-8)


def test_of_an_open_instance_work_may_stay_undone() -> None:
    lp, _ = waiting_rows(farm([5, 5], [0, 60], 150.0), [0.0, 100.0, 150.0])
    assert lp.upper[4:6] == pytest.approx([10.0, 10.0], rel=1e-8)


# Rates: a pool of 3 devices at rest draws 2 W each, one of 1 device 5 W; 1 then 3 $/kWh, by the
# hour.


def two_pools(
    preemptive: bool = False, units: float = 4.0, above_j: float = 0.3, **objective: float
) -> Instance:
    m = ob.Model(tick_s=0.5, horizon_s=7200.0, preemptive=preemptive)
    a, b = m.pool("a", count=3, idle_w=2.0), m.pool("b", idle_w=5.0)
    m.task(
        units=units,
        modes=[m.mode(a, 1.0, energy_j=2.0 + above_j), m.mode({a: 2, b: 1}, 1.0, energy_j=20.0)],
    )
    m.tariff(price_usd_per_kwh=(1.0, 3.0), carbon_g_per_kwh=7e6)
    m.minimize(**(objective or {"energy_j": 1.0}))
    return with_stream(m.build())


def test_rates_are_those_of_the_slot() -> None:
    instance = two_pools(cost_usd=3.6e6, energy_j=2.0)
    found = rates_of(instance, np.array([0.0, 1800.0, 5400.0, 7200.0]), True)
    assert (
        found.low.tolist() == [[3.0, 3.0, 5.0]] * 2 and found.high.tolist() == [[3.0, 5.0, 5.0]] * 2
    )
    assert found.base == 2.0
    # 11 W in all at the low rates, a little less for rounding.
    exact = np.array([33.0, 33.0, 55.0])
    assert (found.resting_low < exact).all() and found.resting_low == pytest.approx(
        exact, rel=EXACT
    )
    # An hour at 3 and one at 5.
    assert found.rest_constant < 11 * 3600 * 8 and found.rest_constant == pytest.approx(
        11 * 3600 * 8, rel=1e-11
    )
    # One task may replace half a second of 9 W more, at 5.
    assert found.hidden == pytest.approx(9 * 0.5 * 5, rel=EXACT)
    # 2.3 J replace 2 J of rest; 20 J at the low rate replace 9 J at the high one.
    cost = found.of_modes(np.array([0, 0, 1, 1]), np.array([0, 2, 1, 2]))
    assert cost == pytest.approx([0.3 * 3, 0.3 * 5, 20 * 3 - 9 * 5, 11 * 5], rel=1e-10)
    assert (cost[2:] < [15.0, 55.0]).all()
    below = rates_of(
        two_pools(above_j=-0.3, cost_usd=3.6e6, energy_j=2.0), np.array([0.0, 1800.0, 5400.0]), True
    )
    assert below.of_modes(np.array([0]), np.array([1])) == pytest.approx([-0.3 * 5], rel=1e-10)


@pytest.mark.parametrize(("above_j", "pays"), [(0.2, True), (0.3, False)])
def test_waste_pays_where_a_tick_of_rest_is_worth_more(above_j: float, pays: bool) -> None:
    # A tick of 0.5 s of 2 W is 1 J for a task of 4 units, 0.25 J each: more than 0.2 J above rest,
    # less than 0.3 J.
    for weight in (1.0, 2.0):
        instance = two_pools(True, above_j=above_j, energy_j=weight)
        rates = rates_of(instance, np.array([0.0, 7200.0]), True)
        first = np.array([0])
        assert waste_may_pay(instance, rates, first, first) is pays
        assert not waste_may_pay(replace(instance, preemptive=False), rates, first, first)
        assert not waste_may_pay(instance, rates, first[:0], first[:0])


def test_devices_that_are_away_are_missing_on_the_average() -> None:
    # One of two is away from 200 to 700 s: half of the second slot, all of the third, a quarter of
    # the last. Of work that is drained the seconds used may be those in which it is there, so that
    # only a whole slot counts.
    instance = farm([50], [0], 1000.0, preemptive=True, away=([200.0, 700.0], 0, [1, -1]))
    edges = np.array([0.0, 100.0, 300.0, 600.0, 1000.0])
    assert devices_in(instance, Slots(edges, True))[0] == pytest.approx(
        [2.0, 1.5, 1.0, 1.75], rel=1e-8
    )
    assert devices_in(instance, Slots(edges, False))[0].tolist() == [2.0, 2.0, 1.0, 2.0]


def test_the_programme_leaves_room_for_rounding_and_is_scaled_to_a_unit() -> None:
    instance = farm([5, 5, 5], [0, 0, 100], 1000.0)
    work = traffic(instance)
    program = stream_program(instance, work, single_slot(instance, work), Demand(12.0))
    count = len(program.cls)
    assert program.lp.upper[:count] == pytest.approx([15 * (1 + SUM_MARGIN)] * count, rel=EXACT)
    assert (program.lp.upper[:count] > 15.0).all()
    assert program.lp.right[program.lp.family.index("units")] == pytest.approx(
        12 * (1 - SUM_MARGIN), rel=EXACT
    )
    assert program.offered == 15.0 and program.constant == pytest.approx(2000.0, rel=1e-9)
    # The low clock takes 25 J above rest. Two devices can do 200 units in 1,000 s, more than the 15
    # that are offered.
    assert program.cheapest == pytest.approx(25.0, rel=EXACT) and program.few == pytest.approx(
        15e-3, rel=EXACT
    )
    scaled = per_unit(program, 0.5)
    # The last column is 1 / units: from 1 / 15 to 1 / 0.5.
    assert scaled.lower[-1] == pytest.approx(1 / 15, rel=1e-8) and scaled.lower[-1] < 1 / 15
    assert scaled.upper[-1] == 2.0 and scaled.cost[-1] == program.constant
    assert scaled.upper[:count].tolist() == [1.0] * count
    point = np.append(np.zeros(scaled.num_columns - 1), 0.1)
    point[:count] = 1.0 / count
    assert (
        scaled.times(point)[-1] == pytest.approx(1.0)
        and scaled.right[-1] == 1.0
        and scaled.equal[-1]
    )
    row = program.lp.family.index("units")
    assert scaled.times(point)[row] == pytest.approx(1.0 - 0.1 * 12, abs=1e-8)


def test_deadlines_limit_what_is_undone() -> None:
    # 5 of 15 units are due by 400 s, 5 by 900 s; slots end at 500 and 1,000 s. Drained, so that in
    # the end nothing is left.
    instance = farm([5, 5, 5], [0, 0, 100], None)
    tasks = replace(
        instance.tasks,
        deadline=np.array([400e9, 900e9, np.inf]),
        deadline_hard=np.array([True, True, False]),
    )
    instance = replace(instance, tasks=tasks)
    program = stream_program(
        instance, traffic(instance), Slots(np.array([0.0, 500.0, 1000.0, np.inf]), False), Demand()
    )
    backlog = [f for f, name in enumerate(program.lp.family) if name == "backlog"]
    q = len(program.cls) + np.arange(3)
    assert program.lp.upper[q] == pytest.approx([10.0, 5.0, 45e-9], rel=1e-7)
    assert program.lp.right[backlog] == pytest.approx([15.0, 0.0, 0.0], rel=1e-8)


def test_prices_fall_from_slot_to_slot_by_no_more_than_waiting() -> None:
    cap = np.array([[5.0, 3.0, 4.0]])
    assert _rising(cap, np.array([[1.0, 1.0, 0.0]])).tolist() == [[4.0, 3.0, 4.0]]
    assert _rising(cap, np.zeros((1, 3))).tolist() == [[3.0, 3.0, 4.0]]
    assert _rising(np.array([[np.inf, 2.0]]), np.zeros((1, 2))).tolist() == [[2.0, 2.0]]
    # A fall of up to 1e-5 of the highest price, 2e-5, is an error; a greater one stays as it was,
    # below the cap.
    cap, none = np.array([[2.0, 1.0]]), np.zeros((1, 2))
    for old, expected in (
        (1 + 2e-5, 1.0),
        (1 + 3e-5, 1 + 3e-5),
        (1.5, 1.5),
        (3.0, 2.0),
        (0.5, 1.0),
    ):
        assert _rising(cap, none, np.array([[old, 1.0]])).tolist() == [[expected, 1.0]]


def test_columns_rows_and_costs_are_scaled_by_powers_of_two(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # x up to 6 is counted in 4; the row's entry of x is then 10 · 4, so that it is divided by 32; y
    # has no limit, its entry there is 1/8 / 32 = 2^-8, and it is counted in 2^8. Costs are 3 · 4
    # and 2^8 / 2, in units of 128.
    columns, rows = LpColumns(), LpRows()
    x, y = columns.add(1, 0.0, 6.0, 3.0), columns.add(1, 0.0, np.inf, 0.5)
    rows.add("row", 1.0, (0, x, 10.0), (0, y, 0.125))
    seen: list[list[Any]] = []

    def watched(
        lp: LinearProgram, column: Floats, row: Floats, cost: float, time_limit_s: float
    ) -> LpSolution:
        seen.append([column.tolist(), row.tolist(), cost])
        return solve_in_units(lp, column, row, cost, time_limit_s)

    monkeypatch.setattr(stream_duals, "solve_in_units", watched)
    found = solve_scaled(assemble(columns, rows), 5.0)
    assert seen == [[[4.0, 256.0], [1 / 32], 128.0]]
    # An entry of 1/8 is 1/2 of what x is counted in: twice that is 1. Without costs their unit is
    # 1.
    columns, rows = LpColumns(), LpRows()
    rows.add("row", 0.25, (0, columns.add(1, 0.0, 6.0), 0.125))
    assert solve_scaled(assemble(columns, rows), 5.0).primal[0] >= 2.0
    assert seen[1:] == [[[4.0], [2.0], 1.0]]
    # A tenth of x at 3 is cheaper than 8 of y at 0.5.
    assert found.value == pytest.approx(0.3) and found.primal == pytest.approx([0.1, 0.0])


def test_j_per_unit_is_the_rate_of_energy() -> None:
    instance = two_pools().with_objective(Objective.weighted({"j_per_unit": 1.0}))
    assert rates_of(instance, np.array([0.0, 7200.0]), True).low.tolist() == [[1.0], [1.0]]


def test_rest_leaves_less_of_a_power_cap() -> None:
    # Two devices rest at 1 W each below a cap of 5 W: 3 W over 1,000 s. A unit takes 30 J above
    # rest.
    instance = farm([5], [0], 1000.0)
    limits = replace(instance.limits, cap_place=np.array([0]), cap_w=np.array([5.0]))
    instance = replace(instance, limits=limits)
    work = traffic(instance)
    program = stream_program(instance, work, single_slot(instance, work), Demand())
    row = program.lp.family.index("watts")
    assert -3000 * (1 + 1e-8) < program.lp.right[row] < -3000
    mine = slice(program.lp.row_ptr[row], program.lp.row_ptr[row + 1])
    assert program.lp.value[mine] == pytest.approx([-30.0, -25.0], rel=EXACT)


def test_of_drained_work_slots_are_used_in_order() -> None:
    # Slots of 100, 50 and 25 s and one without an end, from 40 s on, when the work comes; it takes
    # 60 s at least, so that 60 s of the first are used. 3 per second of makespan, and 2 W of rest.
    instance = farm([6], [40], None)
    instance = instance.with_objective(Objective.weighted({"makespan_s": 3.0, "energy_j": 1.0}))
    edges = np.array([40.0, 140.0, 190.0, 215.0, np.inf])
    program = stream_program(instance, traffic(instance), Slots(edges, False), Demand())
    lp, used = program.lp, program.used
    assert used is not None
    assert lp.lower[used] == pytest.approx([60.0, 0.0, 0.0, 0.0], rel=1e-8)
    assert lp.lower[used[0]] < 60.0 and lp.upper[used].tolist() == [100.0, 50.0, 25.0, np.inf]
    assert lp.cost[used] == pytest.approx([5.0] * 4, rel=EXACT)
    rows = [f for f, name in enumerate(lp.family) if name == "order"]
    point = np.zeros(lp.num_columns)
    point[used] = 80.0, 30.0, 10.0, 0.0
    assert lp.times(point)[rows] == pytest.approx([80 / 2 - 30, 30 / 2 - 10])
    # The makespan is 40 s at least, and until then both devices rest.
    assert program.constant == pytest.approx(40 * 3.0 + 40 * 2.0, rel=1e-8)
    assert program.constant < 200.0


def test_prices_of_undone_units_and_of_waiting_follow_from_the_others() -> None:
    # Both are set 1 % too high, which the reduced costs do not allow and columns' bounds pay for.
    instance = priced().with_limits(flow_time_s=1010.0)
    work = traffic(instance)
    program = stream_program(instance, work, slots_of(instance, work, HOUR), Demand())
    lp, answer = program.lp, solve_scaled(program.lp, 60.0)
    assert answer.dual is not None
    exact = worth(program, answer.dual)
    rough = np.where(np.isin(lp.family, ("undone", "waiting")), 1.01 * answer.dual, answer.dual)
    assert worth(program, rough) < 0.99 * exact
    better = repaired(lp, rough, len(program.cls), program.classes, program.slots.width)
    assert worth(program, better) == pytest.approx(exact, rel=1e-6)
