"""An instance as a CP-SAT model, and the conversion of solutions and bounds.

Variables are in draft.py, constraints in resources.py, metrics in metric_terms.py, numbers in
scaling.py. The model minimises F ≥ 0, an integer sum that rises with the scaled objective;
``bound`` converts a bound on F to one on the true objective. Its end of time is ``time_horizon``:
some optimal schedule lies within, so that bounds and infeasibility hold for the instance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from ortools.sat.python import cp_model

from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.views.cpsat.decode import in_order
from optbench.views.cpsat.draft import Draft, DraftSchedule, Expression
from optbench.views.cpsat.grain import in_grains
from optbench.views.cpsat.metric_terms import Affine, metric
from optbench.views.cpsat.resources import (
    add_caps,
    add_edges,
    add_loads,
    add_pools,
    add_symmetry,
    alike_groups,
)
from optbench.views.cpsat.scaling import Rounded
from optbench.views.cpsat.sums import add_limit, rounded
from optbench.views.cpsat.window_cuts import add_time_cuts, add_unions

# A generous relative error of the float in which CP-SAT reports an integer bound.
BOUND_NOISE = 1e-12

MAKESPANS = ("makespan", "makespan_s")


@dataclass(frozen=True, eq=False)
class CpsatView:
    """The model and the meaning of its variables; its times are multiples of ``grain`` ticks of the
    instance.
    """

    instance: Instance
    model: cp_model.CpModel
    draft: Draft
    total: Expression
    numbers: Rounded
    alike: tuple[tuple[int, ...], ...]
    grain: int = 1
    cuts: bool = False

    def schedule(self, value: Callable[[cp_model.IntVar], int]) -> Schedule:
        """Return the schedule in a solution, given as the value of each variable."""
        draft, mode, start = self.draft, [], []
        for task in range(self.instance.num_tasks):
            rows = draft.rows(task)
            chosen = [
                row for row in rows if (literal := draft.present[row]) is None or value(literal)
            ]
            mode.append(draft.mode[chosen[0]])
            start.append(value(draft.start[task]) * self.grain)
        if draft.coarse > 1:
            return Schedule.of(
                self.instance, np.asarray(mode), in_order(draft, mode, start) * self.grain
            )
        return Schedule.of(self.instance, np.asarray(mode), np.asarray(start))

    def decision(self, schedule: Schedule) -> DraftSchedule:
        """Convert a schedule with one segment per task to the model's terms: modes that the model
        leaves out are replaced, equal tasks are ordered as in the model.
        """
        draft, n = self.draft, self.instance.num_tasks
        row, start, end = [0] * n, [0] * n, [0] * n
        unit = self.grain * draft.coarse
        times = ((schedule.start // unit).tolist(), (schedule.end // unit).tolist())
        columns = (schedule.task.tolist(), schedule.mode.tolist(), *times)
        for task, mode, begins, ends in zip(*columns, strict=True):
            row[task] = draft.row_of(task, mode)
            same = draft.mode[row[task]] == mode and draft.coarse == 1
            start[task], end[task] = (
                int(begins),
                int(ends) if same else int(begins) + draft.duration[row[task]],
            )
        for group in self.alike:
            ordered = sorted((start[i], end[i], draft.mode[row[i]]) for i in group)
            for task, (begins, ends, mode) in zip(group, ordered, strict=True):
                start[task], end[task], row[task] = begins, ends, draft.row_of(task, mode)
        return DraftSchedule(row, start, end)

    def hint(self, schedule: Schedule) -> None:
        """Hint the value of every variable in a schedule."""
        decision = self.decision(schedule)
        self.model.clear_hints()  # type: ignore[no-untyped-call]
        for var, value in self.draft.values:
            self.model.add_hint(var, value(decision))

    def bound(self, total: float) -> float:
        """Return the lower bound on the objective that F ≥ total proves. F is an integer below
        2^58; CP-SAT's float of a bound on it can exceed it by rounding, so that
        110.00000000000001 means 110.
        """
        return self.numbers.bound(math.ceil(total - BOUND_NOISE * max(1.0, abs(total))))

    def reached(self, value: Callable[[Expression], int]) -> float:
        """Return the lower bound on the objective that an optimal solution proves: its F in whole
        numbers, without floats.
        """
        return self.numbers.bound(value(self.total))

    def floor(self, bound: float) -> int:
        """Return the integer that F cannot be below, given a proven lower bound on the
        objective.
        """
        return self.numbers.floor(bound)


def build(
    instance: Instance,
    *,
    inner: bool = False,
    shared: bool = True,
    stage: int = 0,
    cutoff: float = math.inf,
    cuts: bool = False,
) -> CpsatView:
    """Build the CP model of an instance's first objective level.

    The default rounding of powers and limits keeps every feasible schedule, so that bounds are
    valid; with ``inner`` every solution is feasible instead, and nothing is proven. The two differ
    only where no decimal scale makes the data integers. Without ``shared`` tasks share only loads
    and no instant: a relaxation for bounds that is far easier to solve. ``stage`` is the fineness
    of the scale where no exact one has small numbers (``scaling.FINER``). ``cutoff`` is the
    objective of a verified schedule; worse schedules need not be found. ``cuts`` adds what helps to
    prove optima where tasks choose among pools and numbers of devices (window_cuts.py).
    """
    coarse, grain = in_grains(instance)
    draft = Draft.of(coarse, inner)
    transfers = add_edges(draft)
    objective = Affine()
    for name, weight in coarse.objective.levels[0]:
        objective.take(metric(draft, name, transfers), weight)
    for name, limit in sorted(coarse.limits.metric_max.items()):
        if name not in MAKESPANS:  # the end of time already enforces those
            add_limit(draft, metric(draft, name, transfers), limit, stage)
    if shared:
        add_pools(draft)
        add_caps(draft)
    add_loads(draft)
    alike = alike_groups(draft)
    add_symmetry(draft, alike)
    total, numbers = rounded(draft, objective, stage=stage, cutoff=cutoff)
    if cuts:
        add_time_cuts(draft)
        add_unions(draft)
    draft.model.minimize(total)
    return CpsatView(instance, draft.model, draft, total, numbers, alike, grain, cuts)
