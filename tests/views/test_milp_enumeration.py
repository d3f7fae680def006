"""Every assignment of modes and starts of tiny instances: in the MILP when the verifier accepts it,
at the same objective.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from optbench.model.instance import Edges, Instance, Modes, Tasks
from optbench.model.schedule import Schedule
from optbench.model.verify import verify
from optbench.model.windows import time_horizon
from optbench.views.milp import Disjunctive, Formulation, TimeIndexed, time_indexed

from .milp_cases import tiny

CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "tariffs": {"varying": True, "capped": True},
    "tariffs, fixed horizon": {"varying": True, "fixed": True},
    "caps": {"capped": True},
    "limits": {"limited": True, "varying": True},
    "all but tariffs": {"fixed": True, "limited": True, "capped": True},
    "unary": {"shared": False, "capped": True},
}
SAMPLE = 150


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


def agree(form: Formulation, schedule: Schedule) -> bool:
    """Whether the schedule is feasible; fails when MILP and verifier disagree on that or on the
    objective.
    """
    verdict, point = verify(form.instance, schedule), form.point_of(schedule)
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
            for form in forms:
                ok = agree(form, schedule)
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
