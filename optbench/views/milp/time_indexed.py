"""The time-indexed formulation (ticks only): a binary for each task, mode and start.

Variables, for task i, mode k, tick t, edge e, pools a and b, tariff period r:

    start[i,k,t]      binary: 1 when i starts in k at t; t in [max(head_i, ready_ik),
                      latest_i − p_ik]
    send[e,a,b,r]     transfer products (frame.py), for edges that cost energy or whose lag needs
                      them
    makespan          C >= every end
    unfinished[t]     z_t >= [makespan > t], for t in [C0, end), C0 the critical path

With u_i = Σ_k,t start, S_i = Σ t start, E_i = Σ (t + p_ik) start, and A the set of tasks without
successors:

    assign[i]         u_i = 1
    precede[e,c,t]    Σ_{k in c, s <= t} start[j,k,s] <= Σ_{k,s: s + p_ik + l_kc <= t} start[i,k,s]
                      (disaggregated)
    precede[e]        S_j − E_i − Σ_ab l_ab send[e,a,b,.] >= 0   (aggregated)
    busy[p,t]         Σ n_kp start[i,k,s] over s <= t < s + p_ik  <=  count_p
    power[q,t]        Σ (power_kq − Σ_p n_kp rest_p) start[i,k,s] over the same
                      <=  cap_q − Σ_p rest_p count_p
    finish[i]         C >= E_i, i in A
    outlast[i,t]      z_t >= Σ_{k,s: s + p_ik > t} start[i,k,s], i in A
                      (completion.py: or by columns ``running``)
    limit[m]          metric m <= its limit

The disaggregated rows are written for each class c of consumer modes with the same lag l_kc from
every producer mode, and once more for all consumer modes together with the smallest lags when there
are several classes; only for t where they can bind. They are stronger and larger: the aggregated
form is used beyond DISAGGREGATED_NONZEROS. Rows of ``busy`` and ``power`` that no choice of starts
can break are left out. Makespan-dependent cost: where a varying tariff meets resting power that is
paid until completion, the cumulated tariff at the makespan is A(C0) + Σ_t z_t (A(t + 1) − A(t)) and
the makespan is C0 + Σ_t z_t; otherwise C is linear in all metrics. Every other metric is a
coefficient of ``start`` and ``send``, see priced.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optbench.model.instance import Floats, Instance, Ints
from optbench.model.ragged import ragged
from optbench.model.schedule import Schedule
from optbench.model.timegrid import widened
from optbench.views.milp.arrays import BlockCollector, MilpArrays
from optbench.views.milp.completion import (
    add_makespan,
    add_unfinished_per_tick,
    first_tick,
    running_values,
)
from optbench.views.milp.frame import Carriers, Frame, Transfers, add_transfers, edges_by_lag, frame
from optbench.views.milp.occupancy_rows import add_occupancy
from optbench.views.milp.ordering import add_aggregated, add_disaggregated, disaggregated_nonzeros
from optbench.views.milp.priced import PricedTerms

# The disaggregated precedence rows are used up to this many coefficients.
DISAGGREGATED_NONZEROS = 400_000


@dataclass(frozen=True, eq=False)
class Starts:
    """The block ``start``: of pair q (task and mode) columns ``ptr[q]`` to ``ptr[q + 1]``, ticks
    from ``begin[q]`` on.
    """

    ptr: Ints
    begin: Ints
    pair: Ints
    tick: Ints
    duration: Ints

    @property
    def end(self) -> Ints:
        return self.tick + self.duration[self.pair]


def start_windows(base: Frame) -> tuple[Ints, Ints]:
    """Return the first start of each pair, and at how many ticks it may start."""
    pairs = base.instance.pairs
    begin = np.maximum(base.head[pairs.task], pairs.ready).astype(np.int64)
    last = base.latest[pairs.task].astype(np.int64) - pairs.duration
    return begin, np.maximum(0, last - begin + 1)


def starts_of(base: Frame) -> Starts:
    begin, size = start_windows(base)
    pair, tick = ragged(begin, size)
    duration = base.instance.pairs.duration.astype(np.int64)
    return Starts(np.concatenate(([0], np.cumsum(size))), begin, pair, tick, duration)


def prices_end(base: Frame) -> bool:
    """Whether resting power is paid until completion at a tariff that varies."""
    return base.needs_makespan and base.varying and base.instance.horizon is None


@dataclass(frozen=True, eq=False)
class TimeIndexed:
    """The formulation of one instance; ``end`` is a known upper bound on an optimal makespan, if
    there is one.
    """

    instance: Instance
    end: float | None = None
    should_stop: Callable[[], bool] | None = None
    name = "time_indexed"

    @cached_property
    def frame(self) -> Frame:
        return frame(self.instance, self.end)

    @cached_property
    def starts(self) -> Starts:
        return starts_of(self.frame)

    @cached_property
    def priced_end(self) -> bool:
        return prices_end(self.frame)

    @cached_property
    def first_tick(self) -> int:
        """C0: the first tick at which everything can have ended."""
        return first_tick(self.frame)

    @cached_property
    def arrays(self) -> MilpArrays:
        sheet, base = BlockCollector(self.instance.name, self.should_stop), self.frame
        x = self.starts
        pairs = self.instance.pairs
        label = np.stack((pairs.task[x.pair], pairs.mode[x.pair], x.tick), axis=1)
        sheet.add_columns("start", label, 0.0, 1.0, integer=True)
        task = pairs.task[x.pair]
        sheet.add_rows(
            "assign",
            np.arange(self.instance.num_tasks),
            [(task, np.arange(len(task)), 1.0)],
            1.0,
            1.0,
        )
        sent = self._add_precedence(sheet)
        add_occupancy(sheet, base, x)
        ended = self._add_makespan(sheet)
        terms = PricedTerms(base, x, sent, ended, self.first_tick if self.priced_end else None)
        for name, limit in sorted(self.instance.limits.metric_max.items()):
            self._add_limit(sheet, name, widened(limit), terms)
        total, constant = np.zeros(sheet.num_columns), 0.0
        for name, weight in base.weights.items():
            fixed, vector = terms.of(name, sheet.num_columns)
            total, constant = total + weight * vector, constant + weight * fixed
        return sheet.finish(total, constant)

    def _add_precedence(self, sheet: BlockCollector) -> Transfers:
        base, x = self.frame, self.starts
        uniform, lagged, costly = edges_by_lag(base)
        split = disaggregated_nonzeros(base, x) <= DISAGGREGATED_NONZEROS
        carried = costly if split else sorted({*costly, *lagged})
        period = (
            np.searchsorted(base.times, x.end, side="right") - 1
            if base.varying
            else np.zeros(len(x.tick), dtype=np.int64)
        )
        pool = self.instance.modes.primary[self.instance.pairs.mode[x.pair]]
        sent = add_transfers(
            sheet, base, carried, Carriers(0, x.ptr[self.instance.pairs.ptr], pool, period)
        )
        if split:
            add_disaggregated(sheet, base, x)
        else:
            add_aggregated(sheet, base, x, uniform, sent)
        return sent

    def _add_makespan(self, sheet: BlockCollector) -> int | None:
        """Add the columns ``unfinished`` or ``makespan``, where a metric needs them; return the
        first.
        """
        base, x = self.frame, self.starts
        if not base.needs_makespan:
            return None
        return (
            add_unfinished_per_tick(sheet, base, x)
            if self.priced_end
            else add_makespan(sheet, base, x)
        )

    def _add_limit(
        self, sheet: BlockCollector, name: str, limit: float, terms: PricedTerms
    ) -> None:
        fixed, vector = terms.of(name, sheet.num_columns)
        at = np.flatnonzero(vector)
        sheet.add_rows(
            f"limit_{name}",
            np.zeros((1, 0)),
            [(np.zeros(len(at)), at, vector[at])],
            -np.inf,
            limit - fixed,
        )

    def schedule_from(self, values: Floats) -> Schedule:
        """Return the decision in a point: of each task the start with the largest value."""
        pairs, x = self.instance.pairs, self.starts
        task = pairs.task[x.pair]
        order = np.lexsort((-values[: len(task)], task))
        best = order[np.searchsorted(task[order], np.arange(self.instance.num_tasks))]
        return Schedule.of(self.instance, pairs.mode[x.pair[best]], x.tick[best])

    def point_of(self, schedule: Schedule) -> Floats | None:
        """Return the point of a schedule with one segment per task; None when a start lies outside
        its window.
        """
        pairs, x, out = self.instance.pairs, self.starts, np.zeros(self.arrays.num_columns)
        order = np.argsort(schedule.task, kind="stable")
        mode, start = schedule.mode[order], schedule.start[order].astype(np.int64)
        key = pairs.task * self.instance.num_modes + pairs.mode
        pair = np.searchsorted(
            key, np.arange(self.instance.num_tasks) * self.instance.num_modes + mode
        )
        known = pair < len(key)
        known[known] = (
            key[pair[known]]
            == (np.arange(self.instance.num_tasks) * self.instance.num_modes + mode)[known]
        )
        if (
            not known.all()
            or ((start < x.begin[pair]) | (start - x.begin[pair] >= np.diff(x.ptr)[pair])).any()
        ):
            return None
        out[x.ptr[pair] + start - x.begin[pair]] = 1.0
        end = start + pairs.duration[pair]
        for block in self.arrays.columns:
            at = slice(block.first, block.first + block.size)
            if block.name == "makespan":
                out[at] = max(end.max(), block.lower[0])
            elif block.name == "unfinished":
                out[at] = block.label[:, 0] < end.max()
            elif block.name == "running":
                out[at] = running_values(block.label, end)
            elif block.name == "send":
                out[at] = sent_values(self.frame, block.label, mode, end)
        return out


def sent_values(base: Frame, label: Ints, mode: Ints, end: Floats | Ints) -> Floats:
    """Return the products ``send`` of a decision: one mode and end per task."""
    edges, primary = base.instance.edges, base.instance.modes.primary[mode]
    e, sender, receiver, period = label.T
    i, j = edges.source[e], edges.target[e]
    when = np.searchsorted(base.times, end, side="right") - 1
    out: Floats = ((primary[i] == sender) & (primary[j] == receiver) & (when[i] == period)).astype(
        float
    )
    return out
