"""Every column and every row of the fluid LP against a table written in plain Python, and one
such table by hand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.bounds.fluid import fluid_program as fluid_module
from optbench.bounds.fluid import fluid_tariffs
from optbench.bounds.fluid.fluid_program import Fluid, down, exact_or_down, fluid_model
from optbench.model.instance import Instance
from tests.bounds.fluid_table import FluidTable, Number, Row
from tests.bounds.fluid_tariff_table import add_tariff_part
from tests.bounds.test_fluid import in_nanoseconds
from tests.reference.random_instances import tiny_instance, tiny_with_ways

GROUP_ROWS = ("assign", "completion", "deadline", "lateness")


def names_of(fluid: Fluid) -> dict[int, Any]:
    """The name of each column, as the plain table has it."""
    groups = fluid.groups
    tasks = [tuple(np.flatnonzero(groups.group == g).tolist()) for g in range(len(groups.size))]
    names: dict[int, Any] = {fluid.makespan: "C"}
    for column, g, k in zip(
        fluid.share.tolist(), groups.of.tolist(), groups.mode.tolist(), strict=True
    ):
        names[column] = ("x", tasks[g], k)
    names |= {column: ("S", tasks[g]) for g, column in enumerate(fluid.start.tolist())}
    names |= {column: ("T", tasks[g]) for g, column in enumerate(fluid.late.tolist())}
    names |= {column: ("F", name) for name, column in fluid.metric.items()}
    names |= {column: ("R", name) for name, column in fluid.rest.items()}
    if len(fluid.slot):
        for k, columns in enumerate(fluid.slot.reshape(fluid.instance.num_modes, -1).tolist()):
            names |= {column: ("V", k, t) for t, column in enumerate(columns)}
    return names


def is_near(found: float, expected: Number) -> bool:
    value, size = expected
    return found == value or abs(found - value) <= 2e-15 * size


def check(instance: Instance, keep_edges: bool, **sizes: int) -> set[str]:
    """Assert that the LP is the plain table; the families of its rows."""
    fluid = fluid_model(instance, keep_edges)
    table = FluidTable(instance, keep_edges, **sizes)
    add_tariff_part(table)
    lp, names = fluid.program(), names_of(fluid)
    assert sorted(names) == list(range(lp.num_columns))
    assert set(names.values()) == set(table.columns)
    for column, name in names.items():
        found = (lp.lower[column], lp.upper[column], lp.cost[column])
        assert all(map(is_near, found, table.columns[name])), (name, found, table.columns[name])
    rows = rows_of(fluid, names)
    assert len(rows) == len(table.rows)
    left = list(table.rows)
    for row in rows:
        same = next((k for k, other in enumerate(left) if is_same(row, other)), None)
        assert same is not None, (row, [other for other in left if other.family == row.family])
        del left[same]
    return set(lp.family)


def rows_of(fluid: Fluid, names: dict[int, Any]) -> list[Row]:
    lp, group = fluid.program(), fluid.groups.group
    rows = []
    for r in range(lp.num_rows):
        here = slice(lp.row_ptr[r], lp.row_ptr[r + 1])
        terms = {
            names[c]: (v, 0.0)
            for c, v in zip(lp.column[here].tolist(), lp.value[here].tolist(), strict=True)
        }
        of: Any = int(lp.of[r])
        if lp.family[r] in GROUP_ROWS:
            of = tuple(np.flatnonzero(group == of).tolist())
        rows.append(
            Row(
                lp.family[r],
                0 if lp.family[r] == "rest" else of,
                (lp.right[r], 0.0),
                terms,
                bool(lp.equal[r]),
            )
        )
    return rows


def is_same(row: Row, expected: Row) -> bool:
    if (row.family, row.of, row.equal, set(row.terms)) != (
        expected.family,
        expected.of,
        expected.equal,
        set(expected.terms),
    ):
        return False
    numbers = [
        (row.right, expected.right),
        *((row.terms[name], expected.terms[name]) for name in row.terms),
    ]
    return all(is_near(found, wanted) for (found, _), wanted in numbers)


def test_random_instances_have_the_plain_table() -> None:
    families: set[str] = set()
    # Of 44 three corners of the rest's hull are in line up to rounding: it has a row more or less.
    for seed in (*range(44), *range(45, 150)):
        instance = tiny_with_ways(seed) if seed % 5 == 0 else tiny_instance(seed)
        if seed % 7 == 0:
            instance = in_nanoseconds(instance)
        families |= check(instance, keep_edges=seed % 4 > 0)
    assert families == {
        "assign", "capacity", "start", "completion", "deadline", "power", "energy", "flow",
        "lateness", "tardiness", "worked", "room", "early", "late", "rest", "cost_usd", "carbon_g",
    }  # fmt: skip


def test_merged_periods_and_few_thresholds_have_the_plain_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for entries, slots in ((1, 5), (20, 3), (60, 8)):
        monkeypatch.setattr(fluid_module, "CAPACITY_ENTRIES", entries)
        monkeypatch.setattr(fluid_tariffs, "MAX_SLOTS", slots)
        for seed in range(30):
            check(tiny_instance(seed), keep_edges=True, entries=entries, slots=slots)


def priced(time_s: float = 3600.0, **limits: float) -> Instance:
    """One task, cheap only from tick 2 on, when it may just begin if it has no length."""
    m = ob.Model("priced", tick_s=3600)
    m.task(modes=[m.mode(m.pool("gpu"), time_s=time_s, energy_j=3.6e6)])
    m.tariff(price_usd_per_kwh=(0.4, 0.3, 0.1))
    m.minimize(cost_usd=1.0)
    return m.build().with_limits(**limits)


def test_a_tariff_that_changes_at_the_last_makespan_has_the_plain_table() -> None:
    for limits in ({}, {"makespan": 2.0}, {"makespan": 1.0}):
        check(priced(0.0, **limits), True)
        check(priced(3600.0, **limits), True)


def test_an_instance_without_any_time_has_the_plain_table() -> None:
    m = ob.Model("nothing", tick_s=3600)
    m.task(modes=[m.mode(m.pool("gpu", idle_w=100), time_s=0, energy_j=3.6e6)])
    m.tariff(price_usd_per_kwh=0.25)
    m.minimize(cost_usd=1.0)
    assert "rest" in check(m.build(), True)


def test_window_rows_are_left_out_where_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    # Three periods, one share and three columns of one mode: 3 · (1 + 1 · 3) = 12 entries.
    for window, written in ((12, True), (11, False)):
        monkeypatch.setattr(fluid_tariffs, "WINDOW_ENTRIES", window)
        assert ("late" in check(priced(), True, window=window)) is written


def test_without_tariffs_there_are_no_columns_of_time_by_period() -> None:
    fluid = fluid_model(tiny(1))
    assert len(fluid.slot) == len(fluid.slot_begins) == len(fluid.late) == 0
    assert fluid.rest == {} and fluid.sent_least_j == 0.0


def tiny(tasks: int) -> Instance:
    m = ob.Model("tiny")
    gpu = m.pool("gpu")
    for k in range(tasks):
        m.task(modes=[m.mode(gpu, time_s=2 + k)])
    m.minimize(makespan=1.0)
    return m.build()


def test_a_number_that_floats_may_have_raised_is_lowered_by_four_units() -> None:
    eps = 2.0**-52
    assert down(np.array([1.0, -1.0, 8.0, 0.0])).tolist() == [
        1 - 4 * eps,
        -1 - 4 * eps,
        8 - 32 * eps,
        0.0,
    ]
    # Whole numbers below 2^53 are exact.
    most = 2.0**53
    assert exact_or_down(np.array([most - 1, 1 - most, -3.0])).tolist() == [
        most - 1,
        1 - most,
        -3.0,
    ]
    assert exact_or_down(np.array([most, -most])).tolist() == [most - 8, -most - 8]


def test_thresholds_are_spread_over_the_ranks() -> None:
    values = np.array([7.0, 1.0, 3.0, 5.0, 3.0, 9.0])
    for number, expected in (
        (1, [1]),
        (2, [1, 9]),
        (3, [1, 5, 9]),
        (4, [1, 3, 5, 9]),
        (9, [1, 3, 5, 7, 9]),
    ):
        assert fluid_module._levels(values, number).tolist() == expected


def hand_written() -> Instance:
    """Two alike tasks, released at 1, on a or b, and a chain from a to b over a slow link."""
    m = ob.Model("hand", tick_s=2)
    node = m.place("node")
    a, b = m.pool("a", count=3, idle_w=10, at=node), m.pool("b", idle_w=5)
    m.pool("unused")
    m.link(a, b, bandwidth_gbit_s=8, energy_j_per_gb=50)
    for _ in range(2):
        m.task(
            modes=[m.mode({a: 2}, time_s=4, energy_j=400), m.mode(b, time_s=8, energy_j=300)],
            release_s=2,
            weight=3,
        )
    first = m.task(modes=[m.mode(a, time_s=6, energy_j=600)])
    m.task(modes=[m.mode(b, time_s=2, energy_j=100)], data_gb={first: 4}, deadline_s=20)
    m.limit(power_w=180, at=node)
    m.minimize(energy_j=1.0, flow_time_s=2.0)
    return m.build()


def test_a_small_table_by_hand() -> None:
    fluid = fluid_model(hand_written())
    names = names_of(fluid)
    # Modes: 0 and 1 of the pair, 2 of the first, 3 of the last. 4 GB at 1 s are 2 ticks: the first
    # of 3 ticks ends before 5, the last after 6, and by 10, so that the first ends by 10 − 1 − 2.
    pair, lone, last = (0, 1), (2,), (3,)
    x, s = {k: ("x", g, k) for g, k in ((pair, 0), (pair, 1), (lone, 2), (last, 3))}, "S"
    found: dict[Any, Any] = {}
    for row in rows_of(fluid, names):
        terms = {name: value for name, (value, _) in row.terms.items()}
        found.setdefault((row.family, row.of), []).append((row.right[0], terms))
    near = pytest.approx
    assert found["assign", pair] == [(2, {x[0]: 1, x[1]: 1})]
    assert found["start", 0] == [(0, {(s, last): 1, (s, lone): -1, x[2]: -5})]
    assert found["completion", pair] == [(0, {"C": 2, (s, pair): -1, x[0]: -2, x[1]: -4})]
    assert found["completion", last] == [(0, {"C": 1, (s, last): -1, x[3]: -1})]
    assert found["deadline", last] == [(-10, {(s, last): -1, x[3]: -1})]
    assert found["deadline", lone] == [(-7, {(s, lone): -1, x[2]: -3})]
    # Pool a: both kinds from 0 on; the pair alone after 1; the first alone, 3 before the end. Of
    # pool b: the pair after 1, and the last after 5.
    assert found["capacity", 0] == [
        (0, {"C": 3, x[0]: -4, x[2]: -3}), (9, {"C": 3, x[2]: -3}), (3, {"C": 3, x[0]: -4}),
    ]  # fmt: skip
    assert found["capacity", 1] == [(1, {"C": 1, x[1]: -4, x[3]: -1}), (5, {"C": 1, x[3]: -1})]
    assert ("capacity", 2) not in found
    # At the node 180 W less 30 at rest. 400 J in 4 s are 100 W less 20 of two resting devices,
    # 600 J in 6 s 100 W less 10.
    ((right, terms),) = found["power", 1]
    assert right == 0 and terms == {"C": near(150), x[0]: near(-160), x[2]: near(-270)}
    # 35 W at rest are 70 J a tick. 400 − 20 · 4, 300 − 5 · 8, 600 − 10 · 6 + 200 sent, 100 − 5 · 2.
    ((right, terms),) = found["energy", 0]
    assert right == 0 and terms == {
        ("F", "energy_j"): 1, "C": near(-70),
        x[0]: near(-320), x[1]: near(-260), x[2]: near(-740), x[3]: near(-90),
    }  # fmt: skip
    # Weights of 3 · 2 s and 1 · 2 s a tick; the pair was released after a tick.
    ((right, terms),) = found["flow", 0]
    assert right == near(-12) and terms == {
        ("F", "flow_time_s"): 1, (s, pair): near(-6), (s, lone): near(-2), (s, last): near(-2),
        x[0]: near(-12), x[1]: near(-24), x[2]: near(-6), x[3]: near(-2),
    }  # fmt: skip
    assert set(found) == {
        ("assign", pair), ("assign", lone), ("assign", last), ("capacity", 0), ("capacity", 1),
        ("start", 0), ("completion", pair), ("completion", last), ("deadline", lone),
        ("deadline", last), ("power", 1), ("energy", 0),
        ("flow", 0),
    }  # fmt: skip


def test_a_due_date_is_lowered_by_four_units_of_its_tasks() -> None:
    m = ob.Model("due")
    m.task(modes=[m.mode(m.pool("gpu"), time_s=2)], deadline_s=5, hard=False)
    m.minimize(tardiness_s=1.0)
    lp = fluid_model(m.build()).program()
    # 20 units of 2^-52 are five of the last place of 5; 25 would be rounded to six.
    assert lp.right[lp.family.index("lateness")] == -5 - 20 * 2.0**-52
