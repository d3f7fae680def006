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
from optbench.shapes.colocation.demand_groups import JobGroups, group_jobs
from optbench.shapes.colocation.epoch_demand import WHOLE_CREDIT, EpochDemand, credits, needed
from optbench.shapes.colocation.lanes import Lanes, lanes_of
from optbench.shapes.colocation.patterns import Patterns, patterns_of

# The rows of credits are in thousandths, so that what is missing by a millionth is no rounding.
CREDIT_UNIT = 1000.0


@dataclass(frozen=True, eq=False)
class Places:
    """The places of lanes: ``row[begin[lane] + levels]`` numbers those that patterns have, -1 for
    others; ``behind`` is the first number at or behind each entry.
    """

    begin: Ints
    row: Ints
    behind: Ints
    lane: Ints

    @property
    def count(self) -> int:
        return len(self.lane)

    @property
    def is_lowest(self) -> Bools:
        """Whether a place is the lowest one of its lane."""
        out = np.ones(self.count, dtype=np.bool_)
        out[1:] = self.lane[1:] != self.lane[:-1]
        return out

    def of(self, lane: Ints, levels: Ints) -> Ints:
        """Return the places of lanes that serve so many levels."""
        return self.row[self.begin[lane] + levels]

    def serving(self, lane: Ints, level: Ints) -> Ints:
        """Return the lowest places of lanes that serve these levels (from 0); -1 for none."""
        at = self.behind[self.begin[lane] + level + 1]
        there = np.append(self.lane, -1)[at] == lane
        return np.where(there, at, -1)


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
    places: Places
    assigned: Ints
    assigned_lane: Ints
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
    patterns = patterns_of(groups, lanes)
    places = places_of(groups, lanes, patterns)
    lane_count = np.diff(lanes.begin)[groups.class_group]
    several = groups.several[groups.class_group]
    direct = (lane_count == 1) & ~several
    first_lane = lanes.begin[groups.class_group]
    at_first = np.where(direct, places.serving(first_lane, groups.class_level), -1)
    split = np.flatnonzero((lane_count > 1) & ~several)
    assigned, assigned_lane, assigned_place = _assignments(groups, lanes, places, split)
    served = np.unique(assigned)
    apart = np.flatnonzero(several)
    at_most = groups.representative[apart]
    always = groups.below[groups.class_group[apart]]
    waiting = np.concatenate([np.flatnonzero(at_first >= 0), served, apart[~always]])
    num = [demand.num_gpu_types, places.count, len(served), len(apart), int((~always).sum())]
    row_begin = np.concatenate([[0], np.cumsum(num)])
    num = [patterns.count, places.count, len(assigned), len(waiting)]
    column_begin = np.concatenate([[0], np.cumsum(num)])
    entries = _Entries([], [], [])
    class_row = np.full(len(groups.class_group), -1)
    class_row[served] = row_begin[2] + np.arange(len(served))
    number_row, credit_row = np.full((2, len(groups.class_group)), -1)
    number_row[apart] = row_begin[3] + np.arange(len(apart))
    credit_row[apart[~always]] = row_begin[4] + np.arange(int((~always).sum()))

    _add_patterns(entries, groups, lanes, patterns, places, number_row, credit_row)
    place = np.arange(places.count)
    inner = place[~places.is_lowest]
    entries.add(row_begin[1] + inner, column_begin[1] + inner, -1.0)
    entries.add(row_begin[1] + inner - 1, column_begin[1] + inner)
    column = column_begin[2] + np.arange(len(assigned))
    entries.add(row_begin[1] + assigned_place, column, -1.0)
    entries.add(class_row[assigned], column)
    column = column_begin[3] + np.arange(len(waiting))
    ends = np.cumsum([int((at_first >= 0).sum()), len(served)])
    first, second, third = np.split(np.arange(len(waiting)), ends)
    entries.add(row_begin[1] + at_first[waiting[first]], column[first])
    entries.add(class_row[waiting[second]], column[second])
    replicas = demand.jobs.replicas[groups.representative]
    entries.add(number_row[waiting[third]], column[third], replicas[waiting[third]])
    entries.add(credit_row[waiting[third]], column[third], WHOLE_CREDIT / CREDIT_UNIT)
    start, index, value = entries.by_columns(int(column_begin[-1]))

    size, price = groups.class_size, demand.shortfall_mw[groups.representative]
    own = np.where(direct, lanes.own_mw, 0)
    wait_mw = price[waiting] - own[waiting]
    place_mw = lanes.own_mw[assigned] + lanes.rest_mw[assigned, assigned_lane]
    cost = np.concatenate([
        patterns.price_mw, np.zeros(places.count, dtype=np.int64), place_mw, wait_mw
    ])  # fmt: skip
    demanded = np.bincount(at_first[at_first >= 0], size[at_first >= 0], minlength=places.count)
    credit_needed = needed(demand)[groups.representative[apart[~always]]] / CREDIT_UNIT
    lower = np.concatenate([
        np.full(demand.num_gpu_types, -np.inf), demanded, size[served],
        np.full(len(apart), -np.inf), credit_needed,
    ])  # fmt: skip
    upper = np.concatenate([
        demand.counts, demanded, size[served], demand.jobs.replicas[at_most],
        np.full(len(credit_needed), np.inf),
    ])  # fmt: skip
    group_size = groups.size[np.searchsorted(lanes.begin, places.lane, side="right") - 1]
    left_upper = np.zeros(places.count)
    left_upper[inner] = group_size[inner]
    column_upper = np.concatenate([
        _most_uses(groups, patterns), left_upper, size[assigned], size[waiting]
    ]).astype(float)  # fmt: skip
    never = np.ones(len(size), dtype=np.bool_)
    never[waiting] = False
    constant = int((price[never] * size[never]).sum() + (own * size)[at_first >= 0].sum())
    return PatternProgram(
        demand, groups, lanes, patterns, places, assigned, assigned_lane, waiting, apart,
        row_begin, column_begin, cost, column_upper, lower, upper, start, index, value, constant,
    )  # fmt: skip


def places_of(groups: JobGroups, lanes: Lanes, patterns: Patterns) -> Places:
    """Number the places that patterns have in each lane, from the lowest."""
    levels = groups.level_end - np.concatenate([[0], groups.level_end[:-1]])
    of_lane = np.repeat(levels, np.diff(lanes.begin)) + 1
    begin = np.concatenate([[0], np.cumsum(of_lane)])
    used = np.zeros(int(begin[-1]), dtype=np.bool_)
    for group, served in (
        (patterns.group, patterns.levels),
        (patterns.other, patterns.other_levels),
    ):
        at = np.flatnonzero((group != NOBODY) & ~groups.several[group])
        lane = lanes.lane[group[at], patterns.gpu[at], patterns.mode[at]]
        used[begin[lane] + served[at]] = True
    before = np.cumsum(used) - used
    lane_of_entry = np.repeat(np.arange(lanes.count), of_lane)
    return Places(begin[:-1], np.where(used, before, -1), before, lane_of_entry[used])


def _assignments(
    groups: JobGroups, lanes: Lanes, places: Places, split: Ints
) -> tuple[Ints, Ints, Ints]:
    """Return class, lane within its group and place of all classes in lanes that serve them."""
    count = np.diff(lanes.begin)[groups.class_group[split]]
    of_class = np.repeat(split, count)
    ends = np.cumsum(count)
    within = np.arange(len(of_class)) - np.repeat(ends - count, count)
    lane = lanes.begin[groups.class_group[of_class]] + within
    place = places.serving(lane, groups.class_level[of_class])
    there = place >= 0
    return of_class[there], within[there], place[there]


def _add_patterns(
    entries: _Entries,
    groups: JobGroups,
    lanes: Lanes,
    patterns: Patterns,
    places: Places,
    number_row: Ints,
    credit_row: Ints,
) -> None:
    """Add the entries of patterns: GPUs, places, numbers and credits."""
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
        entries.add(num_gpus + places.of(lane, levels[at]), at)
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
    return np.minimum(most, np.where(twice, first // 2, np.minimum(first, others)))
