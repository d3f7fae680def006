"""solve, bound and load_target as people call them, and what they refuse to believe."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest

import optbench as ob
from optbench import api
from optbench.bounds.auto import lower_bounds
from optbench.bounds.lp.certificates import CertificateError, certificate_text
from optbench.errors import (
    ContradictionError,
    OptbenchError,
    ParameterError,
    UnknownNameError,
    UnsupportedError,
)
from optbench.model.features import FEATURES
from optbench.model.instance import Instance
from optbench.model.result import Bound, Infeasibility
from tests.sample_files.two_clocks import Fixed, two_clocks


def test_the_smallest_problem_is_solved_verified_and_bounded() -> None:
    m = two_clocks()
    m.minimize(energy_j=1)
    result = ob.solve(m.build(), "cpsat", time_limit_s=10)
    # Nothing rests on the only device while it is busy: 40 J.
    assert (result.objective, result.status, result.verified) == (40, "optimal", True)
    assert result.gap == pytest.approx(0, abs=1e-9)
    assert result.schedule is not None and result.schedule.mode.tolist() == [1]


def test_objectives_in_order_give_vectors() -> None:
    m = two_clocks()
    m.minimize_in_order("makespan_s", "energy_j")
    result = ob.solve(m.build(), "cpsat", time_limit_s=10)
    assert result.objective == (2, 100) and result.status == "optimal"
    assert result.gap == pytest.approx(
        (0, 0), abs=1e-8
    )  # the fluid bound gives a relative 1e-9 of a held level away
    assert {bound.level for bound in result.bounds} == {0, 1}


@pytest.mark.parametrize("solver", ["cpsat", "highs"])
def test_a_weight_before_another_level_costs_no_tick(solver: str) -> None:
    """1.1 · 15 / 1.1 is a little less than 15: the second level was held at 14 ticks, and nothing
    was feasible there.
    """
    m = ob.Model()
    m.task(modes=[m.mode(m.pool("gpu", idle_w=1.0), time_s=15, energy_j=5.0)])
    m.minimize_in_order({"makespan": 1.1}, "energy_j")
    found = ob.solve(m.build(), solver, time_limit_s=5)
    assert (
        found.status == "optimal"
        and found.objective == (16.5, 5.0)
        and found.bound == pytest.approx((16.5, 5.0))
    )


def test_a_bound_above_a_verified_objective_is_a_contradiction() -> None:
    m = two_clocks()
    m.minimize(energy_j=1)
    with pytest.raises(
        ContradictionError, match=r"bound 41.0 from claim exceeds the verified objective 40.0"
    ):
        ob.solve(m.build(), Fixed(mode=1, bound=41.0))


def test_infeasible_beside_a_schedule_is_a_contradiction() -> None:
    m = two_clocks()
    m.minimize(energy_j=1)
    with pytest.raises(ContradictionError, match="called 'clocks' infeasible"):
        ob.solve(m.build(), Fixed(says_infeasible=True))


def test_an_infeasible_answer_is_named_and_never_scored() -> None:
    m = two_clocks()
    m.minimize(energy_j=1)
    m.limit(makespan_s=4)
    result = ob.solve(m.build(), Fixed(mode=1))
    assert result.objective is None and not result.verified and result.status == "unknown"
    assert result.violations == ("limit:makespan_s: makespan_s is 5, the limit 4",)


def test_a_heuristic_gets_a_certified_bound_from_us() -> None:
    m = two_clocks()
    m.minimize(energy_j=1)
    result = ob.solve(m.build(), Fixed(mode=0))
    assert result.objective == 100 and result.bound == pytest.approx(40, rel=1e-9)
    assert all(bound.proof in ("combinatorial", "exact-lp") for bound in result.bounds)
    assert ob.solve(m.build(), Fixed(mode=0), bound=False).bound is None


def test_features_a_solver_lacks_are_refused_by_name() -> None:
    m = ob.Model("pieces", preemptive=True)
    m.task(modes=[m.mode(m.pool("p"), 1.5)])
    m.minimize(makespan_s=1)
    with pytest.raises(
        UnsupportedError, match=r"solver 'cpsat' cannot run 'pieces' \(preemption: "
    ):
        ob.solve(m.build(), "cpsat")


@pytest.mark.parametrize(
    ("kwargs", "error", "message"),
    [
        ({"time_limit_s": 0}, ParameterError, "time_limit_s is 0"),
        ({"time_limit_s": math.nan}, ParameterError, "time_limit_s is nan"),
        ({"work_limit": -1}, ParameterError, "work_limit is -1"),
        ({"threads": 0}, ParameterError, "threads is 0"),
        ({"seed": -1}, ParameterError, "seed is -1"),
        ({"solver": "cpsta"}, UnknownNameError, "unknown solver 'cpsta'; did you mean 'cpsat'"),
        ({"solver": "cpsat", "depth": 3}, OptbenchError, "depth"),
        ({"solver": Fixed(), "depth": 3}, ParameterError, "this solver is already an object"),
    ],
)
def test_bad_arguments_are_named(
    kwargs: dict[str, object], error: type[OptbenchError], message: str
) -> None:
    m = two_clocks()
    m.minimize(energy_j=1)
    with pytest.raises(error, match=message):
        ob.solve(m.build(), **kwargs)  # type: ignore[arg-type]


def test_targets_are_files_public_instances_and_specs(data_dir: Path) -> None:
    by_path = api.load_target(data_dir / "jobshop" / "ft06.txt")
    assert by_path.num_tasks == 36
    assert api.load_target("jobshop/ft06").hash == by_path.hash
    assert api.load_target("jobshop:jobs=3,machines=2").num_tasks == 6
    with pytest.raises(OptbenchError, match=r"no such file: 'nowhere/ft06.txt'"):
        api.load_target("nowhere/ft06.txt")
    with pytest.raises(UnknownNameError, match="did you mean 'jobshop'"):
        api.load_target("jobshp:jobs=3")
    with pytest.raises(OptbenchError, match="unknown problem 'xxx"):
        api.load_target("x" * 5000)


def test_a_bank_remembers_bounds_and_catches_contradictions(tmp_path: Path) -> None:
    m = two_clocks()
    m.minimize_in_order("makespan_s", "energy_j")
    instance, bank = m.build(), tmp_path / "bounds.sqlite"
    ob.solve(instance, "cpsat", time_limit_s=10, bank=bank)
    again = ob.solve(instance, Fixed(mode=0), bank=bank, bound=False)
    # The heuristic proves nothing, but each level was proved before.
    assert again.bound == pytest.approx((2, 100), rel=1e-8) and again.status == "optimal"
    assert all(found.source.startswith("bank:") for found in again.bounds)
    liar = ob.solve(
        instance.with_objective(instance.objective.level(1)), Fixed(mode=0, bound=99.0), bank=bank
    )
    assert liar.bound == 99  # nobody can know yet
    with pytest.raises(ContradictionError, match="99"):
        ob.solve(instance.with_objective(instance.objective.level(1)), Fixed(mode=1), bank=bank)


@dataclass
class Boasting(Fixed):
    """Calls its own bound certified, in every way that there is."""

    how: str = "argument"

    def solve(self, instance: Instance, run: ob.Run) -> ob.Schedule | None:
        if self.how == "argument":
            run.report_bound(self.bound, "fluid_lp", "exact-lp")
        elif self.how == "object":
            certificate = certificate_text("combinatorial", source="critical_path")
            run.take_bound(
                Bound(self.bound, "critical_path", "combinatorial", certificate=certificate)
            )
        elif self.how == "borrowed":  # a true certificate of a lower value
            true = lower_bounds(instance, "fluid")[0]
            run.take_bound(replace(true, value=self.bound))
        elif self.how == "banked":
            run.take_bound(Bound(self.bound, "bank:fluid_lp", "exact-lp"))
        return ob.Schedule.of(instance, [self.mode], [self.start])


@pytest.mark.parametrize("how", ["argument", "object", "borrowed", "banked"])
def test_only_the_core_calls_a_bound_certified(how: str) -> None:
    m = two_clocks()
    m.minimize(energy_j=1)
    result = ob.solve(m.build(), Boasting(mode=0, bound=99.0, how=how))
    assert (result.objective, result.bound) == (100.0, 99.0)
    assert {bound.proof for bound in result.bounds if bound.value == 99.0} == {"solver"}
    assert max(bound.value for bound in result.bounds if bound.proof != "solver") == pytest.approx(
        40, rel=1e-8
    )


@dataclass
class HandsOver(Fixed):
    """Hands over a certificate, which the core proves again."""

    def solve(self, instance: Instance, run: ob.Run) -> ob.Schedule | None:
        (true,) = lower_bounds(instance, "fluid")
        assert true.certificate is not None
        assert run.report_certificate(true.certificate).value == true.value
        with pytest.raises(CertificateError, match="names no method"):
            run.report_certificate("{}")
        return ob.Schedule.of(instance, [1], [0])


def test_a_certificate_counts_whoever_hands_it_over() -> None:
    m = two_clocks()
    m.minimize(energy_j=1)
    result = ob.solve(m.build(), HandsOver())
    assert [(bound.source, bound.proof) for bound in result.bounds] == [("fluid_lp", "exact-lp")]


@dataclass
class Denies(ob.Solver):
    """Says that there is no schedule; may even call that certified."""

    certified: bool = False
    supports: ClassVar[frozenset[str]] = frozenset(FEATURES)

    def solve(self, instance: Instance, run: ob.Run) -> ob.Schedule | None:
        run.report_infeasible("denies")
        if self.certified:
            run.infeasibility = Infeasibility("fluid_lp:farkas", "exact-lp")
        return None


@pytest.mark.parametrize("certified", [False, True])
def test_infeasible_says_by_whom_and_is_certified_where_it_can_be(certified: bool) -> None:
    m = two_clocks()
    m.minimize(energy_j=1)
    free = ob.solve(m.build(), Denies(certified))
    assert (
        free.status == "infeasible"
        and free.infeasibility is not None
        and free.infeasibility.proof == "solver"
    )
    m.limit(makespan_s=1.0)
    tight = ob.solve(m.build(), Denies(certified))
    assert tight.infeasibility is not None and tight.infeasibility.proof == "combinatorial"
    assert "ends at 2 at the earliest and must end by 1" in tight.infeasibility.argument
    assert ob.solve(m.build(), "cpsat", time_limit_s=5).infeasibility == tight.infeasibility


def test_a_banked_schedule_refutes_who_calls_its_instance_infeasible(tmp_path: Path) -> None:
    m = two_clocks()
    m.minimize(energy_j=1)
    ob.solve(m.build(), Fixed(mode=1), bank=tmp_path / "bank")
    with pytest.raises(
        ContradictionError, match="that no schedule exists, but the bank holds a verified one"
    ):
        ob.solve(m.build(), Denies(), bank=tmp_path / "bank")


@dataclass
class Crashing(ob.Solver):
    """Finds something, then dies."""

    supports: ClassVar[frozenset[str]] = frozenset(FEATURES)

    def solve(self, instance: Instance, run: ob.Run) -> ob.Schedule | None:
        run.report(ob.Schedule.of(instance, [0], [0]))
        raise RuntimeError("out of luck")


def test_a_crashed_solver_keeps_what_it_had_found() -> None:
    m = two_clocks()
    m.minimize(energy_j=1)
    result = ob.solve(m.build(), Crashing())
    assert (result.status, result.termination, result.objective, result.verified) == (
        "error",
        "crashed",
        100,
        True,
    )
    assert (
        result.message is not None
        and result.message.startswith("RuntimeError: out of luck (")
        and "test_api.py" in result.message
    )


def test_bounds_by_method_and_by_solver() -> None:
    m = two_clocks()
    m.minimize(energy_j=1)
    instance = m.build()
    assert ob.bound(instance)[0].value == pytest.approx(40, rel=1e-9)
    assert any(bound.proof == "solver" for bound in ob.bound(instance, "highs", time_limit_s=5))
    with pytest.raises(
        UnknownNameError, match="unknown bounding method 'fluidd'; did you mean 'fluid'"
    ):
        ob.bound(instance, "fluidd")
