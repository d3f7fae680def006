"""The optimum of a tiny instance by trying everything, restated from the maths and sharing no code
with optbench.

Only the numbers of an instance are read. With x the mode and S the start of every task, d and e
duration and energy,

    d_i = ⌈u_i · (time_per_unit / tick)⌉   (within 8 ulp and ¼ of an integer it is that integer)
    e_i = u_i · energy_per_unit

every combination of modes and, for each, *every* vector of integer starts in the windows is
evaluated: nothing is assumed about left-shifting, so it is right where price or carbon vary. Starts
end at

    T = max(last release + longest finite way in, last tariff change)
        + Σ_i longest d_i + Σ_edges longest finite lag      (or the fixed horizon)

which loses no optimum: a schedule that ends later has a whole tick after the last release and
tariff change in which nothing runs and no data moves; moving all that follows one tick earlier
keeps it feasible and raises no metric.

Rows of starts are grown task by task and dropped once a precedence or a pool's capacity is broken:
further tasks never mend that.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from optbench.model.instance import Instance
from tests.reference.plain_facts import (
    duration,
    end_of_time,
    lag,
    primary,
    requirements,
    task_modes,
    way_in,
    whole_ticks,
)

Array = Any
# Share of a sum without negative terms by which it may exceed a limit.
SHARE = 2.0**-40


@dataclass(frozen=True)
class Optimum:
    """Least value of every level in order, one decision that attains it, how many decisions were
    feasible.
    """

    objectives: tuple[float, ...]
    mode: tuple[int, ...]
    start: tuple[int, ...]
    num_feasible: int

    @property
    def objective(self) -> float:
        return self.objectives[0]


@dataclass(frozen=True)
class Evaluation:
    """Which rows of starts are feasible, and every metric of every row."""

    feasible: Array
    metrics: dict[str, Array]


def brute_force(instance: Instance) -> Optimum | None:
    """The optimum, or None when no decision is feasible."""
    best: Optimum | None = None
    feasible = 0
    for mode in mode_choices(instance):
        starts = _grow(instance, mode)
        if len(starts) == 0:
            continue
        evaluation = evaluate(instance, mode, starts)
        rows = np.flatnonzero(evaluation.feasible)
        feasible += len(rows)
        for row, values in _best_row(instance, evaluation, rows):
            if best is None or _before(values, best.objectives):
                best = Optimum(values, mode, tuple(int(s) for s in starts[row]), 0)
    return None if best is None else Optimum(best.objectives, best.mode, best.start, feasible)


def mode_choices(instance: Instance) -> Iterator[tuple[int, ...]]:
    """Every way to give each task a mode of its kind that has the memory."""
    return itertools.product(
        *(task_modes(instance, task) for task in range(len(instance.tasks.kind)))
    )


def _grow(instance: Instance, mode: tuple[int, ...]) -> Array:
    """Rows of starts that keep windows, precedence and capacities."""
    tasks, top = instance.tasks, end_of_time(instance)
    rows = np.zeros((1, 0), dtype=np.int64)
    for i, k in enumerate(mode):
        latest = top - duration(instance, i, k)
        if tasks.deadline_hard[i] and math.isfinite(tasks.deadline[i]):
            latest = min(latest, math.floor(tasks.deadline[i]) - duration(instance, i, k))
        there = tasks.release[i] + way_in(instance, i, primary(instance, k))
        window = np.arange(int(there) if math.isfinite(there) else latest + 1, latest + 1)
        rows = np.hstack(
            (np.repeat(rows, len(window), axis=0), np.tile(window, len(rows))[:, None])
        )
        if len(rows) == 0:
            break
        rows = rows[_ordered(instance, mode, rows) & _within_capacity(instance, mode, rows)]
    return rows


def _ordered(instance: Instance, mode: tuple[int, ...], rows: Array) -> Array:
    """Rows in which every edge between tasks present waits for its producer and the data."""
    ok = np.ones(len(rows), dtype=bool)
    for a, b, data in zip(
        instance.edges.source, instance.edges.target, instance.edges.data_gb, strict=True
    ):
        if max(a, b) < rows.shape[1]:
            wait = lag(
                instance, primary(instance, mode[a]), primary(instance, mode[b]), float(data)
            )
            ok &= rows[:, a] + duration(instance, int(a), mode[a]) + wait <= rows[:, b]
    return ok


def _running(
    instance: Instance, mode: tuple[int, ...], rows: Array, i: int, num_ticks: int
) -> Array:
    """running[row, t]: task i is at work in tick [t, t + 1)."""
    t = np.arange(num_ticks)[None, :]
    start = rows[:, i, None]
    return (start <= t) & (t < start + duration(instance, i, mode[i]))


def _busy(
    instance: Instance, mode: tuple[int, ...], rows: Array, num_ticks: int
) -> dict[int, Array]:
    """busy[pool][row, t]: devices at work."""
    busy = {
        p: np.zeros((len(rows), num_ticks), dtype=np.int64)
        for p in range(len(instance.pools.names))
    }
    for i in range(rows.shape[1]):
        running = _running(instance, mode, rows, i, num_ticks)
        for p, count in requirements(instance, mode[i]):
            busy[p] += count * running
    return busy


def _within_capacity(instance: Instance, mode: tuple[int, ...], rows: Array) -> Array:
    busy = _busy(instance, mode, rows, end_of_time(instance))
    ok = np.ones(len(rows), dtype=bool)
    for p, count in enumerate(instance.pools.count):
        ok &= (busy[p] <= count).all(axis=1)
    return ok


def evaluate(instance: Instance, mode: tuple[int, ...], rows: Array) -> Evaluation:
    """Feasibility and metrics of rows of starts, whatever made them."""
    n, tasks, tick = len(mode), instance.tasks, instance.tick_s
    length = np.array([duration(instance, i, k) for i, k in enumerate(mode)], dtype=np.int64)
    ends = rows + length[None, :]
    makespan = ends.max(axis=1) if n else np.zeros(len(rows), dtype=np.int64)
    horizon = makespan if instance.horizon is None else np.full(len(rows), int(instance.horizon))
    num_ticks = int(max(ends.max(initial=0), horizon.max(initial=0)))
    busy = _busy(instance, mode, rows, num_ticks)
    ok = _ordered(instance, mode, rows) & (ends.max(axis=1, initial=0) <= horizon)
    for i, k in enumerate(mode):
        ok &= (k in task_modes(instance, i)) & (
            rows[:, i] >= tasks.release[i] + way_in(instance, i, primary(instance, k))
        )
        if tasks.deadline_hard[i]:
            ok &= ends[:, i] <= tasks.deadline[i]
    for p, count in enumerate(instance.pools.count):
        ok &= (busy[p] <= count).all(axis=1)
    ok &= _under_caps(instance, mode, rows, busy, num_ticks)
    soft = np.isfinite(tasks.deadline) & ~tasks.deadline_hard
    late = np.where(soft, np.maximum(0, ends - np.where(soft, tasks.deadline, 0)), 0.0)
    metrics = {
        "makespan": makespan.astype(float),
        "makespan_s": makespan * tick,
        "flow_time_s": ((ends - tasks.release) * tasks.weight).sum(axis=1) * tick,
        "tardiness_s": (late * tasks.weight).sum(axis=1) * tick,
        "energy_j": _integrate(
            instance,
            mode,
            rows,
            busy,
            horizon,
            [[1.0] * num_ticks] * len(instance.pools.names),
            None,
        ),
        "cost_usd": _tariffed(instance, mode, rows, busy, horizon, "price_usd_per_kwh"),
        "carbon_g": _tariffed(instance, mode, rows, busy, horizon, "carbon_g_per_kwh"),
    }
    for name, limit in instance.limits.metric_max.items():
        if name in ("makespan", "makespan_s"):
            ok &= makespan <= (limit if name == "makespan" else -whole_ticks(-limit / tick))
        else:
            ok &= metrics[name] * (1 - SHARE) <= limit
    return Evaluation(ok, metrics)


def _under_caps(
    instance: Instance, mode: tuple[int, ...], rows: Array, busy: dict[int, Array], num_ticks: int
) -> Array:
    """At every instant (also before and after all work): running powers plus resting devices stay
    within each cap.
    """
    ok = np.ones(len(rows), dtype=bool)
    for place, cap in zip(instance.limits.cap_place, instance.limits.cap_w, strict=True):
        inside = [
            p
            for p in range(len(instance.pools.names))
            if _is_under(instance, int(instance.pools.place[p]), int(place))
        ]
        most = cap / (1 - SHARE)
        power = np.zeros((len(rows), num_ticks))
        for p in inside:
            power += _rest_w(instance, p) * (int(instance.pools.count[p]) - busy[p])
        for i, k in enumerate(mode):
            if primary(instance, k) in inside:
                power += float(instance.modes.power_w[k]) * _running(
                    instance, mode, rows, i, num_ticks
                )
        ok &= (power <= most).all(axis=1) & (
            sum(_rest_w(instance, p) * int(instance.pools.count[p]) for p in inside) <= most
        )
    return ok


def _is_under(instance: Instance, place: int, ancestor: int) -> bool:
    while place != ancestor and place > 0:
        place = int(instance.places.parent[place])
    return place == ancestor


def _rest_w(instance: Instance, p: int) -> float:
    return float(instance.pools.sleep_w[p] if instance.pools.gated[p] else instance.pools.idle_w[p])


def _tariffed(
    instance: Instance,
    mode: tuple[int, ...],
    rows: Array,
    busy: dict[int, Array],
    horizon: Array,
    column: str,
) -> Array:
    """Energy times its price or carbon; 0 without tariffs."""
    if instance.tariffs is None:
        return np.zeros(len(rows))
    times = [float(t) for t in instance.tariffs.times]
    num_ticks = next(iter(busy.values())).shape[1] if busy else 0
    table = getattr(instance.tariffs, column)
    rates = [
        [_mean_rate(times, table[p], t) for t in range(num_ticks)]
        for p in range(len(instance.pools.names))
    ]
    instants = [
        [float(table[p][_piece(times, t)]) for t in range(num_ticks + 1)]
        for p in range(len(instance.pools.names))
    ]
    return _integrate(instance, mode, rows, busy, horizon, rates, instants) / 3.6e6


def _piece(times: list[float], t: float) -> int:
    """The piece of the tariff that holds at t."""
    return max(q for q, begin in enumerate(times) if begin <= t)


def _mean_rate(times: list[float], rates: Array, t: int) -> float:
    """Mean of the piecewise-constant rate over [t, t + 1)."""
    cuts = [float(t), *(c for c in times if t < c < t + 1), float(t + 1)]
    return math.fsum((b - a) * float(rates[_piece(times, a)]) for a, b in itertools.pairwise(cuts))


def _integrate(
    instance: Instance,
    mode: tuple[int, ...],
    rows: Array,
    busy: dict[int, Array],
    horizon: Array,
    rates: Any,
    instants: Any,
) -> Array:
    """Σ energy drawn in each tick, in each pool, times the pool's rate in that tick (1 everywhere:
    plain energy).
    """
    total = np.zeros(len(rows))
    num_ticks = len(rates[0]) if rates else 0
    for i, k in enumerate(mode):
        length, p = duration(instance, i, k), primary(instance, k)
        energy = float(instance.tasks.units[i]) * float(instance.modes.energy_per_unit_j[k])
        if length == 0 or p < 0:
            assert energy == 0, "the reference knows no energy without length or pool"
            continue
        total += (
            (_running(instance, mode, rows, i, num_ticks) * np.array(rates[p])[None, :]).sum(axis=1)
            * energy
            / length
        )
    for a, b, data in zip(
        instance.edges.source, instance.edges.target, instance.edges.data_gb, strict=True
    ):
        sender, receiver = primary(instance, mode[a]), primary(instance, mode[b])
        if sender != receiver and min(sender, receiver) >= 0 and data > 0:
            energy = float(data) * float(instance.links.j_per_gb[sender, receiver])
            ends = rows[:, a] + duration(instance, int(a), mode[a])
            total += energy * (1.0 if instants is None else np.array(instants[sender])[ends])
    for p, count in enumerate(instance.pools.count):
        open_now = np.arange(num_ticks)[None, :] < horizon[:, None]
        resting = (int(count) - busy[p]) * open_now
        total += (
            (resting * np.array(rates[p])[None, :]).sum(axis=1)
            * _rest_w(instance, p)
            * instance.tick_s
        )
    return total


def _best_row(
    instance: Instance, evaluation: Evaluation, rows: Array
) -> Iterator[tuple[int, tuple[float, ...]]]:
    """The best of the feasible rows by the levels in order."""
    if len(rows) == 0:
        return
    values = [
        sum(weight * evaluation.metrics[name] for name, weight in level)
        for level in instance.objective.levels
    ]
    for level in values:
        least = level[rows].min()
        rows = rows[level[rows] * (1 - SHARE) <= least]
    yield int(rows[0]), tuple(float(level[rows[0]]) for level in values)


def _before(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    """Whether a comes before b, level by level, equal within the tolerance."""
    for x, y in zip(a, b, strict=True):
        if abs(x - y) > SHARE * max(abs(x), abs(y)):
            return x < y
    return False
