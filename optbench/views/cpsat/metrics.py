"""Metrics as linear expressions and piecewise linear functions of the model's variables.

    makespan       M ≥ e_i
    energy         Σ x_ik (energy_ik − step p_ik Σ_r rest_r n_ikr) + Σ_edges Σ_ab joule_ab y_ab + step Σ_r rest_r count_r H
    flow time      step Σ w_i (e_i − release_i)
    tardiness      step Σ w_i t_i,   t_i ≥ e_i − deadline_i,  t_i ≥ 0
    cost, carbon   Σ x_ik g_ik(s_i) + Σ y_ab joule_ab rate_a(e_i) + G(H),   all over 3.6e6 J
                   g_ik(s) = energy_ik/p_ik ∫_s^{s+p_ik} rate_a dt − step Σ_r rest_r n_ikr ∫_s^{s+p_ik} rate_r dt
                   G(H) = step Σ_r rest_r count_r ∫_0^H rate_r dt

H is the fixed horizon or M. Rates are piecewise constant with whole-tick changes, so that g and G are linear between whole
ticks: each becomes an integer variable above the line of the piece its argument lies in (chosen by one literal per piece).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from ortools.sat.python import cp_model

from optbench.model.instance import Floats, Tariffs
from optbench.model.metrics import J_PER_KWH, integral, mean_rate, rate_at
from optbench.views.cpsat.draft import Decision, Draft, Expression, Literal

Transfers = list[tuple[float, Literal, int, int]]


@dataclass(frozen=True)
class Piece:
    """A line over the whole ticks from ``first`` to ``last``, by its values at both."""

    first: int
    last: int
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Curve:
    """A piecewise linear function of a time, counted only when ``literal`` holds."""

    name: str
    argument: Expression
    time: Callable[[Decision], int]
    literal: Literal
    counts: Callable[[Decision], int]
    pieces: tuple[Piece, ...]


@dataclass(eq=False)
class Affine:
    """constant + Σ coefficient · variable + Σ weight · curve; variables are non-negative, with their upper bounds."""

    constant: float = 0.0
    coefficient: dict[int, float] = field(default_factory=dict)
    variable: dict[int, tuple[cp_model.IntVar, int]] = field(default_factory=dict)
    curves: list[tuple[float, Curve]] = field(default_factory=list)

    def add(self, coefficient: float, variable: cp_model.IntVar | None, upper: int = 1) -> None:
        """Add a term; variable None is a literal that always holds."""
        if variable is None:
            self.constant += coefficient
        elif coefficient != 0.0:
            key = variable.index
            self.coefficient[key] = self.coefficient.get(key, 0.0) + coefficient
            self.variable[key] = (variable, upper)

    def take(self, other: Affine, weight: float) -> None:
        """Add a multiple of another sum."""
        self.constant += weight * other.constant
        for key, value in other.coefficient.items():
            self.add(weight * value, *other.variable[key])
        self.curves += [(weight * factor, curve) for factor, curve in other.curves]


def metric(draft: Draft, name: str, transfers: Transfers) -> Affine:
    """One metric of METRICS."""
    if name in ("makespan", "makespan_s"):
        out = Affine()
        out.add(1.0 if name == "makespan" else draft.instance.step_s, draft.makespan, draft.last)
        return out
    if name == "energy_j":
        return _energy(draft, transfers)
    if name == "flow_time_s":
        return _flow_time(draft)
    if name == "tardiness_s":
        return _tardiness(draft)
    tariffs = draft.instance.tariffs
    assert tariffs is not None, f"{name} without tariffs"
    rates = tariffs.price_usd_per_kwh if name == "cost_usd" else tariffs.carbon_g_per_kwh
    return _Tariff(draft, tariffs, rates, name).total(transfers)


def _choose(draft: Draft, out: Affine, task: int, value: dict[int, float]) -> None:
    """Add Σ_k value_k x_k of one task; since Σ x = 1 the least value is a constant, and what is left is not negative."""
    least = min(value.values(), default=0.0)
    out.constant += least
    for row, amount in value.items():
        out.add(amount - least, draft.present[row])


def _energy(draft: Draft, transfers: Transfers) -> Affine:
    instance, out = draft.instance, Affine()
    step, energy, rest_w = instance.step_s, instance.pairs.energy_j.tolist(), instance.mode_rest_w.tolist()
    for task in range(instance.num_tasks):
        rows = draft.rows(task)
        _choose(draft, out, task, {row: energy[row] - step * draft.duration[row] * rest_w[draft.mode[row]] for row in rows})
    for joule, literal, _, _ in transfers:
        out.add(joule, literal)
    resting = step * math.fsum((instance.pools.rest_w * instance.pools.count).tolist())
    if instance.horizon is not None:
        out.constant += resting * instance.horizon
    elif resting:
        out.add(resting, draft.makespan, draft.last)
    return out


def _flow_time(draft: Draft) -> Affine:
    tasks, step, out = draft.instance.tasks, draft.instance.step_s, Affine()
    for task, (weight, release) in enumerate(zip(tasks.weight.tolist(), tasks.release.tolist(), strict=True)):
        if weight == 0.0:
            continue
        rows, (_, latest) = draft.rows(task), draft.end_range[task]
        shortest = min((draft.duration[row] for row in rows), default=0)
        if isinstance(draft.end[task], cp_model.IntVar):
            out.add(weight * step, draft.end[task], latest)
            out.constant -= weight * step * release
        else:
            out.add(weight * step, draft.start[task], latest - shortest)
            out.constant += weight * step * (shortest - release)
    return out


def _tardiness(draft: Draft) -> Affine:
    tasks, step, out = draft.instance.tasks, draft.instance.step_s, Affine()
    due = np.isfinite(tasks.deadline) & ~tasks.deadline_hard & (tasks.weight > 0)
    for task in np.flatnonzero(due).tolist():
        deadline, (_, latest) = int(tasks.deadline[task]), draft.end_range[task]
        if latest <= deadline:
            continue
        late = draft.integer(
            0, latest - deadline, f"late{task}", lambda d, i=task, t=deadline: max(0, d.end[i] - t)  # type: ignore[misc]
        )
        draft.model.add(late >= draft.end[task] - deadline)
        out.add(float(tasks.weight[task]) * step, late, latest - deadline)
    return out


@dataclass(eq=False)
class _Tariff:
    """Cost or carbon: the power of everything weighed with its pool's rate at the time."""

    draft: Draft
    tariffs: Tariffs
    rates: Floats
    name: str

    def total(self, transfers: Transfers) -> Affine:
        draft, out = self.draft, Affine()
        for task in range(draft.instance.num_tasks):
            constant: dict[int, float] = {}
            for row in draft.rows(task):
                curve = self._segment(task, row)
                if len(curve.pieces) == 1 and curve.pieces[0].low == curve.pieces[0].high:
                    constant[row] = curve.pieces[0].low
                else:
                    constant[row] = 0.0
                    out.curves.append((1.0, curve))
            _choose(draft, out, task, constant)
        for e, (joule, literal, task, pool) in enumerate(transfers):
            self._transfer(out, e, joule, literal, task, pool)
        self._resting(out)
        return out

    def _pieces(self, low: int, high: int, shifts: Iterable[int], value: Callable[[Floats], Floats]) -> tuple[Piece, ...]:
        """Cut [low, high] where a rate changes, now or one of the shifts later; a constant neighbour is joined."""
        knots = {low, high + 1} | {int(t) - shift for t in self.tariffs.times for shift in shifts}
        cuts = sorted(t for t in knots if low <= t <= high + 1)
        out: list[Piece] = []
        for first, after in pairwise(cuts):
            a, b = (float(v) / J_PER_KWH for v in value(np.asarray([first, after - 1], dtype=float)))
            if out and out[-1].low == out[-1].high == a == b:
                out[-1] = Piece(out[-1].first, after - 1, a, b)
            else:
                out.append(Piece(first, after - 1, a, b))
        return tuple(out)

    def _segment(self, task: int, row: int) -> Curve:
        draft, instance, times = self.draft, self.draft.instance, self.tariffs.times
        length, primary = draft.duration[row], draft.primary[row]
        energy, needs = float(instance.pairs.energy_j[row]), draft.needs[draft.mode[row]]
        rest_w = instance.pools.rest_w

        def value(s: Floats) -> Floats:
            out = np.zeros(len(s)) if primary < 0 else energy * mean_rate(times, self.rates[primary], s, s + length)
            for pool, n in needs.items():
                spent = integral(times, self.rates[pool], s + length) - integral(times, self.rates[pool], s)
                out = out - instance.step_s * float(rest_w[pool]) * n * spent
            return out

        low = int(draft.window.head[task])
        high = max(low, draft.end_range[task][1] - length)
        if primary < 0 or len(times) == 1:
            middle = float(value(np.asarray([float(low)]))[0]) / J_PER_KWH
            pieces: tuple[Piece, ...] = (Piece(low, high, middle, middle),)
        else:
            pieces = self._pieces(low, high, (0, length), value)
        name = f"{self.name}{task}_{draft.mode[row]}"
        literal, counts = draft.present[row], lambda d: int(d.row[task] == row)
        return Curve(name, draft.start[task], lambda d: d.start[task], literal, counts, pieces)

    def _transfer(self, out: Affine, e: int, joule: float, literal: Literal, task: int, pool: int) -> None:
        draft, times = self.draft, self.tariffs.times
        low, high = draft.end_range[task]
        pieces = self._pieces(low, high, (0,), lambda t: joule * rate_at(times, self.rates[pool], t))
        if len(pieces) == 1:
            out.add(pieces[0].low, literal)
            return
        curve = Curve(f"{self.name}_sent{e}", draft.end[task], lambda d: d.end[task], literal, draft.value_of(literal), pieces)
        out.curves.append((1.0, curve))

    def _resting(self, out: Affine) -> None:
        draft, instance, times = self.draft, self.draft.instance, self.tariffs.times
        power = instance.step_s * instance.pools.rest_w * instance.pools.count

        def value(t: Floats) -> Floats:
            return np.asarray(power @ np.stack([integral(times, rates, t) for rates in self.rates]), dtype=float)

        if not (power > 0).any():
            return
        if instance.horizon is not None:
            out.constant += float(value(np.asarray([float(instance.horizon)]))[0]) / J_PER_KWH
        elif len(times) == 1:
            out.add(float(value(np.asarray([1.0]))[0]) / J_PER_KWH, draft.makespan, draft.last)
        else:
            low = min(int(draft.window.critical_path), draft.last)
            pieces = self._pieces(low, draft.last, (0,), value)
            out.curves.append((1.0, Curve(f"{self.name}_rest", draft.makespan, lambda d: d.makespan, None, lambda d: 1, pieces)))
