"""Conformance suite of solvers: of schedules on every hand-solved case that a solver supports, and
of other shapes on the instances of the problems that its author names.
"""

from __future__ import annotations

import pickle
import threading
from typing import Any, ClassVar

import numpy as np
import pytest

from optbench import api
from optbench.errors import UnsupportedError
from optbench.model.features import FEATURES
from optbench.model.result import Result
from optbench.plugins import discovery, specs
from optbench.plugins.overtime import killed_from_outside
from optbench.plugins.protocol import Solver, check_supported, takes
from optbench.plugins.schedule_shape import SCHEDULES, shape_of
from optbench.testing.cases import CASES, INFEASIBLE, Case, crowd
from optbench.testing.documented import check_documented
from optbench.testing.shaped_cases import ShapedCase, shaped_case

TOLERANCE = 1e-6
# Features of the constraints that a solver may break.
BREAKABLE = {"deadlines", "limits", "fixed_horizon"}


class SolverConformance:
    """Inherit, name your class ``Test...`` and set ``solver`` to a spec. ``exact`` solvers must
    prove every optimum.
    """

    solver: ClassVar[str]
    exact: ClassVar[bool] = False
    # Specs of small problems of other shapes that it takes.
    problems: ClassVar[tuple[str, ...]] = ()
    time_limit_s: ClassVar[float] = 20.0
    # Work limit in the solver's own units: enough for the small cases, and it ends soon on a large
    # one.
    work_limit: ClassVar[float] = 1.0

    @classmethod
    def pytest_generate_tests(cls, metafunc: pytest.Metafunc) -> None:
        """Parametrize by the cases that the solver supports, so that no test is skipped."""
        if "case" in metafunc.fixturenames:
            cases = cls.supported()
            metafunc.parametrize("case", cases, ids=[case.name for case in cases])

    @classmethod
    def load(cls) -> tuple[str, Solver]:
        return discovery.load_solver(cls.solver)

    @classmethod
    def cases(cls) -> list[Case | ShapedCase]:
        """The cases by hand where it takes schedules, and those of its problems."""
        schedules = CASES if takes(cls.load()[1], SCHEDULES) else ()
        return [*schedules, *(shaped_case(spec, seed) for spec in cls.problems for seed in (0, 1))]

    @classmethod
    def supported(cls) -> list[Case | ShapedCase]:
        return [case for case in cls.cases() if cls.supports(case.instance)]

    @classmethod
    def supports(cls, instance: Any) -> bool:
        name, solver = cls.load()
        try:
            check_supported(solver, name, instance)
        except UnsupportedError:
            return False
        return True

    def solve(self, instance: Any, **options: Any) -> Result:
        settings = {"time_limit_s": self.time_limit_s, "seed": 7} | options
        with killed_from_outside():  # it must end by itself
            return api.solve(instance, self.solver, **settings)

    def test_it_is_documented(self) -> None:
        name, solver = self.load()
        check_documented("solver", name, type(solver))

    def test_what_it_supports_is_in_the_vocabulary(self) -> None:
        assert set(self.load()[1].supports) <= set(FEATURES)

    def test_it_runs_on_something(self) -> None:
        solver = self.load()[1]
        assert self.supported(), (
            f"{self.solver} supports none of the hand-solved cases; it declares "
            f"{sorted(solver.supports)}, and takes {sorted(solver.shapes)}: name small problems of "
            "other shapes in `problems`"
        )

    def test_it_refuses_what_it_does_not_support(self) -> None:
        solver = self.load()[1]
        for case in CASES:
            missing = sorted(SCHEDULES.features(case.instance) - set(solver.supports))
            if not takes(solver, SCHEDULES):
                with pytest.raises(UnsupportedError, match="and this is a schedule"):
                    self.solve(case.instance)
            elif missing:
                with pytest.raises(UnsupportedError, match=missing[0]):
                    self.solve(case.instance)

    def test_its_schedule_is_feasible_and_no_better_than_the_optimum(
        self, case: Case | ShapedCase
    ) -> None:
        result = self.solve(case.instance)
        if not result.verified and self.only_breaks_what_it_may(result):
            return
        assert result.verified, (
            f"{result.status}: {result.message}; violations: {result.violations}"
        )
        sign = 1.0 if shape_of(case.instance).sense(case.instance) == "min" else -1.0
        if case.optimum is None:  # nobody knows it: the core's own bound stands for it
            limits = [bound.value for bound in api.bound(case.instance, time_limit_s=5.0)]
            (objective,) = _levels(result.objective)
            assert all(sign * (objective - value) >= -_slack(value) for value in limits)
            return
        objectives, optima, bounds = (
            [sign * each for each in _levels(value)]
            for value in (result.objective, case.optimum, result.bound)
        )
        # Levels compare lexicographically: a later one counts where those before it are equal.
        pairs = zip(objectives, optima, strict=True)
        ours, best = next(((a, b) for a, b in pairs if abs(a - b) > _slack(b)), (0.0, 0.0))
        assert ours >= best
        assert not bounds or bounds[0] <= optima[0] + _slack(optima[0])
        if self.exact or result.status == "optimal":
            assert result.status == "optimal" and objectives == pytest.approx(optima, rel=TOLERANCE)

    def only_breaks_what_it_may(self, result: Result) -> bool:
        """Check a result without a schedule: the solver declares every violated constraint
        (``may_break``).
        """
        broken = {violation.partition(":")[0] for violation in result.violations}
        declared = broken and broken <= set(self.load()[1].may_break)
        return bool(
            declared and result.status == "unknown" and result.schedule is None and result.message
        )

    def test_it_keeps_its_promises_on_most_cases(self) -> None:
        """Its schedules are feasible on all cases without constraints that it may break."""
        instances = [case.instance for case in self.supported()]
        promised = [each for each in instances if not each.features & BREAKABLE]
        assert promised and all(self.solve(each, bound=False).verified for each in promised)

    def test_same_seed_and_work_limit_same_decision(self, case: Case | ShapedCase) -> None:
        limits = {"work_limit": self.work_limit, "bound": False}
        runs = [self.solve(case.instance, **limits) for _ in range(2)]
        assert _same(case.instance, runs)

    def test_same_seed_and_work_limit_same_decision_in_a_crowd(self) -> None:
        instance = crowd(12).build()
        if self.supports(instance):
            limits = {"work_limit": self.work_limit, "time_limit_s": 60.0}
            runs = [self.solve(instance, **limits, bound=False) for _ in range(2)]
            assert _same(instance, runs)

    def test_it_ends_once_its_time_is_over(self) -> None:
        """It ends soon after its limit and cannot hang a study; benchmarks measure how soon."""
        others = [case.instance for case in self.supported() if isinstance(case, ShapedCase)]
        for instance in (crowd(80).build(), *others):
            if self.supports(instance):
                result = self.solve(instance, time_limit_s=0.5, bound=False)
                assert result.wall_s < 60.0
                assert result.verified or result.schedule is None

    def test_it_ends_when_it_is_told_to_stop(self, case: Case | ShapedCase) -> None:
        stop = threading.Event()
        stop.set()
        assert self.solve(case.instance, stop=stop, time_limit_s=None).termination == "interrupted"

    def test_where_no_schedule_exists_it_finds_none(self) -> None:
        if self.supports(INFEASIBLE.instance):
            result = self.solve(INFEASIBLE.instance)
            assert result.status == "infeasible" or (result.status == "unknown" and not self.exact)
            assert result.schedule is None and result.objective is None

    def test_it_leaves_the_instance_and_the_global_generator_alone(
        self, case: Case | ShapedCase
    ) -> None:
        twin = case.make()
        before = np.random.get_state(legacy=False)
        self.solve(twin, bound=False)  # bounding is tried with the problem
        after = np.random.get_state(legacy=False)
        assert str(before) == str(after)
        # The hash is computed after the run; it must be that of the unchanged instance.
        assert twin.hash == case.make().hash

    def test_it_survives_pickling(self) -> None:
        _, solver = self.load()
        twin = pickle.loads(pickle.dumps(solver))
        assert type(twin) is type(solver) and specs.values_of(twin) == specs.values_of(solver)


def _levels(value: Any) -> list[float]:
    return [] if value is None else list(value) if isinstance(value, tuple) else [value]


def _slack(value: float) -> float:
    return TOLERANCE * max(1.0, abs(value))


def _same(instance: Any, results: list[Result]) -> bool:
    """Whether two results have one decision, or neither has any."""
    one, other = (result.schedule for result in results)
    if one is None or other is None:
        return one is other
    write = shape_of(instance).write_decision
    return bool(write(instance, one) == write(instance, other))
