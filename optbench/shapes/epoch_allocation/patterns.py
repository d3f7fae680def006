"""Patterns: a GPU type with the one or two groups of jobs on it, priced in whole milliwatts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.shapes.colocation.allocations import NOBODY
from optbench.shapes.colocation.colocation_data import Bools, Floats, Ints
from optbench.shapes.epoch_allocation.demand_groups import JobGroups
from optbench.shapes.epoch_allocation.epoch_demand import meets
from optbench.shapes.epoch_allocation.gpu_lanes import PAID, UNPAID, Lanes
from optbench.shapes.epoch_allocation.row_prices import (
    full_mw,
    given_mw,
    idle_mw,
    lacking_mw,
    migration_mw,
    value_mw,
    work_mw,
)


@dataclass(frozen=True, eq=False)
class Patterns:
    """One entry per pattern; ``other`` is -1 with one group. ``mode`` says who pays for services.

    ``levels`` and ``other_levels`` are the levels of requirements that the places serve."""

    gpu: Ints
    group: Ints
    other: Ints
    mode: Ints
    levels: Ints
    other_levels: Ints
    price_mw: Ints

    @property
    def count(self) -> int:
        return len(self.gpu)

    @classmethod
    def joined(cls, parts: list[Patterns]) -> Patterns:
        names = ("gpu", "group", "other", "mode", "levels", "other_levels", "price_mw")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def patterns_of(groups: JobGroups, lanes: Lanes) -> Patterns:
    """Return every pattern that some jobs can fill."""
    return Patterns.joined([alone_patterns(groups, lanes), pair_patterns(groups, lanes)])


def alone_patterns(groups: JobGroups, lanes: Lanes) -> Patterns:
    """Return the patterns with one group."""
    demand = groups.demand
    group, gpu = np.nonzero(groups.alone_levels > 0)
    kind = groups.job_type[group]
    rate = demand.alone_per_s[gpu, kind]
    price = idle_mw(demand, gpu, demand.gangs[kind])
    price = price + demand.alone_prices_mw[gpu, kind]
    price = price + fixed_mw(groups, lanes, group, gpu, rate, True)
    full = full_mw(demand, gpu, demand.gangs[kind])
    # Utilisation is at most 1 alone, as long as a service needs no more than its throughput.
    work = fixed_work_mw(groups, group, gpu, rate, True)
    price = price + np.minimum(work, full)
    mode = np.full(len(gpu), PAID)
    nobody = np.full(len(gpu), NOBODY)
    levels = groups.alone_levels[group, gpu]
    return Patterns(gpu, group, nobody, mode, levels, np.zeros_like(levels), price)


def pair_patterns(groups: JobGroups, lanes: Lanes) -> Patterns:
    """Return the patterns with two groups, once or twice where services decide on the power."""
    demand, kind = groups.demand, groups.job_type
    single = np.flatnonzero(demand.gangs[kind] == 1)
    row, column = np.triu_indices(len(single))
    a, b = single[row], single[column]
    apart = (a != b) | (groups.size[a] > 1)
    a, b = a[apart], b[apart]
    parts = []
    for g in range(demand.num_gpu_types):
        levels = groups.pair_levels[a, g, kind[b]]
        other_levels = groups.pair_levels[b, g, kind[a]]
        at = np.flatnonzero((levels > 0) & (other_levels > 0))
        gpu = np.full(len(at), g)
        parts.append(_priced_pairs(groups, lanes, gpu, a[at], b[at], levels[at], other_levels[at]))
    return Patterns.joined(parts)


def _priced_pairs(
    groups: JobGroups, lanes: Lanes, gpu: Ints, a: Ints, b: Ints, levels: Ints, other_levels: Ints
) -> Patterns:
    demand, kind = groups.demand, groups.job_type
    base = idle_mw(demand, gpu, 1) + demand.pair_prices_mw[gpu, kind[a], kind[b]]
    full = full_mw(demand, gpu, 1)
    work = np.zeros(len(gpu), dtype=np.int64)
    most = np.zeros(len(gpu), dtype=np.int64)
    for group, other in ((a, b), (b, a)):
        rate = demand.beside_per_s[gpu, kind[group], kind[other]]
        base = base + fixed_mw(groups, lanes, group, gpu, rate, False)
        work = work + fixed_work_mw(groups, group, gpu, rate, False)
        most = most + most_own_work_mw(groups)[group, gpu]
    bases = [lanes.base_mw[a, gpu, e] + lanes.base_mw[b, gpu, e] for e in (PAID, UNPAID)]
    services = most > 0
    paid = base + np.where(services, work, np.minimum(work, full)) + bases[PAID]
    unpaid = base + full + bases[UNPAID]
    reached = services & (work + most > full)
    same = reached & (lanes.lane[a, gpu, PAID] == lanes.lane[a, gpu, UNPAID])
    same &= lanes.lane[b, gpu, PAID] == lanes.lane[b, gpu, UNPAID]
    paid = np.where(same, np.minimum(paid, unpaid), paid)
    twice = np.flatnonzero(reached & ~same)
    at = np.concatenate([np.arange(len(gpu)), twice])
    mode = np.repeat([PAID, UNPAID], [len(gpu), len(twice)])
    price = np.concatenate([paid, unpaid[twice]])
    return Patterns(gpu[at], a[at], b[at], mode, levels[at], other_levels[at], price)


def fixed_mw(
    groups: JobGroups, lanes: Lanes, group: Ints, gpu: Ints, rate: Floats, alone: bool
) -> Ints:
    """Terms of a group in a pattern that are the same for all its jobs, power apart."""
    demand, job = groups.demand, groups.single_job[group]
    out = -value_mw(groups.price_j[group], rate)
    apart = groups.several[group]
    if alone:
        limited = groups.below[group] & ~apart
        out = out + np.where(limited, lacking_mw(demand, job, rate), 0)
        out = out - np.where(groups.below[group] & apart, given_mw(demand, job, rate), 0)
        out = out + np.where(limited | apart, migration_mw(demand, job, gpu), 0)
        return out + np.where(limited | apart, 0, lanes.base_mw[group, gpu, PAID])
    return out


def fixed_work_mw(groups: JobGroups, group: Ints, gpu: Ints, rate: Floats, alone: bool) -> Ints:
    """Power of a group's work in a pattern, where it is the same for all its jobs, else 0."""
    demand = groups.demand
    apart = groups.several | (groups.below if alone else np.zeros_like(groups.below))
    service = groups.is_service[group] & apart[group]
    required = demand.jobs.required_per_s[groups.single_job[group]]
    done = np.where(service & meets(rate, required), required, rate)
    fixed: Bools = apart[group] | ~groups.is_service[group]
    return np.where(fixed, work_mw(demand, gpu, groups.job_type[group], done), 0)


def most_own_work_mw(groups: JobGroups) -> Ints:
    """The most power that the work of a service of a group adds, per GPU type."""
    return np.maximum.reduceat(groups.own_work_mw, groups.class_begin[:-1], axis=0)
