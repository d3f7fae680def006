"""What solve keeps and counts under limits of time and work, with a warm start and after a stop."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import optbench as ob
from optbench import api
from optbench.errors import ParameterError
from optbench.model.builder import Task
from optbench.model.features import FEATURES
from optbench.model.instance import Instance
from tests.sample_files.two_clocks import Fixed, two_clocks


def test_a_warm_start_must_be_feasible() -> None:
    m = two_clocks()
    m.minimize(energy_j=1)
    instance = m.build()
    late = ob.Schedule(np.array([0]), np.array([0]), np.array([0]), np.array([4]))
    with pytest.raises(
        ParameterError, match="duration: task x runs from 0 to 4, in mode 0 it takes 2"
    ):
        ob.solve(instance, "cpsat", warm_start=late)


@dataclass
class Forgetful(ob.Solver):
    """Answers the first time it is asked, then no more; never looks at a warm start."""

    supports: ClassVar[frozenset[str]] = frozenset(FEATURES)

    def solve(self, instance: Instance, run: ob.Run) -> ob.Schedule | None:
        return ob.Schedule.of(instance, [0], [0]) if run.level == 0 else None


def test_no_level_loses_what_an_earlier_one_found() -> None:
    m = two_clocks()
    m.minimize_in_order("makespan_s", "energy_j")
    result = ob.solve(m.build(), Forgetful())
    assert result.objective == (2, 100) and result.verified


def test_never_worse_than_the_warm_start_whatever_the_solver_does() -> None:
    m = two_clocks()
    m.minimize(energy_j=1)
    instance = m.build()
    result = ob.solve(instance, Fixed(mode=0), warm_start=ob.Schedule.of(instance, [1], [0]))
    assert result.objective == 40


def test_a_work_limit_alone_knows_no_clock() -> None:
    m = two_clocks()
    m.minimize(energy_j=1)
    limits: list[float | None] = []

    @dataclass
    class Spy(Fixed):
        def solve(self, instance: Instance, run: ob.Run) -> ob.Schedule | None:
            limits.append(run.time_limit_s)
            return super().solve(instance, run)

    ob.solve(m.build(), Spy(), work_limit=1)
    ob.solve(m.build(), Spy())
    ob.solve(m.build(), Spy(), work_limit=1, time_limit_s=5)
    assert limits == [None, 60, 5]


def test_the_time_of_a_solver_is_not_that_of_bounding(monkeypatch: pytest.MonkeyPatch) -> None:
    elapsed, add_bounds = [], api._add_bounds

    def watched(run: ob.Run) -> None:
        elapsed.append(run.elapsed_s())
        add_bounds(run)
        elapsed.append(run.elapsed_s())

    monkeypatch.setattr(api, "_add_bounds", watched)
    m = two_clocks()
    m.minimize(energy_j=1.0)
    result = ob.solve(m.build(), "fcfs")
    assert result.bound is not None
    assert elapsed == [elapsed[0]] * 2 and result.wall_s == round(elapsed[0], 6)


def test_the_trajectory_of_levels_stays_within_the_time_spent() -> None:
    m = two_clocks()
    m.minimize_in_order("makespan_s", "energy_j")
    result = ob.solve(m.build(), "cpsat", time_limit_s=10)
    times = [point.t_s for point in result.trajectory]
    assert times == sorted(times) and times[-1] <= result.wall_s


def test_a_stop_request_keeps_what_was_found() -> None:
    m = ob.Model("long")
    pools = [m.pool(f"p{q}") for q in range(5)]
    rng = np.random.default_rng(0)
    for _ in range(20):
        before: Task | None = None
        for q in rng.permutation(5):
            modes = [m.mode(pools[q], int(rng.integers(10, 99)))]
            before = m.task(modes=modes, after=() if before is None else before)
    m.minimize(makespan_s=1)
    stop = threading.Event()
    result = ob.solve(
        m.build(),
        "cpsat",
        stop=stop,
        time_limit_s=60,
        on_progress=lambda p: stop.set() if p.objective else None,
    )
    assert result.termination == "interrupted" and result.verified and result.wall_s < 30
