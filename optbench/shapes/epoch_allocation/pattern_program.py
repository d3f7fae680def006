"""The allocation of an epoch as an integer programme over patterns of groups of jobs.

A pattern c is a GPU type g with one group of jobs, or with two; z_c is how often it is used. The
throughput of a job in a pattern depends on its group alone, and so do all prices but a term of the
job's own per GPU type (its power as a service, its migration), which is paid in *lanes*: a lane is
a group on those GPU types on which the own terms of its jobs differ by a constant. Power
min(n span, Σ a_i) is two patterns where a service's own a_i decides which is less: one pays n span,
the other one the sum; the cheaper is the truth.

Within a group, who meets a requirement meets every lower one. Let r = 1, 2, ... be the places of a
lane, that is the distinct numbers of levels of requirements which its patterns serve, x_pl the jobs
of class p (of n_p) in lane l, w_p those that wait, and u_lr the places left over at r, which serve
lower levels:

    min  Σ_c W_c z_c + Σ_pl (own terms)_pl x_pl + Σ_p S_p w_p
    s.t. Σ_c∈g n_c z_c ≤ counts_g                                       each GPU type
         Σ_c places z_c + u_l,r+1 − u_l,r = Σ_p∈(l,r) x_pl               each place of a lane
         Σ_l x_pl + w_p = n_p                                            each class
         z, u, x, w ≥ 0 and whole

This is exactly the programme over columns of jobs: given whole z the rest is a network flow, and
any jobs at matching places of a pattern form a row that is allowed. Its linear relaxation is that
of the columns, with one variable for all columns that only exchange alike jobs.

A job i with k > 1 replicas has rows of its own instead of a lane, with f_ic its share of the
requirement in a pattern, in millionths:

    Σ_c z_c + k w_i ≤ k,      Σ_c f_ic z_c + 10^6 w_i ≥ 10^6 − (k − 1)

At best effort, a job with one replica pays S (1 − rate/required) in a pattern alone; one with more
always pays S, and each replica gives S rate/required back.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optbench.shapes.colocation.allocations import NOBODY
from optbench.shapes.colocation.colocation_data import Bools, Floats, Ints
from optbench.shapes.epoch_allocation.demand_groups import JobGroups, group_jobs
from optbench.shapes.epoch_allocation.epoch_demand import WHOLE_CREDIT, EpochDemand, credits, needed
from optbench.shapes.epoch_allocation.gpu_lanes import Lanes, lanes_of
from optbench.shapes.epoch_allocation.pattern_layout import PatternLayout, PatternPlaces, layout_of
from optbench.shapes.epoch_allocation.patterns import Patterns, patterns_of

# The rows of credits are in thousandths, so that what is missing by a millionth is no rounding.
CREDIT_UNIT = 1000.0


@dataclass(frozen=True, eq=False)
class PatternProgram:
    """Columns are patterns, then places left over, classes in lanes, and classes that wait; rows
    are GPU types, places, classes in several lanes, and numbers and credits of jobs with replicas.
    ``*_begin`` has where these blocks begin, and the end. The matrix is by columns.
    """

    demand: EpochDemand
    groups: JobGroups
    lanes: Lanes
    patterns: Patterns
    places: PatternPlaces
    assigned: Ints
    assigned_lane: Ints
    served: Ints
    waiting: Ints
    apart: Ints
    row_begin: Ints
    column_begin: Ints
    cost_mw: Ints
    upper: Floats
    row_lower: Floats
    row_upper: Floats
    start: Ints
    index: Ints
    value: Floats
    constant_mw: int

    @property
    def num_columns(self) -> int:
        return len(self.cost_mw)

    @property
    def num_rows(self) -> int:
        return len(self.row_lower)

    @cached_property
    def is_choice(self) -> Bools:
        """Columns beside patterns that must be made whole: whether a job with replicas waits."""
        out = np.zeros(self.num_columns, dtype=np.bool_)
        out[self.column_begin[3] :] = self.groups.several[self.groups.class_group[self.waiting]]
        return out


@dataclass
class _Entries:
    """Entries of a matrix and its columns, block by block."""

    row: list[Ints]
    column: list[Ints]
    value: list[Floats]

    def add(self, row: Ints, column: Ints, value: float | Ints | Floats = 1.0) -> None:
        self.row.append(row)
        self.column.append(column)
        self.value.append(np.broadcast_to(np.asarray(value, dtype=float), len(row)))

    def by_columns(self, num_columns: int) -> tuple[Ints, Ints, Floats]:
        """Return where columns begin, rows and values, with entries of one place added."""
        row, column = np.concatenate(self.row), np.concatenate(self.column)
        value = np.concatenate(self.value)
        order = np.lexsort((row, column))
        row, column, value = row[order], column[order], value[order]
        new = np.ones(len(row), dtype=np.bool_)
        new[1:] = (row[1:] != row[:-1]) | (column[1:] != column[:-1])
        first = np.flatnonzero(new)
        value = np.add.reduceat(value, first) if len(first) else value
        sizes = np.bincount(column[first], minlength=num_columns)
        return np.concatenate([[0], np.cumsum(sizes)]), row[first], value


def pattern_program(demand: EpochDemand) -> PatternProgram:
    """Return the programme of a demand with at least one job."""
    groups = group_jobs(demand)
    lanes = lanes_of(groups)
    layout = layout_of(groups, lanes, patterns_of(groups, lanes))
    start, index, value = _matrix(layout)
    lower, upper = _sides(layout)
    cost, constant = _costs(layout)
    return PatternProgram(
        demand, groups, lanes, layout.patterns, layout.places, layout.assigned,
        layout.assigned_lane, layout.served, layout.waiting, layout.apart, layout.row_begin,
        layout.column_begin, cost, _most(layout), lower, upper, start, index, value, constant,
    )  # fmt: skip


def _matrix(layout: PatternLayout) -> tuple[Ints, Ints, Floats]:
    """Return the matrix by columns."""
    groups, places, demand = layout.groups, layout.places, layout.groups.demand
    rows, columns = layout.row_begin, layout.column_begin
    class_row, number_row, credit_row = np.full((3, len(groups.class_group)), -1)
    class_row[layout.served] = rows[2] + np.arange(len(layout.served))
    number_row[layout.apart] = rows[3] + np.arange(len(layout.apart))
    credit_row[layout.limited] = rows[4] + np.arange(len(layout.limited))
    entries = _Entries([], [], [])
    _add_patterns(entries, layout, number_row, credit_row)
    inner = np.flatnonzero(~places.is_lowest)
    entries.add(rows[1] + inner, columns[1] + inner, -1.0)
    entries.add(rows[1] + inner - 1, columns[1] + inner)
    column = columns[2] + np.arange(len(layout.assigned))
    entries.add(rows[1] + layout.assigned_place, column, -1.0)
    entries.add(class_row[layout.assigned], column)
    ends = np.cumsum([len(layout.direct), len(layout.served)])
    column = columns[3] + np.arange(len(layout.waiting))
    direct, served, limited = np.split(column, ends)
    entries.add(rows[1] + layout.direct_place[layout.direct], direct)
    entries.add(class_row[layout.served], served)
    replicas = demand.jobs.replicas[groups.representative[layout.limited]]
    entries.add(number_row[layout.limited], limited, replicas)
    entries.add(credit_row[layout.limited], limited, WHOLE_CREDIT / CREDIT_UNIT)
    return entries.by_columns(int(columns[-1]))


def _costs(layout: PatternLayout) -> tuple[Ints, int]:
    """Return the costs of columns, and what is paid in any case."""
    groups, lanes, waiting = layout.groups, layout.lanes, layout.waiting
    size, price = groups.class_size, groups.demand.shortfall_mw[groups.representative]
    own = np.where(layout.direct_place >= 0, lanes.own_mw, 0)
    assigned = lanes.own_mw[layout.assigned] + lanes.rest_mw[layout.assigned, layout.assigned_lane]
    left = np.zeros(layout.places.count, dtype=np.int64)
    cost = np.concatenate([layout.patterns.price_mw, left, assigned, price[waiting] - own[waiting]])
    never = np.ones(len(size), dtype=np.bool_)
    never[waiting] = False
    return cost, int((price * size)[never].sum() + (own * size).sum())


def _sides(layout: PatternLayout) -> tuple[Floats, Floats]:
    """Return the sides of rows."""
    groups, demand = layout.groups, layout.groups.demand
    replicas = demand.jobs.replicas[groups.representative[layout.apart]]
    size, place = groups.class_size, layout.direct_place[layout.direct]
    demanded = np.bincount(place, size[layout.direct], layout.places.count)
    credit = needed(demand)[groups.representative[layout.limited]] / CREDIT_UNIT
    open_below = (np.full(demand.num_gpu_types, -np.inf), np.full(len(replicas), -np.inf))
    served = size[layout.served]
    lower = np.concatenate([open_below[0], demanded, served, open_below[1], credit])
    no_limit = np.full(len(credit), np.inf)
    return lower, np.concatenate([demand.counts, demanded, served, replicas, no_limit])


def _most(layout: PatternLayout) -> Floats:
    """Return the upper bounds of columns."""
    groups, places, size = layout.groups, layout.places, layout.groups.class_size
    group = np.searchsorted(layout.lanes.begin, places.lane, side="right") - 1
    left = np.where(places.is_lowest, 0, groups.size[group])
    uses = _most_uses(groups, layout.patterns)
    most = np.concatenate([uses, left, size[layout.assigned], size[layout.waiting]])
    return most.astype(float)


def _add_patterns(
    entries: _Entries, layout: PatternLayout, number_row: Ints, credit_row: Ints
) -> None:
    """Add the entries of patterns: GPUs, places, numbers and credits."""
    groups, lanes, patterns = layout.groups, layout.lanes, layout.patterns
    demand, num_gpus = groups.demand, groups.demand.num_gpu_types
    column = np.arange(patterns.count)
    entries.add(patterns.gpu, column, demand.gangs[groups.job_type[patterns.group]])
    sides = (
        (patterns.group, patterns.levels, patterns.other),
        (patterns.other, patterns.other_levels, patterns.group),
    )
    for group, levels, partner in sides:
        there = group != NOBODY
        apart = there & groups.several[group]
        at = np.flatnonzero(there & ~apart)
        lane = lanes.lane[group[at], patterns.gpu[at], patterns.mode[at]]
        entries.add(num_gpus + layout.places.of(lane, levels[at]), at)
        at = np.flatnonzero(apart)
        cls = groups.class_begin[group[at]]
        entries.add(number_row[cls], at)
        job, gpu, kind = groups.single_job[group[at]], patterns.gpu[at], groups.job_type[group[at]]
        beside = demand.beside_per_s[gpu, kind, groups.job_type[partner[at]]]
        rate = np.where(partner[at] == NOBODY, demand.alone_per_s[gpu, kind], beside)
        credit = credits(rate, demand.jobs.required_per_s[job]) / CREDIT_UNIT
        full = credit_row[cls] >= 0
        entries.add(credit_row[cls][full], at[full], credit[full])


def _most_uses(groups: JobGroups, patterns: Patterns) -> Ints:
    """How often a pattern can be used at most: GPUs, and jobs times replicas."""
    demand = groups.demand
    kind = groups.job_type[patterns.group]
    most = demand.counts[patterns.gpu] // demand.gangs[kind]
    runs = np.where(groups.several, demand.jobs.replicas[groups.single_job], groups.size)
    first = runs[patterns.group]
    others = np.where(patterns.other == NOBODY, first, runs[patterns.other])
    twice = patterns.group == patterns.other
    out: Ints = np.minimum(most, np.where(twice, first // 2, np.minimum(first, others)))
    return out
