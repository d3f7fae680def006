"""The table of the fluid LP in plain Python, from the formulas at the head of ``fluid``.

Columns are named ("x", tasks, mode), ("S", tasks), ("T", tasks), ("V", mode, period),
("F", metric), ("R", metric) and "C". Each number stands with the size of the terms that it is
computed from: another computation of it agrees up to 2e-15 of that size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from optbench.bounds.combinatorial.makespan import makespan_bounds
from optbench.bounds.combinatorial.metric_floors import low_sum, metric_floors, transfer_floor
from optbench.bounds.combinatorial.relaxation import relax
from optbench.model.instance import Instance
from optbench.model.timegrid import widened
from optbench.model.windows import latest_ends, makespan_limit, time_horizon, windows

EPS = 2.0**-52
INF = math.inf
# A number and the size of its terms.
Number = tuple[float, float]


@dataclass
class Row:
    """Σ terms ≥ right, or = right; ``of`` is the tasks of a group, or a number."""

    family: str
    of: Any
    right: Number
    terms: dict[Any, Number]
    equal: bool = False


def down(value: float) -> float:
    return value - 4 * EPS * abs(value)


def plain(value: float) -> Number:
    return float(value), abs(float(value))


class FluidTable:
    """Columns by name, as (lower, upper, cost), and rows."""

    def __init__(
        self,
        instance: Instance,
        keep_edges: bool,
        entries: int = 300_000,
        slots: int = 6_000,
        window: int = 400_000,
    ) -> None:
        self.instance, self.keep_edges = instance, keep_edges
        self.entries, self.max_slots, self.window = entries, slots, window
        self.columns: dict[Any, tuple[Number, Number, Number]] = {}
        self.rows: list[Row] = []
        self.known = windows(instance)
        self.latest = latest_ends(instance, self.known).tolist()
        self.tick = instance.tick_s
        self.modes: list[dict[int, tuple[float, float]]] = [{} for _ in range(instance.num_tasks)]
        pairs = instance.pairs
        for i, k, d, e in zip(pairs.task, pairs.mode, pairs.duration, pairs.energy_j, strict=True):
            self.modes[i][int(k)] = (float(d), float(e))
        self.uses = [[0] * instance.num_pools for _ in range(instance.num_modes)]
        for k in range(instance.num_modes):
            for r in range(instance.modes.req_ptr[k], instance.modes.req_ptr[k + 1]):
                self.uses[k][instance.modes.req_pool[r]] += int(instance.modes.req_count[r])
        self.rest_w = instance.pools.rest_w.tolist()
        self.count = instance.pools.count.tolist()
        self.primary = instance.modes.primary.tolist()
        self.groups = self._groups()
        self.of_task = {i: tasks for tasks in self.groups for i in tasks}
        self.sent: dict[Any, float] = {}
        self.sent_least = 0.0 if keep_edges else low_sum(transfer_floor(instance).tolist())
        self._columns()
        self._assign_and_capacity()
        if keep_edges:
            self._starts()
        self._ends()
        self._power()
        self._energy()
        self._due()

    def _groups(self) -> list[tuple[int, ...]]:
        instance, tasks = self.instance, self.instance.tasks
        linked = set(instance.edges.source.tolist()) | set(instance.edges.target.tolist())
        found: dict[Any, list[int]] = {}
        for i in range(instance.num_tasks):
            key: list[Any] = [
                int(tasks.kind[i]),
                *(float(c[i]) for c in (tasks.units, tasks.release, tasks.deadline)),
            ]
            key += [bool(tasks.deadline_hard[i]), float(tasks.weight[i]), float(tasks.memory_gb[i])]
            key.append(None if instance.stream is None else int(instance.stream.ingress[i]))
            key.append(i if self.keep_edges and i in linked else None)
            found.setdefault(tuple(key), []).append(i)
        return [tuple(members) for members in found.values()]

    def head(self, tasks: tuple[int, ...]) -> float:
        return float(min(self.known.head[i] for i in tasks))

    def tail(self, tasks: tuple[int, ...]) -> float:
        return float(min(self.known.tail[i] for i in tasks))

    def last(self, tasks: tuple[int, ...]) -> float:
        return float(max(self.latest[i] for i in tasks))

    def shares(self) -> list[tuple[Any, tuple[int, ...], int, float, float]]:
        """Column, tasks, mode, duration and energy."""
        return [
            (("x", g, k), g, k, d, e) for g in self.groups for k, (d, e) in self.modes[g[0]].items()
        ]

    def add(
        self, family: str, of: Any, right: Any, terms: dict[Any, Any], equal: bool = False
    ) -> None:
        sized = {name: v if isinstance(v, tuple) else plain(v) for name, v in terms.items()}
        sized = {name: v for name, v in sized.items() if v[0] != 0}
        self.rows.append(
            Row(family, of, right if isinstance(right, tuple) else plain(right), sized, equal)
        )

    def _columns(self) -> None:
        instance = self.instance
        relaxation = relax(instance)
        self.least = max(value for value, _ in makespan_bounds(relaxation))
        self.top = max(self.least, min(time_horizon(instance), makespan_limit(instance)))
        level, limits = dict(instance.objective.levels[0]), instance.limits.metric_max
        floors = metric_floors(relaxation, self.least)
        for name, g, *_ in self.shares():
            self.column(name, 0, len(g), 0)
        for g in self.groups:
            self.column(("S", g), len(g) * self.head(g), len(g) * self.top, 0)
        self.column(
            "C",
            self.least,
            self.top,
            level.get("makespan", 0) + down(level.get("makespan_s", 0) * self.tick),
        )
        self.metrics = sorted((set(level) | set(limits)) - {"makespan", "makespan_s"})
        for name in self.metrics:
            upper = max(floors[name], widened(limits[name])) if name in limits else INF
            self.column(
                ("F", name), 0 if name == "energy_j" else floors[name], upper, level.get(name, 0)
            )
        if "tardiness_s" in self.metrics:
            for g in self.groups:
                self.column(("T", g), 0, len(g) * self.top, 0)

    def column(self, name: Any, lower: Any, upper: Any, cost: float) -> None:
        self.columns[name] = tuple(
            v if isinstance(v, tuple) else plain(v) for v in (lower, upper, cost)
        )  # type: ignore[assignment]

    def _assign_and_capacity(self) -> None:
        for g in self.groups:
            self.add("assign", g, len(g), {("x", g, k): 1 for k in self.modes[g[0]]}, equal=True)
        number = sum(1 for _, _, k, _, _ in self.shares() for use in self.uses[k] if use)
        side = int(min(8, max(1, math.sqrt(self.entries / max(1, number)))))
        for p in range(self.instance.num_pools):
            here = [
                (name, g, self.uses[k][p] * d)
                for name, g, k, d, _ in self.shares()
                if self.uses[k][p]
            ]
            seen = []
            for a in spread({self.head(g) for _, g, _ in here}, side):
                for b in spread({self.tail(g) for _, g, _ in here}, side):
                    inside = [
                        entry
                        for entry in here
                        if self.head(entry[1]) >= a and self.tail(entry[1]) >= b
                    ]
                    if inside and inside not in seen:
                        seen.append(inside)
                        first = min(self.head(g) for _, g, _ in inside) + min(
                            self.tail(g) for _, g, _ in inside
                        )
                        terms: dict[Any, float] = {name: -work for name, _, work in inside}
                        self.add("capacity", p, self.count[p] * first, {"C": self.count[p]} | terms)

    def _starts(self) -> None:
        instance, edges = self.instance, self.instance.edges
        for e, (i, j, data) in enumerate(
            zip(edges.source.tolist(), edges.target.tolist(), edges.data_gb.tolist(), strict=True)
        ):
            before, behind = self.of_task[i], self.of_task[j]
            terms: dict[Any, float] = {("S", behind): 1, ("S", before): -1}
            for k, (d, _) in self.modes[i].items():
                least, energy = INF, INF
                for other in self.modes[j]:
                    lag = float(instance.lag(self.primary[k], self.primary[other], data))
                    least = min(least, lag)
                    if lag < INF:
                        energy = min(
                            energy,
                            float(instance.transfer_j(self.primary[k], self.primary[other], data)),
                        )
                terms["x", before, k] = -(d + (least if least < INF else 0))
                self.sent[before, k] = self.sent.get((before, k), 0) + (
                    energy if energy < INF else 0
                )
            self.add("start", e, 0, terms)

    def _ends(self) -> None:
        sources = set(self.instance.edges.source.tolist())
        for g in self.groups:
            work: dict[Any, float] = {("x", g, k): -d for k, (d, _) in self.modes[g[0]].items()}
            if not (self.keep_edges and sources & set(g)):
                self.add("completion", g, len(g) * self.tail(g), {"C": len(g), ("S", g): -1} | work)
            if self.last(g) < INF:
                self.add("deadline", g, -len(g) * self.last(g), {("S", g): -1} | work)

    def _power(self) -> None:
        limits, pools = self.instance.limits, range(self.instance.num_pools)
        for place, cap in zip(limits.cap_place.tolist(), limits.cap_w.tolist(), strict=True):
            below = [p for p in pools if self.instance.under[place][p]]
            base = sum(self.rest_w[p] * self.count[p] for p in below)
            terms: dict[Any, Number] = {"C": (widened(cap) - base * (1 - 1e-13), cap + base)}
            for name, _, k, d, _ in self.shares():
                own = float(self.instance.modes.power_w[k]) if self.primary[k] in below else 0.0
                freed = sum(self.uses[k][p] * self.rest_w[p] for p in below)
                power = own - freed - 1e-14 * (own + freed)
                terms[name] = (-down(power * d), (own + freed) * d)
            self.add("power", place, 0, terms)

    def _energy(self) -> None:
        if "energy_j" not in self.metrics:
            return
        pools, horizon = range(self.instance.num_pools), self.instance.horizon
        resting = sum(self.rest_w[p] * self.count[p] for p in pools) * self.tick * (1 - 1e-13)
        terms: dict[Any, Any] = {("F", "energy_j"): 1}
        for name, g, k, d, e in self.shares():
            replaced = sum(self.uses[k][p] * self.rest_w[p] for p in pools) * d * self.tick
            sent = self.sent.get((g, k), 0.0)
            size = e + replaced + sent
            terms[name] = (-(e - replaced + sent - 1e-14 * size), size)
        if horizon is None:
            self.add("energy", 0, self.sent_least, terms | {"C": -resting})
        else:
            self.add("energy", 0, down(resting * horizon + self.sent_least), terms)

    def _due(self) -> None:
        tasks = self.instance.tasks
        weight = {g: float(tasks.weight[g[0]]) * self.tick for g in self.groups}
        if "flow_time_s" in self.metrics:
            released = sum(weight[g] * len(g) * float(tasks.release[g[0]]) for g in self.groups)
            terms: dict[Any, float] = {("F", "flow_time_s"): 1}
            terms |= {("S", g): -down(weight[g]) for g in self.groups}
            terms |= {name: -down(weight[g] * d) for name, g, _, d, _ in self.shares()}
            self.add("flow", 0, -released * (1 + 1e-13), terms)
        if "tardiness_s" in self.metrics:
            soft = [
                g
                for g in self.groups
                if tasks.deadline[g[0]] < INF and not tasks.deadline_hard[g[0]]
            ]
            self.add(
                "tardiness",
                0,
                0,
                {("F", "tardiness_s"): 1} | {("T", g): -down(weight[g]) for g in soft},
            )
            for g in soft:
                due = len(g) * float(tasks.deadline[g[0]])
                work: dict[Any, float] = {("x", g, k): -d for k, (d, _) in self.modes[g[0]].items()}
                self.add("lateness", g, -due - 4 * EPS * due, {("T", g): 1, ("S", g): -1} | work)


def spread(values: set[float], number: int) -> list[float]:
    """Up to so many of the sorted values by rank, the smallest first."""
    ranked = sorted(values)
    ranks = {k * (len(ranked) - 1) // max(1, number - 1) for k in range(number)}
    return [ranked[r] for r in sorted(ranks)] if ranked else []
