"""hgnn online: each job is encoded once, when it arrives, together with the state of the cluster.

At an arrival the network sees the tasks that have just arrived, how many devices of each class are
free, and the work of known tasks that is not done (a running task counts whole); nothing of what
comes later, and no temperatures yet (``heat`` is 0). Its answers for tasks stay with them; its
answers for the whole and for classes hold until the next arrival. Streams have read-outs of their
own (``StreamReadouts``), since the end of a stream is not the policy's to choose, and as many tasks
of the queue are tried as there are devices.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from optbench.model.instance import Edges, Instance, Ints, Tasks
from optbench.model.ragged import ragged
from optbench.sim.arrivals import COLUMNS, TaskArrivals
from optbench.sim.kernel.dispatch import (
    Rule,
    go_on,
    run,
)
from optbench.sim.kernel.plant import Fault, plant_of
from optbench.sim.kernel.pointers import addresses
from optbench.sim.kernel.state import (
    DONE,
    NONE,
    NUM_DONE,
    NUM_RUNNING,
    RUNNING,
    State,
    last_moment,
    new_state,
    schedule_of,
)
from optbench.sim.moments import TimedTrace
from optbench.sim.rules import has_choice, list_rule, refuse_trouble, set_cost_rows

from .answer_player import write_numbers
from .answers import plain_answers
from .milestone_rule import DEPTH, numbers_of
from .network_design import AnsweringNetwork
from .situation import DeviceState, Surroundings, situation_of, surroundings_of
from .stream_readouts import StreamReadouts

# Times are whole ticks: nothing happens within this much before an arrival.
BEFORE = 0.5


class OnlinePlay:
    """One run; ``decision_s`` collects for every started task the seconds of encoding and of the
    kernel since the arrival before it, shared among the tasks started in that time.
    """

    def __init__(
        self,
        instance: Instance,
        network: AnsweringNetwork | None,
        readouts: StreamReadouts | None,
        faults: Sequence[Fault] = (),
        around: Surroundings | None = None,
    ) -> None:
        self.instance, self.network, self.readouts = instance, network, readouts
        self.around = surroundings_of(instance) if around is None else around
        self.traffic = None if readouts is None else readouts.traffic(instance, self.around.tables)
        self.plant = plant_of(instance, faults)
        self.state: State = new_state(self.plant)
        n, classes = instance.num_tasks, self.around.tables.view.num_classes
        self.rule: Rule = list_rule(
            instance,
            due=math.inf,
            depth=max(DEPTH, int(instance.pools.count.sum())),
            lookahead=has_choice(instance),
            set_cost=np.zeros(set_cost_rows(instance)[-1]),
        )
        self.rows = addresses(self.plant), addresses(self.state), addresses(self.rule)
        self.edges = JobEdges(instance)
        self.load, self.choice = np.zeros(n), np.zeros(n, dtype=np.int64)
        self.known = np.zeros(0, dtype=np.int64)
        self.pool_class = self.around.tables.view.pool_class
        self.count = np.bincount(self.pool_class, weights=instance.pools.count, minlength=classes)
        self.decision_s: list[float] = []

    def play(self, until: float) -> TimedTrace:
        """Run to the end, or to ``until``."""
        instance, arrivals = self.instance, TaskArrivals.of(self.instance)
        last = last_moment(instance, until)
        run(*self.rows, -1.0)  # only creates the state at time 0
        moments = [moment for moment in arrivals.moments() if moment <= last]
        begun = 0
        for moment, following in pairwise([*moments, math.inf]):
            began = time.perf_counter()
            count = arrivals.count(moment)
            self.arrive(arrivals, begun, count, moment)
            begun = count
            before = self.started()
            go_on(*self.rows, np.zeros(0), min(last, following - BEFORE))
            made = self.started() - before
            self.decision_s += [(time.perf_counter() - began) / max(1, made)] * made
        refuse_trouble(instance, self.state, ())
        schedule = schedule_of(instance, self.plant, self.state)
        return TimedTrace(self.plant, self.state, schedule, np.asarray(self.decision_s))

    def started(self) -> int:
        return int(self.state.tally[NUM_DONE] + self.state.tally[NUM_RUNNING])

    def arrive(self, arrivals: TaskArrivals, begun: int, count: int, now: float) -> None:
        """Encode the tasks that arrive now, and write their rows and the numbers of all."""
        tasks = arrivals.tasks(count)[begun:]
        part = arriving_part(self.instance, self.edges.among(tasks), tasks, now)
        self.known = np.concatenate((self.known, tasks))
        self.known = self.known[self.state.status[self.known] != DONE]
        waiting = np.bincount(
            self.choice[self.known], weights=self.load[self.known], minlength=len(self.count)
        )
        free = np.bincount(self.pool_class, weights=self.state.free, minlength=len(self.count))
        total = float(waiting.sum())
        span = max(1.0, total / max(1.0, float(self.count.sum())))
        some = np.maximum(1.0, self.count)
        state = DeviceState(free / some, np.log1p(waiting / (some * span)), np.zeros(len(free)))
        found = situation_of(part, self.around, state, total)
        self.load[tasks], self.choice[tasks] = found.load, found.choice
        answers = None if self.network is None else self.network.answers(found.seen)
        if self.readouts is not None and self.traffic is not None:
            if answers is None:
                seen = found.seen
                answers = plain_answers(len(seen.task), len(seen.device), len(seen.sets))
            idle = self.known[self.state.status[self.known] != RUNNING]
            answers = self.readouts.read(
                part, found, answers, self.traffic, now, float(self.load[idle].sum())
            )
        begins = self.rule.pair_ptr[tasks]
        _, pairs = ragged(begins, self.rule.pair_ptr[tasks + 1] - begins)
        write_numbers(self.rule, numbers_of(part, found, answers), tasks, pairs)


class JobEdges:
    """The edges of an instance by their sources, to find those among the tasks of a job."""

    def __init__(self, instance: Instance) -> None:
        edges = instance.edges
        order = np.argsort(edges.source, kind="stable")
        self.target, self.data_gb = edges.target[order], edges.data_gb[order]
        self.ptr = np.searchsorted(edges.source[order], np.arange(instance.num_tasks + 1))
        self.row = np.full(instance.num_tasks, NONE, dtype=np.int64)

    def among(self, tasks: Ints) -> Edges:
        """Return the edges among these tasks, with the ends numbered by place in the list."""
        self.row[tasks] = np.arange(len(tasks))
        source, at = ragged(self.ptr[tasks], self.ptr[tasks + 1] - self.ptr[tasks])
        target = self.row[self.target[at]]
        self.row[tasks] = NONE
        inside = target != NONE
        return Edges(source[inside], target[inside], self.data_gb[at][inside])


def arriving_part(instance: Instance, edges: Edges, tasks: Ints, now: float) -> Instance:
    """Return the tasks that arrive now with the edges among them, released now."""
    column = {name: getattr(instance.tasks, name)[tasks] for name in COLUMNS}
    column["release"] = np.full(len(tasks), int(now))
    return replace(instance, tasks=Tasks(**column), edges=edges, problem=None)
