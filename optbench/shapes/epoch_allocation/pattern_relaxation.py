"""The linear relaxation over all patterns by column generation, and the whole point below it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optbench.errors import ModelError
from optbench.shapes.colocation.allocations import NOBODY
from optbench.shapes.colocation.colocation_data import Floats, Ints
from optbench.shapes.epoch_allocation.pattern_program import PatternProgram
from optbench.shapes.epoch_allocation.pattern_solver import (
    SAME_NUMBER,
    entries_of,
    highs_of,
    part_of,
)

# With at most so many patterns the relaxation has all of them from the start.
MOST_AT_ONCE = 20_000
# Cheapest patterns of each place to begin with, and those of a place that one round adds.
FIRST_PER_PLACE, ADDED_PER_PLACE = 6, 3
# Reduced costs above this, in W, are none.
NEGATIVE_W = -1e-6


@dataclass(frozen=True, eq=False)
class SolvedPatterns:
    """Values of all columns, duals of rows, reduced costs in W and the bound in mW.

    ``duals`` are those of the plain relaxation, which certify ``plain_mw``; the bound and the
    reduced costs may come from the one whose number of waiting jobs was rounded up."""

    values: Floats
    duals: Floats
    plain_mw: float
    reduced_w: Floats
    bound_mw: float
    rounds: int


class PatternRelaxation:
    """The relaxation in HiGHS, which goes on from its last basis."""

    def __init__(self, program: PatternProgram, at_once: int = MOST_AT_ONCE) -> None:
        self.program = program
        self.columns = first_columns(program, at_once)
        self.rounds = 0
        # Other upper bounds follow from the rows, or from whole numbers. Without them the duals
        # price GPUs and jobs alone (``dual_prices``).
        self._upper = np.full(program.num_columns, np.inf)
        self._upper[program.column_begin[3] :] = program.upper[program.column_begin[3] :]
        self._highs = highs_of()
        lp = part_of(program, self.columns, whole=False)
        lp.col_upper_ = self._upper[self.columns]
        self._highs.passModel(lp)

    def solve(self) -> SolvedPatterns:
        """Solve the relaxation. Where a fraction of a job waits, and no point of the relaxation
        has fewer whole jobs that wait, their number is rounded up and it is solved again.
        """
        duals, reduced = self._priced()
        plain = dual_value_mw(self.program, duals, reduced)
        values = self._values()
        out = SolvedPatterns(values, duals, plain, reduced, plain, self.rounds)
        waits = float(values[self.program.column_begin[3] :].sum())
        fewer = float(np.floor(waits + SAME_NUMBER))
        if waits - fewer > SAME_NUMBER and self._must_exceed(fewer):
            return self.with_waiting(out, fewer + 1.0)
        return out

    def with_waiting(self, plain: SolvedPatterns, number: float) -> SolvedPatterns:
        """Solve again with the row that at least so many jobs wait, which holds of whole points."""
        program = self.program
        free = np.arange(len(self.columns), dtype=np.int32)
        upper = self._upper[self.columns]
        self._highs.changeColsBounds(len(free), free, np.zeros(len(free)), upper)
        self._bound_waiting(number, np.inf)
        duals, reduced = self._priced()
        row = 1000.0 * max(0.0, float(duals[-1])) * number
        rest = dual_value_mw(program, duals[: program.num_rows], reduced)
        bound = max(plain.bound_mw, rest + row * (1.0 - 1e-12))
        return replace(
            plain, values=self._values(), reduced_w=reduced, bound_mw=bound, rounds=self.rounds
        )

    def floor_point(self, values: Floats) -> Ints:
        """Return a whole point that uses each pattern as often as the values say, rounded down;
        jobs with replicas wait.
        """
        program, count = self.program, self.program.patterns.count
        patterns, several = program.patterns, program.groups.several
        low = np.floor(values[:count] + SAME_NUMBER)
        low[several[patterns.group]] = 0.0
        low[(patterns.other != NOBODY) & several[patterns.other]] = 0.0
        lower, upper = np.zeros(program.num_columns), self._upper.copy()
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
            status = self._status()
            if status not in ("Optimal", "Empty"):
                raise ModelError(
                    f"HiGHS ends with {status!r} on the relaxation of an allocation with "
                    f"{program.demand.jobs.count:,} jobs, which has an optimum; its prices range "
                    f"up to {np.abs(program.cost_mw).max() / 1000.0:g} W: use smaller ones"
                )
            duals = np.asarray(self._highs.getSolution().row_dual)
            reduced = reduced_costs_w(program, duals)
            missing = np.flatnonzero((reduced < NEGATIVE_W) & ~inside)
            if not len(missing):
                return duals, reduced
            added = best_per_row(program, missing, reduced[missing], ADDED_PER_PLACE)
            begin, index, value = entries_of(program, added)
            self._highs.addCols(
                len(added), program.cost_mw[added] / 1000.0, np.zeros(len(added)),
                self._upper[added], len(index), begin, index, value,
            )  # fmt: skip
            inside[added] = True
            self.columns = np.concatenate([self.columns, added])

    def _status(self) -> str:
        status: str = self._highs.modelStatusToString(self._highs.getModelStatus())
        return status

    def _values(self) -> Floats:
        values = np.zeros(self.program.num_columns)
        values[self.columns] = np.asarray(self._highs.getSolution().col_value)
        return values

    def _must_exceed(self, number: float) -> bool:
        """Whether no point of the relaxation has so few waiting jobs."""
        if len(self.columns) < self.program.num_columns:  # a pattern might be missing
            return False
        self._bound_waiting(-np.inf, number)
        self._highs.run()
        found = self._status() == "Infeasible"
        self._bound_waiting(-np.inf, np.inf)
        return found

    def _bound_waiting(self, least: float, most: float) -> None:
        """Bound the number of waiting jobs by the row behind those of the programme."""
        program = self.program
        if self._highs.getNumRow() > program.num_rows:
            self._highs.changeRowBounds(program.num_rows, least, most)
            return
        waiting = np.flatnonzero(self.columns >= program.column_begin[3]).astype(np.int32)
        self._highs.addRow(least, most, len(waiting), waiting, np.ones(len(waiting)))


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
