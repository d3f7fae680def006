"""The CP model with cuts has the same optimum, and without sharing never a higher one."""

from __future__ import annotations

import pytest
from ortools.sat.python import cp_model

from optbench.api import load_target
from optbench.model.instance import Instance
from optbench.model.verify import verify
from optbench.views.cpsat import CpsatView, build
from tests.model.test_time_cuts import dense
from tests.reference.brute_force import brute_force
from tests.reference.random_instances import tiny_instance


def solved(view: CpsatView) -> tuple[cp_model.CpSolver, cp_model.CpSolverStatus]:
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    return solver, solver.solve(view.model)


def agree(instance: Instance) -> bool:
    """Compare with brute force; return whether the model has cuts and a schedule."""
    best, view = brute_force(instance), build(instance, cuts=True)
    solver, status = solved(view)
    if best is None:
        # Rounding may admit a schedule that the verifier rejects.
        assert (
            status == cp_model.INFEASIBLE
            or not verify(instance, view.schedule(solver.value)).feasible
        )
        return False
    assert status == cp_model.OPTIMAL
    tolerance = 1e-9 * abs(best.objective) + view.numbers.error + 1e-9
    assert view.reached(solver.value) <= best.objective + tolerance
    verdict = verify(instance, view.schedule(solver.value))
    if verdict.feasible:
        assert verdict.objectives[0] == pytest.approx(best.objective, abs=tolerance, rel=1e-9)
    relaxed = build(instance, shared=False, cuts=True)
    loose, status = solved(relaxed)
    assert status == cp_model.OPTIMAL
    assert relaxed.bound(loose.best_objective_bound) <= best.objective + tolerance
    return len(view.model.proto.constraints) > len(build(instance).model.proto.constraints)


def test_the_optimum_is_that_of_brute_force() -> None:
    made = [
        agree(instance)
        for seed in range(30)
        for instance in (tiny_instance(seed), dense(tiny_instance(seed), seed))
    ]
    assert sum(made) > 10


def test_cuts_raise_the_bound_without_sharing() -> None:
    instance = load_target("gpu_dag:tasks=7,gpus=4,types=2,clocks=3", 101)
    plain, cut = (build(instance, shared=False, cuts=cuts) for cuts in (False, True))
    low, high, best = (
        view.reached(solved(view)[0].value) for view in (plain, cut, build(instance))
    )
    assert low < high <= best * (1 + 1e-9)


def test_a_complete_hint_covers_the_unions() -> None:
    instance = load_target("gpu_dag:tasks=7,gpus=4,types=2,clocks=3", 3)
    view = build(instance, cuts=True)
    solver, _ = solved(view)
    view.hint(view.schedule(solver.value))
    hinted = set(view.model.proto.solution_hint.vars)
    assert hinted == set(range(len(view.model.proto.variables)))
    solver.parameters.fix_variables_to_their_hinted_value = True
    assert solver.solve(view.model) == cp_model.OPTIMAL
