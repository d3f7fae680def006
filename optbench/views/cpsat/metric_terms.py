"""Metrics as linear expressions and piecewise linear functions of the model's variables.

    makespan       M ≥ e_i
    energy         Σ x_ik (energy_ik − step p_ik Σ_r rest_r n_ikr)
                   + Σ_edges Σ_ab joule_ab y_ab + step Σ_r rest_r count_r H
    flow time      step Σ w_i (e_i − release_i)
    tardiness      step Σ w_i t_i,   t_i ≥ e_i − deadline_i,  t_i ≥ 0
    cost, carbon   Σ x_ik g_ik(s_i) + Σ y_ab joule_ab rate_a(e_i) + G(H),   all over 3.6e6 J
                   g_ik(s) = energy_ik/p_ik ∫_s^{s+p_ik} rate_a dt
                             − step Σ_r rest_r n_ikr ∫_s^{s+p_ik} rate_r dt
                   G(H) = step Σ_r rest_r count_r ∫_0^H rate_r dt

H is the fixed horizon or M. Rates are piecewise constant with whole-tick changes, so that g and G
are linear between a few whole ticks. With one literal l_q per piece and w_q ticks into it, g = Σ_q
low_q l_q + slope_q w_q, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

import numpy as np
from ortools.sat.python import cp_model

from optbench.model.instance import Floats, Tariffs
from optbench.model.metrics import integral, mean_rate, rate_at
from optbench.units import J_PER_KWH
from optbench.views.cpsat.draft import Draft, DraftSchedule, Expression, Literal

ZERO = Fraction(0)

Transfers = list[tuple[float, Literal, int, int]]


@dataclass(eq=False)
class Affine:
    """constant + Σ coefficient · variable; variables are non-negative, with their upper bounds.

    The sum is exact: w · (end − release) is 0 where a task ends at its release, however large both
    are.
    """

    constant: Fraction = ZERO
    coefficient: dict[int, Fraction] = field(default_factory=dict)
    variable: dict[int, tuple[cp_model.IntVar, int]] = field(default_factory=dict)

    def add(self, coefficient: float | Fraction, variable: Literal, upper: int = 1) -> None:
        """Add a term; variable None is a literal that always holds."""
        if variable is None:
            self.constant += Fraction(coefficient)
        elif coefficient != 0:
            key = variable.index
            self.coefficient[key] = self.coefficient.get(key, ZERO) + Fraction(coefficient)
            self.variable[key] = (variable, upper)

    def take(self, other: Affine, weight: float) -> None:
        """Add a multiple of another sum."""
        exact = Fraction(weight)
        self.constant += exact * other.constant
        for key, value in other.coefficient.items():
            self.add(exact * value, *other.variable[key])


def metric(draft: Draft, name: str, transfers: Transfers) -> Affine:
    """Return one metric of METRICS."""
    if name in ("makespan", "makespan_s"):
        out = Affine()
        out.add(
            draft.coarse * (1.0 if name == "makespan" else draft.instance.tick_s),
            draft.makespan,
            draft.last,
        )
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
    return _Tariff(draft, tariffs, rates).total(transfers)


def _choose(draft: Draft, out: Affine, task: int, value: dict[int, float]) -> None:
    """Add Σ_k value_k x_k of one task; since Σ x = 1 the least value is a constant, and the
    remaining coefficients are not negative.
    """
    least = min(value.values(), default=0.0)
    out.constant += Fraction(least)
    for row, amount in value.items():
        out.add(amount - least, draft.present[row])


def _energy(draft: Draft, transfers: Transfers) -> Affine:
    instance, out = draft.instance, Affine()
    step, energy = instance.tick_s, instance.pairs.energy_j.tolist()
    rest_w = instance.mode_rest_w.tolist()
    for task in range(instance.num_tasks):
        rows = draft.rows(task)
        _choose(
            draft,
            out,
            task,
            {row: energy[row] - step * draft.ticks[row] * rest_w[draft.mode[row]] for row in rows},
        )
    for joule, literal, _, _ in transfers:
        out.add(joule, literal)
    resting = step * math.fsum((instance.pools.rest_w * instance.pools.count).tolist())
    if instance.horizon is not None:
        out.constant += Fraction(resting) * instance.horizon
    elif resting:
        out.add(resting * draft.coarse, draft.makespan, draft.last)
    return out


def _flow_time(draft: Draft) -> Affine:
    tasks, step, out = draft.instance.tasks, draft.instance.tick_s, Affine()
    for task, (weight, release) in enumerate(
        zip(tasks.weight.tolist(), tasks.release.tolist(), strict=True)
    ):
        if weight == 0.0:
            continue
        rows, (_, latest) = draft.rows(task), draft.end_range[task]
        shortest = min((draft.duration[row] for row in rows), default=0)
        price = Fraction(weight) * Fraction(step)
        if isinstance(draft.end[task], cp_model.IntVar):
            out.add(price * draft.coarse, draft.end[task], latest)
            out.constant -= price * release
        else:
            out.add(price * draft.coarse, draft.start[task], latest - shortest)
            out.constant += price * (shortest * draft.coarse - release)
    return out


def _tardiness(draft: Draft) -> Affine:
    tasks, step, out = draft.instance.tasks, draft.instance.tick_s, Affine()
    due = np.isfinite(tasks.deadline) & ~tasks.deadline_hard & (tasks.weight > 0)
    for task in np.flatnonzero(due).tolist():
        deadline, (_, latest) = -int(-tasks.deadline[task] // draft.coarse), draft.end_range[task]
        if latest <= deadline:
            continue
        late = draft.integer(
            0,
            latest - deadline,
            f"late{task}",
            lambda d, i=task, t=deadline: max(0, d.end[i] - t),  # type: ignore[misc]
        )
        draft.model.add(late >= draft.end[task] - deadline)
        out.add(float(tasks.weight[task]) * step * draft.coarse, late, latest - deadline)
    return out


@dataclass(eq=False)
class _Tariff:
    """Cost or carbon: the power of everything weighed with its pool's rate at the time."""

    draft: Draft
    tariffs: Tariffs
    rates: Floats

    def total(self, transfers: Transfers) -> Affine:
        out = Affine()
        for task in range(self.draft.instance.num_tasks):
            self._segments(out, task)
        for joule, literal, task, pool in transfers:
            self._transfer(out, joule, literal, task, pool)
        self._resting(out)
        return out

    def _segments(self, out: Affine, task: int) -> None:
        """Add a segment's own energy less the rest its devices are spared, in every row of the
        task.
        """
        draft = self.draft
        constant: dict[int, float] = {}
        for row in draft.rows(task):
            length = draft.duration[row]
            low = int(draft.window.head[task])
            high = max(low, draft.end_range[task][1] - length)
            value = self._segment(row)
            if draft.primary[row] < 0 or len(self.tariffs.times) == 1:
                constant[row] = float(value(np.asarray([float(low)]))[0]) / J_PER_KWH
                continue
            constant[row] = 0.0
            argument = Argument(f"{task}", draft.start[task], lambda d: d.start[task], low, high)
            self._curve(out, argument, draft.present[row], (0, length), value)
        _choose(draft, out, task, constant)

    def _segment(self, row: int) -> Callable[[Floats], Floats]:
        """Return g of one row of the pairs, as a function of its start."""
        instance, times = self.draft.instance, self.tariffs.times
        length, primary = self.draft.ticks[row], self.draft.primary[row]
        energy, needs = float(instance.pairs.energy_j[row]), self.draft.needs[self.draft.mode[row]]
        rest_w = instance.pools.rest_w

        def value(s: Floats) -> Floats:
            out = (
                np.zeros(len(s))
                if primary < 0
                else energy * mean_rate(times, self.rates[primary], s, s + length)
            )
            for pool, n in needs.items():
                spent = integral(times, self.rates[pool], s + length) - integral(
                    times, self.rates[pool], s
                )
                out = out - instance.tick_s * float(rest_w[pool]) * n * spent
            return out

        return value

    def _transfer(self, out: Affine, joule: float, literal: Literal, task: int, pool: int) -> None:
        low, high = self.draft.end_range[task]
        argument = Argument(f"{task}e", self.draft.end[task], lambda d: d.end[task], low, high)
        self._curve(
            out,
            argument,
            literal,
            (0,),
            lambda t: joule * rate_at(self.tariffs.times, self.rates[pool], t),
        )

    def _resting(self, out: Affine) -> None:
        draft, instance, times = self.draft, self.draft.instance, self.tariffs.times
        power = instance.tick_s * instance.pools.rest_w * instance.pools.count

        def value(t: Floats) -> Floats:
            return np.asarray(
                power @ np.stack([integral(times, rates, t) for rates in self.rates]), dtype=float
            )

        if not (power > 0).any():
            return
        if instance.horizon is not None:
            out.constant += Fraction(
                float(value(np.asarray([float(instance.horizon)]))[0]) / J_PER_KWH
            )
        elif len(times) == 1:
            out.add(
                draft.coarse * float(value(np.asarray([1.0]))[0]) / J_PER_KWH,
                draft.makespan,
                draft.last,
            )
        else:
            low = min(int(draft.window.critical_path), draft.last)
            argument = Argument("M", draft.makespan, lambda d: d.makespan, low, draft.last)
            self._curve(out, argument, None, (0,), value)

    def _curve(
        self,
        out: Affine,
        argument: Argument,
        literal: Literal,
        shifts: tuple[int, ...],
        value: Callable[[Floats], Floats],
    ) -> None:
        """Add value(argument), if the literal is true: linear between the changes of rates, now or
        one of the shifts later.
        """
        knots = {argument.low, argument.high + 1} | {
            int(t) - shift for t in self.tariffs.times for shift in shifts
        }
        cuts = tuple(sorted(t for t in knots if argument.low <= t <= argument.high + 1))
        ends = [
            float(v) / J_PER_KWH
            for v in value(
                np.asarray([x for a, b in pairwise(cuts) for x in (a, b - 1)], dtype=float)
            )
        ]
        pieces = draft_pieces(self.draft, argument, literal, cuts)
        for k, (first, after) in enumerate(pairwise(cuts)):
            inside, beyond = pieces[k]
            out.add(ends[2 * k], inside)
            if beyond is not None:
                out.add(
                    (ends[2 * k + 1] - ends[2 * k]) / (after - 1 - first), beyond, after - 1 - first
                )


@dataclass(frozen=True, eq=False)
class Argument:
    """A time of the model, its value in a decision and its range."""

    name: str
    time: Expression
    value: Callable[[DraftSchedule], int]
    low: int
    high: int


def draft_pieces(
    draft: Draft, argument: Argument, literal: Literal, cuts: tuple[int, ...]
) -> list[tuple[Literal, Literal]]:
    """For each piece [cuts_k, cuts_k+1): the literal that the argument lies in it, and how far it
    lies beyond its first tick.

        Σ_k l_k = literal,   0 ≤ w_k ≤ (cuts_k+1 − 1 − cuts_k) l_k
        time = Σ_k cuts_k l_k + w_k if the literal holds

    Made once and shared by cost, carbon and limits; w_k is None for a piece of one tick.
    """
    key = (argument.name, -1 if literal is None else literal.index, cuts)
    if key in draft.pieces:
        return draft.pieces[key]
    holds, model, out = draft.value_of(literal), draft.model, []
    name = f"{argument.name}_{key[1]}"
    for k, (first, after) in enumerate(pairwise(cuts)):

        def within(d: DraftSchedule, a: int = first, b: int = after) -> int:
            return int(bool(holds(d)) and a <= argument.value(d) < b)

        def beyond(d: DraftSchedule, a: int = first, b: int = after) -> int:
            return argument.value(d) - a if holds(d) and a <= argument.value(d) < b else 0

        inside = literal if len(cuts) == 2 else draft.literal(f"l{name}_{k}", within)
        further = (
            draft.integer(0, after - 1 - first, f"w{name}_{k}", beyond)
            if after - 1 > first
            else None
        )
        if further is not None and inside is not None:
            model.add(further <= (after - 1 - first) * inside)
        out.append((inside, further))
    if len(cuts) > 2:
        model.add(sum(_number(inside) for inside, _ in out) == _number(literal))
    where = sum(
        first * _number(inside) + (0 if further is None else further)
        for first, (inside, further) in zip(cuts, out, strict=False)
    )
    reached = model.add(argument.time == where)
    if literal is not None:
        reached.only_enforce_if(literal)
    draft.pieces[key] = out
    return out


def _number(literal: Literal) -> Expression:
    return 1 if literal is None else literal
