"""Cuts and implied rows of one tiny random instance against brute force.

Every cut is compared with *every* vector of whole starts of every choice of modes that keeps
windows, precedence and pools, where these are few enough to list: caps and limits only exclude
schedules, and cuts do not rest on them. Rows of the disjunctive MILP are compared with a sample of
the schedules that the verifier accepts. CP-SAT and HiGHS run with the cuts and must find the
optimum of the second verifier's brute force, or prove that there is none.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.model.time_cuts import TimeCut, time_cuts
from optbench.model.verify import verify
from optbench.views.milp import Disjunctive
from optbench.views.milp.implied_rows import is_tightened
from tests.reference.brute_force import _grow, mode_choices
from tests.reference.plain_facts import duration, end_of_time, task_modes
from tests.reference.second_agreement import Outcome, compare_solver
from tests.reference.two_verifiers import instance_of
from tests.second_verifier import brute_force
from tests.second_verifier.brute_force import Optimum, TooLarge
from tests.second_verifier.generator import SCALES, random_instance
from tests.second_verifier.problem import Json

# The solvers whose models have the cuts, without a first schedule where that can be switched off.
SOLVERS = ("cpsat", "highs:form=disjunctive,first=no")
# Vectors of starts that are listed for one instance, and schedules compared with the MILP.
MOST_VECTORS, SAMPLE = 400_000, 10
# All cuts, not only the strongest.
EVERY = 10**9
TOLERANCE = 1e-9
# What is off in every instance, since no cuts are made with it.
FIXED = {"preemptive": False, "open": False, "outages": False, "edges": True}


@dataclass
class CutOutcome:
    """What one instance amounted to; a cut is tight when some vector leaves it no slack."""

    name: str
    features: frozenset[str] = frozenset()
    status: str = "not tried"
    num_cuts: int = 0
    is_tightened: bool = False
    num_vectors: int = 0
    num_rows_checked: int = 0
    num_tight: int = 0
    num_unproven: int = 0
    compared: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def compare_cuts(
    seed: int, solvers: Sequence[str] = SOLVERS, time_limit_s: float = 10.0
) -> CutOutcome | None:
    """Everything about the instance of a seed; None where it has no cut, or no brute force."""
    scale = SCALES[seed % len(SCALES)] if seed % 2 else SCALES[0]
    rng = random.Random(f"{seed} cuts")
    few_pools = {"several_pools": False} if rng.random() < 0.5 else {}
    data = random_instance(seed, scale, (3, 4), **FIXED, **few_pools)
    instance = instance_of(data)
    cuts = time_cuts(instance, areas=EVERY, chains=EVERY)
    if not cuts:
        return None
    try:
        exact = brute_force.optimum(data)
    except TooLarge:
        return None
    outcome = CutOutcome(data["name"], frozenset(instance.features), num_cuts=len(cuts))
    outcome.status = "infeasible" if exact is None else "optimum"
    outcome.is_tightened = is_tightened(instance)
    if scale.factor == 1:
        _check_vectors(outcome, instance, cuts, rng)
    for solver in solvers:
        _compare_solver(outcome, instance, data, solver, exact, time_limit_s)
    outcome.wrong = [f"{outcome.name}: {line}" for line in outcome.wrong]
    return outcome


def _compare_solver(
    outcome: CutOutcome,
    instance: Instance,
    data: Json,
    solver: str,
    exact: Optimum | None,
    time_limit_s: float,
) -> None:
    found = Outcome(outcome.name, outcome.features)
    compare_solver(found, instance, data, solver, exact, time_limit_s)
    outcome.wrong += found.wrong
    outcome.num_unproven += found.num_unproven
    outcome.compared += [solver] if found.solved else []


def _check_vectors(
    outcome: CutOutcome, instance: Instance, cuts: list[TimeCut], rng: random.Random
) -> None:
    """Every cut against every vector of starts, and a sample of them against the MILP."""
    if num_vectors(instance) > MOST_VECTORS:
        return
    least = np.full(len(cuts), np.inf)
    form = None
    if "tariffs" not in instance.features:
        form = Disjunctive(instance)
    for mode in mode_choices(instance):
        starts = _grow(instance, mode)
        if len(starts) == 0:
            continue
        outcome.num_vectors += len(starts)
        least = np.minimum(least, [slack(instance, cut, mode, starts).min() for cut in cuts])
        if form is not None:
            length = [duration(instance, i, k) for i, k in enumerate(mode)]
            early = np.flatnonzero((starts + length).max(axis=1) <= form.frame.end).tolist()
            for row in rng.sample(early, min(SAMPLE, len(early))):
                _check_rows(outcome, form, mode, starts[row])
    outcome.num_tight = int((least < 0.5).sum())
    outcome.wrong += [
        f"{cut} is broken by {-room}"
        for cut, room in zip(cuts, least.tolist(), strict=True)
        if room < -TOLERANCE
    ]


def num_vectors(instance: Instance) -> float:
    """Return an upper bound on the number of vectors of starts, over all choices of modes."""
    top = end_of_time(instance)
    return math.prod(
        sum(max(0, top - duration(instance, i, k) + 1) for k in task_modes(instance, i))
        for i in range(instance.num_tasks)
    )


def slack(instance: Instance, cut: TimeCut, mode: tuple[int, ...], starts: Any) -> Any:
    """Return by how much each vector keeps a cut; without a last task, the makespan closes it."""
    length = np.array([duration(instance, i, k) for i, k in enumerate(mode)])
    ends, pairs = starts + length[None, :], instance.pairs
    left = 0 if cut.after is None else ends[:, cut.after]
    right = ends.max(axis=1) if cut.before is None else starts[:, cut.before]
    work = sum(
        weight * int(length[pairs.task[row]])
        for row, weight in zip(cut.rows, cut.weights, strict=True)
        if mode[pairs.task[row]] == pairs.mode[row]
    )
    return cut.room * (right - left - cut.wait) - work


def _check_rows(outcome: CutOutcome, form: Disjunctive, mode: tuple[int, ...], start: Any) -> None:
    schedule = Schedule.of(form.instance, list(mode), start.tolist())
    if not verify(form.instance, schedule).feasible:
        return
    point = form.point_of(schedule)
    assert point is not None
    outcome.num_rows_checked += form.arrays.num_rows
    worst, what = form.arrays.worst_violation(point)
    if worst > 1e-6:
        outcome.wrong.append(f"MILP row {what} is broken by {worst}: modes {mode}, starts {start}")
