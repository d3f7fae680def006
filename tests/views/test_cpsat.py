"""The CP view: schedules there and back, rounding that keeps bounds valid, refusals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ortools.sat.python import cp_model

import optbench as ob
from optbench.errors import UnsupportedError
from optbench.model.schedule import Schedule
from optbench.model.verify import verify
from optbench.views.cpsat import build
from optbench.views.cpsat.draft import Draft, DraftSchedule
from optbench.views.cpsat.metric_terms import Affine
from optbench.views.cpsat.scaling import FINER, MAX_SUM, guard, scale_for, to_int
from optbench.views.cpsat.sums import rounded
from tests.reference.brute_force import brute_force
from tests.reference.random_instances import tiny_instance

SIZES = st.floats(1e-6, 1e9, allow_nan=False)


@pytest.mark.parametrize("seed", range(40))
def test_a_schedule_becomes_a_complete_feasible_hint_of_its_value(seed: int) -> None:
    instance = tiny_instance(seed)
    best = brute_force(instance)
    if best is None:
        return
    view = build(instance)
    view.hint(Schedule.of(instance, best.mode, best.start))
    hinted = {var.index for var, _ in view.draft.values}
    unhinted = [var for k, var in enumerate(view.model.proto.variables) if k not in hinted]
    assert all(len(set(var.domain)) == 1 for var in unhinted), "only constants need no hint"
    solver = cp_model.CpSolver()
    solver.parameters.fix_variables_to_their_hinted_value = True
    solver.parameters.num_workers = 1
    assert solver.solve(view.model) == cp_model.OPTIMAL
    assert view.bound(solver.objective_value) == pytest.approx(best.objective, rel=1e-6, abs=1e-9)
    again = view.schedule(solver.value)
    assert verify(instance, again).objective == pytest.approx(best.objective, rel=1e-9, abs=1e-12)


@given(
    st.lists(
        st.tuples(SIZES, st.integers(0, 500), st.integers(0, 10_000), st.booleans()),
        min_size=1,
        max_size=6,
    ),
    st.integers(0, len(FINER)),
)
def test_rounded_sums_bound_the_true_ones(
    terms: list[tuple[float, int, int, bool]], stage: int
) -> None:
    m = ob.Model("empty")
    m.task(modes=[m.mode(m.pool("p"), 1.0)])
    m.minimize(makespan_s=1.0)
    draft, total = Draft.of(m.build(), inner=False), Affine(Fraction(5))
    for k, (value, low, width, negative) in enumerate(terms):
        var = draft.integer(low, low + width, f"v{k}", lambda d, k=k: d.start[k])  # type: ignore[misc]
        total.add(-value if negative else value, var, low + width)
    expression, numbers = rounded(draft, total, stage=stage)
    integers = {var.index: factor for var, factor in zip(*coefficients(expression), strict=True)}
    ranges = {var.index: (var.domain.min(), var.domain.max()) for var, _ in draft.values}
    assert sum(abs(factor) * ranges[key][1] for key, factor in integers.items()) < MAX_SUM
    assert all(abs(factor) <= FINER[-1] for factor in integers.values())
    for share in (0, 1, 2):
        chosen = [low + width * share // 2 for _, low, width, _ in terms]
        point = {
            var.index: value(DraftSchedule([], chosen, []))
            for var, value in draft.values
            if var.name[0] in "v"
        }
        true = 5 + sum(
            (
                Fraction(value) * Fraction(int(point[key]))
                for key, value in total.coefficient.items()
            ),
            Fraction(0),
        )
        found = sum(integers.get(key, 0) * point[key] for key in point) - numbers.least
        assert found >= 0, (found, numbers)
        assert numbers.bound(found) <= max(true, Fraction(0))
        assert true <= Fraction(numbers.bound(found)) + Fraction(numbers.error) + Fraction(
            1, 10**9
        ) * abs(true)
        assert (
            found >= numbers.floor(float(true)) - 1
        )  # the float of the true value may itself be rounded up


def coefficients(expression: Any) -> tuple[list[cp_model.IntVar], list[int]]:
    flat = cp_model.FlatIntExpr(expression)
    return list(flat.vars), list(flat.coeffs)


def test_scales() -> None:
    assert scale_for([(3.0, 10), (-7.0, 5)]) == 1
    assert scale_for([(30.0, 10), (-70.0, 5)]) == Fraction(1, 10)
    assert scale_for([(0.3, 10), (0.25, 5)]) == 20
    assert scale_for([(1 / 3, 10), (2 / 3, 5)]) == 3
    assert [to_int(value, Fraction(10)) for value in (0.3, -0.3, 0.35, -0.35)] == [3, -3, 3, -4]
    # No scale fits: the coefficient of the widest variable is an integer all the same, so that it
    # loses nothing.
    scale = scale_for([(np.pi, 1), (np.e, 1_000_000)])
    assert (Fraction(np.e) * scale).denominator == 1


def test_wide_variables_keep_their_exact_coefficients() -> None:
    """Three times of 1e10 ticks: sums beyond 2^31 were scaled until a coefficient of 1 was rounded
    down to 0.
    """
    assert scale_for([(1.0, 10**10), (0.5, 10**10), (3.0, 10**10)]) == 2
    # Nothing exact: in the finer stages every coefficient keeps its leading bits.
    assert scale_for([(np.pi, 10**8), (np.e, 10**8), (1.0, 1)], stage=1) >= 2**17


def test_numbers_beyond_64_bits_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="coarser tick"):
        guard(1e18, "times")
    m = ob.Model("long")
    m.task(modes=[m.mode(m.pool("p"), 1.5e17 * 1e-3)])
    m.tick_s = 1e-3
    m.minimize(makespan_s=1.0)
    with pytest.raises((UnsupportedError, ob.OptbenchError)):
        build(m.build())


def test_preemption_is_refused_with_a_remedy() -> None:
    m = ob.Model("wrong", preemptive=True)
    m.task(modes=[m.mode(m.pool("p"), 1.5)])
    m.minimize(makespan_s=1.0)
    with pytest.raises(UnsupportedError, match="policy"):
        build(m.build())


def powers_of_a_third(cap: float) -> ob.Instance:
    """Two tasks of 1/3 W each on two devices, under a cap."""
    m = ob.Model("thirds")
    pool = m.pool("p", 2)
    for _ in range(2):
        m.task(modes=[m.mode(pool, 1, 1.0, power_w=1 / 3)])
    m.limit(power_w=cap)
    m.minimize(makespan_s=1.0)
    return m.build()


def makespan(instance: ob.Instance, inner: bool) -> float:
    solver, view = cp_model.CpSolver(), build(instance, inner=inner)
    assert solver.solve(view.model) == cp_model.OPTIMAL
    return view.reached(solver.value)


def test_rounding_of_powers_cuts_off_nothing_that_is_feasible() -> None:
    # Side by side they draw 2/3 W: allowed at exactly 2/3 and by the verifier's tolerance (2^-40)
    # just below.
    assert makespan(powers_of_a_third(2 / 3), inner=False) == 1
    assert makespan(powers_of_a_third(2 / 3 * (1 - 2.0**-41)), inner=False) == 1
    assert makespan(powers_of_a_third(2 / 3 * (1 - 2.0**-38)), inner=False) == 2
    assert makespan(powers_of_a_third(0.6), inner=False) == 2
    # A cap below by less than the finest unit: the outer model cannot tell, the inner one keeps
    # away.
    assert makespan(powers_of_a_third(2 / 3 - 2e-9), inner=True) == 2


def test_a_mode_that_draws_less_than_the_rest_it_displaces() -> None:
    """Resting 10 W a device, running 2 W: under a cap of 12 W of two devices one must run while the
    other one rests.
    """
    m = ob.Model("cool")
    pool = m.pool("p", 2, idle_w=10.0)
    for _ in range(2):
        m.task(modes=[m.mode(pool, 1, 1.0, power_w=2.0)])
    m.limit(power_w=20.0)
    m.minimize(makespan_s=1.0)
    assert makespan(m.build(), inner=False) == 1
    m.limit(power_w=19.0)  # the devices at rest alone draw 20 W
    solver = cp_model.CpSolver()
    assert solver.solve(build(m.build()).model) == cp_model.INFEASIBLE
