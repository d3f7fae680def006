"""Rows of jobs from a whole point of the programme over patterns, and the point of given rows."""

from __future__ import annotations

import numpy as np

from optbench.shapes.colocation.allocations import NOBODY
from optbench.shapes.colocation.colocation_data import Ints
from optbench.shapes.epoch_allocation.epoch_rows import EpochRows
from optbench.shapes.epoch_allocation.gpu_lanes import PAID, UNPAID
from optbench.shapes.epoch_allocation.pattern_program import PatternProgram
from optbench.shapes.epoch_allocation.row_prices import full_mw, throughputs, work_mw, work_rates


def rows_of(program: PatternProgram, point: Ints) -> EpochRows:
    """Return rows of jobs that use the patterns as often as a feasible point says.

    In each lane the job with the highest requirement takes the place that serves most, and so on.
    Of alike jobs the first ones are placed."""
    groups, lanes, patterns = program.groups, program.lanes, program.patterns
    use = point[: patterns.count]
    unit = np.repeat(np.arange(patterns.count), use)
    jobs = np.full((len(unit), 2), NOBODY)
    slots: list[Ints] = []
    for side, group, levels in (
        (0, patterns.group[unit], patterns.levels[unit]),
        (1, patterns.other[unit], patterns.other_levels[unit]),
    ):
        several = (group != NOBODY) & groups.several[group]
        jobs[several, side] = groups.single_job[group[several]]
        at = np.flatnonzero((group != NOBODY) & ~several)
        lane = lanes.lane[group[at], patterns.gpu[unit[at]], patterns.mode[unit[at]]]
        slots.append(np.stack([lane, levels[at], at, np.full(len(at), side)]))
    slot = np.concatenate(slots, axis=1)
    slot = slot[:, np.lexsort((slot[1], slot[0]))]
    job, lane = _jobs_in_lanes(program, point)
    level = groups.class_level[groups.class_of_job[job]]
    job = job[np.lexsort((job, level, lane))]
    jobs[slot[2], slot[3]] = job
    order = np.lexsort((jobs[:, 1], jobs[:, 0], patterns.gpu[unit]))
    return EpochRows(patterns.gpu[unit][order], jobs[order, 0], jobs[order, 1])


def _jobs_in_lanes(program: PatternProgram, point: Ints) -> tuple[Ints, Ints]:
    """Return the placed jobs without replicas, and the lane of each."""
    groups, lanes, begin = program.groups, program.lanes, program.column_begin
    waits = np.zeros(len(groups.class_group), dtype=np.int64)
    waits[:] = groups.class_size
    waits[program.waiting] = point[begin[3] : begin[4]]
    lane = lanes.begin[groups.class_group]
    split = np.zeros(len(waits), dtype=np.bool_)
    split[program.assigned] = True
    direct = np.flatnonzero(~split & ~groups.several[groups.class_group])
    cls = np.concatenate([direct, program.assigned])
    number = np.concatenate([(groups.class_size - waits)[direct], point[begin[2] : begin[3]]])
    of_lane = np.concatenate([lane[direct], lane[program.assigned] + program.assigned_lane])
    # The members of a class one after the other: ``taken`` of them stand in lanes before.
    before = np.cumsum(number) - number
    members = np.argsort(groups.class_of_job, kind="stable")
    member_begin = np.concatenate([[0], np.cumsum(groups.class_size)])
    of_entry = np.repeat(np.arange(len(cls)), number)
    new_class = np.append(True, cls[1:] != cls[:-1])[: len(cls)]
    base = before[np.maximum.accumulate(np.where(new_class, np.arange(len(cls)), 0))]
    place = np.arange(int(number.sum())) - base[of_entry]
    return members[member_begin[cls[of_entry]] + place], of_lane[of_entry]


def point_of(program: PatternProgram, rows: EpochRows) -> Ints:
    """Return the point of rows that are allowed."""
    groups, lanes, places = program.groups, program.lanes, program.places
    demand, begin = program.demand, program.column_begin
    point = np.zeros(program.num_columns, dtype=np.int64)
    used, mode = patterns_used(program, rows)
    point[: begin[1]] = np.bincount(used, minlength=begin[1])
    slots = np.zeros(places.count, dtype=np.int64)
    placed = np.zeros(len(groups.class_group), dtype=np.int64)
    in_lane = np.zeros((len(groups.class_group), 1 + int(np.diff(lanes.begin).max())), dtype=int)
    for jobs, partner in ((rows.first, rows.second), (rows.second, rows.first)):
        at = np.flatnonzero(jobs != NOBODY)
        at = at[~demand.several[jobs[at]]]
        cls = groups.class_of_job[jobs[at]]
        group = groups.class_group[cls]
        lane = lanes.lane[group, rows.gpu_type[at], mode[at]]
        np.add.at(placed, cls, 1)
        np.add.at(in_lane, (cls, lane - lanes.begin[group]), 1)
        level = groups.alone_levels[group, rows.gpu_type[at]]
        mate = demand.jobs.job_type[np.where(partner[at] == NOBODY, jobs[at], partner[at])]
        beside = groups.pair_levels[group, rows.gpu_type[at], mate]
        slot = places.of(lane, np.where(partner[at] == NOBODY, level, beside))
        np.add.at(slots, slot, 1)
    lane = lanes.begin[groups.class_group]
    cls, k = np.nonzero(in_lane)
    np.subtract.at(slots, places.serving(lane[cls] + k, groups.class_level[cls]), in_lane[cls, k])
    left = np.cumsum(slots[::-1])[::-1]  # each lane balances, so that sums begin anew in each
    point[begin[1] : begin[2]] = np.where(places.is_lowest, 0, left)
    point[begin[2] : begin[3]] = in_lane[program.assigned, program.assigned_lane]
    several = np.isin(program.waiting, program.apart)
    waits = groups.class_size[program.waiting] - placed[program.waiting]
    there = np.isin(groups.representative, np.concatenate([rows.first, rows.second]))
    waits[several] = ~there[program.waiting[several]]
    point[begin[3] : begin[4]] = waits
    return point


def patterns_used(program: PatternProgram, rows: EpochRows) -> tuple[Ints, Ints]:
    """Return the pattern of each row and its mode."""
    groups, patterns, demand = program.groups, program.patterns, program.demand
    of_job = groups.class_group[groups.class_of_job]
    paired = rows.second != NOBODY
    one = of_job[rows.first]
    two = np.where(paired, of_job[np.where(paired, rows.second, 0)], NOBODY)
    low, high = np.where(paired, np.minimum(one, two), one), np.maximum(one, two)
    high = np.where(paired, high, NOBODY)
    work = np.zeros(rows.num_rows, dtype=np.int64)
    for job, partner in ((rows.first, rows.second), (rows.second, rows.first)):
        there = job != NOBODY
        known = np.where(there, job, 0)
        mate = np.where(there, partner, NOBODY)
        rate = work_rates(demand, known, throughputs(demand, rows.gpu_type, known, mate))
        kind = demand.jobs.job_type[known]
        work += np.where(there, work_mw(demand, rows.gpu_type, kind, rate), 0)
    full = full_mw(demand, rows.gpu_type, demand.gangs[demand.jobs.job_type[rows.first]])
    mode = np.where(paired & (work > full), UNPAID, PAID)

    def key(gpu: Ints, a: Ints, b: Ints, e: Ints) -> Ints:
        return ((gpu * groups.count + a) * (groups.count + 1) + b + 1) * 2 + e

    keys = key(patterns.gpu, patterns.group, patterns.other, patterns.mode)
    order = np.argsort(keys)
    ordered = np.append(keys[order], -1)
    at = np.searchsorted(keys[order], key(rows.gpu_type, low, high, mode))
    mode = np.where(ordered[at] == key(rows.gpu_type, low, high, mode), mode, PAID)
    at = np.searchsorted(keys[order], key(rows.gpu_type, low, high, mode))
    return order[at], mode
