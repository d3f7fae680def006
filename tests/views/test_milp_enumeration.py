"""Every assignment of modes and starts of tiny instances: in the MILP when the verifier accepts it,
at the same objective: of those that it accepts every row holds, exactly.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.errors import UnsupportedError
from optbench.model.instance import Edges, Floats, Instance, Modes, Tasks
from optbench.model.schedule import Schedule
from optbench.model.verify import Verdict, verify
from optbench.model.windows import time_horizon
from optbench.testing import CASES as CASES_BY_HAND
from optbench.testing import Case
from optbench.views.milp import Disjunctive, Formulation, TimeIndexed, formulate, time_indexed

from .milp_cases import tiny

CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "tariffs": {"varying": True, "capped": True},
    "tariffs, fixed horizon": {"varying": True, "fixed": True},
    "caps": {"capped": True},
    "limits": {"limited": True, "varying": True},
    "all but tariffs": {"fixed": True, "limited": True, "capped": True},
    "unary": {"shared": False, "capped": True},
    "clocks": {"clocks": True},
}
SAMPLE = 150
NOT_FORMULATED = {
    *("preemption", "checkpoints", "waking", "outages", "cooling", "congestion"),
    *("open_end", "per_unit"),
}


def schedules(inst: Instance, seed: int, top: int = 8) -> list[Schedule]:
    """All assignments that end by ``top``, or a sample of them when there are many."""
    pairs, end = inst.pairs, int(min(time_horizon(inst), top))
    choices = [
        [
            (int(pairs.mode[q]), s)
            for q in range(pairs.ptr[i], pairs.ptr[i + 1])
            for s in range(end - int(pairs.duration[q]) + 1)
        ]
        for i in range(inst.num_tasks)
    ]
    every = list(product(*choices))
    if inst.num_tasks > 2 and len(every) > SAMPLE:
        every = [
            every[c] for c in np.random.default_rng(seed).choice(len(every), SAMPLE, replace=False)
        ]
    return [Schedule.of(inst, [k for k, _ in row], [s for _, s in row]) for row in every]


def check_exactly(form: Formulation, point: Floats, objective: float) -> None:
    """Check every row and the objective to 2^-40 of the sum of absolute terms, in fractions."""
    arrays, share = form.arrays, Fraction(1, 2**40)
    x = [Fraction(float(value)) for value in point]
    ptr, column, value = (part.tolist() for part in arrays.matrix)
    lower, upper = arrays.row_lower.tolist(), arrays.row_upper.tolist()
    rows = [
        [Fraction(value[k]) * x[column[k]] for k in range(a, b) if x[column[k]]]
        for a, b in itertools.pairwise(ptr)
    ]
    columns = [[each] for each in x]
    sides = zip((*lower, *arrays.lower.tolist()), (*upper, *arrays.upper.tolist()), strict=True)
    for k, (terms, (low, high)) in enumerate(zip((*rows, *columns), sides, strict=True)):
        total, size = sum(terms, Fraction(0)), sum(map(abs, terms), Fraction(0))
        for side, sign in ((low, 1), (high, -1)):
            if np.isfinite(side):
                room = share * (size + abs(Fraction(side)))
                assert sign * (total - Fraction(side)) >= -room, f"row {k}: {total} and {side}"
    assert all(
        each.denominator == 1 for each, whole in zip(x, arrays.integer, strict=True) if whole
    )
    cost = [Fraction(c) * each for c, each in zip(arrays.cost.tolist(), x, strict=True) if each]
    cost.append(Fraction(arrays.constant))
    off = abs(sum(cost, Fraction(0)) - Fraction(objective))
    assert off <= share * sum(map(abs, cost), Fraction(0)), f"objective off by {float(off)}"


def agree(form: Formulation, schedule: Schedule, verdict: Verdict | None = None) -> bool:
    """Whether the schedule is feasible; fails when MILP and verifier disagree on that or on the
    objective.
    """
    verdict = verdict or verify(form.instance, schedule)
    point = form.point_of(schedule)
    worst, what = (
        (np.inf, "no variable stands for it")
        if point is None
        else form.arrays.worst_violation(point)
    )
    where = f"{form.instance.name} {form.name} modes {schedule.mode} starts {schedule.start}"
    assert (worst <= 1e-6) == verdict.feasible, (
        f"{where}: breaks {what} by {worst}; verifier: {verdict.violations}"
    )
    if point is None or not verdict.feasible:
        return False
    assert form.arrays.objective(point) == pytest.approx(verdict.objective, rel=1e-9, abs=1e-9), (
        where
    )
    check_exactly(form, point, verdict.objectives[0])
    again = form.schedule_from(point)
    after = verify(form.instance, again)
    assert after.feasible and not after.violations, f"{where}: comes back as {again.start}"
    if form.name == "time_indexed":
        assert (again.start == schedule.start).all() and (again.mode == schedule.mode).all()
    assert after.objectives[0] <= verdict.objectives[0] + 1e-9, (
        where
    )  # least starts of the same orders are no worse
    return True


@pytest.mark.parametrize("tasks", [2, 3])
@pytest.mark.parametrize("case", CASES)
def test_milp_and_verifier_agree_on_every_assignment(
    case: str, tasks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    feasible = infeasible = 0
    for seed in range(6):
        inst = tiny(seed, tasks=tasks, **CASES[case])
        forms: list[Formulation] = [TimeIndexed(inst)]
        if "tariffs" not in inst.features:
            forms.append(Disjunctive(inst))
        monkeypatch.setattr(time_indexed, "DISAGGREGATED_NONZEROS", 1e9 if seed % 2 else -1)
        for schedule in schedules(inst, seed):
            verdict = verify(inst, schedule)
            for form in forms:
                ok = agree(form, schedule, verdict)
                feasible, infeasible = feasible + ok, infeasible + (not ok)
    assert feasible > 10 and infeasible > 10  # neither side is vacuous


def test_three_tasks_that_start_together_are_three_at_a_time() -> None:
    """The trap of overlap formulations: with a cycle of ties each of three equal starts sees one
    other only.

    Two devices, three tasks of one device and one tick: all at 0 need three devices; two at 0 and
    one at 1 need two.
    """
    base = tiny(1, tasks=3, pools=1)
    none = np.zeros(0, dtype=np.int64)
    inst = replace(
        base,
        edges=Edges(none, none, np.zeros(0)),
        tasks=Tasks(
            np.zeros(3, dtype=np.int64),
            np.ones(3),
            np.zeros(3, dtype=np.int64),
            np.full(3, np.inf),
            np.zeros(3, dtype=bool),
            np.ones(3),
            np.zeros(3),
        ),
        modes=Modes(
            ("a",),
            np.asarray([0, 1]),
            np.ones(1),
            np.ones(1),
            np.ones(1),
            np.full(1, np.nan),
            np.asarray([0, 1]),
            np.asarray([0]),
            np.asarray([1]),
        ),
    )
    form = Disjunctive(inst)
    assert not agree(form, Schedule.of(inst, [0, 0, 0], [0, 0, 0]))
    assert agree(form, Schedule.of(inst, [0, 0, 0], [0, 0, 1]))


@pytest.mark.parametrize(
    "case",
    [
        case
        for case in CASES_BY_HAND
        if not case.instance.features & NOT_FORMULATED and case.instance.objective.num_levels == 1
    ],
    ids=lambda case: case.name,
)
def test_decisions_of_solvers_are_points_of_the_full_formulation(case: Case) -> None:
    """The formulation is that of the instance: no cutoff, no shorter horizon."""
    forms = [form for name in ("time_indexed", "disjunctive") for form in formulated(case, name)]
    seen = 0
    for solver in ("cpsat", "highs", "heft", "min_energy"):
        result = ob.solve(case.instance, solver, work_limit=0.5, bound=False)
        if result.schedule is not None and result.verified:
            seen += sum(agree(form, result.schedule) for form in forms)
    assert forms and seen >= 2 * len(forms)


def formulated(case: Case, name: str) -> list[Formulation]:
    """The formulation of a name, if the instance has one."""
    try:
        return [formulate(case.instance, name)[0]]
    except UnsupportedError:
        return []
