"""Loads of pool sets by hand: heads, tails, and sums that floats do not hold."""

from __future__ import annotations

import numpy as np
import pytest

from optbench.bounds.combinatorial import makespan
from optbench.bounds.combinatorial.makespan import load_bound, set_bound
from optbench.bounds.combinatorial.relaxation import PoolSet


def pools(capacity: int, work: list[float], head: list[float], tail: list[float]) -> PoolSet:
    work_, head_, tail_ = (np.asarray(values, dtype=float) for values in (work, head, tail))
    return PoolSet("x", (0,), capacity, np.arange(len(work)), work_, head_, tail_, work_)


def test_a_load_counts_between_the_heads_and_tails_of_its_tasks() -> None:
    # All four: 13 / 2 is 7. The three from 5 on: 5 + 12 / 2 + 1 = 12; those of tail 2 among them: 5
    # + 8 / 2 + 2 = 11.
    several = pools(2, [1, 4, 4, 4], [0, 5, 5, 5], [0, 2, 2, 1])
    assert load_bound(several) == 12
    assert set_bound(several) == (12, "pool_load:x")
    # With a tail of 4 the two are better: 5 + 8 / 2 + 4.
    assert load_bound(pools(2, [1, 4, 4, 4], [0, 5, 5, 5], [0, 4, 4, 1])) == 13
    # A head that only the first task has: 20 + 1 / 2, rounded up, + 3.
    assert load_bound(pools(2, [1, 4, 4, 4], [20, 5, 5, 5], [3, 2, 2, 1])) == 24
    assert load_bound(pools(2, [], [], [])) == 0


def test_a_single_device_has_jacksons_schedule_unless_its_tasks_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert set_bound(pools(1, [3, 2], [0, 1], [0, 4])) == (
        7,
        "jackson:x",
    )  # 1 + 2 + 4: the second interrupts the first
    # Of more tasks than that the load alone, here of both: 3 + 2, or of the second: 1 + 2 + 4.
    monkeypatch.setattr(makespan, "MAX_JACKSON", 1)
    assert set_bound(pools(1, [3, 2], [0, 1], [0, 4])) == (7, "pool_load:x")


def test_sums_that_floats_do_not_hold_are_lowered() -> None:
    # 2^54 + 3 on two devices: the sum is rounded, the bound stays below the exact quotient, by
    # about 1e-9 of it.
    found, exact = load_bound(pools(2, [2.0**54, 3.0], [0, 0], [0, 0])), (2**54 + 3) / 2
    assert exact * (1 - 2e-9) < found < exact * (1 - 0.5e-9)
    # 2^52 is held exactly, 2^53 is not.
    assert load_bound(pools(1, [2.0**52], [0], [0])) == 2.0**52
    assert load_bound(pools(1, [2.0**53], [0], [0])) < 2.0**53


def test_thresholds_are_few_and_begin_with_the_smallest() -> None:
    values = np.arange(1000.0)
    found = makespan._thresholds(values)
    assert len(found) == makespan.MAX_THRESHOLDS and found[0] == 0.0 and found[-1] == 999.0
    assert makespan._thresholds(np.array([3.0, 1.0, 3.0])).tolist() == [1.0, 3.0]
