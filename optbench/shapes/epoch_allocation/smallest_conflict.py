"""The smallest set of jobs that cannot all be placed, when every job must be.

A set of jobs conflicts where its own best allocation leaves one of them waiting; a job that comes
in addition frees no GPU, though as a partner it can let a job run that alone gets too little. The
set is found in two steps. Jobs are left out one after another as long as the rest conflicts, which
gives a set of which no job can be left out. Then all sets with fewer jobs are tried, from the
smallest, as far as ``MOST_TRIED`` allows; ``is_smallest`` says whether it did.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from math import comb

import numpy as np

from optbench.shapes.colocation.colocation_data import Ints
from optbench.shapes.epoch_allocation.allocation_repair import part_of_demand
from optbench.shapes.epoch_allocation.epoch_allocator import allocate
from optbench.shapes.epoch_allocation.epoch_demand import EpochDemand

# Sets that are tried in search of a smaller one.
MOST_TRIED = 3000


@dataclass(frozen=True)
class JobConflict:
    """Jobs that cannot all be placed, in words too; no job of them can be left out."""

    jobs: tuple[int, ...]
    is_smallest: bool
    words: str


def smallest_conflict(demand: EpochDemand) -> JobConflict | None:
    """Return the smallest set of jobs that cannot be placed together; None where all can be."""
    whole = replace(demand, best_effort=False, jobs=replace(demand.jobs, shortfall_w=None))
    everybody = np.arange(demand.jobs.count)
    if not conflicts(whole, everybody):
        return None
    single = [i for i in everybody.tolist() if conflicts(whole, np.array([i]))]
    if single:
        return _described(whole, (single[0],), True)
    found = _irreducible(whole, everybody)
    tried = 0
    for size in range(2, len(found)):
        tried += comb(len(everybody), size)
        if tried > MOST_TRIED:
            return _described(whole, tuple(found.tolist()), False)
        for chosen in combinations(everybody.tolist(), size):
            if conflicts(whole, np.array(chosen)):
                return _described(whole, chosen, True)
    return _described(whole, tuple(found.tolist()), True)


def conflicts(demand: EpochDemand, jobs: Ints) -> bool:
    """Whether the best allocation of these jobs alone leaves one of them waiting."""
    part = part_of_demand(demand, jobs, demand.counts)
    return len(allocate(part).waiting) > 0


def _irreducible(demand: EpochDemand, jobs: Ints) -> Ints:
    """Leave out jobs, at first many at a time, as long as the rest conflicts."""
    step = max(1, len(jobs) // 2)
    while True:
        begin = 0
        while begin < len(jobs):
            rest = np.delete(jobs, np.arange(begin, min(begin + step, len(jobs))))
            if len(rest) and conflicts(demand, rest):
                jobs = rest
            else:
                begin += step
        if step == 1:
            return jobs
        step = max(1, step // 2)


def _described(demand: EpochDemand, jobs: tuple[int, ...], smallest: bool) -> JobConflict:
    """Name a job by its best rate alone, several by their number and the GPUs."""
    counts = ", ".join(f"{n} of type {g}" for g, n in enumerate(demand.counts.tolist()))
    if len(jobs) > 1:
        listed = ", ".join(map(str, jobs))
        words = f"jobs {listed} cannot all be placed on the GPUs that there are ({counts})"
        return JobConflict(jobs, smallest, f"{words}; any {len(jobs) - 1} of them can")
    job = jobs[0]
    kind = int(demand.jobs.job_type[job])
    best = float(np.where(demand.usable, demand.alone_per_s, 0.0)[:, kind].max(initial=0.0))
    required = float(demand.jobs.required_per_s[job])
    rows = int(demand.jobs.replicas[job]) if demand.several[job] else 1
    words = f"job {job} requires {required:.6g} per second; no GPU there is gives it more than"
    times = f" in each of {rows} rows" if rows > 1 else ""
    return JobConflict(jobs, smallest, f"{words} {best:.6g}{times} ({counts})")
