"""The CP view: schedules there and back, rounding that keeps bounds valid, refusals."""

from __future__ import annotations

from fractions import Fraction

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
from optbench.views.cpsat.scaling import MAX_EXACT, Rounded, guard, scale_for, to_int
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


@given(st.lists(st.tuples(SIZES, st.integers(1, 10_000), st.booleans()), min_size=1, max_size=6))
def test_rounded_sums_bound_the_true_ones(terms: list[tuple[float, int, bool]]) -> None:
    signed = [(-value if negative else value, upper) for value, upper, negative in terms]
    scale = scale_for(signed)
    integers = [to_int(value, scale) for value, _ in signed]
    over = [integer - Fraction(value) * scale for integer, (value, _) in zip(integers, signed, strict=True)]
    charge = sum(max(Fraction(0), o) * upper for o, (_, upper) in zip(over, signed, strict=True))
    loss = sum(max(Fraction(0), -o) * upper for o, (_, upper) in zip(over, signed, strict=True))
    numbers = Rounded(scale, 5.0, Fraction(charge), Fraction(loss))
    for point in ([0] * len(signed), [upper for _, upper in signed], [upper // 2 for _, upper in signed]):
        true = 5 + sum(Fraction(value) * v for (value, _), v in zip(signed, point, strict=True))
        total = sum(integer * v for integer, v in zip(integers, point, strict=True))
        assert numbers.bound(total) <= max(true, 0)
        assert total >= numbers.floor(float(true)) - 1  # the float of the true value may itself be rounded up
    assert sum(abs(i) * u for i, (_, u) in zip(integers, signed, strict=True)) <= MAX_EXACT + sum(u for _, u in signed)


def test_scales() -> None:
    assert scale_for([(3.0, 10), (-7.0, 5)]) == 1
    assert scale_for([(0.3, 10), (0.25, 5)]) == 100
    assert scale_for([(1 / 3, 10), (2 / 3, 5)]) == 1 / Fraction(1 / 3)
    assert [to_int(value, Fraction(10)) for value in (0.3, -0.3, 0.35, -0.35)] == [3, -3, 3, -4]
    # No decimal fits: the coefficient of the widest variable is an integer all the same, so that it loses nothing.
    scale = scale_for([(np.pi, 1), (np.e, 1_000_000)])
    assert (Fraction(np.e) * scale).denominator == 1


def test_numbers_beyond_64_bits_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="coarser tick"):
        guard(1e18, "times")
    m = ob.Model("long")
    m.task(modes=[m.mode(m.pool("p"), 1.5e17 * 1e-3)])
    m.tick_s = 1e-3
    m.minimize(makespan_s=1.0)
    with pytest.raises((UnsupportedError, ob.OptbenchError)):
        build(m.build())


def test_seconds_and_preemption_are_refused_with_a_remedy() -> None:
    for options, remedy in (({"time": "seconds"}, "tick_s"), ({"preemptive": True}, "policy")):
        m = ob.Model("wrong", **options)
        m.task(modes=[m.mode(m.pool("p"), 1.5)])
        m.minimize(makespan_s=1.0)
        with pytest.raises(UnsupportedError, match=remedy):
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
    solver = cp_model.CpSolver()
    assert solver.solve(build(instance, inner=inner).model) == cp_model.OPTIMAL
    return solver.objective_value


def test_rounding_of_powers_cuts_off_nothing_that_is_feasible() -> None:
    # Side by side they draw 2/3 W: allowed at exactly 2/3 and by the verifier's tolerance (1e-9) just below.
    assert makespan(powers_of_a_third(2 / 3), inner=False) == 1
    assert makespan(powers_of_a_third(2 / 3 - 5e-10), inner=False) == 1
    assert makespan(powers_of_a_third(0.6), inner=False) == 2
    # A cap below by less than the finest unit: the outer model cannot tell, the inner one keeps away.
    assert makespan(powers_of_a_third(2 / 3 - 2e-9), inner=True) == 2


def test_a_mode_that_draws_less_than_the_rest_it_displaces() -> None:
    """Resting 10 W a device, running 2 W: under a cap of 12 W of two devices one must run while the other one rests."""
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
