"""Cuts on work between two times: what linear relaxations of precedence and pools do not see.

A *window* begins at the end e_j of a task j, or at time 0, and ends at the start s_k of a task k
that follows j, or with the end of all tasks. Let S be the tasks between: those that follow j and
precede k. Let d(i, k) be the least time from e_i to s_k: the longest path of shortest durations and
shortest transfers from i to k; and head_i, tail_i those of ``windows`` from time 0 and to the end
of all tasks. Every task of S that uses pool r runs within

    W = [e_j + a, s_k − b],   a = min_{i ∈ S uses r} d(j, i),   b = min_{i ∈ S uses r} d(i, k)

(head_i in place of d(j, i) where W begins at time 0, tail_i in place of d(i, k) where it ends with
the end of all tasks). With x_im = 1 when task i runs in mode m, p_im its duration and n_im the
devices of r that the mode takes, each cut is

    Σ_{i ∈ S, m} w_im p_im x_im ≤ room · |W|

for weights w and a room such that **at every instant the weights of the running tasks sum to at
most the room**: integrating over W proves the cut, because every task with a weight runs for p_im
within W, without interruption. A task of zero duration adds nothing to either side. W may be empty
(then nothing of S uses r, or only for no time): its length is not negative wherever a task of S
uses r, and where no task of S uses r the left side is 0 and |W| counts from task to task, see
``_wait``. Two families of weights:

* **Area cuts**: w = n, room = count_r, by the capacity of the pool.
* **Chain cuts**: room = 1. C is a chain of S (each task follows the one before), h a whole number,
  1 ≤ h, 2 h ≤ count_r + 1. Weight 1 has a mode of a task of C if n ≥ h, and a mode of any other
  task of S if n > count_r − h; the others have weight 0. No two tasks with weight 1 run together:
  two tasks of C do not, by precedence; one in C and one not take more than h + count_r − h; two
  outside C take at least 2 (count_r − h + 1) > count_r, since 2 h < count_r + 2.
  With h = 1 and two devices these are modes on both devices, and all modes of the chain. (On three
  devices modes that use two do **not** exclude a chain's modes on one: the threshold must be
  count_r − h, not half of the pool.)

Cuts are left out where a window can never be too short: where the least length of the window
suffices for the greatest left side.

**Features.** Releases, ingress latencies and transfers only lengthen paths; deadlines, limits, caps
and tariffs only exclude schedules; modes of several pools give cuts on each of them. There are none
in preemptive instances, in open ones (work may be left undone), with outages (the pool's count
changes), and where a task has no mode or an edge no link (nothing is feasible). A window that ends
with the end of all tasks may be closed by the makespan, or by any time by which all tasks have
ended. Modes that a view leaves out as dominated are simply absent from its sums.

**How many.** Comparable pairs times pools times chains grow with the cube of the tasks: nothing is
made for more than ``MAX_TASKS`` tasks, and of each family only the ``most`` strongest remain. The
strength of a cut is its left side with the mean over each task's modes, over room times the length
of the window when every task has its mean duration: near 1 the pool is as busy as it can be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from optbench.model.instance import Bools, Floats, Instance, Ints
from optbench.model.metrics import mode_uses
from optbench.model.windows import Windows, by_source, windows

# Above this, comparable pairs are too many, and too few of them bind.
MAX_TASKS = 60
# Cuts of each family.
MOST_AREAS, MOST_CHAINS = 400, 400
# Chains tried in one window on one pool.
MAX_CHAINS = 4
# What a task that an earlier chain contains counts in the search for the next one.
REPEATED = 1 / 64


@dataclass(frozen=True)
class TimeCut:
    """Σ_c weights[c] · duration[rows[c]] · x[rows[c]] ≤ room · (right − left − wait).

    ``rows`` are rows of ``instance.pairs``. ``left`` is the end of the task ``after``, or 0 where
    it is None. ``right`` is the start of the task ``before``; where it is None, the makespan, or
    any time by which all tasks have ended. ``chain`` says which family it is of.
    """

    pool: int
    room: int
    rows: tuple[int, ...]
    weights: tuple[int, ...]
    after: int | None
    before: int | None
    wait: int
    chain: bool
    strength: float


def time_cuts(
    instance: Instance, areas: int = MOST_AREAS, chains: int = MOST_CHAINS
) -> list[TimeCut]:
    """Return the strongest cuts, at most so many of each family, the strongest first."""
    if not has_cuts(instance):
        return []
    known = windows(instance)
    if not np.isfinite(known.head + known.tail + known.shortest).all():
        return []
    found = list(_Paths(instance, known).cuts())
    found.sort(key=lambda cut: -cut.strength)
    kept = [cut for cut in found if not cut.chain][:areas]
    kept += [cut for cut in found if cut.chain][:chains]
    return sorted(kept, key=lambda cut: -cut.strength)


def has_cuts(instance: Instance) -> bool:
    """Whether cuts hold for an instance, and are not too many."""
    return 1 < instance.num_tasks <= MAX_TASKS and not (
        instance.preemptive or instance.is_open or "outages" in instance.features
    )


class _Paths:
    """Least and mean times between tasks; row and column n stand for time 0 and the end of all."""

    def __init__(self, instance: Instance, known: Windows) -> None:
        self.instance = instance
        pairs, n = instance.pairs, instance.num_tasks
        self.n = n
        self.task: Ints = pairs.task
        self.duration: Ints = pairs.duration
        self.size = np.diff(pairs.ptr)
        self.uses: Ints = mode_uses(instance)[pairs.mode]
        mean = np.bincount(pairs.task, pairs.duration, n) / self.size
        self.least = self._between(known.shortest, known.edge_lag, known.head, known.tail)
        self.typical = self._between(mean, known.edge_lag, known.head, known.tail)
        self.follows: Bools = np.isfinite(self.least)

    def _between(self, length: Floats, lag: Floats, head: Floats, tail: Floats) -> Floats:
        """Return the longest path from the end of each task to the start of each that follows."""
        n, edges = self.n, self.instance.edges
        out = np.full((n + 1, n + 1), -np.inf)
        for e in reversed(by_source(self.instance)):
            i, a = int(edges.source[e]), int(edges.target[e])
            out[i] = np.maximum(out[i], lag[e] + length[a] + out[a])
            out[i, a] = max(out[i, a], lag[e])
        out[n, :n], out[:n, n] = head, tail
        inner = np.where(np.isfinite(out[:n, :n]), out[:n, :n], -np.inf)
        out[n, :n] = np.maximum(head, (head + length + inner.T).max(axis=1, initial=0.0))
        out[:n, n] = np.maximum(tail, (inner + length + tail).max(axis=1, initial=0.0))
        out[n, n] = float((out[n, :n] + length + tail).max(initial=0.0))
        return out

    def cuts(self) -> Iterator[TimeCut]:
        """Yield the cuts of every window on every pool."""
        counts = self.instance.pools.count.tolist()
        for left, right in np.argwhere(self.follows).tolist():
            inside = np.flatnonzero(self.follows[left, :-1] & self.follows[:-1, right])
            if len(inside) < 2:
                continue
            for pool, count in enumerate(counts):
                yield from self._on_pool(left, right, inside, pool, count)

    def _on_pool(
        self, left: int, right: int, inside: Ints, pool: int, count: int
    ) -> Iterator[TimeCut]:
        here = np.zeros(self.n, dtype=bool)
        here[inside] = True
        need = self.uses[:, pool]
        rows = np.flatnonzero(here[self.task] & (need > 0) & (self.duration > 0))
        users = np.unique(self.task[rows])
        if len(users) < 2:
            return
        wait = self._wait(left, right, users)
        if not self._is_chain(users):
            area = self._cut(left, right, pool, count, rows, need[rows], wait, False)
            if area is not None:
                yield area
        for h in range(1, (count + 1) // 2 + 1):
            yield from self._chains(left, right, pool, count, h, rows, wait)

    def _wait(self, left: int, right: int, users: Ints) -> int:
        """Return a + b of the module: time of the window in which no user runs.

        It is at most the least length of the window: d(j, i) + p_i + d(i, k) ≤ d(j, k) for each
        user i, so that the cut holds also where all users take other pools.
        """
        return int(self.least[left, users].min() + self.least[users, right].min())

    def _is_chain(self, tasks: Ints) -> bool:
        ordered = self.follows[np.ix_(tasks, tasks)]
        return bool((ordered | ordered.T | np.eye(len(tasks), dtype=bool)).all())

    def _chains(
        self, left: int, right: int, pool: int, count: int, h: int, rows: Ints, wait: int
    ) -> Iterator[TimeCut]:
        """Yield chain cuts of one window: each next chain is the heaviest in what is new."""
        need = self.uses[rows, pool]
        large = need > count - h
        gain = self.duration[rows] / self.size[self.task[rows]]
        weight: Floats = np.bincount(self.task[rows], gain * ((need >= h) & ~large), self.n).astype(
            float
        )
        if not large.any():
            return
        seen: set[tuple[int, ...]] = set()
        for _ in range(MAX_CHAINS):
            chain = self._heaviest(np.flatnonzero(weight > 0), weight)
            inside = np.isin(self.task[rows], chain)
            chosen = rows[large | (inside & (need >= h))]
            key = tuple(chosen.tolist())
            if key in seen:
                return
            seen.add(key)
            if not self._is_chain(np.unique(self.task[chosen])):
                ones = np.ones(len(chosen), dtype=np.int64)
                cut = self._cut(left, right, pool, 1, chosen, ones, wait, True)
                if cut is not None:
                    yield cut
            weight[chain] *= REPEATED

    def _heaviest(self, tasks: Ints, weight: Floats) -> list[int]:
        """Return the chain of greatest weight among these tasks."""
        ordered = sorted(tasks.tolist(), key=lambda i: int(self.follows[:, i].sum()))
        best: dict[int, tuple[float, list[int]]] = {}
        for task in ordered:
            earlier = [best[i] for i in best if self.follows[i, task]]
            value, chain = max(earlier, default=(0.0, []))
            best[task] = (value + float(weight[task]), [*chain, task])
        return max(best.values(), default=(0.0, []))[1]

    def _cut(
        self,
        left: int,
        right: int,
        pool: int,
        room: int,
        rows: Ints,
        weights: Ints,
        wait: int,
        chain: bool,
    ) -> TimeCut | None:
        """Return the cut with its strength; None where it always holds."""
        work = (weights * self.duration[rows]).astype(float)
        most = np.zeros(self.n)
        np.maximum.at(most, self.task[rows], work)
        if most.sum() <= room * (self.least[left, right] - wait):
            return None
        typical = max(float(self.typical[left, right]) - wait, 1.0)
        strength = float((work / self.size[self.task[rows]]).sum()) / (room * typical)
        ends = (None if left == self.n else left, None if right == self.n else right)
        return TimeCut(
            pool,
            room,
            tuple(rows.tolist()),
            tuple(weights.tolist()),
            *ends,
            wait,
            chain,
            strength,
        )
