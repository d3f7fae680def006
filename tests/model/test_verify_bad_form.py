"""Schedules and instances of bad form: the verifier says what is wrong and where, also where
numbers are too large to add up.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from optbench.model.builder import Model
from optbench.model.objective import Objective
from optbench.model.schedule import Schedule
from optbench.model.task_progress import progress
from optbench.model.verify import verify
from tests.model.verified_by_hand import floats, instance, schedule


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda s: replace(s, task=s.task[:-1]), r"'mode' has shape \(4,\), expected \(3,\)"),
        (lambda s: replace(s, task=np.array(0)), r"'task' has shape \(\), expected \(1,\)"),
        (lambda s: replace(s, task=np.array([0, 1, 2, 9])), r"task\[3\] is 9, expected 0 to 3"),
        (lambda s: replace(s, mode=np.array([0, 0, -1, 2])), r"mode\[2\] is -1, expected 0 to 2"),
        (lambda s: replace(s, mode=s.mode.astype(float)), "'mode' holds float64"),
        (
            lambda s: replace(s, end=np.array([3, 4, np.inf, 11])),
            "'end' holds float64, expected whole numbers",
        ),
        (
            lambda s: replace(s, end=np.array([3, 4, 2**61, 11])),
            r"end\[2\] is 2305843009213693952, expected at most 2\^60 ticks",
        ),
        (
            lambda s: replace(s, start=np.array([0, -(2**61), 5, 12])),
            r"start\[1\] is -2305843009213693952",
        ),
    ],
)
def test_bad_form_says_what_is_wrong_and_where(
    edit: Callable[[Schedule], Schedule], said: str
) -> None:
    problem = instance()
    verdict = verify(problem, edit(schedule(problem)))
    assert [violation.constraint for violation in verdict.violations] == ["form"]
    assert verdict.objectives == ()
    assert re.search(said, verdict.violations[0].message)


def test_a_missing_task_is_an_assignment_violation() -> None:
    problem = instance()
    whole = schedule(problem)
    part = Schedule(whole.task[:3], whole.mode[:3], whole.start[:3], whole.end[:3])
    assert [violation.constraint for violation in verify(problem, part).violations] == [
        "assignment"
    ]


def test_a_share_beyond_1_by_rounding_alone_is_not_complete() -> None:
    # Of 42 equal parts the last lacks one tick of 4.5e15: their floats add up to more than 1.
    length = (2**52 - 1) // 42
    m = Model(preemptive=True)
    m.task(modes=[m.mode(m.pool("gpu"), time_s=float(42 * length))])
    m.minimize(makespan=1.0)
    zeros, start = np.zeros(42, dtype=np.int64), np.arange(42) * length
    end = start + length
    end[-1] -= 1
    parts = Schedule(zeros, zeros, start, end)
    assert progress(m.build(), parts).share[0] > 1.0
    (violation,) = verify(m.build(), parts).violations
    assert (violation.constraint, violation.amount) == ("assignment", 0.0)


@pytest.mark.parametrize("power_w", [1e308, 1.7e308])
def test_powers_too_large_to_add_up_are_named(power_w: float) -> None:
    """Beyond the largest float as a sum of products, and as a sum of rationals."""
    problem = instance()
    limits = replace(problem.limits, cap_w=floats(1e308))
    hot = replace(problem, pools=replace(problem.pools, idle_w=np.full(2, power_w)), limits=limits)
    assert [violation.constraint for violation in verify(hot, schedule(hot)).violations] == [
        "power_cap",
        "limit:energy_j",
    ]


def test_a_weighted_sum_too_large_is_named() -> None:
    problem = instance().with_objective(Objective.weighted({"makespan": 1e307, "energy_j": 1e305}))
    verdict = verify(problem, schedule(problem))
    assert [violation.constraint for violation in verdict.violations] == [
        "finite"
    ] and verdict.objective is None
    assert "objective level 0 is inf" in verdict.violations[0].message
