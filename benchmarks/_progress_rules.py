"""The optimum of a tiny preemptive instance by the old and by the new rule of progress.

Time is ticks of 1 s. A task of U units takes d = U · (time per unit) ticks in a mode; D = ceil(d).

New rule: a segment of l ticks is l / D of the task and draws l / D of its energy; the shares add up
to 1 or more.
Old rule (commit 7f346a7): a segment carries u > 0 units, lasts round_up(u · time per unit) ticks,
where round_up forgives 1e-9, and draws u · (energy per unit); with two segments or more the units
add up to U but for 1e-9 · max(1, U).

The old rule by ticks: splitting a segment into single ticks loses nothing, since l ticks carry up
to l ticks of work and l segments of one tick carry anything above 0 up to the same. So n_k ticks in
mode k hold a share x_k in (0, n_k / d_k] of the task, and the shares add up to 1: the task is
complete if and only if Σ n_k / d_k ≥ 1, its energy is Σ x_k E_k, and the least of it gives the
shares to the cheapest modes first (an infimum where a tick carries next to nothing). With the
tolerances, Σ n_k (1 + 1e-9) / d_k + slivers ≥ 1 − 1e-9 · max(1, U) / U. A sliver is a segment of up
to 1e-9 ticks of work, which lasts none; 1e9 of them did any work in no time, so that here a task
has two at most.

The search is a dynamic programme over ticks, in fractions. Its state is n_k for each task, and
where data moves the pool and the end of the last tick.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

GUARD = Fraction(1, 10**9)
Json = dict[str, Any]
# Per task: ticks per mode; pool and end of its last tick (edge only).
State = tuple[tuple[tuple[int, ...], int, int], ...]
Rows = list[tuple[int, int, int]]  # task, mode, tick


@dataclass(frozen=True)
class Rule:
    """One step between the two rules; the defaults are the new one."""

    one_pool: bool = True  # a task with data stays on one pool
    pays_ticks: bool = True  # energy by ticks, else by the units that a tick carries
    rounded: bool = True  # a tick is 1 / D of the task, else 1 / d
    tolerant: bool = False  # 1e-9 of the units, of a segment's ticks, and two slivers
    data_by_sliver: bool = False  # a sliver on the other pool makes a transfer free and immediate
    mixes: bool = True  # a task may use several modes


class Search:
    """The dynamic programme of one instance by one rule."""

    def __init__(self, spec: Json, rule: Rule) -> None:
        self.spec, self.rule, self.modes = spec, rule, [modes for _, modes in spec["tasks"]]
        self.units = [Fraction(units) for units, _ in spec["tasks"]]
        self.d = [
            [u * Fraction(mode[2]) for mode in modes] for u, modes in zip(self.units, self.modes)
        ]
        self.joules = [
            [u * Fraction(mode[3]) for mode in modes] for u, modes in zip(self.units, self.modes)
        ]
        grown = 1 + GUARD if rule.tolerant else Fraction(1)
        self.share = [
            [grown / (math.ceil(d) if rule.rounded else d) for d in row] for row in self.d
        ]
        missing = [
            GUARD * max(Fraction(1), u) / u + 2 * GUARD / min(row)
            for u, row in zip(self.units, self.d)
        ]
        self.target = [max(Fraction(0), 1 - m) if rule.tolerant else Fraction(1) for m in missing]
        self.known: dict[tuple[int, tuple[int, ...]], bool] = {}
        self.layers: list[dict[State, tuple[Fraction, State | None, Rows]]] = []

    def complete(self, task: int, ticks: tuple[int, ...]) -> bool:
        key = (task, ticks)
        if key not in self.known:
            done = sum(n * share for n, share in zip(ticks, self.share[task]))
            self.known[key] = done >= self.target[task]
        return self.known[key]

    def shares(
        self, task: int, ticks: tuple[int, ...], least: Fraction = Fraction(0)
    ) -> list[Fraction]:
        """The cheapest x_k; ``least`` is what every tick must carry, as a part of a tick."""
        out = [least * n / d for n, d in zip(ticks, self.d[task])]
        units = self.units[task]
        # A schedule that is written down does all the work, where its ticks hold
        # it, and stays clear of where floats round up.
        forgiven = self.rule.tolerant and not least
        left = (
            max(Fraction(0), 1 - GUARD * max(Fraction(1), units) / units) if forgiven else 1
        ) - sum(out)
        for k in sorted(range(len(ticks)), key=lambda k: self.joules[task][k]):
            most: Fraction = (
                ticks[k] * self.share[task][k] * (1 - GUARD / 10 if least else Fraction(1))
            )
            more = max(Fraction(0), min(left, most - out[k]))
            out[k], left = out[k] + more, left - more
        return out

    def final(self, state: State) -> Fraction:
        """What is paid by units, at the end."""
        if self.rule.pays_ticks:
            return Fraction(0)
        paid = Fraction(0)
        for task, (ticks, _, _) in enumerate(state):
            paid += sum(x * j for x, j in zip(self.shares(task, ticks), self.joules[task]))
        return paid

    def options(
        self, state: State, task: int, now: int
    ) -> Iterator[tuple[int | None, Fraction, Any]]:
        """Modes of a task in this tick, the cost less the rest of its devices, and what follows."""
        (ticks, pool, _), edge = state[task], self.spec["edge"]
        yield None, Fraction(0), state[task]
        if edge and task == 0 and any(state[1][0]):
            return
        for k, (at, devices, _, _) in enumerate(self.modes[task]):
            cost = Fraction(-devices * self.spec["idle"][at])
            cost += self.joules[task][k] * self.share[task][k] if self.rule.pays_ticks else 0
            if self.complete(task, ticks) and cost >= 0 and self.rule.pays_ticks:
                continue
            if not self.rule.mixes and any(n for j, n in enumerate(ticks) if j != k):
                continue
            if edge and self.rule.one_pool and any(ticks) and pool != at:
                continue
            if edge and task == 1 and not any(ticks):
                moves = state[0][1] not in (at, -1) and not self.rule.data_by_sliver
                if not self.complete(0, state[0][0]) or now < state[0][2] + moves * (
                    edge[1] // 1000
                ):
                    continue
                cost += moves * edge[0] * edge[2]
            most = math.ceil(self.d[task][k])
            new = tuple(min(most, n + (j == k)) for j, n in enumerate(ticks))
            yield k, cost, (new, at, now + 1) if edge else (new, -1, 0)

    def run(self) -> dict[str, tuple[Fraction, State, int]]:
        """Per objective the optimum, and the state and tick where its schedule ends."""
        start: State = tuple(((0,) * len(modes), -1, 0) for modes in self.modes)
        self.layers, best = [{start: (Fraction(0), None, [])}], {}
        for now in range(self.spec["horizon"] + 1):
            done = {
                s: way
                for s, way in self.layers[-1].items()
                if all(self.complete(i, t[0]) for i, t in enumerate(s))
            }
            if done and "makespan" not in best:
                best["makespan"] = (Fraction(now), next(iter(done)), now)
            if now == self.spec["horizon"]:
                break
            after: dict[State, tuple[Fraction, State | None, Rows]] = {}
            for state, (spent, _, _) in self.layers[-1].items():
                for choice in product(
                    *(list(self.options(state, i, now)) for i in range(len(state)))
                ):
                    free = list(self.spec["counts"])
                    for i, (k, _, _) in enumerate(choice):
                        if k is not None:
                            free[self.modes[i][k][0]] -= self.modes[i][k][1]
                    # An edge's target does not start in a tick in which its source works.
                    if min(free) < 0 or (
                        self.spec["edge"] and choice[0][0] is not None and choice[1][0] is not None
                    ):
                        continue
                    new, cost = tuple(c[2] for c in choice), spent + sum(c[1] for c in choice)
                    if new not in after or cost < after[new][0]:
                        after[new] = (
                            cost,
                            state,
                            [(i, c[0], now) for i, c in enumerate(choice) if c[0] is not None],
                        )
            self.layers.append(after)
        rest = (
            sum(n * w for n, w in zip(self.spec["counts"], self.spec["idle"]))
            * self.spec["horizon"]
        )
        if done:
            value, end = min(
                ((way[0] + self.final(s) + rest, s) for s, way in done.items()),
                key=lambda pair: pair[0],
            )
            best["energy_j"] = (value, end, self.spec["horizon"])
        return best

    def segments(self, state: State, now: int) -> list[list[float]]:
        """Task, mode, start, end, units of each slice of the schedule that leads to a state."""
        rows: Rows = []
        at: State | None = state
        while at is not None:
            _, at, here = self.layers[now][at]
            rows, now = here + rows, now - 1
        return self.with_units(rows)

    def with_units(self, rows: Rows) -> list[list[float]]:
        out, slivers = [], []
        for i, modes in enumerate(self.modes):
            mine = [(k, t) for task, k, t in rows if task == i]
            ticks = tuple(sum(k == j for k, _ in mine) for j in range(len(modes)))
            carried = self.shares(i, ticks, 4 * GUARD)
            out += [
                [i, k, t, t + 1, float(carried[k] * self.units[i] / ticks[k])]
                for k, t in sorted(mine, key=lambda r: r[1])
            ]
            if self.rule.tolerant and not mine:
                slivers += [self.sliver(i, 0, 0)] * 2
        if self.spec["edge"] and self.rule.data_by_sliver:
            sent = max((t, k) for i, k, t in rows if i == 0)[1]
            first, begun = min((t, k) for i, k, t in rows if i == 1)
            pool = self.modes[0][sent][0]
            if pool != self.modes[1][begun][0]:
                mode = next(k for k, mode in enumerate(self.modes[1]) if mode[0] == pool)
                slivers.append(self.sliver(1, mode, first))
        return slivers + out

    def sliver(self, task: int, mode: int, at: int) -> list[float]:
        return [task, mode, at, at, float(GUARD / 1000 * self.units[task] / self.d[task][mode])]
