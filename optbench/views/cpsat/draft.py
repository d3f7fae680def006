"""The decision variables of the CP model and the variables that depend on them.

    s_i ∈ [head_i, T − tail_i − shortest_i]  start;  s_i ≥ Σ_k ready_ik x_ik where ingress latencies
                                             differ
    x_ik ∈ {0, 1},  Σ_k x_ik = 1             mode, one literal per row of ``instance.pairs`` that no
                                             other replaces
    e_i = s_i + Σ_k p_ik x_ik                end

**Coarse times.** With more ticks than MAX_TICKS_EXPONENT allows, the model is a relaxation in ticks
that are ``coarse`` = g times as long: s' = floor(s/g); durations, lags, ingress latencies,
deadlines and the end are rounded down. It contains every schedule:

- floor(s/g) + floor(p/g) ≤ floor((s + p)/g) keeps precedence, deadlines and the end;
- tasks that run together at coarse tick t ran together at tick g (t + 1) − 1, which keeps pools,
and power caps where modes do
  not draw less than rest (resources.py).

Metrics use the true energies and g e' ≤ e, so that a bound of the model is one of the instance. A
solution is an order and modes: ``CpsatView.schedule`` starts tasks in that order as early as the
true times allow.

Every further variable is a function of these, and is registered with that function, so that a
schedule becomes a complete hint. A literal that is always true is written None.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from optbench.errors import UnsupportedError
from optbench.model.dominance import dominating_rows
from optbench.model.instance import Instance
from optbench.model.windows import Windows, time_horizon, windows
from optbench.views.cpsat.scaling import guard

# Times stay below 2^31, as coefficients do (scaling.py): where a product of two coefficients left
# 64 bits, the probing of CP-SAT 9.15 cut off optima (durations of 2^39 ticks beside a limit with
# coefficients of 2^29), and its time limit did not work.
MAX_TICKS_EXPONENT = 31
# OR-Tools' own stubs reject sums of its expressions.
Expression = Any
# A Boolean variable; None is always true.
Literal = cp_model.IntVar | None
Value = Callable[["DraftSchedule"], int]


@dataclass(frozen=True)
class DraftSchedule:
    """A schedule in the model's terms: row of ``instance.pairs``, start and end of every task."""

    row: list[int]
    start: list[int]
    end: list[int]

    @property
    def makespan(self) -> int:
        return max(self.end)


def coarsening_factor(last_tick: int) -> int:
    """Return the least power of two such that the last tick, divided by it and rounded down, is
    below 2^MAX_TICKS_EXPONENT.
    """
    return int(2 ** max(0, last_tick.bit_length() - MAX_TICKS_EXPONENT))


def coarsened(known: Windows, coarse: int) -> Windows:
    """Return windows in coarse ticks, rounded down."""
    if coarse == 1:
        return known
    columns = (known.shortest, known.longest, known.head, known.tail, known.edge_lag)
    return Windows(*(np.floor(column / coarse) for column in columns))


@dataclass(eq=False)
class Draft:
    """A CP model under construction."""

    instance: Instance
    inner: bool
    window: Windows
    last: int
    coarse: int = 1
    model: cp_model.CpModel = field(default_factory=cp_model.CpModel)
    start: list[cp_model.IntVar] = field(default_factory=list)
    end: list[Expression] = field(default_factory=list)
    end_range: list[tuple[int, int]] = field(default_factory=list)
    present: list[Literal] = field(default_factory=list)
    values: list[tuple[cp_model.IntVar, Value]] = field(default_factory=list)
    _unions: dict[tuple[int, ...], cp_model.IntVar] = field(default_factory=dict)
    _intervals: dict[tuple[int, ...], cp_model.IntervalVar] = field(default_factory=dict)
    pieces: dict[tuple[str, int, tuple[int, ...]], list[tuple[Literal, Literal]]] = field(
        default_factory=dict
    )
    _function: dict[int, Value] = field(default_factory=dict)
    _makespan: cp_model.IntVar | None = None

    def __post_init__(self) -> None:
        pairs = self.instance.pairs
        self.ptr: list[int] = pairs.ptr.tolist()
        self.stand_in: list[int] = dominating_rows(self.instance).tolist()
        self.present = [None] * len(self.stand_in)
        kept = [[r for r in range(a, b) if self.stand_in[r] == r] for a, b in pairwise(self.ptr)]
        self._rows = [tuple(rows) for rows in kept]
        self.ticks: list[int] = [int(d) for d in pairs.duration.tolist()]
        self.duration: list[int] = [d // self.coarse for d in self.ticks]
        self.ready: list[float] = (pairs.ready // self.coarse).tolist()
        self.mode: list[int] = pairs.mode.tolist()
        self.primary: list[int] = self.instance.modes.primary[pairs.mode].tolist()
        modes = self.instance.modes
        pool, count, ptr = modes.req_pool.tolist(), modes.req_count.tolist(), modes.req_ptr.tolist()
        self.needs: list[dict[int, int]] = [
            dict(zip(pool[ptr[k] : ptr[k + 1]], count[ptr[k] : ptr[k + 1]], strict=True))
            for k in range(self.instance.num_modes)
        ]

    @classmethod
    def of(cls, instance: Instance, inner: bool) -> Draft:
        """Create the decision variables of an instance; refuse features that CP-SAT cannot
        express.
        """
        if instance.preemptive:
            raise UnsupportedError(
                f"the CP model cannot interrupt tasks, {instance.name!r} is preemptive; use a "
                "policy"
            )
        horizon = time_horizon(instance)
        guard(horizon * 4, "times")
        last = math.floor(horizon)
        if instance.horizon is not None:
            last = min(last, math.floor(instance.horizon))
        coarse = coarsening_factor(last)
        if coarse > 1 and ("tariffs" in instance.features or inner):
            raise UnsupportedError(
                f"the CP model of {instance.name!r} needs {last:,} ticks, more than "
                f"2^{MAX_TICKS_EXPONENT}, "
                "and prices that vary cannot be coarsened with a valid bound; use a longer "
                "tick_s, or -s lp_guided"
            )
        draft = cls(instance, inner, coarsened(windows(instance), coarse), last // coarse, coarse)
        for task in range(instance.num_tasks):
            draft._add_task(task)
        return draft

    def rows(self, task: int) -> tuple[int, ...]:
        """Return the task's rows of ``instance.pairs``, without those that another replaces."""
        return self._rows[task]

    def row_of(self, task: int, mode: int) -> int:
        """Return the row in which the model runs a task that a schedule has in this mode."""
        return self.stand_in[
            next(row for row in range(self.ptr[task], self.ptr[task + 1]) if self.mode[row] == mode)
        ]

    def integer(
        self, low: int, high: int, name: str, value: Value | None = None
    ) -> cp_model.IntVar:
        """Create a variable; an empty range makes the model infeasible."""
        if low > high:
            self.model.add_bool_or([])
            high = low
        var = self.model.new_int_var(low, high, name)
        if value is not None:
            self.register(var, value)
        return var

    def register(self, var: cp_model.IntVar, value: Value) -> None:
        """Register the value of a variable as a function of the decision."""
        self.values.append((var, value))
        self._function[var.index] = value

    def literal(self, name: str, value: Value) -> cp_model.IntVar:
        var = self.model.new_bool_var(name)
        self.register(var, value)
        return var

    def value_of(self, literal: Literal) -> Value:
        """Return the function with which a literal was registered."""
        if literal is None:
            return lambda d: 1
        return self._function[literal.index]

    def _add_task(self, task: int) -> None:
        """Add start, modes and end of one task."""
        w, rows, tasks = self.window, self.rows(task), self.instance.tasks
        # No mode or no link on a path through it.
        if math.isinf(w.head[task] + w.tail[task] + w.shortest[task]):
            self.model.add_bool_or([])
            w = self.window = Windows(
                w.shortest, w.longest, np.zeros_like(w.head), np.zeros_like(w.tail), w.edge_lag
            )
        low, latest = int(w.head[task]), self.last - int(w.tail[task])
        if tasks.deadline_hard[task] and math.isfinite(tasks.deadline[task]):
            latest = min(latest, int(tasks.deadline[task]) // self.coarse)
        lengths = [self.duration[row] for row in rows] or [0]
        shortest, longest = min(lengths), max(lengths)
        start = self.integer(low, latest - shortest, f"s{task}", lambda d: d.start[task])
        self.start.append(start)
        if len(rows) != 1:
            literals = [
                self.literal(
                    f"x{task}_{self.mode[row]}",
                    lambda d, row=row: int(d.row[task] == row),  # type: ignore[misc]
                )
                for row in rows
            ]
            self.model.add_exactly_one(literals)
            for row, literal in zip(rows, literals, strict=True):
                self.present[row] = literal
        ready = [int(self.ready[row]) for row in rows]
        if any(time > max(low, min(ready)) for time in ready):
            self.model.add(
                start >= sum(time * self.at(row) for time, row in zip(ready, rows, strict=True))
            )
        self.end_range.append((low + shortest, max(latest, low + shortest)))
        if shortest == longest:
            self.end.append(start + shortest)
            return
        end = self.integer(low + shortest, latest, f"e{task}", lambda d: d.end[task])
        self.model.add(end == start + sum(self.duration[row] * self.at(row) for row in rows))
        self.end.append(end)

    def at(self, row: int) -> Expression:
        """Return the literal of a row as a number."""
        literal = self.present[row]
        return 1 if literal is None else literal

    def any_of(self, task: int, rows: Iterable[int]) -> Literal:
        """Return a literal that is true if the task runs in one of these rows."""
        key = tuple(rows)
        if len(key) == len(self.rows(task)):
            return None
        if len(key) == 1:
            return self.present[key[0]]
        if key not in self._unions:
            chosen = frozenset(key)
            union = self.literal(
                f"u{task}_" + "_".join(str(self.mode[row]) for row in key),
                lambda d: int(d.row[task] in chosen),
            )
            self.model.add(sum(self.at(row) for row in key) == union)
            self._unions[key] = union
        return self._unions[key]

    def interval(self, task: int, rows: Iterable[int]) -> cp_model.IntervalVar:
        """Return the task's interval while it runs in one of these rows: all of one length, or all
        rows of the task.
        """
        key = tuple(rows)
        if key not in self._intervals:
            lengths = {self.duration[row] for row in key}
            literal, start = self.any_of(task, key), self.start[task]
            name = f"i{task}_{self.mode[key[0]]}_{len(key)}"
            if len(lengths) == 1:
                size = lengths.pop()
                self._intervals[key] = (
                    self.model.new_fixed_size_interval_var(start, size, name)
                    if literal is None
                    else self.model.new_optional_fixed_size_interval_var(start, size, literal, name)
                )
            else:
                size_var = self.integer(
                    min(lengths), max(lengths), f"d{task}", lambda d: d.end[task] - d.start[task]
                )
                self._intervals[key] = self.model.new_interval_var(
                    start, size_var, self.end[task], name
                )
        return self._intervals[key]

    def occupations(
        self, task: int, demand: Mapping[int, int]
    ) -> list[tuple[cp_model.IntervalVar, int]]:
        """Return intervals with each row's positive demand, rows of one length and demand
        merged.
        """
        groups: dict[tuple[int, int], list[int]] = {}
        for row, amount in demand.items():
            if amount > 0 and self.duration[row] > 0:
                groups.setdefault((self.duration[row], amount), []).append(row)
        amounts = {amount for _, amount in groups}
        if (
            len(groups) > 1
            and len(amounts) == 1
            and sum(map(len, groups.values())) == len(self.rows(task))
        ):
            return [(self.interval(task, self.rows(task)), amounts.pop())]
        return [(self.interval(task, rows), amount) for (_, amount), rows in groups.items()]

    def spanning(
        self, start: Expression, end: Expression, literal: Expression, name: str
    ) -> cp_model.IntervalVar:
        """Return an interval from one affine time to another."""
        size = end - start
        if literal is None:
            return self.model.new_interval_var(start, size, end, name)
        return self.model.new_optional_interval_var(start, size, end, literal, name)

    @property
    def makespan(self) -> cp_model.IntVar:
        """Return M ≥ e_i, created on first use; everything in which it is used rises with it."""
        if self._makespan is None:
            low = min(int(self.window.critical_path), self.last)
            self._makespan = self.integer(low, self.last, "makespan", lambda d: d.makespan)
            for end in self.end:
                self.model.add(self._makespan >= end)
        return self._makespan

    @property
    def has_makespan(self) -> bool:
        return self._makespan is not None
