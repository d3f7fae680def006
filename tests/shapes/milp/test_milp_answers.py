"""HiGHS, CP-SAT and certified bounds on tiny programmes, against enumeration in rationals."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import optbench as ob
from optbench.errors import UnsupportedError
from optbench.model.result import Result
from optbench.shapes.milp.lp_format import read_lp
from optbench.shapes.milp.lp_writer import write_lp
from optbench.shapes.milp.milp_shape import MILPS
from optbench.shapes.milp.mps_format import read_mps
from optbench.shapes.milp.mps_writer import write_mps
from optbench.shapes.milp.program import Milp
from tests.reference.random_milps import KINDS, random_milp
from tests.reference.rational_lp import Answer, by_enumeration


def answered(program: Milp, solver: str) -> Result:
    return ob.solve(MILPS.instance(program), solver, time_limit_s=10)


def check(program: Milp, known: Answer) -> None:
    found = answered(program, "highs")
    assert found.status == known.status, found.message
    if known.status == "optimal":
        assert found.verified and found.objective == float(known.value)
    for bound in ob.bound(MILPS.instance(program)):
        assert bound.proof == "exact-lp"
        if known.status == "optimal":
            right = Fraction(bound.value) - known.value
            assert right <= 0 if program.sense == "min" else right >= 0


def check_whole(program: Milp, known: Answer) -> None:
    found = answered(program, "cpsat")
    assert found.status == known.status
    assert found.objective == (float(known.value) if known.status == "optimal" else None)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_answers_are_those_of_enumeration(kind: str, seed: int) -> None:
    program = random_milp(kind, seed)
    known = by_enumeration(program)
    check(program, known)
    if kind == "whole":
        check_whole(program, known)
    if kind in ("infeasible", "unbounded"):
        assert known.status == kind


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_more_answers_are_those_of_enumeration(kind: str) -> None:
    for seed in range(3, 110 if kind == "whole" else 40):
        program = random_milp(kind, seed)
        known = by_enumeration(program)
        check(program, known)
        if kind == "whole":
            check_whole(program, known)


@pytest.mark.parametrize("seed", range(20))
def test_files_hold_the_same_programme(seed: int) -> None:
    for kind in KINDS:
        program = random_milp(kind, seed)
        same = MILPS.instance(program).hash
        assert MILPS.instance(read_mps(write_mps(program), "other")).hash == same
        assert MILPS.instance(read_lp(write_lp(program), "other")).hash == same
        assert MILPS.read(MILPS.write(MILPS.instance(program))).hash == same


def test_highs_itself_reads_our_mps_files_the_same(tmp_path: Path) -> None:
    import highspy

    path = tmp_path / "x.mps"
    for seed in range(20):
        program = random_milp("mixed", seed)
        path.write_text(write_mps(program))
        other = highspy.Highs()
        other.silent()
        other.readModel(str(path))
        lp = other.getLp()
        assert list(lp.col_lower_) == program.lower.tolist()
        assert list(lp.col_upper_) == program.upper.tolist()
        assert list(lp.row_lower_) == program.row_lower.tolist()
        assert list(lp.row_upper_) == program.row_upper.tolist()
        assert list(lp.col_cost_) == program.cost.tolist() and lp.offset_ == program.constant


def test_cpsat_names_the_column_that_it_cannot_take() -> None:
    program = random_milp("unbounded", 1)
    with pytest.raises(UnsupportedError, match=r"column 'x\d' is not"):
        answered(program, "cpsat")
