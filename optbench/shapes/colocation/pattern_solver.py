"""HiGHS on parts of the programme over patterns: its relaxation by column generation, and whole
points over some of the patterns. One thread.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from optbench.shapes.colocation.colocation_data import Floats, Ints
from optbench.shapes.colocation.pattern_program import PatternProgram

# With at most so many patterns the relaxation has all of them from the start.
MOST_AT_ONCE = 20_000
# Cheapest patterns of each place to begin with, and those of a place that one round adds.
FIRST_PER_PLACE, ADDED_PER_PLACE = 6, 3
# Reduced costs above this, in W, are none.
NEGATIVE_W = -1e-6
# A point of HiGHS this close to whole numbers is rounded to them.
WHOLE = 1e-4


@dataclass(frozen=True, eq=False)
class SolvedRelaxation:
    """Values of all columns, duals of rows and reduced costs in W, and the value in mW."""

    values: Floats
    duals: Floats
    reduced_w: Floats
    value_mw: float
    rounds: int


def highs_of(**options: Any) -> Any:
    """Return HiGHS, silent and with one thread."""
    import highspy

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


def reduced_costs_w(program: PatternProgram, duals: Floats) -> Floats:
    """Return the reduced cost of every column."""
    out = program.cost_mw / 1000.0
    used = np.flatnonzero(np.diff(program.start))
    if len(used):
        paid = np.add.reduceat(program.value * duals[program.index], program.start[used])
        out[used] -= paid
    return out


def first_columns(program: PatternProgram) -> Ints:
    """Return the columns to begin with: all that are no patterns, and the cheapest patterns."""
    count = program.patterns.count
    others = np.arange(count, program.num_columns)
    if count <= MOST_AT_ONCE:
        return np.arange(program.num_columns)
    cheap = np.zeros(count, dtype=np.bool_)
    cheap[best_per_row(program, np.arange(count), program.cost_mw[:count], FIRST_PER_PLACE)] = True
    return np.concatenate([np.flatnonzero(cheap), others])


def best_per_row(program: PatternProgram, patterns: Ints, cost: Any, most: int) -> Ints:
    """Return the cheapest of these patterns in each row but those of GPU types, some per row."""
    start, index, _ = entries_of(program, patterns)
    owner = np.repeat(np.arange(len(patterns)), np.diff(start))
    kept = index >= program.demand.num_gpu_types
    owner, row = owner[kept], index[kept]
    order = np.lexsort((cost[owner], row))
    row, owner = row[order], owner[order]
    first = np.searchsorted(row, row, side="left")
    return patterns[np.unique(owner[np.arange(len(row)) - first < most])]


def relax(program: PatternProgram, start: Ints | None = None) -> SolvedRelaxation | None:
    """Solve the linear relaxation over all patterns; None where HiGHS fails."""
    columns = first_columns(program) if start is None else start
    inside = np.zeros(program.num_columns, dtype=np.bool_)
    inside[columns] = True
    highs = highs_of()
    highs.passModel(part_of(program, columns, whole=False))
    rounds = 0
    while True:
        highs.run()
        rounds += 1
        if highs.modelStatusToString(highs.getModelStatus()) != "Optimal":
            return None
        found = highs.getSolution()
        duals = np.asarray(found.row_dual)
        reduced = reduced_costs_w(program, duals)
        missing = np.flatnonzero((reduced < NEGATIVE_W) & ~inside)
        if not len(missing):
            break
        added = best_per_row(program, missing, reduced[missing], ADDED_PER_PLACE)
        begin, index, value = entries_of(program, added)
        highs.addCols(
            len(added), program.cost_mw[added] / 1000.0, np.zeros(len(added)),
            program.upper[added], len(index), begin, index, value,
        )  # fmt: skip
        inside[added] = True
        columns = np.concatenate([columns, added])
    values = np.zeros(program.num_columns)
    values[columns] = np.asarray(found.col_value)
    return SolvedRelaxation(values, duals, reduced, dual_value_mw(program, duals, reduced), rounds)


def dual_value_mw(program: PatternProgram, duals: Floats, reduced_w: Floats) -> float:
    """Return the bound that these duals prove, whatever their signs, less what rounding may add.

    Σ_i (y_i > 0 ? y_i lower_i : y_i upper_i) + Σ_j min(0, r_j) upper_j bounds every point."""
    sides = np.where(duals > 0, program.row_lower, program.row_upper)
    held = duals != 0
    with np.errstate(invalid="ignore"):
        rows = duals[held] * sides[held]
    # A dual of the wrong sign by rounding meets an infinite side; it counts as 0.
    rows = rows[np.isfinite(rows)]
    columns = np.minimum(reduced_w, 0.0) * program.upper
    value = 1000.0 * (rows.sum() + columns.sum())
    slack = 1e-12 * 1000.0 * (np.abs(rows).sum() + np.abs(columns).sum())
    return float(value - slack) + program.constant_mw


@dataclass(frozen=True, eq=False)
class WholeResult:
    """The best whole point over some columns, and a bound on all points over them, in mW."""

    point: Ints | None
    value_mw: int
    bound_mw: float


def best_whole(
    program: PatternProgram,
    columns: Ints,
    time_limit_s: float,
    gap_mw: float,
    known: Ints | None = None,
) -> WholeResult:
    """Search the whole points over these columns."""
    import highspy

    highs = highs_of(
        time_limit=max(0.0, time_limit_s), mip_rel_gap=0.0, mip_abs_gap=max(gap_mw, 0.4) / 1000.0
    )
    highs.passModel(part_of(program, columns, whole=True))
    if known is not None:
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


def remaining_s(deadline: float) -> float:
    """Seconds left."""
    return deadline - time.perf_counter()
