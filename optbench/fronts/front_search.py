"""The ε-constraint method: least y under a limit on x, for limits over the whole range of x.

The ends come first: least x, then least y at this x; least y, then least x at this y. Between them
the limits are equal steps of x, each solved from the best schedule known that keeps it, and a
point's schedule is then made as short in x as its y allows. A weighted sum of x and y would find
points of the convex hull only.

A point that an earlier one already equals is dropped. Where all others are proven, further limits
halve the widest step until there are as many points as asked for; where the middle holds nothing
new, the least x with less y than the left point is either the next point or proves that there is
none. Bounds are shared afterwards: what bounds y under one limit bounds it under every smaller one,
and the fluid programme, proved again in exact arithmetic, is asked in between.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from optbench.api import load_target, solve
from optbench.bounds.combinatorial.combinatorial_bound import combinatorial_bounds
from optbench.bounds.fluid.fluid_bound import fluid_bound
from optbench.errors import ParameterError, nearest
from optbench.fronts.front_floor import Step, floor_steps, undecided_area
from optbench.fronts.points import Front, FrontPoint, FrontProgress
from optbench.fronts.resting_power import Declared, declare
from optbench.model.instance import Instance, task_instance
from optbench.model.measures import metric_tolerance
from optbench.model.objective import MAKESPANS, METRICS, Objective
from optbench.model.result import OPTIMAL_GAP, Result, Termination, TrajectoryPoint
from optbench.model.schedule import Schedule
from optbench.model.timegrid import grid_down
from optbench.model.verify import Verdict, verify
from optbench.plugins.discovery import load_solver
from optbench.plugins.protocol import Problem, Solver

# Share of a point's time for making its schedule as short in x as its y allows.
CLEAN_SHARE = 0.1
# The fluid programme is asked at so many limits between two points, for so long each.
BETWEEN, BETWEEN_S = 4, 2.0

OnProgress = Callable[[FrontProgress], None]


def pareto(
    target: str | Path | Instance | Problem,
    solver: str = "cpsat",
    *,
    x: str = "makespan_s",
    y: str = "energy_j",
    points: int = 10,
    time_limit_s: float = 60.0,
    seed: int = 0,
    threads: int = 1,
    horizon_s: float | str | None = None,
    asleep: bool = False,
    on_progress: OnProgress | None = None,
    stop: threading.Event | None = None,
    **params: Any,
) -> Front:
    """The front between two metrics: ``ob.pareto("gpu_dag:tasks=8", points=5).points``.

    The time limit is per point; the two ends take up to twice that. Devices rest until
    ``horizon_s`` (seconds, or "completion"; by default the instance's own horizon, or the time that
    every task's cheapest mode needs), ``asleep`` or as their pool says.
    """
    for metric in (x, y):
        if metric not in METRICS:
            raise ParameterError(f"unknown metric {metric!r}; {nearest(metric, METRICS)}")
    if x == y or {x, y} <= set(MAKESPANS):
        raise ParameterError(
            f"a front is between two metrics, not between {x} and {y}; known: {', '.join(METRICS)}"
        )
    if points < 2:
        raise ParameterError(f"points is {points!r}; a front has at least its two ends")
    if not time_limit_s > 0:
        raise ParameterError(f"time_limit_s is {time_limit_s!r}; it must be positive")
    instance = task_instance(load_target(target, seed), "a front")
    declared = declare(instance, {x, y}, horizon_s, asleep)
    name, method = load_solver(solver, params)
    stop = stop or threading.Event()
    work = _Search(declared, method, x, y, points, time_limit_s, seed, threads, on_progress, stop)
    return replace(work.front(), solver=name)


@dataclass(eq=False)
class _Search:
    """One front in the making. ``bounds`` are on y by limit on x; ``known`` are all verified
    schedules.
    """

    declared: Declared
    solver: Solver
    x: str
    y: str
    wanted: int
    time_limit_s: float
    seed: int
    threads: int
    on_progress: OnProgress | None
    stop: threading.Event
    known: list[tuple[Schedule, Verdict]] = field(default_factory=list)
    found: list[FrontPoint] = field(default_factory=list)
    bounds: dict[float, tuple[float, str]] = field(default_factory=dict)
    tried: set[tuple[float, float]] = field(default_factory=set)
    x_bound: float | None = None
    infeasible: bool = False
    number: int = 1

    @property
    def instance(self) -> Instance:
        return self.declared.instance

    def front(self) -> Front:
        """Ends, grid, further limits, bounds in between."""
        began = time.perf_counter()
        self.constant = self._constant()
        first = self._solve(self.x, {}, self.time_limit_s)
        self.x_bound, self.infeasible = _number(first.bound), first.status == "infeasible"
        if first.schedule is not None:
            self._grid(first.metrics[self.x])
            self._ask_between()
        return self._assemble(time.perf_counter() - began)

    def _grid(self, left: float) -> None:
        """The ends, the limits between them, and more of them where points coincide."""
        self._point(left)
        right = self._end()
        if right is None:
            return
        for k in range(1, self.wanted - 1):
            limit = self._whole(left + (right - left) * k / (self.wanted - 1))
            if not self.stop.is_set() and limit not in self.bounds:
                self._point(limit)
        while len(self.found) < self.wanted and self._may_go_on():
            step = self._widest()
            if step is None:
                return
            self._divide(*step)

    def _may_go_on(self) -> bool:
        return all(p.proven for p in self.found) and not self.stop.is_set()

    def _widest(self) -> tuple[FrontPoint, FrontPoint] | None:
        """The neighbours farthest apart between which there may be a point; None where none are."""
        steps = pairwise(sorted(self.found, key=lambda p: p.x))
        open_steps = [
            (p, q) for p, q in steps if (p.x, q.x) not in self.tried and not self._is_settled(p, q)
        ]
        return max(open_steps, key=lambda step: (step[1].x - step[0].x, step[0].x), default=None)

    def _is_settled(self, left: FrontPoint, right: FrontPoint) -> bool:
        """Whether no schedule with less x than the right point is better than the left one, as far
        as numbers differ.
        """
        near = right.x - self._same(self.x, right.x)
        from_x = min(near, self._below(right.x))
        last = max((limit for limit in self.bounds if from_x <= limit < right.x), default=left.x)
        apart = right.x - left.x > self._same(self.x, right.x)
        if last == left.x and apart and self._below(right.x) > left.x:
            return False
        return self._floor(last) >= left.y - self._same(self.y, left.y)

    def _divide(self, left: FrontPoint, right: FrontPoint) -> None:
        """Look for a point between two: in the middle; where only the left one is there, for the
        next one to its right.
        """
        middle = self._whole((left.x + right.x) / 2)
        if left.x < middle < right.x and not any(left.x < limit < right.x for limit in self.bounds):
            self._point(middle)
            return
        self.tried.add((left.x, right.x))
        less, near = left.y - self._same(self.y, left.y), right.x - self._same(self.x, right.x)
        result = self._solve(self.x, {self.y: less, self.x: right.x}, self.time_limit_s)
        bound = _number(result.bound)
        if bound is not None and bound > left.x:  # less x than the bound costs more y than ``less``
            limit = min(self._below(bound), self._below(right.x))
            if limit not in self.bounds or self.bounds[limit][0] < less:
                self.bounds[limit] = (less, _source(result))
        if result.schedule is not None and result.metrics[self.x] < near:
            self._point(result.metrics[self.x])

    def _same(self, metric: str, value: float) -> float:
        """Values of a metric near this one that differ by no more are one: what a proof leaves
        open, and rounding.
        """
        room = max(OPTIMAL_GAP * abs(value), metric_tolerance(self.instance, metric, value))
        return min(0.5 * self._tick(metric), room) if metric in MAKESPANS else room

    def _tick(self, makespan: str) -> float:
        """The unit of a makespan: seconds have the instance's tick."""
        return self.instance.tick_s if makespan == "makespan_s" else 1.0

    def _below(self, x: float) -> float:
        """The largest limit below x that differs from it: a tick less, or the float before."""
        if self.x not in MAKESPANS:
            return math.nextafter(x, -math.inf)
        step = self._tick(self.x)
        return float(np.ceil(round(x / step, 6)) - 1) * step

    def _floor(self, limit: float) -> float:
        known = (bound for at, (bound, _) in self.bounds.items() if at >= limit)
        return max(known, default=self.constant)

    def _end(self) -> float | None:
        """Least y and then least x: the other end of the range."""
        result = self._solve(self.y, {}, self.time_limit_s)
        if result.schedule is None:
            return None
        point = self._point_of(result, math.inf, self.time_limit_s / 2)
        self._keep(replace(point, limit=point.x))
        self._bound(point.x, result)
        self._done(None, result)
        return point.x

    def _bound(self, limit: float, result: Result) -> None:
        bound = _number(result.bound)
        self.bounds[limit] = (
            (self.constant, "cheapest choices") if bound is None else (bound, _source(result))
        )

    def _point(self, limit: float) -> None:
        """Least y under a limit on x."""
        result = self._solve(self.y, {self.x: limit}, self.time_limit_s * (1 - CLEAN_SHARE))
        self._bound(limit, result)
        if result.schedule is not None:
            self._keep(self._point_of(result, limit, self.time_limit_s * CLEAN_SHARE))
        self._done(limit, result)

    def _point_of(self, result: Result, limit: float, seconds: float) -> FrontPoint:
        """The point of a result, its schedule exchanged for one of less x and no more y where there
        is one.
        """
        y, wall_s = result.metrics[self.y], result.wall_s
        best, efficient = result, False
        if not self.stop.is_set():
            limits = {self.y: y} if math.isinf(limit) else {self.y: y, self.x: limit}
            shorter = self._solve(self.x, limits, seconds)
            wall_s += shorter.wall_s
            best = result if shorter.schedule is None else shorter
            efficient = shorter.status == result.status == "optimal"
        return FrontPoint(
            limit=limit,
            x=best.metrics[self.x],
            y=min(y, best.metrics[self.y]),
            bound=_number(result.bound),
            bound_source=_source(result),
            efficient=efficient,
            wall_s=wall_s,
            termination=result.termination,
            constant=self.constant,
            schedule=best.schedule,
        )

    def _keep(self, point: FrontPoint) -> None:
        """Add a point, unless one that is there is as good."""
        if not any(self._is_no_worse(p, point) for p in self.found):
            self.found = [p for p in self.found if not self._is_no_worse(point, p)] + [point]

    def _is_no_worse(self, one: FrontPoint, other: FrontPoint) -> bool:
        """In both metrics, but for the rounding of their sums."""
        x_room = metric_tolerance(self.instance, self.x, other.x)
        y_room = metric_tolerance(self.instance, self.y, other.y)
        return one.x <= other.x + x_room and one.y <= other.y + y_room

    def _solve(self, metric: str, limits: dict[str, float], seconds: float) -> Result:
        """Minimise one metric under limits from the best schedule known that keeps them."""
        instance = self._minimising(metric)
        if limits:
            instance = instance.with_limits(**limits)
        start, limit = self._start(instance, metric), limits.get(self.x)

        def progress(point: TrajectoryPoint) -> None:
            self._tell(metric, limit, point.objective, point.bound, finished=False)

        result = solve(
            instance,
            self.solver,
            time_limit_s=seconds,
            seed=self.seed,
            threads=self.threads,
            warm_start=start,
            on_progress=progress,
            stop=self.stop,
        )
        if result.schedule is not None:
            self.known.append((result.schedule, verify(self.instance, result.schedule)))
        return result

    def _minimising(self, metric: str) -> Instance:
        return self.instance.with_objective(Objective.weighted({metric: 1.0}))

    def _start(self, instance: Instance, metric: str) -> Schedule | None:
        """The best schedule so far that is feasible here."""
        ranked = sorted(self.known, key=lambda known: known[1].metrics[metric])
        feasible = (schedule for schedule, _ in ranked if verify(instance, schedule).feasible)
        return next(feasible, None)

    def _done(self, limit: float | None, result: Result) -> None:
        """A point is over."""
        self._tell(self.y, limit, _number(result.objective), _number(result.bound), finished=True)
        self.number += 1

    def _tell(
        self,
        metric: str,
        limit: float | None,
        objective: float | None,
        bound: float | None,
        finished: bool,
    ) -> None:
        if self.on_progress is not None:
            of = max(self.wanted, self.number)
            self.on_progress(
                FrontProgress(self.number, of, metric, limit, objective, bound, finished)
            )

    def _constant(self) -> float:
        """What no schedule avoids of y: rest over the horizon, and every task's and transfer's
        cheapest choice.
        """
        found = combinatorial_bounds(self._minimising(self.y))
        return max((bound.value for bound in found), default=0.0)

    def _whole(self, limit: float) -> float:
        """A limit on x; of a makespan in ticks only whole ones differ."""
        if self.x not in MAKESPANS:
            return limit
        step = self._tick(self.x)
        return float(grid_down(limit / step)) * step

    def _ask_between(self) -> None:
        """Certified bounds at limits between those that were solved."""
        instance, limits = self._minimising(self.y), sorted(self.bounds)
        for a, b in pairwise(limits):
            for k in range(1, BETWEEN):
                limit = self._whole(a + (b - a) * k / BETWEEN)
                if limit in self.bounds or self.stop.is_set():
                    continue
                proof = fluid_bound(instance.with_limits(**{self.x: limit}), BETWEEN_S)
                if proof is not None and proof.bound.value > self._floor(limit):
                    self.bounds[limit] = (proof.bound.value, proof.bound.source)

    def _assemble(self, wall_s: float) -> Front:
        points = []
        for point in sorted(self.found, key=lambda p: p.x):
            known = [(at, *found) for at, found in self.bounds.items() if at >= point.limit]
            at, bound, source = max(known, key=lambda item: item[1])
            source = source if at == point.limit else f"{source} at {at:g}"
            points.append(replace(point, bound=bound, bound_source=source))
        floors = [(limit, bound) for limit, (bound, _) in self.bounds.items()]
        steps = floor_steps(floors, self.constant)
        front: list[Step] = [(p.x, p.y) for p in points]
        area = undecided_area(front, steps, self.constant)
        box = (front[-1][0] - front[0][0]) * (front[0][1] - front[-1][1]) if front else 0.0
        cut = (p.termination for p in points if p.termination != "finished")
        ended: Termination = "interrupted" if self.stop.is_set() else next(cut, "finished")
        instance, declared = self.instance, self.declared
        return Front(
            instance.name,
            instance.hash,
            instance.problem,
            self.x,
            self.y,
            declared.horizon_s,
            declared.horizon_from,
            declared.rest_energy,
            type(self.solver).__name__.lower(),
            self.seed,
            self.threads,
            self.time_limit_s,
            ended,
            self.infeasible,
            self.x_bound,
            self.constant,
            tuple(points),
            steps,
            area,
            area / box if box > 0 else 0.0,
            wall_s,
        )


def _number(value: Any) -> float | None:
    """The value of an objective with one level."""
    return None if value is None else float(value)


def _source(result: Result) -> str:
    return result.bounds[0].source if result.bounds else "cheapest choices"
