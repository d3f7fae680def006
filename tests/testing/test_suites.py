"""The hand-solved cases are right, and each promise of the suites is one that a bad plug-in
breaks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from optbench.errors import ContradictionError
from optbench.model.builder import Model
from optbench.model.features import FEATURES
from optbench.model.instance import Instance
from optbench.model.result import Result
from optbench.model.schedule import Schedule, Sleep
from optbench.model.verify import verify
from optbench.plugins.protocol import Problem, Run, Solver
from optbench.testing import CASES, Case, ProblemConformance, SolverConformance, assert_gap
from optbench.testing.cases import INFEASIBLE, sequence
from tests.reference.brute_force import brute_force

CASE = {case.name: case for case in CASES}
# Brute force tries every tick and knows neither preemption nor devices that sleep nor cooling nor
# busy links; these are checked on schedules written by hand.
BY_HAND = {
    "in_seconds",
    "interrupted",
    "unsaved",
    "sleeping",
    "cooled_place",
    "busy_link",
    "device_outage",
    "open_horizon",
}


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name not in BY_HAND], ids=lambda case: case.name
)
def test_the_optima_are_those_of_brute_force(case: Case) -> None:
    found = brute_force(case.instance)
    assert found is not None
    assert found.objectives == pytest.approx(
        case.optimum if isinstance(case.optimum, tuple) else (case.optimum,)
    )


def test_the_infeasible_case_has_no_schedule() -> None:
    assert brute_force(INFEASIBLE.instance) is None


def value(name: str, *rows: tuple[int, int, float, float], sleep: Sleep | None = None) -> Any:
    """The objective of (task, mode, start, end) in a case, times in seconds."""
    instance = CASE[name].instance
    task, mode, start, end = np.array(rows).T
    columns = (
        task.astype(np.int64),
        mode.astype(np.int64),
        instance.to_ticks(start),
        instance.to_ticks(end),
    )
    return verify(instance, Schedule(*columns, sleep=sleep)).objective


def test_the_case_in_seconds_reaches_its_optimum() -> None:
    assert value("in_seconds", (0, 0, 0.0, 1.5), (1, 1, 1.5, 3.75)) == pytest.approx(
        3.75, rel=1e-12
    )


def test_the_preemptive_case_reaches_its_optimum() -> None:
    rows = (0, 0, 0.0, 1.0), (1, 1, 1.0, 2.0), (0, 0, 2.0, 5.0)
    assert value("interrupted", *rows) == pytest.approx(6.0, rel=1e-12)


def test_without_a_checkpoint_interrupting_loses_what_is_done() -> None:
    assert value("unsaved", (1, 1, 1.0, 2.0), (0, 0, 2.0, 6.0)) == pytest.approx(7.0, rel=1e-12)
    assert value("unsaved", (0, 0, 0.0, 1.0), (1, 1, 1.0, 2.0), (0, 0, 2.0, 5.0)) is None
    late = (0, 0, 0.0, 1.0), (1, 1, 1.0, 2.0), (0, 0, 2.0, 6.0)
    assert value("unsaved", *late) == pytest.approx(7.0, rel=1e-12)


def test_a_device_sleeps_between_two_tasks() -> None:
    rows = (0, 0, 0.0, 10.0), (1, 0, 40.0, 50.0)
    columns = ([0], [1], [10], [37])
    assert value("sleeping", *rows, sleep=Sleep(*map(np.array, columns))) == 2520.0
    assert value("sleeping", *rows) == 3500.0


def test_a_place_is_too_hot_with_two_at_a_time() -> None:
    assert value("cooled_place", (0, 0, 0.0, 3.0), (1, 0, 3.0, 6.0)) == 6.0
    assert value("cooled_place", (0, 0, 0.0, 3.0), (1, 0, 2.0, 5.0)) is None


def test_data_take_as_long_as_the_link_is_busy_when_they_leave() -> None:
    assert value("busy_link", (0, 0, 0.0, 2.0), (1, 1, 5.0, 6.0)) == 6.0
    assert value("busy_link", (0, 0, 0.0, 2.0), (1, 1, 4.0, 5.0)) is None


def test_work_stands_still_while_its_device_is_away() -> None:
    assert value("device_outage", (0, 0, 0.0, 1.0), (0, 0, 3.0, 6.0)) == pytest.approx(
        6.0, rel=1e-12
    )


def test_the_open_case_reaches_its_optimum_with_everything_done() -> None:
    assert value("open_horizon", (0, 0, 0.0, 3.0), (1, 0, 3.0, 6.0)) == pytest.approx(
        80.0 / 6.0, rel=1e-12
    )
    assert value("open_horizon", (0, 0, 0.0, 3.0)) == pytest.approx(65.0 / 3.0, rel=1e-12)


def test_between_them_the_cases_use_every_feature() -> None:
    assert set().union(*(case.instance.features for case in CASES)) == set(FEATURES)


@dataclass
class Serial(Solver):
    """One task after the other in its first mode that fits: right for the simplest
    instances only.
    """

    supports: ClassVar[frozenset[str]] = frozenset({"pooled", "modes"})

    def solve(self, instance: Instance, run: Run) -> Schedule | None:
        mode = instance.pairs.mode[instance.pairs.ptr[:-1]]
        length = instance.pairs.duration[instance.pairs.ptr[:-1]]
        return Schedule.of(instance, mode, np.cumsum(length) - length)


class Overlapping(Serial):
    """Everything at once, whatever the capacity."""

    def solve(self, instance: Instance, run: Run) -> Schedule | None:
        return Schedule.of(
            instance, instance.pairs.mode[instance.pairs.ptr[:-1]], np.zeros(instance.num_tasks)
        )


class Shuffled(Serial):
    """A different order every time, from no seed."""

    def solve(self, instance: Instance, run: Run) -> Schedule | None:
        order = np.random.default_rng().permutation(instance.num_tasks)
        mode, length = (
            column[instance.pairs.ptr[:-1]]
            for column in (instance.pairs.mode, instance.pairs.duration)
        )
        start = np.empty(instance.num_tasks)
        start[order] = np.cumsum(length[order]) - length[order]
        return Schedule.of(instance, mode, start)


class Global(Serial):
    """Draws from the global generator."""

    def solve(self, instance: Instance, run: Run) -> Schedule | None:
        np.random.mtrand.rand()
        return super().solve(instance, run)


class Boastful(Serial):
    """Reports a bound above the optimum."""

    def solve(self, instance: Instance, run: Run) -> Schedule | None:
        run.report_bound(1e6, "nowhere")
        return super().solve(instance, run)


class Greedy(Serial):
    """Says it can do what it cannot."""

    supports: ClassVar[frozenset[str]] = frozenset({"pooled", "power_levels"})


class Nothing(Serial):
    """Refuses everything."""

    def refuse(self, instance: Instance) -> str | None:
        return "there is always a reason"


def suite(method: Solver, exact: bool = False) -> SolverConformance:
    """The suite on a solver object in place of a discovered plug-in."""

    class Tried(SolverConformance):
        solver = "tried"

        @classmethod
        def load(cls) -> tuple[str, Solver]:
            return "tried", method

        def solve(self, instance: Instance, **options: Any) -> Result:
            from optbench import api

            return api.solve(instance, method, **({"time_limit_s": 5.0, "seed": 7} | options))

    Tried.exact = exact
    return Tried()


def test_an_honest_solver_passes() -> None:
    tried = suite(Serial())
    assert {case.name for case in tried.supported()} == {"sequence", "two_devices", "in_seconds"}
    tried.test_it_is_documented()
    tried.test_it_runs_on_something()
    tried.test_it_refuses_what_it_does_not_support()
    tried.test_same_seed_and_work_limit_same_decision_in_a_crowd()
    tried.test_it_ends_once_its_time_is_over()
    tried.test_it_survives_pickling()
    for case in tried.supported():
        tried.test_its_schedule_is_feasible_and_no_better_than_the_optimum(case)
        tried.test_it_leaves_the_instance_and_the_global_generator_alone(case)


@pytest.mark.parametrize(
    ("method", "broken"),
    [
        (
            Overlapping(),
            lambda s: s.test_its_schedule_is_feasible_and_no_better_than_the_optimum(
                CASE["sequence"]
            ),
        ),
        (Shuffled(), lambda s: s.test_same_seed_and_work_limit_same_decision_in_a_crowd()),
        (
            Global(),
            lambda s: s.test_it_leaves_the_instance_and_the_global_generator_alone(
                CASE["sequence"]
            ),
        ),
        (Greedy(), lambda s: s.test_what_it_supports_is_in_the_vocabulary()),
        (Nothing(), lambda s: s.test_it_runs_on_something()),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Solver) else "",
)
def test_a_bad_solver_breaks_its_promise(
    method: Solver, broken: Callable[[SolverConformance], None]
) -> None:
    with pytest.raises(AssertionError):
        broken(suite(method))


def test_a_solver_that_is_not_exact_cannot_pass_for_one() -> None:
    # One after the other the three tasks end at 9, on two devices they could at 5.
    suite(Serial()).test_its_schedule_is_feasible_and_no_better_than_the_optimum(
        CASE["two_devices"]
    )
    with pytest.raises(AssertionError):
        suite(Serial(), exact=True).test_its_schedule_is_feasible_and_no_better_than_the_optimum(
            CASE["two_devices"]
        )


def test_a_bound_above_the_optimum_is_a_contradiction() -> None:
    with pytest.raises(ContradictionError, match=r"bound 1000000\.0 from nowhere"):
        suite(Boastful()).test_its_schedule_is_feasible_and_no_better_than_the_optimum(
            CASE["sequence"]
        )


@dataclass
class Drifting(Problem):
    """Never the same instance twice."""

    def instance(self, seed: int = 0) -> Instance:
        model = Model("sequence")
        sequence(model)
        gpu = model.pool("other")
        model.task(modes=[model.mode(gpu, time_s=int(np.random.default_rng().integers(1, 10**9)))])
        return model.build()


def test_a_problem_that_ignores_its_seed_is_caught() -> None:
    class Tried(ProblemConformance):
        def load(self) -> Problem:
            return Drifting()

    with pytest.raises(AssertionError):
        Tried().test_same_seed_same_instance()


def test_assert_gap_says_what_is_missing() -> None:
    result = suite(Serial()).solve(CASE["two_devices"].instance)
    # 9 against a bound of 5: |9 - 5| / 9 = 0.444.
    assert_gap(result, 0.45)
    with pytest.raises(AssertionError, match=r"gap 0\.44"):
        assert_gap(result, 0.4)
