"""Proofs that a programme has no point, or no best one, checked again in fractions."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.errors import OptbenchError
from optbench.shapes.milp.infeasibility_proof import (
    is_farkas,
    is_ray,
    prove_infeasible,
    prove_unbounded,
)
from optbench.shapes.milp.lp_format import read_lp
from optbench.shapes.milp.milp_shape import MILPS, certificate_of
from optbench.shapes.milp.program import Milp
from tests.reference.random_milps import random_milp


def left_over(program: Milp, duals: tuple[Fraction, ...]) -> Fraction:
    """The least that y·A x + r·x can be by the sides, written again with dictionaries."""
    total, reduced = Fraction(0), dict.fromkeys(range(program.num_columns), Fraction(0))
    for i, y in enumerate(duals):
        if y:
            side = program.row_lower[i] if y > 0 else program.row_upper[i]
            assert math.isfinite(side)
            total += y * Fraction(repr(float(side)))
            for k in range(program.row_ptr[i], program.row_ptr[i + 1]):
                reduced[int(program.index[k])] -= y * Fraction(repr(float(program.value[k])))
    for j, r in reduced.items():
        if r:
            side = program.lower[j] if r > 0 else program.upper[j]
            assert math.isfinite(side)
            total += r * Fraction(repr(float(side)))
    return total


@pytest.mark.parametrize("seed", range(12))
def test_rows_that_contradict_each_other(seed: int) -> None:
    program = random_milp("infeasible", seed)
    instance: Any = MILPS.instance(program)
    found = MILPS.certify_infeasible(instance, 10.0)
    assert found is not None and found.proof == "exact-lp" and found.source == "lp_farkas"
    assert found.certificate is not None
    assert MILPS.is_proven_infeasible(instance, found.certificate)
    duals = prove_infeasible(program, 10.0)
    assert duals is not None and left_over(program, duals) > 0
    # Farkas holds of these rows alone: without one that it uses nothing is proved.
    k = next(i for i, y in enumerate(duals) if y)
    sides: Any = {"row_lower": program.row_lower.copy(), "row_upper": program.row_upper.copy()}
    sides["row_lower"][k], sides["row_upper"][k] = -math.inf, math.inf
    assert not is_farkas(replace(program, **sides), duals)


def test_what_has_a_point_is_never_refuted() -> None:
    rng, tried = np.random.default_rng(0), 0
    for seed in range(40):
        program = random_milp("mixed", seed)
        instance: Any = MILPS.instance(program)
        if ob.solve(instance, "highs", time_limit_s=10).schedule is None:
            continue
        tried += 1
        assert MILPS.certify_infeasible(instance, 10.0) is None
        for _ in range(20):
            duals = tuple(Fraction(int(y)) for y in rng.integers(-3, 4, program.num_rows))
            assert not is_farkas(program, duals)
            assert not MILPS.is_proven_infeasible(instance, certificate_of(duals, "lp_farkas"))
    assert tried > 10


def programme(rows: str, bounds: str = "", whole: str = "") -> Milp:
    text = f"Minimize\n c: x + 0 y\nSubject To\n{rows}\nBounds\n{bounds}\n{whole}\nEnd\n"
    return read_lp(text, "by hand")


def test_by_hand() -> None:
    # x + y >= 3 within 0 <= x, y <= 1: y = 1 on the row leaves 3 - 1 - 1 = 1.
    program = programme(" r: x + y >= 3", " x <= 1\n y <= 1")
    assert left_over(program, (Fraction(1),)) == 1 and is_farkas(program, (Fraction(1),))
    assert not is_farkas(program, (Fraction(-1),))  # its upper side is not finite
    result: Any = ob.solve(MILPS.instance(program), "highs", time_limit_s=5)
    assert result.status == "infeasible" and result.infeasibility.proof == "exact-lp"
    assert "1 rows contradict each other within the bounds" in result.infeasibility.argument
    crossing: Any = MILPS.instance(programme(" r: x + y >= 1", " 3 <= y <= 2"))
    found = MILPS.certify_infeasible(crossing, 5.0)
    assert found is not None and found.source == "crossed_sides" and "column 'y'" in found.argument
    # 2 x = 1 has a point, and none that is whole: the relaxation proves nothing.
    whole: Any = MILPS.instance(programme(" r: 2 x = 1", whole="General\n x"))
    result = ob.solve(whole, "highs", time_limit_s=5)
    assert result.status == "infeasible" and result.infeasibility.proof == "solver"


def test_nearly_infeasible_is_not_infeasible() -> None:
    """A tenth and a fifth make three tenths: within any tolerance, and exactly."""
    exact = programme(" r: x + y = 0.3", " 0.1 <= x <= 0.1\n 0.2 <= y <= 0.2")
    assert prove_infeasible(exact, 5.0) is None
    off = programme(" r: x + y = 0.3000000000001", " 0.1 <= x <= 0.1\n 0.2 <= y <= 0.2")
    assert is_farkas(off, (Fraction(1),)) and left_over(off, (Fraction(1),)) == Fraction(1, 10**13)


@pytest.mark.parametrize("seed", range(12))
def test_an_objective_without_end(seed: int) -> None:
    program = random_milp("unbounded", seed)
    result: Any = ob.solve(MILPS.instance(program), "highs", time_limit_s=10)
    assert result.status == "unbounded" and result.info["unbounded"]["proof"] == "exact-lp"
    found = prove_unbounded(program, 10.0)
    assert found is not None
    point, direction = found
    sign = 1 if program.sense == "min" else -1
    reached = [
        sign * program.objective_at([x + 60 * k * d for x, d in zip(point, direction, strict=True)])
        for k in range(3)
    ]
    assert reached[0] > reached[1] > reached[2]
    for k in (0, 60, 6000):
        far: Any = tuple(x + k * d for x, d in zip(point, direction, strict=True))
        if all(value.denominator == 1 for value in far):
            assert ob.verify(MILPS.instance(program), far).feasible
    assert not is_ray(program, tuple(-d for d in direction))


def test_a_certificate_of_other_rows_is_refused() -> None:
    instance: Any = MILPS.instance(random_milp("infeasible", 1))
    with pytest.raises(OptbenchError, match="the certificate cannot be read"):
        MILPS.is_proven_infeasible(instance, certificate_of((Fraction(1),), "lp_farkas"))
