"""Mixed-integer programming with HiGHS, on the time-indexed or the disjunctive formulation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from optbench.errors import ParameterError, UnsupportedError
from optbench.model.features import FEATURES
from optbench.model.instance import Floats, Instance
from optbench.plugins.protocol import Run, Solver
from optbench.units import SUM_MARGIN
from optbench.views.milp import (
    BuildStoppedError,
    Formulation,
    MilpArrays,
    StandardForm,
    formulate,
    standard_form,
    to_pyomo,
)
from optbench.views.milp.implied_rows import is_tightened
from optbench.views.milp.known_end import known_end

from ._first_schedules import KERNELS, first_schedules
from ._highs_formulated import solve_formulated
from ._highs_scaling import Matrix, Scaled, column_units, pass_model
from ._highs_session import HighsSession

# Share of the time for a first schedule.
FIRST_SHARE = 0.1
# Task graphs with implied rows then have a search around the milestones of the fluid LP, for this
# share of the time and at most this long; or this work, where time is not limited. A tenth of a
# second comes within 1 % of the best known schedules of 10 and 12 tasks, the rules within 6 %.
MILESTONE_SHARE, MILESTONE_S, MILESTONE_WORK = 0.03, 1.0, 1.0
ROUTES = ("array", "pyomo")
# Absolute gap, in units of the scaled objective, and feasibility tolerance (its default is 1e-6)
# for HiGHS. At 1e-9 HiGHS 1.14.0 drops a node whose whole solution misses the tolerance by
# rounding, and its bound then exceeds the optimum.
ABS_GAP = 1e-3
FEASIBILITY = 1e-7
# With more coefficients than this HiGHS 1.14.0 runs without its heuristic "feasibility jump", which
# takes a second per million of them and ignores the clock: 10 s for 11.2 million, at a limit of 4
# s.
MOST_JUMP_NONZEROS = 1_000_000
# The largest coefficient of the scaled objective lies between half of this and this: the tolerances
# are then small beside it.
LARGEST_COST = 2.0**20


@dataclass
class Highs(Solver):
    """Branch and cut; exact for everything but preemption and work that may be left undone.

    ``form``: auto, time_indexed, disjunctive; ``route``: array, pyomo; ``first``: begin with a
    quick list schedule; ``cuts``: implied rows in the disjunctive form.
    """

    form: str = "auto"
    route: str = "array"
    first: bool = True
    cuts: bool = True

    supports: ClassVar[frozenset[str]] = frozenset(FEATURES) - {
        "preemption",
        "checkpoints",
        "waking",
        "outages",
        "cooling",
        "congestion",
        "open_end",
        "per_unit",
    }
    shapes: ClassVar[frozenset[str]] = frozenset({"schedule", "formulate"})
    needs: ClassVar[frozenset[str] | set[str]] = KERNELS | {"lp_search"}

    def kernels(self, instance: Any) -> frozenset[str] | set[str]:
        if not isinstance(instance, Instance):
            return frozenset()
        return self.needs if self.first and has_milestones(instance) else KERNELS

    def refuse(self, instance: Any) -> str | None:
        if not isinstance(instance, Instance):
            return None
        try:
            formulate(instance, self.form)
        except UnsupportedError as error:
            return str(error)
        return None

    def solve(self, instance: Any, run: Run) -> Any:
        if not isinstance(instance, Instance):
            solve_formulated(run)
            return run.best
        if self.route not in ROUTES:
            raise ParameterError(
                f"highs: route is {self.route!r}; it must be one of {', '.join(ROUTES)}"
            )
        began = run.elapsed_s()
        self._start(instance, run)
        warm = run.best
        end = known_end(instance, run.objective)
        formulation, reason = formulate(
            instance, self.form, end, lambda: run.time_left() <= 0, self.cuts
        )
        try:
            arrays = formulation.arrays
        except BuildStoppedError as error:
            run.report_message(f"{error}; use a longer time limit, or -s cpsat")
            run.report_termination("interrupted" if run.stop_requested.is_set() else "time_limit")
            return run.best
        order = np.arange(arrays.num_columns)
        model: MilpArrays | StandardForm = arrays
        if self.route == "pyomo":
            model, order = by_pyomo(arrays)
        run.info |= {
            "formulation": formulation.name,
            "formulation_reason": reason,
            "route": self.route,
            "columns": arrays.num_columns,
            "binaries": arrays.num_binaries,
            "rows": arrays.num_rows,
            "nonzeros": arrays.num_nonzeros,
            "build_s": round(run.elapsed_s() - began, 6),
        }
        session = Session(run, formulation, model, order)
        session.solve(None if warm is None else formulation.point_of(warm))
        return run.best

    def _start(self, instance: Instance, run: Run) -> None:
        """Report a first incumbent; where the makespan counts, it makes the end of time smaller."""
        if run.warm_start is not None:
            run.report(run.warm_start)
        if run.best is None and self.first:
            for schedule in first_schedules(instance, FIRST_SHARE * run.time_left()):
                run.report(schedule)
            if has_milestones(instance):
                start_from_milestones(instance, run)


def has_milestones(instance: Instance) -> bool:
    """Whether a search around milestones is worth its time: task graphs with implied rows that no
    search of shops knows.
    """
    from optbench.sim.primal import is_searchable

    return is_tightened(instance) and len(instance.edges.source) > 0 and not is_searchable(instance)


def start_from_milestones(instance: Instance, run: Run) -> None:
    """Report the best schedule of a short search around the milestones of the fluid LP."""
    from ._milestone_search import RUNS, MilestoneSearch

    timed = run.work_limit is None and run.time_left() < math.inf
    seconds = min(MILESTONE_S, MILESTONE_SHARE * run.time_left()) if timed else math.inf
    MilestoneSearch(instance, run, RUNS, improve=True, seconds=seconds).solve(0, MILESTONE_WORK)


def by_pyomo(arrays: MilpArrays) -> tuple[MilpArrays | StandardForm, Any]:
    """Return the model compiled by Pyomo, and the column of the arrays of each of its columns.

    Pyomo refuses a row without variables that is violated, without any tolerance: HiGHS then solves
    the arrays.
    """
    from pyomo.common.errors import InfeasibleConstraintException

    try:
        model = standard_form(to_pyomo(arrays))
    except InfeasibleConstraintException:
        return arrays, np.arange(arrays.num_columns)
    place = {name: column for column, name in enumerate(arrays.column_names())}
    return model, np.asarray([place[name] for name in model.column_names], dtype=np.int64)


@dataclass
class Session(HighsSession):
    """One solve by HiGHS. Column c of ``model`` is column ``order[c]`` of the formulation."""

    formulation: Formulation
    model: Matrix
    order: Any

    def __post_init__(self) -> None:
        self.units = column_units(self.formulation)
        self.model = Scaled.of(self.model, self.units[self.order])
        largest = float(np.abs(self.model.cost).max(initial=0.0))
        # A power of two scales without rounding.
        self.scale = 2.0 ** math.floor(math.log2(LARGEST_COST / largest)) if largest > 0 else 1.0
        self.slack = dual_slack(self.formulation, self.scale)
        self.grain = grain_of(self.formulation)

    def solve(self, point: Floats | None) -> None:
        highs = self._prepared()
        pass_model(highs, self.model, self.scale)
        if point is not None:
            self.start_from(highs, (point / self.units)[self.order])
        self.run_to_end(highs)

    def _prepared(self) -> Any:
        jumps = len(self.model.matrix[2]) <= MOST_JUMP_NONZEROS
        return self.prepared(
            mip_abs_gap=ABS_GAP,
            mip_feasibility_tolerance=FEASIBILITY,
            mip_heuristic_run_feasibility_jump=jumps,
        )

    def last_dual(self, info: Any) -> float:
        return super().last_dual(info) if len(self.order) else 0.0

    def report_values(self, values: Floats) -> None:
        out = np.zeros(self.formulation.arrays.num_columns)
        out[self.order] = values * self.units[self.order]
        self.run.report(self.formulation.schedule_from(out))

    def report_dual(self, dual: float) -> None:
        value = safe_bound(dual / self.scale, self.slack, self.grain)
        self.run.report_bound(value + self.formulation.arrays.constant, "highs", "solver")


def dual_slack(formulation: Formulation, scale: float) -> float:
    """How far HiGHS's dual bound may lie above the optimum, in units of the unscaled objective
    (before a relative part).

    HiGHS minimises scale · cost x in floating point. Its final bound is the least of the bounds of
    the nodes it closed, so that

    - a node is closed once its bound is within mip_abs_gap of the incumbent, and an exhausted tree
      reports the incumbent: that may exceed the optimum by ABS_GAP (mip_rel_gap is 0);
    - a node's bound is the value of a basis whose reduced costs may have the wrong sign by the dual
      feasibility tolerance δ. Then cost x >= value − δ Σ_j |x_j − l_j| for every feasible x; in a
      MIP, HiGHS uses δ = 0.1 · mip_feasibility_tolerance and checks it on the LP without its
      scaling;
    - incumbents that break rows within the tolerance are too cheap, which lowers the bound and is
      harmless.

    Σ_j |x_j − l_j| is at most the number of tasks over the starts of the time-indexed form (they
    sum to one per task), the number of edges over ``send``, and the sum of the ranges otherwise, in
    the units that HiGHS is given (``column_units``). Rounding in sums is covered by ``safe_bound``.
    """
    reach, instance, units = 0.0, formulation.instance, column_units(formulation)
    for block in formulation.arrays.columns:
        most = float(
            ((block.upper - block.lower) / units[block.first : block.first + block.size]).sum()
        )
        if block.name in ("start", "mode") and block.integer:
            most = min(most, float(instance.num_tasks))
        elif block.name == "send":
            most = min(most, float(len(instance.edges.source)))
        reach += most
    return (ABS_GAP + 0.1 * FEASIBILITY * reach) / scale


def safe_bound(dual: float, slack: float, grain: float | None) -> float:
    """Return the dual bound less the slack and a relative 1e-9; raised to the next possible value
    of the objective, where that is known.
    """
    value = dual - slack - SUM_MARGIN * abs(dual)
    if grain is None or grain < 8 * (dual - value):
        return value
    return math.ceil(value / grain) * grain


def grain_of(formulation: Formulation) -> float | None:
    """Return a number of which some optimum is a multiple, plus the constant: every variable with a
    cost is whole there.
    """
    costs = np.unique(np.abs(formulation.arrays.cost))
    out = Fraction(0)
    for cost in costs[costs > 0].tolist():
        out = Fraction(
            math.gcd(*_common(out, Fraction(cost))),
            max(out.denominator, Fraction(cost).denominator),
        )
        if out < costs[-1] * 1e-6:
            return None
    return float(out) or None


def _common(a: Fraction, b: Fraction) -> tuple[int, int]:
    """Return two dyadic fractions over their common denominator (floats are dyadic)."""
    top = max(a.denominator, b.denominator)
    return a.numerator * (top // a.denominator), b.numerator * (top // b.denominator)
