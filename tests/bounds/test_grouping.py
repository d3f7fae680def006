"""Groups of alike tasks, and what sending cannot cost less than, by hand."""

from __future__ import annotations

import numpy as np

import optbench as ob
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
