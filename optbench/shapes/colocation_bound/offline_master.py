"""Column generation for the offline LP: good multipliers, in floats; the proof needs no more.

HiGHS solves the LP over some columns. Its duals price all columns, those that earn most per GPU
type, class and bin are added, and so on until the value that the multipliers prove is within
``GAP`` of the LP's own, or time is up. The best multipliers on the way are returned.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optbench.shapes.colocation.colocation_data import Floats, Ints
from optbench.shapes.colocation_bound.offline_proof import (
    OfflineMultipliers,
    column_values,
    float_value,
    paced,
    taken,
)
from optbench.shapes.colocation_bound.offline_relaxation import OfflineRelaxation

GAP = 1e-5
# A column is added where it earns more than this share of the power of a GPU.
EARNS = 1e-6
MOST_ROUNDS = 200


@dataclass
class _Rows:
    """Sides of the LP's rows in HiGHS, and the first row of each kind."""

    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)

    def add(self, lower: Floats, upper: Floats | float) -> Ints:
        begin = len(self.lower)
        self.lower.extend(np.broadcast_to(lower, np.shape(lower)).ravel().tolist())
        self.upper.extend(np.broadcast_to(upper, np.shape(lower)).ravel().tolist())
        return np.arange(begin, len(self.lower)).reshape(np.shape(lower))


@dataclass
class _Entries:
    """Columns to be added: costs, and the entries of each."""

    cost: list[float] = field(default_factory=list)
    start: list[int] = field(default_factory=list)
    row: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)

    def add(self, cost: float, entries: list[tuple[int, float]]) -> None:
        self.cost.append(cost)
        self.start.append(len(self.row))
        for row, value in entries:
            if value:
                self.row.append(row)
                self.value.append(value)


class OfflineMaster:
    """The LP over some of its columns. ``held`` brings the rows of shortfall in."""

    def __init__(
        self, lp: OfflineRelaxation, energy: bool, held: bool, time_limit_s: float
    ) -> None:
        import highspy

        self._lp, self._energy, self._held = lp, energy, held
        self._deadline = time.perf_counter() + time_limit_s
        # HiGHS refuses another number of threads than that of an earlier model of this process.
        highspy.Highs.resetGlobalScheduler(True)
        self._model = highspy.Highs()
        self._model.silent()
        self._model.setOptionValue("threads", 1)
        self._model.setOptionValue("solver", "simplex")
        self._have = [
            np.zeros((len(each.one), lp.demand.num_bins), dtype=np.bool_) for each in lp.columns
        ]
        self._soon = lp.present > 0
        self._make_rows()
        self._make_other_columns()
        for g, each in enumerate(lp.columns):
            self._add(g, *np.nonzero(np.repeat((each.other < 0)[:, None], lp.demand.num_bins, 1)))

    def _make_rows(self) -> None:
        lp, rows, inf = self._lp, _Rows(), np.inf
        self._capacity = rows.add(np.full(lp.capacity.shape, -inf), lp.capacity)
        self._work = rows.add(lp.needed if self._held else 0 * lp.needed, inf)
        self._time = rows.add(np.full(lp.limit.shape, -inf), lp.limit)
        self._total = rows.add(lp.work, inf)
        self._goal = np.full(lp.goal.shape, -1)
        self._lack = np.full(lp.limit.shape, -1)
        self._present = np.full(lp.limit.shape, -1)
        self._budget = -1
        if self._held:
            i, b = np.nonzero(self._goals())
            self._goal[i, b] = rows.add(lp.goal[i, b], inf)
            there = np.zeros(lp.limit.shape)
            np.add.at(there, lp.classes.of_job, lp.present)
            c, b = np.nonzero(there)
            self._lack[c, b] = rows.add(np.zeros(len(c)), inf)
            self._present[c, b] = rows.add(there[c, b], inf)
            budget = lp.budget_s if self._energy else inf
            self._budget = int(rows.add(np.array([-inf]), np.array([budget]))[0])
        empty: Any = np.zeros(0, dtype=np.int64)
        self._model.addRows(
            len(rows.lower),
            np.array(rows.lower),
            np.array(rows.upper),
            0,
            empty,
            empty,
            np.zeros(0),
        )

    def _goals(self) -> Any:
        """Goals that are not implied by the one a bin before."""
        lp = self._lp
        before = np.concatenate([np.zeros((len(lp.goal), 1)), lp.goal[:, :-1]], axis=1)
        return (lp.goal > before) & lp.startable

    def _make_other_columns(self) -> None:
        """Work of each job in each bin, shortfalls, and what is missing at a high price."""
        lp, entries = self._lp, _Entries()
        penalty = self._penalty()
        of = lp.classes.of_job
        for i, b in np.argwhere(lp.startable).tolist():
            later = [int(r) for r in self._goal[i, b:] if r >= 0]
            own = [(int(self._work[of[i], b]), -1.0), (int(self._total[i]), 1.0)]
            rows = self._present[of[i]]
            kept = np.flatnonzero((rows >= 0) & self._soon[i] & (np.arange(len(rows)) >= b))
            there = [(int(rows[k]), float(lp.share[i, k])) for k in kept.tolist()]
            entries.add(0.0, own + [(r, 1.0) for r in later] + there)
        for i in np.flatnonzero(lp.work > 0).tolist():
            entries.add(penalty, [(int(self._total[i]), 1.0)])
        if self._held:
            self._add_shortfalls(entries, penalty)
        self._add_entries(entries)

    def _add_shortfalls(self, entries: _Entries, penalty: float) -> None:
        lp = self._lp
        price = 0.0 if self._energy else 1.0
        for i, b in np.argwhere(lp.startable & (self._present[lp.classes.of_job] >= 0)).tolist():
            c = lp.classes.of_job[i]
            goals = [(int(r), float(lp.rate[i])) for r in self._goal[i, b:] if r >= 0]
            here = [(int(self._lack[c, b]), 1.0), (int(self._present[c, b]), 1.0)]
            entries.add(price, [*goals, *here, (self._budget, 1.0)])
        for c, b in np.argwhere(lp.needed > 0).tolist():
            need = (int(self._work[c, b]), float(lp.service_rate[c]))
            entries.add(price, [need, (self._budget, 1.0)])
        entries.add(penalty, [(self._budget, -1.0)])

    def _penalty(self) -> float:
        """Far above what a second of work or of shortfall can cost."""
        if not self._energy:
            return 1e3
        watts = max(
            (
                float((e.watts / np.maximum(e.rate_one, 1e-3)).max())
                for e in self._lp.columns
                if len(e.watts)
            ),
            default=1.0,
        )
        return 20.0 * max(watts, 1.0)

    def _add(self, g: int, which: Ints, bins: Ints) -> None:
        """Add columns of a GPU type in bins."""
        lp, each, entries = self._lp, self._lp.columns[g], _Entries()
        for p, b in zip(which.tolist(), bins.tolist(), strict=True):
            if self._have[g][p, b] or each.gpus[p] > lp.demand.most_gpus[g, b]:
                continue
            self._have[g][p, b] = True
            one, other = int(each.one[p]), int(each.other[p])
            if lp.limit[one, b] <= 0:
                continue
            rows = {int(self._capacity[g, b]): float(each.gpus[p])}
            members = [(one, each.rate_one[p], each.lack_one[p], each.credit_one[p])]
            if other >= 0:
                last = each.rate_other[p], each.lack_other[p], each.credit_other[p]
                members.append((other, *last))
            for c, rate, lack, credit in members:
                credit -= paced(rate, lp.pace[c, b], 1.0)
                for row, value in (
                    (self._work[c, b], rate),
                    (self._time[c, b], 1.0),
                    (self._lack[c, b], -lack),
                    (self._present[c, b], credit),
                ):
                    if row >= 0:
                        rows[int(row)] = rows.get(int(row), 0.0) + float(value)
            entries.add(float(each.watts[p]) if self._energy else 0.0, list(rows.items()))
        self._add_entries(entries)

    def _add_entries(self, entries: _Entries) -> None:
        n = len(entries.cost)
        if n:
            self._model.addCols(
                n,
                np.array(entries.cost),
                np.zeros(n),
                np.full(n, np.inf),
                len(entries.row),
                np.array(entries.start, dtype=np.int32),
                np.array(entries.row, dtype=np.int32),
                np.array(entries.value),
            )

    def multipliers(self) -> tuple[float, OfflineMultipliers]:
        """Return the best multipliers in the time, and the value that they give in floats."""
        best = (-np.inf, self._read(None))
        for _ in range(MOST_ROUNDS):
            left = self._deadline - time.perf_counter()
            if left <= 0:
                break
            if math.isfinite(left):
                self._model.setOptionValue("time_limit", self._model.getRunTime() + left)
            self._model.run()
            solved = self._model.getInfo()
            duals = self._model.getSolution().row_dual
            if len(duals) == 0 or not self._is_optimal():
                break
            given = self._read(np.array(duals))
            best = max(
                best, (float_value(self._lp, given, self._energy), given), key=lambda pair: pair[0]
            )
            optimum = solved.objective_function_value
            if optimum - best[0] <= GAP * abs(optimum) or not self._add_earning(given, duals):
                break
        return best

    def _is_optimal(self) -> bool:
        import highspy

        return bool(self._model.getModelStatus() == highspy.HighsModelStatus.kOptimal)

    def _read(self, duals: Any) -> OfflineMultipliers:
        """Multipliers from the duals of all rows: those that are missing are 0."""
        padded = np.zeros(1 + self._model.getNumRow())
        if duals is not None:
            padded[:-1] = duals
        of = {name: padded[getattr(self, name)] for name in ("_work", "_time", "_total")}
        service = np.where(self._lp.classes.is_service[:, None] & self._held, of["_work"], 0.0)
        return OfflineMultipliers(
            np.maximum(padded[self._goal], 0.0),
            np.maximum(of["_total"], 0.0),
            np.maximum(padded[self._present], 0.0),
            np.maximum(padded[self._lack], 0.0),
            np.maximum(service, 0.0),
            np.maximum(-of["_time"], 0.0),
        )

    def _add_earning(self, given: OfflineMultipliers, duals: Any) -> bool:
        """Add the best column of each class, where it earns more than its GPU time costs."""
        lp, found = self._lp, False
        duals = np.array(duals)
        work, gpu = np.maximum(duals[self._work], 0.0), np.maximum(-duals[self._capacity], 0.0)
        for g, each in enumerate(lp.columns):
            for b in range(lp.demand.num_bins):
                pairs = np.flatnonzero((each.other >= 0) & ~self._have[g][:, b])
                one, other = each.one[pairs], each.other[pairs]
                pairs = pairs[(work[one, b] > 0) & (work[other, b] > 0)]
                if not len(pairs) or lp.capacity[g, b] <= 0:
                    continue
                values = column_values(
                    taken(each, pairs), work, given, lp.pace, b, 1.0, self._energy
                )
                chosen = self._best_of_classes(each, pairs, values - gpu[g, b])
                found |= bool(len(chosen))
                self._add(g, chosen, np.full(len(chosen), b))
        return found

    def _best_of_classes(self, columns: Any, pairs: Ints, gains: Floats) -> Ints:
        good = gains > EARNS * (float(columns.watts.max()) if self._energy else 1.0)
        pairs, gains = pairs[good], gains[good]
        best = np.zeros(self._lp.classes.count)
        np.maximum.at(best, columns.one[pairs], gains)
        np.maximum.at(best, columns.other[pairs], gains)
        keep = (gains >= best[columns.one[pairs]]) | (gains >= best[columns.other[pairs]])
        out: Ints = pairs[keep]
        return out
