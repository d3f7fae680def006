"""The disjunctive formulation: when each task starts, in which mode, and which of two tasks comes
first.

Variables, with e_i = start[i] + Σ_k p_ik mode[i,k] the end of task i and events u (2i: start of i,
2i + 1: its end):

    start[i]       in [head_i, latest_i − min_k p_ik]
    mode[i,k]      binary: 1 when i runs in mode k
    before[u,v]    binary: 1 when event u comes at or before event v, where that is open
    send[e,a,b,0]  transfer products (frame.py), for edges that cost energy or whose lag depends on
                   the pools
    makespan       C >= every end            tardy[i]  D_i >= e_i − deadline_i, D_i >= 0
    flow[r,u,v]    devices or watts that pass from one task to a later one (cumulative.py)

Rows, with M_uv = latest_u − earliest_v the smallest constant that the windows allow:

    assign[i]      Σ_k mode[i,k] = 1
    window[i]      e_i <= latest_i, where durations differ
    arrive[i]      start[i] >= Σ_k ready_ik mode[i,k], where ingress latencies differ
    precede[e]     start[j] − e_i − Σ_ab l_ab send[e,a,b]
                   >= lag where it does not depend on the pools
    sequence[u,v]  time_u − time_v <= M_uv (1 − before[u,v])
    order[p,i,j]   before[end i, start j] + before[end j, start i]
                   >= Σ_{k on p} mode[i,k] + Σ_{l on p} mode[j,l] − 1, p where no two tasks fit
    flow_*         every other pool, and power caps
    finish[i]      C >= e_i, tasks without successors
    late[i]        D_i >= e_i − deadline_i
    limit_m        metric m <= its limit
    work, between, exclude, one_way, hold    implied (implied_rows.py)

Starts are continuous even in ticks: with the binaries fixed what is left bounds times from below by
differences of whole numbers, every metric rises with time, so the least solution is whole and no
worse. ``schedule_from`` takes that solution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optbench.errors import UnsupportedError
from optbench.model.instance import Floats, Instance, Ints
from optbench.model.ragged import ragged
from optbench.model.schedule import Schedule
from optbench.views.milp.arrays import BlockCollector, MilpArrays
from optbench.views.milp.cumulative import Flow, Resource, add_flows, flow_of, served
from optbench.views.milp.event_points import Events, events_of, least_times
from optbench.views.milp.frame import (
    Carriers,
    Frame,
    Transfers,
    add_transfers,
    edges_by_lag,
    frame,
)
from optbench.views.milp.implied_rows import (
    add_between,
    add_exclusions,
    add_holds,
    add_work,
    hold_values,
    is_tightened,
)
from optbench.views.milp.metric_sums import Terms, finished
from optbench.views.milp.occupancy_rows import pool_demand, power_limits
from optbench.views.milp.time_indexed import sent_values


@dataclass(frozen=True, eq=False)
class Disjunctive:
    """The formulation of one instance; ``end`` is a known upper bound on an optimal makespan, if
    there is one. Without ``cuts`` it has only the rows that define it.
    """

    instance: Instance
    end: float | None = None
    should_stop: Callable[[], bool] | None = None
    cuts: bool = True
    name = "disjunctive"

    def __post_init__(self) -> None:
        if "tariffs" in self.instance.features:
            raise UnsupportedError(
                f"the disjunctive MILP of {self.instance.name!r} cannot express price or carbon "
                "that varies over time; "
                "use form=time_indexed (time in ticks), or one tariff for all times"
            )

    @cached_property
    def frame(self) -> Frame:
        return frame(self.instance, self.end)

    @cached_property
    def events(self) -> Events:
        return events_of(self.frame)

    @cached_property
    def resources(self) -> tuple[list[Resource], list[Resource]]:
        """Return pools that hold one task at a time, and resources with a flow; those that cannot
        be overloaded are left out.
        """
        base, task = self.frame, self.instance.pairs.task
        pair, pool, count = pool_demand(base)
        unary: list[Resource] = []
        shared: list[Resource] = []
        for p in range(self.instance.num_pools):
            at = np.flatnonzero(pool == p)
            one = Resource(p, pair[at], count[at], float(self.instance.pools.count[p]))
            _, least, most = one.tasks(task)
            if len(least) > 1 and most.sum() > one.room:
                (unary if np.sort(least)[:2].sum() > one.room else shared).append(one)
        for place, pair, change, room in power_limits(base):
            cap = Resource(self.instance.num_pools + place, pair, change, max(0.0, room))
            if np.maximum(0.0, cap.tasks(task)[2]).sum() > room:
                shared.append(cap)
        return unary, shared

    @cached_property
    def flows(self) -> list[Flow]:
        return [flow_of(resource, self.events) for resource in self.resources[1]]

    @cached_property
    def rivals(self) -> list[tuple[int, int, int]]:
        """Return (pool, i, j) with i < j that cannot both hold the pool and whose order is open."""
        out = []
        for resource in self.resources[0]:
            tasks = resource.tasks(self.instance.pairs.task)[0]
            a, b = np.triu_indices(len(tasks), 1)
            i, j = tasks[a], tasks[b]
            settled = (
                self.events.decide(2 * i + 1, 2 * j)[0] | self.events.decide(2 * j + 1, 2 * i)[0]
            )
            out += [
                (resource.number, int(a), int(b))
                for a, b in zip(i[~settled], j[~settled], strict=True)
            ]
        return out

    @cached_property
    def undecided(self) -> Ints:
        """Return the labels (u, v) of the block ``before``."""
        found = [np.stack((f.u, f.v), axis=1)[~f.known] for f in self.flows]
        pairs = np.asarray(self.rivals, dtype=np.int64).reshape(-1, 3)[:, 1:]
        for i, j in (pairs.T, pairs.T[::-1]):
            u, v = 2 * i + 1, 2 * j
            found.append(np.stack((u, v), axis=1)[~self.events.decide(u, v)[1]])
        return np.unique(np.concatenate(found), axis=0)

    @cached_property
    def arrays(self) -> MilpArrays:
        sheet, base = BlockCollector(self.instance.name, self.should_stop), self.frame
        n, pairs = self.instance.num_tasks, self.instance.pairs
        low, high = self.events.earliest[::2], self.events.latest[::2]
        sheet.add_columns("start", np.arange(n), low, np.maximum(low, high))
        sheet.add_columns(
            "mode", np.stack((pairs.task, pairs.mode), axis=1), 0.0, 1.0, integer=True
        )
        sheet.add_rows(
            "assign", np.arange(n), [(pairs.task, n + np.arange(len(pairs.task)), 1.0)], 1.0, 1.0
        )
        tight = np.flatnonzero(high < low)
        if len(tight):
            sheet.impossible("no_time", tight[:1])
        mixed = np.flatnonzero(base.windows.shortest != base.windows.longest)
        sheet.add_rows(
            "window",
            mixed,
            self.time_terms(np.arange(len(mixed)), 2 * mixed + 1, 1.0),
            -np.inf,
            base.latest[mixed],
        )
        late = np.unique(pairs.task[pairs.ready > base.head[pairs.task]])
        row, pair = ragged(pairs.ptr[late], np.diff(pairs.ptr)[late])
        arrive = [(np.arange(len(late)), late, 1.0), (row, n + pair, -pairs.ready[pair])]
        sheet.add_rows("arrive", late, arrive, 0.0, np.inf)
        sent = self._add_precedence(sheet)
        makespan, tardy = self._add_ends(sheet)
        if self.cuts and is_tightened(self.instance):
            add_between(sheet, self, makespan)
        self._add_order(sheet)
        terms = Terms(base, sent, makespan, tardy)
        return finished(sheet, terms)

    def time_terms(self, row: Ints, event: Ints, sign: float) -> list[tuple[Ints, Ints, Floats]]:
        """Return sign · time(event) as entries of the matrix."""
        return self.events.terms(row, event, sign, 0, self.instance.num_tasks)

    def _add_precedence(self, sheet: BlockCollector) -> Transfers:
        base, pairs, edges = self.frame, self.instance.pairs, self.instance.edges
        uniform, lagged, costly = edges_by_lag(base)
        pool = self.instance.modes.primary[pairs.mode]
        carriers = Carriers(
            self.instance.num_tasks, pairs.ptr, pool, np.zeros(len(pool), dtype=np.int64)
        )
        sent = add_transfers(sheet, base, sorted({*costly, *lagged}), carriers)
        lag = sent.lag(self.instance)
        at = np.flatnonzero(np.isnan(uniform[sent.edge]) & (lag > 0))
        rows = np.arange(len(edges.source))
        entries = [
            *self.time_terms(rows, 2 * edges.target, 1.0),
            *self.time_terms(rows, 2 * edges.source + 1, -1.0),
        ]
        entries.append((sent.edge[at], sent.first + at, -lag[at]))
        sheet.add_rows("precede", rows, entries, np.where(np.isnan(uniform), 0.0, uniform), np.inf)
        return sent

    def _add_ends(self, sheet: BlockCollector) -> tuple[int | None, int | None]:
        """Add the columns ``makespan`` and ``tardy`` with their rows, where a metric needs them;
        return their first columns.
        """
        base, makespan, tardy = self.frame, None, None
        if base.needs_makespan:
            low = min(base.windows.critical_path, base.end)
            makespan = sheet.add_columns(
                "makespan", np.zeros((1, 0)), low, max(base.end, float(base.latest.max(initial=0)))
            )
            last = np.setdiff1d(np.arange(self.instance.num_tasks), self.instance.edges.source)
            rows = np.arange(len(last))
            own = (rows, np.full(len(last), makespan), np.ones(len(last)))
            sheet.add_rows(
                "finish", last, [own, *self.time_terms(rows, 2 * last + 1, -1.0)], 0.0, np.inf
            )
            add_work(sheet, base, makespan)
        late = base.late_tasks
        if "tardiness_s" in base.wanted and len(late):
            due = self.instance.tasks.deadline[late]
            tardy = sheet.add_columns("tardy", late, 0.0, np.maximum(0.0, base.latest[late] - due))
            rows = np.arange(len(late))
            own = (rows, tardy + rows, np.ones(len(late)))
            sheet.add_rows(
                "late", late, [own, *self.time_terms(rows, 2 * late + 1, -1.0)], -due, np.inf
            )
        return makespan, tardy

    def _add_order(self, sheet: BlockCollector) -> None:
        """Add the block ``before``, its big-M rows, unary pools and flows."""
        events, label, n = self.events, self.undecided, self.instance.num_tasks
        first = sheet.add_columns("before", label, 0.0, 1.0, integer=True)
        column = {(u, v): first + c for c, (u, v) in enumerate(label.tolist())}
        rows, (u, v) = np.arange(len(label)), label.T
        most = events.latest[u] - events.earliest[v]
        entries = [
            *self.time_terms(rows, u, 1.0),
            *self.time_terms(rows, v, -1.0),
            (rows, first + rows, most),
        ]
        sheet.add_rows("sequence", label, entries, -np.inf, most)
        orders = [
            (r, column[pair])
            for r, (_, i, j) in enumerate(self.rivals)
            for pair in ((2 * i + 1, 2 * j), (2 * j + 1, 2 * i))
            if pair in column
        ]
        holders = {
            (r.number, t): r.pair[self.instance.pairs.task[r.pair] == t]
            for r in self.resources[0]
            for t in np.unique(self.instance.pairs.task[r.pair]).tolist()
        }
        held = [
            (r, n + pair)
            for r, (p, i, j) in enumerate(self.rivals)
            for t in (i, j)
            for pair in holders[p, t].tolist()
        ]
        parts = [
            (*np.asarray(part, dtype=np.int64).reshape(-1, 2).T, sign)
            for part, sign in ((orders, 1.0), (held, -1.0))
        ]
        sheet.add_rows("order", np.asarray(self.rivals).reshape(-1, 3), parts, -1.0, np.inf)
        for place, _, _, room in power_limits(self.frame):
            if room < 0:
                sheet.impossible(f"resting_{place}", [[place]])
        add_flows(sheet, events, self.flows, n, column)
        if self.cuts and is_tightened(self.instance):
            add_exclusions(sheet, self, column)
            add_holds(sheet, self.instance)

    def schedule_from(self, values: Floats) -> Schedule:
        """Return the decision in a point: its modes, and the least starts that keep its orders."""
        pairs, n, edges = self.instance.pairs, self.instance.num_tasks, self.instance.edges
        chosen = values[n : n + len(pairs.task)]
        order = np.lexsort((-chosen, pairs.task))
        pair = order[pairs.ptr[:-1]]
        mode, length = pairs.mode[pair], pairs.duration[pair].astype(float)
        block = self.arrays.block("before")
        label = np.zeros((0, 2), dtype=np.int64)
        if block is not None:
            label = block.label[values[block.first : block.first + block.size] > 0.5]
        u, v = label.T
        primary = self.instance.modes.primary[mode]
        lag = np.asarray(
            self.instance.lag(primary[edges.source], primary[edges.target], edges.data_gb),
            dtype=float,
        )
        gap = np.where(u % 2 == 1, length[u // 2], 0.0) - np.where(v % 2 == 1, length[v // 2], 0.0)
        start = least_times(
            pairs.ready[pair].astype(float),
            np.concatenate((u // 2, edges.source)),
            np.concatenate((v // 2, edges.target)),
            np.concatenate((gap, length[edges.source] + np.where(np.isfinite(lag), lag, 0.0))),
        )
        if start is None:  # orders that contradict each other within the solver's tolerance
            start = values[:n]
        return Schedule.of(self.instance, mode, np.rint(start))

    def point_of(self, schedule: Schedule) -> Floats | None:
        """Return the point of a schedule with one segment per task; None when a task runs in a mode
        that does not fit it.
        """
        pairs, n = self.instance.pairs, self.instance.num_tasks
        out = np.zeros(self.arrays.num_columns)
        row = np.argsort(schedule.task, kind="stable")
        mode, start = schedule.mode[row], schedule.start[row].astype(float)
        pair = np.asarray(
            [
                next(iter(np.flatnonzero(pairs.mode[a:b] == k) + a), -1)
                for a, b, k in zip(pairs.ptr[:-1], pairs.ptr[1:], mode, strict=True)
            ],
            dtype=np.int64,
        )
        if (pair < 0).any():
            return None
        end = start + pairs.duration[pair]
        time = np.stack((start, end), axis=1).ravel()
        out[:n], out[n + pair] = start, 1.0
        for block in self.arrays.columns:
            at = slice(block.first, block.first + block.size)
            if block.name == "before":
                out[at] = time[block.label[:, 0]] <= time[block.label[:, 1]]
            elif block.name == "send":
                out[at] = sent_values(self.frame, block.label, mode, end)
            elif block.name == "hold":
                out[at] = hold_values(self.instance, block.label, mode)
            elif block.name == "makespan":
                out[at] = max(float(end.max()), block.lower[0])
            elif block.name == "tardy":
                out[at] = np.maximum(0.0, end - self.instance.tasks.deadline)[block.label[:, 0]]
            elif block.name == "flow":
                out[at] = np.concatenate(
                    [served(flow, self.events, pair, time) for flow in self.flows]
                )
        return out
