"""HiGHS on parts of the programme over patterns: whole points over some of them. One thread."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optbench.shapes.colocation.colocation_data import Floats, Ints
from optbench.shapes.epoch_allocation.pattern_program import PatternProgram

# A point of HiGHS this close to whole numbers is rounded to them; numbers this close are equal.
WHOLE, SAME_NUMBER = 1e-4, 1e-6


@dataclass(frozen=True)
class SearchLimits:
    """When a search ends: a point in time (``time.perf_counter``), nodes of one search by HiGHS,
    or a request to stop.
    """

    deadline: float = math.inf
    nodes: int | None = None
    stopped: Callable[[], bool] | None = None

    @classmethod
    def within(
        cls, seconds: float, nodes: int | None = None, stopped: Callable[[], bool] | None = None
    ) -> SearchLimits:
        return cls(time.perf_counter() + seconds, nodes, stopped)

    def left_s(self) -> float:
        """Seconds left; 0 once it is over."""
        if self.stopped is not None and self.stopped():
            return 0.0
        return max(0.0, self.deadline - time.perf_counter())

    def with_nodes(self, nodes: int) -> SearchLimits:
        """Return limits with at most so many nodes."""
        return replace(self, nodes=nodes if self.nodes is None else min(nodes, self.nodes))

    def apply(self, highs: Any) -> None:
        """Set the limits of HiGHS."""
        if math.isfinite(self.deadline):
            highs.setOptionValue("time_limit", self.left_s())
        if self.nodes is not None:
            highs.setOptionValue("mip_max_nodes", self.nodes)
        if self.stopped is not None:
            highs.cbMipInterrupt += lambda event: _interrupt(event, self)


def highs_of(**options: Any) -> Any:
    """Return HiGHS, silent and with one thread."""
    import highspy

    # HiGHS keeps one pool of threads per process and refuses another number of them later.
    highspy.Highs.resetGlobalScheduler(True)
    highs = highspy.Highs()
    highs.silent()
    for name, value in {"threads": 1, "presolve": "off", **options}.items():
        highs.setOptionValue(name, value)
    return highs


def part_of(program: PatternProgram, columns: Ints, whole: bool) -> Any:
    """Return the programme over some columns as HiGHS takes it."""
    import highspy

    start, index, value = entries_of(program, columns)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(columns), program.num_rows
    lp.col_cost_ = program.cost_mw[columns] / 1000.0
    lp.col_lower_, lp.col_upper_ = np.zeros(len(columns)), program.upper[columns]
    lp.row_lower_, lp.row_upper_ = program.row_lower, program.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = start, index, value
    if whole:
        kinds = highspy.HighsVarType
        counted = columns < program.patterns.count
        counted |= program.is_choice[columns]
        lp.integrality_ = [
            kinds.kInteger if each else kinds.kContinuous for each in counted.tolist()
        ]
    return lp


def entries_of(program: PatternProgram, columns: Ints) -> tuple[Ints, Ints, Floats]:
    """Return the matrix of some columns, by columns."""
    size = np.diff(program.start)[columns]
    end = np.cumsum(size)
    total = int(end[-1]) if len(end) else 0
    at = np.arange(total) + np.repeat(program.start[:-1][columns] - end + size, size)
    start = np.concatenate([[0], end])
    return start, program.index[at], program.value[at]


@dataclass(frozen=True, eq=False)
class WholeResult:
    """The best whole point over some columns, and a bound on all points over them, in mW."""

    point: Ints | None
    value_mw: int
    bound_mw: float


def best_whole(
    program: PatternProgram,
    columns: Ints,
    limits: SearchLimits,
    gap_mw: float,
    enough_mw: float,
    known: Ints,
) -> WholeResult:
    """Search the whole points over these columns, until one is within a gap of the best of them,
    or of a value that is known to be a bound.
    """
    import highspy

    highs = highs_of(
        mip_rel_gap=0.0,
        mip_abs_gap=0.8 * gap_mw / 1000.0,
        objective_target=(enough_mw + gap_mw - program.constant_mw) / 1000.0,
    )
    limits.apply(highs)
    highs.passModel(part_of(program, columns, whole=True))
    solution = highspy.HighsSolution()
    solution.col_value = known[columns].astype(float).tolist()
    highs.setSolution(solution)
    highs.run()
    info = highs.getInfo()
    bound = 1000.0 * float(info.mip_dual_bound) + program.constant_mw
    status = highs.modelStatusToString(highs.getModelStatus())
    if status == "Infeasible":
        bound = np.inf
    if info.primal_solution_status != int(highspy.SolutionStatus.kSolutionStatusFeasible):
        return WholeResult(None, 0, bound)
    point = np.zeros(program.num_columns, dtype=np.int64)
    values = np.asarray(highs.getSolution().col_value)
    if np.abs(values - np.rint(values)).max(initial=0.0) > WHOLE:
        values = _network_values(program, columns, values)
    point[columns] = np.rint(values).astype(np.int64)
    value = int((program.cost_mw * point).sum()) + program.constant_mw
    return WholeResult(point, value, bound)


def fewest_waiting(program: PatternProgram, limits: SearchLimits) -> tuple[float, Ints | None]:
    """Return a bound on the number of waiting jobs, which is whole, and a point that comes nearest.

    A search may stop once the best number is less than one above the bound."""
    import highspy

    columns = np.arange(program.num_columns)
    lp = part_of(program, columns, whole=True)
    cost = np.zeros(program.num_columns)
    cost[program.column_begin[3] :] = 1.0
    lp.col_cost_ = cost
    highs = highs_of(mip_rel_gap=0.0, mip_abs_gap=0.99)
    limits.apply(highs)
    highs.passModel(lp)
    highs.run()
    info = highs.getInfo()
    bound = float(np.ceil(info.mip_dual_bound - SAME_NUMBER))
    if info.primal_solution_status != int(highspy.SolutionStatus.kSolutionStatusFeasible):
        return bound, None
    values = np.asarray(highs.getSolution().col_value)
    if np.abs(values - np.rint(values)).max(initial=0.0) > WHOLE:
        values = _network_values(program, columns, values)
    return bound, np.rint(values).astype(np.int64)


def _interrupt(event: Any, limits: SearchLimits) -> None:
    event.data_in.user_interrupt = limits.left_s() <= 0


def _network_values(program: PatternProgram, columns: Ints, values: Floats) -> Floats:
    """Return whole values of the other columns with the patterns held: a vertex of a network."""
    lp = part_of(program, columns, whole=False)
    held = (columns < program.patterns.count) | program.is_choice[columns]
    fixed = np.rint(values)
    lp.col_lower_ = np.where(held, fixed, 0.0)
    lp.col_upper_ = np.where(held, fixed, program.upper[columns])
    highs = highs_of()
    highs.passModel(lp)
    highs.run()
    return np.asarray(highs.getSolution().col_value)
