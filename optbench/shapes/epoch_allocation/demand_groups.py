"""Jobs of a demand that no allocation can tell apart: groups, and classes within a group.

A group has one job type, one price of progress, and is of services or of training jobs: what its
jobs cost in a column differs at most by a term of their own per GPU type. A class of a group has in
addition the same feasibility in every column, the same such terms and the same price of waiting.
Exchanging two jobs of a class changes neither feasibility nor objective, so that only their number
counts. In detail, two jobs of a group are of one class where

- no throughput of their type lies between their requirements, and they are training jobs; or
- they are services with the same requirement, on which their power depends;
- and, where migration has a price, their GPU types of the epoch before agree;
- and their prices of waiting agree.

Jobs with several replicas, and jobs at best effort, are groups of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optbench.shapes.colocation.colocation_data import Bools, Floats, Ints
from optbench.shapes.colocation.epoch_physics import SAME
from optbench.shapes.epoch_allocation.epoch_demand import EpochDemand
from optbench.shapes.epoch_allocation.row_prices import migration_mw, work_mw


@dataclass(frozen=True, eq=False)
class JobGroups:
    """Groups and classes. Levels number the requirements of a group's classes from the lowest.

    ``single_job`` is the job of a group with several replicas or at best effort, else -1.
    ``representative`` is a job of each class, ``level_end`` where the levels of a group end.
    """

    demand: EpochDemand
    job_type: Ints
    price_j: Floats
    is_service: Bools
    single_job: Ints
    several: Bools
    below: Bools
    size: Ints
    class_of_job: Ints
    class_group: Ints
    class_level: Ints
    class_size: Ints
    representative: Ints
    level_end: Ints
    level_required: Floats

    @property
    def count(self) -> int:
        return len(self.job_type)

    @cached_property
    def present_types(self) -> Ints:
        """Job types of which there are jobs."""
        return np.unique(self.job_type)

    @cached_property
    def class_begin(self) -> Ints:
        """The first class of each group, and the end."""
        sizes = np.bincount(self.class_group, minlength=self.count)
        return np.concatenate([[0], np.cumsum(sizes)])

    def levels_met(self, group: int, rate: Floats) -> Ints:
        """Number of levels of a group whose requirement these rates meet."""
        begin = self.level_end[group - 1] if group else 0
        required = self.level_required[begin : self.level_end[group]] * (1.0 - SAME)
        return np.searchsorted(required, rate, side="right")

    @cached_property
    def alone_levels(self) -> Ints:
        """Levels that a GPU alone meets, per group and GPU type: 0 is none."""
        demand = self.demand
        out = np.zeros((self.count, demand.num_gpu_types), dtype=np.int64)
        for k, t in enumerate(self.job_type.tolist()):
            rate = np.where(demand.usable[:, t], demand.alone_per_s[:, t], 0.0)
            out[k] = self.levels_met(k, rate)
        out[self.several | self.below] = 0
        free = np.flatnonzero(self.several | self.below)
        out[free] = demand.usable[:, self.job_type[free]].T
        return out

    @cached_property
    def pair_levels(self) -> Ints:
        """Levels met beside a job of each type, per group, GPU type and job type."""
        demand = self.demand
        there = (demand.counts > 0)[:, None]
        out = np.zeros((self.count, demand.num_gpu_types, demand.num_job_types), dtype=np.int64)
        for k, t in enumerate(self.job_type.tolist()):
            rate = np.where(there, demand.beside_per_s[:, t, :], 0.0)
            out[k] = rate > 0 if self.several[k] else self.levels_met(k, rate)
        out[self.several & self.below] = 0
        return out

    @cached_property
    def own_work_mw(self) -> Ints:
        """Power that a service of each class adds, per GPU type; 0 for other jobs."""
        jobs, g = self.demand.jobs, np.arange(self.demand.num_gpu_types)
        job = self.representative
        kind, required = jobs.job_type[job], jobs.required_per_s[job]
        work = work_mw(self.demand, g[None, :], kind[:, None], required[:, None])
        own = self.is_service & ~self.several
        return np.where(own[self.class_group][:, None], work, 0)

    @cached_property
    def own_migration_mw(self) -> Ints:
        """Price of migration of a job of each class, per GPU type."""
        g = np.arange(self.demand.num_gpu_types)
        return migration_mw(self.demand, self.representative[:, None], g[None, :])


def group_jobs(demand: EpochDemand) -> JobGroups:
    """Return the groups and classes of the jobs of a demand."""
    jobs, n = demand.jobs, demand.jobs.count
    several, below = demand.several, demand.below
    single = np.where(several | below, np.arange(n), -1)
    of_job, first = _numbered(jobs.job_type, jobs.is_service, jobs.price_j, single)
    key = _requirement_keys(demand)
    key[single >= 0] = 0.0
    before = jobs.before if demand.migration_price_w > 0 else np.zeros(n, dtype=np.int64)
    class_of_job, representative = _numbered(of_job, key, before, demand.shortfall_mw)
    group = of_job[representative]
    own_key = key[representative]
    new_group = np.diff(group, prepend=-1) != 0
    new_level = new_group | (np.diff(own_key, prepend=np.nan) != 0)
    level = np.cumsum(new_level) - 1
    level_end = np.append(level[new_group][1:], level[-1] + 1 if n else 0)
    required = np.zeros(int(new_level.sum()))
    np.maximum.at(required, level[class_of_job], jobs.required_per_s)
    level_begin = level[new_group]
    return JobGroups(
        demand,
        jobs.job_type[first],
        jobs.price_j[first],
        jobs.is_service[first],
        single[first],
        several[first],
        below[first],
        np.bincount(of_job, minlength=len(first)),
        class_of_job,
        group,
        level - level_begin[group],
        np.bincount(class_of_job, minlength=len(group)),
        representative,
        level_end,
        required,
    )


def _numbered(*keys: Ints | Floats | Bools) -> tuple[Ints, Ints]:
    """Number the distinct tuples in their order; return each entry's number and a first entry."""
    order = np.lexsort(keys[::-1])
    new = np.zeros(len(order), dtype=np.bool_)
    new[:1] = True
    for key in keys:
        ordered = key[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.cumsum(new) - 1
    return number, order[new]


def _requirement_keys(demand: EpochDemand) -> Floats:
    """Numbers that order the requirements of jobs of one type, equal where they are alike.

    For a training job it is the number of throughputs of its type that miss its requirement."""
    jobs = demand.jobs
    out = jobs.required_per_s.copy()
    there = demand.counts > 0
    present = np.unique(jobs.job_type)
    for t in present.tolist():
        mine = np.flatnonzero((jobs.job_type == t) & ~jobs.is_service)
        if not len(mine):
            continue
        beside = demand.beside_per_s[there][:, t, present].ravel()
        rates = np.unique(np.concatenate([demand.alone_per_s[there, t], beside]))
        required = jobs.required_per_s[mine] * (1.0 - SAME)
        out[mine] = np.searchsorted(rates, required, side="left")
    return out
