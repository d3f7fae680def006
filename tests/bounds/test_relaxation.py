"""Sets of pools and the least work in them, by hand."""

from __future__ import annotations

import numpy as np
import pytest

import optbench as ob
from optbench.bounds.combinatorial import relaxation
from optbench.bounds.combinatorial.relaxation import candidate_sets, relax
from optbench.model.instance import Instance
from optbench.model.metrics import mode_uses


def three_pools() -> Instance:
    """Pools of 2, 3, 1 and 1 devices: three tasks choose among the first two, one of the second and
    third, one needs the last.
    """
    m = ob.Model()
    a, b, c, d = (
        m.pool(name, count=count) for name, count in zip("abcd", (2, 3, 1, 1), strict=True)
    )
    for _ in range(3):
        m.task(modes=[m.mode({a: 2}, 3), m.mode({b: 1}, 5)])
    m.task(modes=[m.mode({b: 2}, 4), m.mode({c: 1}, 7)])
    m.task(modes=[m.mode({d: 1}, 1)])
    m.task(modes=[m.mode(None, 9)])
    m.minimize(makespan=1.0)
    return m.build()


def test_every_choice_and_every_connected_group_is_a_set() -> None:
    instance = three_pools()
    found = candidate_sets(instance, mode_uses(instance))
    assert sorted(found) == sorted(
        [(0,), (1,), (2,), (3,), (0, 1), (1, 2), (0, 1, 2), (0, 1, 2, 3)]
    )


def test_rare_choices_are_left_out_beyond_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relaxation, "MAX_SETS", 1)
    instance = three_pools()
    found = candidate_sets(instance, mode_uses(instance))
    assert (0, 1) in found and (1, 2) not in found and (0, 1, 2) in found


def test_choices_that_share_a_pool_are_connected() -> None:
    choices = np.array(
        [[1, 1, 0, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 0], [0, 1, 1, 0, 0]], dtype=bool
    )
    assert sorted(relaxation._connected(choices)) == [(0, 1, 2), (3,)]


def test_a_set_holds_the_tasks_that_cannot_avoid_it_with_their_least_work() -> None:
    sets = {found.name: found for found in relax(three_pools()).sets}
    # Alone no pool but the last is needed; of a and b the tasks need min(2 · 3, 5) and run min(3,
    # 5).
    assert set(sets) == {"d", "a+b", "b+c", "a+b+c", "all"}
    both = sets["a+b"]
    assert both.task.tolist() == [0, 1, 2] and both.capacity == 5
    assert both.work.tolist() == [5.0] * 3 and both.length.tolist() == [3.0] * 3
    # Of b and c the fourth needs min(2 · 4, 7) and runs 4 at least.
    assert (sets["b+c"].task.tolist(), sets["b+c"].work.tolist(), sets["b+c"].length.tolist()) == (
        [3],
        [7.0],
        [4.0],
    )
    assert sets["all"].task.tolist() == [0, 1, 2, 3, 4] and sets["all"].capacity == 7
