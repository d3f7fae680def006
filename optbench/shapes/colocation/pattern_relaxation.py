"""The linear relaxation over all patterns by column generation, and the whole point below it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from optbench.shapes.colocation.allocations import NOBODY
from optbench.shapes.colocation.colocation_data import Floats, Ints
from optbench.shapes.colocation.pattern_program import PatternProgram
from optbench.shapes.colocation.pattern_solver import entries_of, highs_of, part_of

# With at most so many patterns the relaxation has all of them from the start.
MOST_AT_ONCE = 20_000
# Cheapest patterns of each place to begin with, and those of a place that one round adds.
FIRST_PER_PLACE, ADDED_PER_PLACE = 6, 3
# Reduced costs above this, in W, are none.
NEGATIVE_W = -1e-6
# Numbers this close to whole ones are whole.
SAME_NUMBER = 1e-6


@dataclass(frozen=True, eq=False)
class SolvedRelaxation:
    """Values of all columns, duals of rows, reduced costs in W and the bound in mW.

    ``duals`` are those of the plain relaxation, which certify ``plain_mw``; the bound and the
    reduced costs may come from the one whose number of waiting jobs was rounded up."""

    values: Floats
    duals: Floats
    plain_mw: float
    reduced_w: Floats
    bound_mw: float
    rounds: int


class Relaxation:
    """The relaxation in HiGHS, which goes on from its last basis."""

    def __init__(self, program: PatternProgram, at_once: int = MOST_AT_ONCE) -> None:
        self.program = program
        self.columns = first_columns(program, at_once)
        self.rounds = 0
        self._highs = highs_of()
        self._highs.passModel(part_of(program, self.columns, whole=False))

    def solve(self) -> SolvedRelaxation:
        """Solve the relaxation. Where a fraction of a job waits, and no point of the relaxation
        has fewer whole jobs that wait, their number is rounded up and it is solved again.
        """
        program = self.program
        duals, reduced = self._priced()
        plain = dual_value_mw(program, duals, reduced)
        bound, values = plain, self._values()
        waits = float(values[program.column_begin[3] :].sum())
        fewer = float(np.floor(waits + SAME_NUMBER))
        if waits - fewer > SAME_NUMBER and self._must_exceed(fewer):
            rows, reduced = self._priced()
            row = 1000.0 * max(0.0, float(rows[-1])) * (fewer + 1.0)
            rest = dual_value_mw(program, rows[: program.num_rows], reduced)
            bound = max(bound, rest + row * (1.0 - 1e-12))
            values = self._values()
        return SolvedRelaxation(values, duals, plain, reduced, bound, self.rounds)

    def floor_point(self, values: Floats) -> Ints:
        """Return a whole point that uses each pattern as often as the values say, rounded down;
        jobs with replicas wait.
        """
        program, count = self.program, self.program.patterns.count
        patterns, several = program.patterns, program.groups.several
        low = np.floor(values[:count] + SAME_NUMBER)
        low[several[patterns.group]] = 0.0
        low[(patterns.other != NOBODY) & several[patterns.other]] = 0.0
        lower, upper = np.zeros(program.num_columns), program.upper.copy()
        lower[:count] = upper[:count] = low
        lower[program.is_choice] = 1.0
        number = np.arange(len(self.columns), dtype=np.int32)
        self._highs.changeColsBounds(len(number), number, lower[self.columns], upper[self.columns])
        self._highs.run()
        return np.rint(self._values()).astype(np.int64)

    def _priced(self) -> tuple[Floats, Floats]:
        """Solve by column generation; return duals and reduced costs."""
        program = self.program
        inside = np.zeros(program.num_columns, dtype=np.bool_)
        inside[self.columns] = True
        while True:
            self._highs.run()
            self.rounds += 1
            duals = np.asarray(self._highs.getSolution().row_dual)
            reduced = reduced_costs_w(program, duals)
            missing = np.flatnonzero((reduced < NEGATIVE_W) & ~inside)
            if not len(missing):
                return duals, reduced
            added = best_per_row(program, missing, reduced[missing], ADDED_PER_PLACE)
            begin, index, value = entries_of(program, added)
            self._highs.addCols(
                len(added), program.cost_mw[added] / 1000.0, np.zeros(len(added)),
                program.upper[added], len(index), begin, index, value,
            )  # fmt: skip
            inside[added] = True
            self.columns = np.concatenate([self.columns, added])

    def _values(self) -> Floats:
        values = np.zeros(self.program.num_columns)
        values[self.columns] = np.asarray(self._highs.getSolution().col_value)
        return values

    def _must_exceed(self, number: float) -> bool:
        """Whether more jobs must wait; the relaxation then has a row that says so."""
        program = self.program
        if len(self.columns) < program.num_columns:  # a pattern might be missing
            return False
        waiting = np.flatnonzero(self.columns >= program.column_begin[3]).astype(np.int32)
        self._highs.addRow(-np.inf, number, len(waiting), waiting, np.ones(len(waiting)))
        self._highs.run()
        status = self._highs.modelStatusToString(self._highs.getModelStatus())
        found: bool = status == "Infeasible"
        low = number + 1.0 if found else -np.inf
        self._highs.changeRowBounds(program.num_rows, low, np.inf)
        return found


def reduced_costs_w(program: PatternProgram, duals: Floats) -> Floats:
    """Return the reduced cost of every column."""
    out = program.cost_mw / 1000.0
    if len(duals) > program.num_rows:  # the row of the number of waiting jobs
        out[program.column_begin[3] :] -= duals[-1]
    used = np.flatnonzero(np.diff(program.start))
    if len(used):
        paid = np.add.reduceat(program.value * duals[program.index], program.start[used])
        out[used] -= paid
    return out


def first_columns(program: PatternProgram, at_once: int) -> Ints:
    """Return the columns to begin with: all that are no patterns, and the cheapest patterns."""
    count = program.patterns.count
    others = np.arange(count, program.num_columns)
    if count <= at_once:
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
