"""Prices of the rows of an epoch's allocation, in whole milliwatts, from the demand alone.

A row (g, {i}) or (g, {i, j}) on a gang of n GPUs of type g (n = 1 for a pair) costs

    W = n (idle − sleep)_g + min(n (full − idle)_g, Σ_i a_i) + extra price − Σ_i v_i + Σ_i m_i
    a_i = n (full − idle)_g utilisation_gi x_i / alone_gi       power that the work of i adds
    v_i = price_i x_i                                           value of its progress
    m_i = migration price, where i was on another GPU type, or waiting, in the epoch before

with x_i the throughput of i there, of a service that meets its requirement the requirement. Each
term is rounded to whole milliwatts, so that sums are exact, whoever adds them up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optbench.shapes.colocation.allocations import NOBODY
from optbench.shapes.colocation.colocation_data import Bools, Floats, Ints
from optbench.shapes.colocation.epoch_physics import WAITING
from optbench.shapes.epoch_allocation.epoch_demand import EpochDemand, meets, milliwatts


def throughputs(demand: EpochDemand, gpu: Ints, job: Ints, partner: Ints) -> Floats:
    """Throughput of jobs on GPU types, alone (partner -1) or beside a partner."""
    kind = demand.jobs.job_type
    beside = demand.beside_per_s[gpu, kind[job], kind[np.where(partner == NOBODY, job, partner)]]
    out: Floats = np.where(partner == NOBODY, demand.alone_per_s[gpu, kind[job]], beside)
    return out


def work_rates(demand: EpochDemand, job: Ints, rate: Floats) -> Floats:
    """Rates of work at these throughputs: a service does no more than it is asked for."""
    jobs = demand.jobs
    capped = jobs.is_service[job] & meets(rate, jobs.required_per_s[job])
    out: Floats = np.where(capped, jobs.required_per_s[job], rate)
    return out


def idle_mw(demand: EpochDemand, gpu: Any, gpus: Any) -> Ints:
    """Power of idle GPUs beyond sleep."""
    return milliwatts(gpus * (demand.idle_w - demand.sleep_w)[gpu])


def full_mw(demand: EpochDemand, gpu: Any, gpus: Any) -> Ints:
    """Power of fully used GPUs beyond idle ones."""
    return milliwatts(gpus * (demand.full_w - demand.idle_w)[gpu])


def work_mw(demand: EpochDemand, gpu: Any, job_type: Any, rate: Any) -> Ints:
    """Power that work of a type at this rate adds to idle GPUs."""
    alone = demand.alone_per_s[gpu, job_type]
    gpu_w = (demand.gangs[job_type] * (demand.full_w - demand.idle_w)[gpu]) * demand.utilisation[
        gpu, job_type
    ]
    rate = np.asarray(rate, dtype=float)
    # A pair may run where a job alone was never measured; its rate then counts as full use.
    share = np.divide(rate, alone, out=(rate > 0) * np.ones_like(alone * rate), where=alone > 0)
    return milliwatts(gpu_w * share)


def value_mw(price_j: Any, rate: Any) -> Ints:
    """Value of progress at this rate."""
    return milliwatts(price_j * rate)


def migration_mw(demand: EpochDemand, job: Ints, gpu: Any) -> Ints:
    """Price of migration of jobs to GPU types."""
    before = demand.jobs.before[job]
    moved = (before >= WAITING) & (before != gpu)
    out: Ints = np.where(moved, milliwatts(demand.migration_price_w), 0)
    return out


def row_prices_mw(demand: EpochDemand, gpu: Ints, first: Ints, second: Ints) -> Ints:
    """Price of each row."""
    kind = demand.jobs.job_type
    gpus = demand.gangs[kind[first]]
    total = idle_mw(demand, gpu, gpus) + demand.alone_prices_mw[gpu, kind[first]]
    work, other = _member_mw(demand, gpu, first, second)
    total += other
    paired = np.flatnonzero(second != NOBODY)
    if len(paired):
        g, one, two = gpu[paired], first[paired], second[paired]
        more, other = _member_mw(demand, g, two, one)
        work[paired] += more
        extra = demand.pair_prices_mw[g, kind[one], kind[two]]
        total[paired] += other + extra - demand.alone_prices_mw[g, kind[one]]
    out: Ints = total + np.minimum(full_mw(demand, gpu, gpus), work)
    return out


def _member_mw(demand: EpochDemand, gpu: Ints, job: Ints, partner: Ints) -> tuple[Ints, Ints]:
    """Power that the work of a member of each row adds, and its other terms."""
    jobs = demand.jobs
    rate = work_rates(demand, job, throughputs(demand, gpu, job, partner))
    other = -value_mw(jobs.price_j[job], rate)
    if demand.migration_price_w > 0:
        other += migration_mw(demand, job, gpu)
    return work_mw(demand, gpu, jobs.job_type[job], rate), other


def is_column(demand: EpochDemand, gpu: Ints, job: Ints, partner: Ints) -> Bools:
    """Whether jobs (with one replica) may stand on a GPU of a type together: there are GPUs enough
    and every requirement is met.
    """
    jobs, paired = demand.jobs, partner != NOBODY
    mate = np.where(paired, partner, job)
    out: Bools = demand.counts[gpu] >= demand.gangs[jobs.job_type[job]]
    rate = throughputs(demand, gpu, job, partner)
    out = out & (rate > 0) & meets(rate, jobs.required_per_s[job]) & (partner != job)
    rate = throughputs(demand, gpu, mate, job)
    out &= ~paired | ((rate > 0) & meets(rate, jobs.required_per_s[mate]))
    return out


def lacking_mw(demand: EpochDemand, job: Ints, rate: Floats) -> Ints:
    """What jobs at best effort, with one replica, pay for what they lack at these rates."""
    share = np.minimum(1.0, rate / demand.jobs.required_per_s[job])
    out: Ints = np.rint(demand.shortfall_mw[job] * (1.0 - share)).astype(np.int64)
    return out


def given_mw(demand: EpochDemand, job: Ints, rate: Floats) -> Ints:
    """What a replica of a job at best effort takes off its price of waiting."""
    share = np.minimum(1.0, rate / demand.jobs.required_per_s[job])
    out: Ints = np.floor(demand.shortfall_mw[job] * share).astype(np.int64)
    return out


def lacks_mw(demand: EpochDemand, gpu: Ints, first: Ints, second: Ints) -> Ints:
    """Price of what each job lacks or waits for, given all rows."""
    jobs = np.concatenate([first, second[second != NOBODY]])
    out = demand.shortfall_mw.copy()
    out[jobs[~demand.below[jobs] | ~demand.several[jobs]]] = 0
    lone = (second == NOBODY) & demand.below[first]
    job, rate = first[lone], demand.alone_per_s[gpu[lone], demand.jobs.job_type[first[lone]]]
    several = demand.several[job]
    out[job[~several]] = lacking_mw(demand, job[~several], rate[~several])
    np.subtract.at(out, job[several], given_mw(demand, job[several], rate[several]))
    return out
