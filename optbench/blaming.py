"""Whether the bound or the schedule is to blame for a gap: four experiments and what they say.

    search     the instance is searched again from the schedule. By how much its value falls is
               certainly the schedule's part of the gap.
    bounds     every method of bounding gets some more time. By how much the best bound rises is
               certainly the bound's part.
    transfers  the same instance without data on its edges is bounded and solved. By how much more
               the schedule falls than the bound is what transfers cost and the bound does not see.
    parts      small connected parts of the task graph without data, each on so many of the devices
               that the tasks per device stay about the same, are solved to a proof. There both
               sides are measured against the true optimum: how far the bound of the linear
               programme lies below it, and how far the schedule's own solver ends above it.

The first two are facts about the instance, mostly small ones. The others are evidence by analogy:
without transfers, and in a part, the problem is another one. A side is blamed when its evidence is
at least half of the gap, and twice that of the other side; where all evidence together stays below
half of the gap, the verdict is that nobody knows.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from statistics import mean
from typing import Any, Literal

import numpy as np

from optbench.api import bound as bounds_of
from optbench.api import solve
from optbench.bounds.milestones import find_milestones
from optbench.errors import UnsupportedError
from optbench.model.instance import Instance, Ints
from optbench.model.instance_part import fits_within, part_of
from optbench.model.measures import gap, is_closed
from optbench.model.result import Result
from optbench.model.schedule import Schedule
from optbench.model.verify import verify
from optbench.plugins.discovery import load_solver
from optbench.plugins.protocol import Solver, check_supported

# Tasks of a part, how many parts are drawn, and how many are wanted with a proof.
PART_TASKS, DRAWS, WANTED = 9, 6, 3
# Shares of the time of the experiments; the parts take what is left.
SEARCH_SHARE, BOUND_SHARE, TRANSFER_SHARE = 0.25, 0.15, 0.25
# Seconds of the solver on a part, and the least and most for its proof.
PART_S, LEAST_PROOF_S, MOST_PROOF_S = 1.0, 0.5, 6.0
# A side with this many times the other's share is to blame alone.
CLEARLY = 2.0
# All evidence together must make up this share of the gap.
ENOUGH = 0.5
PROVER = "cpsat"
# What searches again: the second up to this many tasks, or where the first takes no such instance.
SEARCHERS, FEW_TASKS = ("lp_guided", "cpsat"), 40

Side = Literal["bound", "schedule", "both", "unknown"]


@dataclass(frozen=True)
class SolvedPart:
    """A part of the instance with its optimum, the bound of the linear programme, and the value
    that the solver found.
    """

    tasks: int
    devices: int
    bound: float
    optimum: float
    found: float

    @property
    def bound_below(self) -> float:
        """Share of the optimum by which the bound lies below it."""
        return (self.optimum - self.bound) / abs(self.optimum)

    @property
    def found_above(self) -> float:
        """Share of the optimum by which the solver's value lies above it."""
        return (self.found - self.optimum) / abs(self.optimum)


@dataclass(frozen=True)
class Blame:
    """What the experiments found; all but seconds are shares of the objective's value.

    ``unseen_transfers`` is None where the instance has none.
    """

    gap: float
    searched_s: float
    schedule_falls: float
    bounded_s: float
    bound_rises: float
    unseen_transfers: float | None
    parts: tuple[SolvedPart, ...]
    solver: str
    searcher: str

    @property
    def of_bound(self) -> float:
        """Evidence against the bound: what it does not see."""
        below = mean(part.bound_below for part in self.parts) if self.parts else 0.0
        return max(self.bound_rises, below + max(0.0, self.unseen_transfers or 0.0))

    @property
    def of_schedule(self) -> float:
        """Evidence against the schedule: how much lower it can be."""
        above = mean(part.found_above for part in self.parts) if self.parts else 0.0
        return max(self.schedule_falls, above)

    @property
    def verdict(self) -> Side:
        """The side that is to blame."""
        if self.of_bound + self.of_schedule < ENOUGH * self.gap:
            return "unknown"
        if self.of_bound >= CLEARLY * self.of_schedule:
            return "bound"
        return "schedule" if self.of_schedule >= CLEARLY * self.of_bound else "both"

    @property
    def sentences(self) -> list[str]:
        """The verdict and its evidence in words."""
        head = {
            "bound": "mostly the bound is to blame",
            "schedule": "mostly the schedule is to blame",
            "both": "bound and schedule are both to blame",
            "unknown": "the evidence is too weak to blame bound or schedule",
        }[self.verdict]
        lines = [
            f"{head} for the gap of {_percent(self.gap)}",
            f"certain: {self.searched_s:.1f} s more of {self.searcher} lower the schedule by "
            f"{_percent(self.schedule_falls)} of its value, {self.bounded_s:.1f} s more of all "
            f"bounds raise the bound by {_percent(self.bound_rises)}",
        ]
        if self.unseen_transfers is not None:
            lines.append(
                f"by analogy: without transfers the schedule falls by "
                f"{_percent(self.unseen_transfers)} more than the bound, which does not see them"
            )
        if self.parts:
            tasks = sum(part.tasks for part in self.parts) / len(self.parts)
            devices = [part.devices for part in self.parts]
            below = mean(part.bound_below for part in self.parts)
            above = mean(part.found_above for part in self.parts)
            lines.append(
                f"by analogy: in {len(self.parts)} parts of {tasks:.0f} tasks on {min(devices)} to "
                f"{max(devices)} devices, without transfers and with proven optima, the bound lies "
                f"{_percent(below)} below the optimum and {self.solver} ends {_percent(above)} "
                "above it"
            )
        return lines

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "verdict": self.verdict,
            "gap": self.gap,
            "solver": self.solver,
            "searcher": self.searcher,
            "searched_s": round(self.searched_s, 3),
            "schedule_falls": self.schedule_falls,
            "bounded_s": round(self.bounded_s, 3),
            "bound_rises": self.bound_rises,
            "unseen_transfers": self.unseen_transfers,
            "parts": [
                {
                    "tasks": part.tasks,
                    "devices": part.devices,
                    "bound": part.bound,
                    "optimum": part.optimum,
                    "found": part.found,
                }
                for part in self.parts
            ],
            "sentences": self.sentences,
        }


def blame(
    instance: Instance,
    schedule: Schedule,
    solver: str | Solver,
    best_bound: float,
    *,
    time_limit_s: float = 30.0,
    threads: int = 1,
    seed: int = 0,
) -> Blame:
    """Experiment with a verified schedule of ``solver`` and a certified bound on its first level:
    ``ob.blame(instance, result.schedule, "lp_guided", result.bound)``.
    """
    began = time.perf_counter()
    value = _first(verify(instance, schedule).objectives)
    share = gap(value, best_bound)
    if share is None:
        raise UnsupportedError(f"{instance.name!r}: a schedule and a bound are needed for a blame")
    if is_closed(instance, value, best_bound):
        raise UnsupportedError(f"{instance.name!r} has no gap to blame anything for")
    searched, bounded = SEARCH_SHARE * time_limit_s, BOUND_SHARE * time_limit_s
    settings = _Settings(searcher_of(instance), threads, seed + 1)
    again = settings.solve(instance, searched, schedule)
    better = min(value, _first(again.objective))
    found = [b for b in bounds_of(instance, "auto", time_limit_s=bounded) if b.level == 0]
    higher = max([best_bound, *(b.value for b in found)])
    scale = max(abs(value), 1e-300)
    unseen = None
    if instance.edges.data_gb.any():
        lower, below = without_transfers(instance, settings, TRANSFER_SHARE * time_limit_s)
        unseen = ((better - lower) - max(0.0, higher - below)) / scale
    left = time_limit_s - (time.perf_counter() - began)
    return Blame(
        share,
        searched,
        (value - better) / scale,
        bounded,
        (higher - best_bound) / scale,
        None if unseen is None or not math.isfinite(unseen) else unseen,
        tuple(solved_parts(instance, schedule, replace(settings, solver=solver), left)),
        solver if isinstance(solver, str) else type(solver).__name__,
        again.solver,
    )


def searcher_of(instance: Instance) -> str:
    """Return the name of the solver that searches the instance again."""
    names = SEARCHERS if instance.num_tasks > FEW_TASKS else SEARCHERS[::-1]
    for name in names:
        try:
            check_supported(load_solver(name)[1], name, instance)
        except UnsupportedError:
            continue
        return name
    raise UnsupportedError(
        f"nobody can be blamed for the gap of {instance.name!r}: neither {' nor '.join(names)} "
        "can search it again"
    )


def without_data(instance: Instance) -> Instance:
    """Return the instance with empty edges."""
    edges = instance.edges
    return replace(instance, edges=replace(edges, data_gb=np.zeros_like(edges.data_gb)))


@dataclass(frozen=True)
class _Settings:
    """How the experiments solve."""

    solver: str | Solver
    threads: int
    seed: int

    def solve(
        self, instance: Instance, seconds: float, warm_start: Schedule | None = None
    ) -> Result:
        return solve(
            instance,
            self.solver,
            time_limit_s=seconds,
            seed=self.seed,
            threads=self.threads,
            warm_start=warm_start,
            bound=False,
        )


def without_transfers(
    instance: Instance, settings: _Settings, seconds: float
) -> tuple[float, float]:
    """Return what the solver finds without data on the edges, and the best bound there."""
    empty = without_data(instance)
    solved = settings.solve(empty, seconds / 2)
    found = [b for b in bounds_of(empty, "auto", time_limit_s=seconds / 2) if b.level == 0]
    known = [_first(solved.bound)] if solved.bound is not None else []
    return _first(solved.objective), max([*known, *(b.value for b in found)], default=-math.inf)


def solved_parts(
    instance: Instance, schedule: Schedule, settings: _Settings, seconds: float
) -> list[SolvedPart]:
    """Draw parts and keep those that are solved to a proof, until there are enough or the time is
    over.
    """
    until = time.perf_counter() + seconds
    rng, parts = np.random.default_rng(settings.seed), list[SolvedPart]()
    if not can_be_parted(instance):
        return parts
    for _ in range(DRAWS):
        left = until - time.perf_counter() - PART_S
        if len(parts) == WANTED or left < LEAST_PROOF_S:
            break
        part = draw_part(without_data(instance), schedule, rng)
        milestones = find_milestones(part)
        proved = replace(settings, solver=PROVER).solve(part, min(left, MOST_PROOF_S))
        found = settings.solve(part, PART_S)
        optimum = _first(proved.objective)
        if proved.status == "optimal" and milestones and found.schedule and optimum > 0:
            devices, bound = int(part.pools.count.sum()), milestones.bound.value
            value = _first(found.objective)
            parts.append(SolvedPart(part.num_tasks, devices, bound, optimum, value))
    return parts


def can_be_parted(instance: Instance) -> bool:
    """Whether a part means the same as the whole: no limits, caps or series, one level, and enough
    tasks.
    """
    limits = instance.limits
    return (
        instance.num_tasks > PART_TASKS
        and len(instance.objective.levels) == 1
        and len(limits.cap_w) == 0
        and not limits.metric_max
        and instance.tariffs is None
        and instance.stream is None
        and instance.horizon is None
        and instance.cooling is None
    )


def draw_part(instance: Instance, schedule: Schedule, rng: np.random.Generator) -> Instance:
    """Return a connected part of the task graph whose time begins with the first of its tasks, on
    its share of the devices.
    """
    start = schedule.start[np.argsort(schedule.task)]
    task = np.sort(_connected(instance, start, rng))
    count = _devices(instance, task, rng)
    return part_of(instance, task, count, int(start[task].min()))


def _connected(instance: Instance, start: Ints, rng: np.random.Generator) -> Ints:
    """Draw a task, then neighbours of those drawn, the nearest in time first; where there are none
    left, the task that starts next.
    """
    edges = instance.edges
    chosen = [int(rng.integers(instance.num_tasks))]
    while len(chosen) < PART_TASKS:
        near = np.concatenate(
            (
                edges.target[np.isin(edges.source, chosen)],
                edges.source[np.isin(edges.target, chosen)],
            )
        )
        near = np.setdiff1d(near, chosen)
        if len(near) == 0:
            near = np.setdiff1d(np.arange(instance.num_tasks), chosen)
        middle = float(np.mean(start[chosen]))
        chosen.append(int(near[np.argmin(np.abs(start[near] - middle))]))
    return np.asarray(chosen, dtype=np.int64)


def _devices(instance: Instance, task: Ints, rng: np.random.Generator) -> Ints:
    """Draw devices one by one from the pools until their share of all is that of the tasks, and
    every task has a mode.
    """
    whole, modes = instance.pools.count, instance.modes
    wanted = max(1, round(int(whole.sum()) * len(task) / instance.num_tasks))
    rows = np.flatnonzero(np.isin(instance.pairs.task, task))
    of, mode = instance.pairs.task[rows], instance.pairs.mode[rows]
    count = np.zeros_like(whole)
    while count.sum() < whole.sum():
        served = np.isin(task, of[fits_within(modes, count)[mode]]).all()
        if served and count.sum() >= wanted:
            break
        left = whole - count
        count[rng.choice(len(whole), p=left / left.sum())] += 1
    return count


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def _first(value: Any) -> float:
    """The first level of an objective; infinite where there is none."""
    if value is None:
        return math.inf
    return float(value[0]) if isinstance(value, tuple) else float(value)
