"""The resource-constrained project.

Activities need several renewable resources at once. Instances are generated in the manner of ProGen
(Kolisch, Sprecher and Drexl 1995), with these parameters:

- ``complexity`` NC: arcs per activity (dummies included) of a network without redundant arcs;
- ``factor`` RF: share of (activity, resource) pairs with a demand;
- ``strength`` RS: capacity = round(Kmin + RS (Kmax − Kmin)), Kmin the largest single demand and
Kmax the peak demand when
  every activity starts as early as precedence allows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.arguments import require, require_range
from optbench.errors import ParameterError
from optbench.formats.classical import Project, project_instance
from optbench.model.instance import Bools, Instance, Ints
from optbench.model.validate import validate
from optbench.plugins.protocol import Problem

from ._files import from_file

# The largest number of activities without predecessors, and of those without successors, as in
# the sets j30 to j120.
ENDS = 3
# Number of draws per requested arc, after which the network counts as too dense.
TRIES = 200


@dataclass(frozen=True)
class Rcpsp(Problem):
    """Resource-constrained project, from a file (or rcpsp/j30/NAME) or generated: minimise the
    makespan.
    """

    file: str = ""
    activities: int = 30
    resources: int = 4
    complexity: float = 1.5
    factor: float = 0.5
    strength: float = 0.5
    demand: int = 10
    low: int = 1
    high: int = 10

    def __post_init__(self) -> None:
        require(self.activities >= 1, "rcpsp", "activities", self.activities, "at least 1")
        require(self.resources >= 1, "rcpsp", "resources", self.resources, "at least 1")
        require(
            self.complexity >= 0,
            "rcpsp",
            "complexity",
            self.complexity,
            "at least 0 (0: as few arcs as there can be)",
        )
        require(0 <= self.factor <= 1, "rcpsp", "factor", self.factor, "from 0 to 1")
        require(0 <= self.strength <= 1, "rcpsp", "strength", self.strength, "from 0 to 1")
        require(self.demand >= 1, "rcpsp", "demand", self.demand, "at least 1")
        require_range("rcpsp", self.low, self.high)

    def instance(self, seed: int = 0) -> Instance:
        if self.file:
            return from_file(self, "rcpsp", self.file)
        rng = np.random.default_rng(seed)
        n = self.activities
        durations = np.concatenate(([0], rng.integers(self.low, self.high, n, endpoint=True), [0]))
        edges = _network(rng, n, self.complexity)
        needs = np.zeros((n + 2, self.resources), dtype=np.int64)
        needs[1:-1] = _demands(rng, n, self.resources, self.factor, self.demand)
        least, peak = np.maximum(needs.max(axis=0), 1), _peaks(durations, edges, needs)
        capacity = np.rint(least + self.strength * np.maximum(0, peak - least)).astype(np.int64)
        project = Project(capacity.tolist(), durations.tolist(), needs.tolist(), edges)
        return validate(project_instance(project, f"rcpsp-{n}x{self.resources}-{seed}"))


def _network(rng: np.random.Generator, n: int, complexity: float) -> list[tuple[int, int]]:
    """Arcs of a network on 0 (source), 1 to n, n + 1 (sink), none of them implied by the others."""
    first, last = min(ENDS, n), max(1, n - ENDS + 1)
    # reach[i, j]: a path from i to j.
    arc, reach = np.zeros((n + 2, n + 2), dtype=bool), np.eye(n + 2, dtype=bool)
    for j in range(1, n + 1):
        _add(arc, reach, 0 if j <= first else int(rng.integers(1, j)), j)
    for i in range(n, 0, -1):
        if not arc[i].any():
            _add(arc, reach, i, _some_successor(rng, arc, reach, i, n) if i < last else n + 1)
    wanted = round(complexity * (n + 2))
    for _ in range(TRIES * wanted):
        if arc.sum() >= wanted:
            break
        i, j = sorted(rng.integers(1, n + 1, 2).tolist())
        if i < j and j > first and i < last and _is_new(arc, reach, i, j):
            _add(arc, reach, i, j)
    if arc.sum() < wanted:
        reached = int(arc.sum()) / (n + 2)
        raise ParameterError(
            f"problem 'rcpsp': complexity is {complexity!r}; networks of {n} activities without "
            "redundant arcs "
            f"reached {reached:.2f}: ask for at most that, or for more activities"
        )
    return [(i, j) for i, j in np.argwhere(arc).tolist()]


def _some_successor(rng: np.random.Generator, arc: Bools, reach: Bools, i: int, n: int) -> int:
    """Draw a later activity that may follow i directly; return the sink if no draw finds one."""
    for j in rng.integers(max(i, min(ENDS, n)) + 1, n + 1, TRIES).tolist():
        if _is_new(arc, reach, i, j):
            return int(j)
    return n + 1


def _is_new(arc: Bools, reach: Bools, i: int, j: int) -> bool:
    """Whether the other arcs do not imply this one, and it would make none of them redundant."""
    return not reach[i, j] and not arc[np.ix_(reach[:, i], reach[j])].any()


def _add(arc: Bools, reach: Bools, i: int, j: int) -> None:
    arc[i, j] = True
    reach |= reach[:, i, None] & reach[None, j]


def _demands(rng: np.random.Generator, n: int, resources: int, factor: float, demand: int) -> Ints:
    """Draw demands from 1 to ``demand`` for a share ``factor`` of all (activity, resource) pairs.

    The pairs are spread evenly over the activities.
    """
    wanted = round(factor * n * resources)
    keys = rng.permuted(np.tile(np.arange(resources), (n, 1)), axis=1) + rng.random((n, resources))
    used = np.zeros(n * resources, dtype=bool)
    used[np.argsort(keys, axis=None)[:wanted]] = True
    return np.where(
        used.reshape(n, resources), rng.integers(1, demand, (n, resources), endpoint=True), 0
    )


def _peaks(durations: Ints, edges: list[tuple[int, int]], needs: Ints) -> Ints:
    """Peak demand per resource when every activity starts as early as precedence allows (arcs lead
    to higher numbers).
    """
    start = [0] * len(durations)
    for i, j in edges:
        start[j] = max(start[j], start[i] + int(durations[i]))
    profile = np.zeros((start[-1] + 1, needs.shape[1]), dtype=np.int64)
    for i, begin in enumerate(start):
        profile[begin : begin + int(durations[i])] += needs[i]
    return np.asarray(profile.max(axis=0))
