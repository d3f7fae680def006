"""Shops for the compiled tabu search: which instances are shops, their arrays, and the conversion
to a schedule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optbench.model.instance import Instance, Ints
from optbench.model.schedule import Schedule
from optbench.sim.primal import shop_graph as graph
from optbench.sim.primal.chance import RANDOM, seeded
from optbench.sim.primal.shop_graph import NONE
from optbench.sim.primal.tabu import BEST, BIG, LOCAL, TARGET, TENURE, search

# Features of a shop: any other changes when a task can run or what is minimised.
FEATURES = frozenset({"precedence", "releases", "modes"})
MAKESPANS = {"makespan", "makespan_s"}
# Limit on the size of square precedence tables.
MAX_TASKS = 3000
# Iterations without improvement before the search returns to its best solution: a shop without
# choices leaves a local optimum less easily (ta36 and ta24 gained from long patience). With choices
# 6,000 were as good as 1,000 and 2,500 or better on generated shops, setb4xy and la24_rdata. Then,
# the least number of iterations for which a move is tabu: 16 and 28 were worse on three of four.
PATIENCE = 12_000
PATIENCE_WITH_CHOICES = 6000
LEAST_TENURE = 9


def is_shop(instance: Instance) -> bool:
    """Whether every mode takes one device of a single-device pool and only the makespan counts."""
    modes, pools = instance.modes, instance.pools
    return (
        instance.features <= FEATURES
        and instance.horizon is None
        and {name for name, _ in instance.objective.levels[0]} <= MAKESPANS
        and instance.num_tasks <= MAX_TASKS
        and bool((np.diff(modes.req_ptr) == 1).all())
        and bool((pools.count == 1).all())
        and bool((np.diff(instance.pairs.ptr) > 0).all())
    )


def adjacency(key: Ints, value: Ints, size: int) -> tuple[Ints, Ints]:
    """Compressed rows: the values of each key."""
    order = np.argsort(key, kind="stable")
    ptr = np.concatenate(([0], np.cumsum(np.bincount(key, minlength=size)))).astype(np.int64)
    return ptr, np.ascontiguousarray(value[order])


@dataclass(eq=False)
class ShopSearch:
    """One tabu search with its state; ``step`` may be called from a separate thread."""

    instance: Instance
    seed: int

    def __post_init__(self) -> None:
        instance, n = self.instance, self.instance.num_tasks
        edges, pairs = instance.edges, instance.pairs
        self.patience = PATIENCE_WITH_CHOICES if "modes" in instance.features else PATIENCE
        pred_ptr, pred = adjacency(edges.target, edges.source, n)
        succ_ptr, succ = adjacency(edges.source, edges.target, n)
        self.net = np.concatenate((pred, succ)).astype(np.int64)
        machine = instance.modes.primary[pairs.mode]
        self.rows = np.array([machine, pairs.duration], dtype=np.int64)
        self.table = np.zeros((graph.COLUMNS, n), dtype=np.int64)
        self.table[graph.RELEASE] = instance.tasks.release
        self.table[[graph.PRED, graph.PRED_END]] = pred_ptr[:-1], pred_ptr[1:]
        self.table[[graph.SUCC, graph.SUCC_END]] = succ_ptr[:-1], succ_ptr[1:]
        self.table[[graph.SUCC, graph.SUCC_END]] += len(pred)
        self.table[[graph.ROWS, graph.ROWS_END]] = pairs.ptr[:-1], pairs.ptr[1:]
        sinks = np.flatnonzero(np.diff(succ_ptr) == 0)
        self.table[graph.SINK] = NONE
        self.table[graph.SINK, : len(sinks)] = sinks
        self.best = np.zeros((graph.HEAD + 1, n), dtype=np.int64)
        room = np.bincount(machine, minlength=instance.num_pools) + 1
        begin = instance.num_pools + np.cumsum(room) - room + 1
        self.line = np.zeros(instance.num_pools + int(room.sum()), dtype=np.int64)
        self.line[: instance.num_pools] = begin
        self.state = np.zeros(10, dtype=np.int64)
        self.state[[BEST, TARGET, RANDOM, LOCAL, TENURE]] = (
            BIG,
            -BIG,
            seeded(self.seed),
            BIG,
            LEAST_TENURE,
        )
        self.tabu = np.zeros((n, n), dtype=np.int32)
        self.tabu_machine = np.zeros((n, instance.num_pools), dtype=np.int32)

    @property
    def makespan(self) -> int:
        return int(self.state[BEST])

    def aim(self, target: float) -> None:
        """Stop as soon as a makespan is not above this."""
        self.state[TARGET] = math.ceil(max(target, -1.0))

    def begin(self, row: Ints, start: Ints) -> None:
        """Start from a schedule: the row and start of every task."""
        n = self.instance.num_tasks
        machine, length = self.rows[:, row]
        before, after = np.full(n, NONE), np.full(n, NONE)
        position = np.empty(n, dtype=np.int64)
        position[self.instance.order] = np.arange(n)
        last = np.full(self.instance.num_pools, NONE)
        for i in np.lexsort((position, start + length, start)).tolist():
            k = machine[i]
            if last[k] != NONE:
                before[i], after[last[k]] = last[k], i
            last[k] = i
        self.table[: graph.ROW + 1] = before, after, machine, length, row

    def step(self, iterations: int) -> None:
        """Search some iterations further."""
        search(
            self.table, self.net, self.line, self.rows, self.best, self.tabu, self.tabu_machine,
            self.state, iterations, self.patience,
        )  # fmt: skip

    def schedule(self) -> Schedule:
        """The best schedule found."""
        row, start = self.best[graph.ROW], self.best[graph.HEAD].copy()
        return Schedule.of(self.instance, self.instance.pairs.mode[row], start)


def list_schedule(instance: Instance, priority: Ints) -> tuple[Ints, Ints]:
    """A schedule task by task in an order compatible with the precedence, each in the row that ends
    first.
    """
    pairs = instance.pairs
    ptr, machine, length = (
        pairs.ptr.tolist(),
        instance.modes.primary[pairs.mode].tolist(),
        pairs.duration.tolist(),
    )
    ready = instance.tasks.release.astype(np.int64).tolist()
    free = [0] * instance.num_pools
    succ_ptr, succ = adjacency(instance.edges.source, instance.edges.target, instance.num_tasks)
    row, start = np.zeros(instance.num_tasks, np.int64), np.zeros(instance.num_tasks, np.int64)
    for i in priority.tolist():
        chosen = min(
            range(ptr[i], ptr[i + 1]),
            key=lambda k: (max(ready[i], free[machine[k]]) + length[k], length[k]),
        )
        begin = max(ready[i], free[machine[chosen]])
        row[i], start[i] = chosen, begin
        free[machine[chosen]] = end = begin + length[chosen]
        for j in succ[succ_ptr[i] : succ_ptr[i + 1]].tolist():
            ready[j] = max(ready[j], end)
    return row, start
