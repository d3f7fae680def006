"""Groups of alike tasks, and what sending cannot cost less than, by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import optbench as ob
from optbench.api import load_target
from optbench.bounds.combinatorial.relaxation import relax
from optbench.bounds.fluid.grouping import Groups, group_tasks, sending_costs
from optbench.model.instance import Instance


def fan() -> Instance:
    """One task on a or d sends 4 GB to one on b or c; two more tasks on a are alike."""
    m = ob.Model("fan")
    a, b, c, d = (m.pool(name) for name in "abcd")
    # 1 s and 5 J a GB to b, 2 s and 2 J to c; d reaches neither but b, at 3 s and 7 J.
    m.link(a, b, bandwidth_gbit_s=8, energy_j_per_gb=5)
    m.link(a, c, bandwidth_gbit_s=4, energy_j_per_gb=2)
    m.link(d, b, bandwidth_gbit_s=8 / 3, energy_j_per_gb=7)
    first = m.task("first", modes=[m.mode(a, time_s=5), m.mode(d, time_s=6)])
    m.task("second", modes=[m.mode(b, time_s=5), m.mode(c, time_s=5)], data_gb={first: 4})
    for _ in range(2):
        m.task(modes=[m.mode(a, time_s=5), m.mode(d, time_s=6)])
    m.minimize(energy_j=1.0)
    return m.build()


def sizes(groups: Groups) -> list[tuple[int, ...]]:
    """The tasks of each group, in the order of their first."""
    return sorted(tuple(np.flatnonzero(groups.group == g)) for g in range(len(groups.size)))


def test_tasks_with_edges_stay_alone_where_edges_are_kept() -> None:
    relaxation = relax(fan())
    kept, loose = group_tasks(relaxation, True), group_tasks(relaxation, False)
    assert sizes(kept) == [(0,), (1,), (2, 3)]
    assert sizes(loose) == [(0, 2, 3), (1,)]
    # The least restricted of three has nothing behind it; the second may start after 5 s and
    # 4 s of sending.
    assert loose.tail[loose.group].tolist() == [0, 0, 0, 0]
    assert kept.head[kept.group].tolist() == loose.head[loose.group].tolist() == [0, 9, 0, 0]
    assert kept.tail[kept.group].tolist() == [9, 0, 0, 0]
    assert kept.size[kept.group].tolist() == [1, 1, 2, 2]


def test_the_least_lag_and_the_least_energy_may_be_of_different_links() -> None:
    instance = fan()
    lag, energy = sending_costs(instance, group_tasks(relax(instance), True), np.array([0]))
    # From a 4 s at 1 s a GB to b, and 8 J at 2 J a GB to c; from d only b is reached: 12 s, 28 J.
    assert lag.tolist() == [4, 12]
    assert energy.tolist() == [8, 28]
    lag, energy = sending_costs(instance, group_tasks(relax(instance), True), np.zeros(0, np.int64))
    assert len(lag) == len(energy) == 0


def test_each_way_in_which_tasks_may_differ_keeps_them_apart() -> None:
    m = ob.Model("different")
    a, b = m.pool("a", memory_gb=9), m.pool("b", memory_gb=9)
    modes, others = (
        [m.mode(a, time_s=2, energy_j=6), m.mode(b, time_s=3, energy_j=5)],
        [m.mode(b, time_s=3)],
    )
    plain: dict[str, Any] = {"modes": modes, "deadline_s": 90.0, "hard": False}
    plain |= {"release_s": 1.0, "weight": 2.0}
    differences: tuple[dict[str, Any], ...] = (
        {}, {"modes": others}, {"units": 2.0}, {"release_s": 2.0}, {"deadline_s": 91.0},
        {"hard": True}, {"weight": 3.0}, {"memory_gb": 4.0}, {},
    )  # fmt: skip
    for change in differences:
        m.task(**(plain | change))
    m.minimize(tardiness_s=1.0)
    groups = group_tasks(relax(m.build()), True)
    assert sizes(groups) == [(0, 8), (1,), (2,), (3,), (4,), (5,), (6,), (7,)]
    assert groups.size[groups.group].tolist() == [2, 1, 1, 1, 1, 1, 1, 1, 2]
    # A row per group and mode, the second task's one, the third's two of twice the length.
    for task, modes_, duration, energy in (
        (0, [0, 1], [2, 3], [6, 5]), (1, [2], [3], [0]),
        (2, [0, 1], [4, 6], [12, 10]), (8, [0, 1], [2, 3], [6, 5]),
    ):  # fmt: skip
        g = groups.group[task]
        rows = slice(groups.ptr[g], groups.ptr[g + 1])
        assert groups.of[rows].tolist() == [g] * len(modes_)
        assert groups.mode[rows].tolist() == modes_
        assert (
            groups.duration[rows].tolist() == duration and groups.energy_j[rows].tolist() == energy
        )
    assert groups.ptr[-1] == len(groups.of) == 15


def test_the_least_restricted_member_speaks_for_its_group() -> None:
    # Of three alike tasks the first is behind 5 s, the second before 7 s and a deadline, which
    # leaves it until 100 − 7.
    m = ob.Model("restricted")
    a = m.pool("a", count=9)
    alike = [m.task(modes=[m.mode(a, time_s=2)]) for _ in range(3)]
    before = m.task(modes=[m.mode(a, time_s=5)])
    m.precede(before, alike[0])
    m.task(modes=[m.mode(a, time_s=7)], after=alike[1], deadline_s=100)
    m.minimize(makespan=1.0)
    instance = m.build()
    loose = group_tasks(relax(instance), False)
    g = loose.group[0]
    assert loose.group[:3].tolist() == [g] * 3
    assert (loose.head[g], loose.tail[g], loose.latest[g], loose.size[g]) == (0, 0, np.inf, 3)
    # With all three restricted, by the least of each.
    limited = group_tasks(relax(instance.with_limits(makespan=95.0)), False)
    assert limited.latest[limited.group[0]] == 95
    first, second = (group_tasks(relax(instance), True) for _ in range(2))
    one, two = first.group[0], second.group[1]
    assert (first.head[one], first.tail[one], first.latest[one]) == (5, 0, np.inf)
    assert (second.head[two], second.tail[two], second.latest[two]) == (0, 7, 93)


def test_tasks_that_come_in_elsewhere_are_apart() -> None:
    instance = load_target("geo_dc:days=0.02,drain=yes")
    assert instance.stream is not None
    ways = len(np.unique(instance.stream.ingress))
    groups = group_tasks(relax(instance), True)
    assert ways > 1
    for g in range(len(groups.size)):
        assert len(np.unique(instance.stream.ingress[groups.group == g])) == 1
    # Were they all to come in at one place, there would be fewer groups where two differ in that
    # alone.
    tasks = replace(
        instance.tasks,
        units=np.ones(instance.num_tasks),
        release=np.zeros(instance.num_tasks, np.int64),
    )
    same = group_tasks(relax(replace(instance, tasks=tasks)), True)
    alone = replace(instance.stream, ingress=np.zeros_like(instance.stream.ingress))
    fewer = group_tasks(relax(replace(instance, tasks=tasks, stream=alone)), True)
    assert len(same.size) > len(fewer.size)


def test_a_pool_that_reaches_no_pool_of_the_target_is_free_and_no_other() -> None:
    m = ob.Model("unreachable")
    a, b, c = (m.pool(name) for name in "abc")
    m.link(a, b, bandwidth_gbit_s=8, energy_j_per_gb=5)
    first = m.task(modes=[m.mode(a, time_s=1), m.mode(c, time_s=1), m.mode(b, time_s=1)])
    second = m.task(modes=[m.mode(b, time_s=1)], data_gb={first: 2})
    m.task(modes=[m.mode(b, time_s=1)], data_gb={second: 2})
    m.minimize(energy_j=1.0)
    instance = m.build()
    lag, energy = sending_costs(instance, group_tasks(relax(instance), True), np.array([1, 0]))
    # In the order that is asked for: b to itself; then a to b, c to nowhere, b to itself.
    assert lag.tolist() == [0, 2, 0, 0] and energy.tolist() == [0, 10, 0, 0]
