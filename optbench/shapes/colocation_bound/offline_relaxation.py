"""The offline bound's LP as numbers: columns per GPU type, sides per class, job and bin.

The same dataclass holds floats, for the solver, and whole numbers, for the proof: a number v of a
table stands for v 2^-TABLE_BITS there, one of a side for v 2^-SIDE_BITS. Floats are rounded to the
side on which the bound stays valid; ``in_whole_numbers`` rounds to the same side.

A verified decision is evaluated in floats, epoch by epoch. Sides are a little weaker than the
exact ones, so that the bound is one of this evaluation as well: works by (epochs + 8) 2^-51 of
themselves, because each epoch subtracts its progress with a rounding; times and the held shortfall
by 2^-48 of the horizon per term. No tolerance of a comparison is used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optbench.shapes.colocation.colocation_data import Bools, Colocation, Floats, Ints
from optbench.shapes.colocation_bound.offline_columns import SAFE, ColumnTables, column_tables
from optbench.shapes.colocation_bound.offline_demand import (
    JobClasses,
    OfflineDemand,
    demand_of,
    job_classes,
    total_wait_s,
)

# Floats for the solver, or Python's whole numbers for the proof.
Numbers = NDArray[Any]
TABLE_BITS, SIDE_BITS, PRICE_BITS = 44, 34, 30
# Rounding of one time of the evaluation, as a share of the horizon.
TIME_ROUNDING = 2.0**-48
# A decision is held at a shortfall up to this share: twice the tolerance of a held level.
HELD_ROUNDING = 2.0**-39
# Presence is counted for this many times the time that a job takes at its required rate.
SOON = 3.0
RATES = ("rate", "watts", "credit", "lack")


@dataclass(frozen=True)
class OfflineColumns:
    """The columns of one GPU type; a column of one class has ``other`` -1 and rate 0 there."""

    gpus: Ints
    one: Ints
    other: Ints
    rate_one: Numbers
    rate_other: Numbers
    watts: Numbers
    credit_one: Numbers
    credit_other: Numbers
    lack_one: Numbers
    lack_other: Numbers


@dataclass(frozen=True)
class OfflineRelaxation:
    """Columns and sides; see ``offline_bound`` for the rows.

    ``goal[i, b]`` is what job i has to have done by the end of bin b to lack nothing, ``work[i]``
    all of it, ``needed[c, b]`` what a class of services needs within a bin, ``limit[c, b]`` the
    time for which jobs of a class can run. ``rate[i]`` and ``service_rate[c]`` are requirements,
    ``budget_s`` the shortfall beyond waiting. ``present[i, b]`` is the time for which a training
    job is in the system in a bin at whose end it is not done, ``share`` the same per work of the
    job, and ``pace[c, b]`` the least share of the jobs of a class."""

    data: Colocation
    classes: JobClasses
    demand: OfflineDemand
    columns: tuple[OfflineColumns, ...]
    capacity: Numbers
    goal: Numbers
    work: Numbers
    needed: Numbers
    limit: Numbers
    rate: Numbers
    service_rate: Numbers
    budget_s: Any
    present: Numbers
    share: Numbers
    pace: Numbers

    @property
    def startable(self) -> Bools:
        """Whether training job i can run in bin b."""
        out: Bools = (self.demand.available_s > 0) & ~self.data.jobs.is_service[:, None]
        return out


def relaxation(
    data: Colocation, edges: Ints, groups: int, held_shortfall_s: float | None
) -> OfflineRelaxation:
    """Return columns and sides of the LP in these bins, as safely rounded floats."""
    classes = job_classes(data, groups)
    demand, tables = demand_of(data, edges), column_tables(data, classes)
    jobs, of = data.jobs, classes.of_job
    per_s = tables.per_s[of]
    horizon_s = data.horizon_epochs * data.epoch_s
    rate = jobs.required_per_s / per_s
    training = ~jobs.is_service & (demand.since_start_s[:, -1] > 0)
    work = np.where(training, jobs.work / per_s, 0.0)
    work *= 1 - (data.horizon_epochs + 8) * 2.0**-51 - SAFE
    goal = np.minimum(work[:, None], (rate * (1 - SAFE))[:, None] * demand.since_start_s)
    shape = (classes.count, demand.num_bins)
    before = demand.since_start_s - demand.available_s
    soon = training[:, None] & (before * rate[:, None] <= SOON * work[:, None])
    lasting = np.where(soon, demand.available_s, 0.0)
    share = lasting / np.where(training, work, 1.0)[:, None]
    pace = np.full(shape, np.inf)
    np.minimum.at(pace, of, np.where(lasting > 0, share, np.inf))
    counted = np.isfinite(pace) & classes.single[:, None]
    pace = np.where(counted, pace * (1 - SAFE), 0.0)
    sure = (
        np.maximum(demand.available_s - TIME_ROUNDING * horizon_s, 0.0) * jobs.is_service[:, None]
    )
    needed, limit = np.zeros(shape), np.zeros(shape)
    np.add.at(needed, of, sure * (rate * (1 - SAFE))[:, None])
    longest = demand.available_s * jobs.replicas[:, None]
    longest = np.where(longest > 0, longest + TIME_ROUNDING * horizon_s, 0.0)
    np.add.at(limit, of, longest * (1 + SAFE))
    budget = np.inf if held_shortfall_s is None else budget_of(data, held_shortfall_s)
    return OfflineRelaxation(
        data,
        classes,
        demand,
        tuple(_columns(tables, g) for g in range(data.num_gpu_types)),
        demand.capacity_gpu_s * (1 + SAFE),
        np.where(jobs.is_service[:, None], 0.0, goal),
        work,
        needed,
        limit,
        rate * (1 + SAFE),
        np.where(classes.is_service, classes.ceiling_per_s / tables.per_s * (1 + SAFE), 0.0),
        budget,
        lasting * (1 - SAFE),
        share * (1 + SAFE),
        pace,
    )


def budget_of(data: Colocation, held_shortfall_s: float) -> float:
    """The shortfall beyond waiting that a decision held at this value can have, rounded up."""
    horizon_s = data.horizon_epochs * data.epoch_s
    terms = 4 * data.jobs.count * (data.horizon_epochs + 1)
    rounding = terms * 2.0**-52 * horizon_s + HELD_ROUNDING * held_shortfall_s
    return max(held_shortfall_s - total_wait_s(data) * (1 - SAFE), 0.0) + rounding


def _columns(tables: ColumnTables, g: int) -> OfflineColumns:
    """Columns of one class, and those of pairs, on a GPU type."""
    c, d = np.nonzero(tables.pair_fits[g])
    parts: list[tuple[Floats, ...]] = []
    gpus, one = [np.ones(len(c), dtype=np.int64)], [c]
    for each in (tables.solo, tables.slow):
        mine = np.flatnonzero(each.rate[g] > 0)
        none = np.zeros(len(mine))
        gpus.append(tables.gangs[mine])
        one.append(mine)
        rates = each.rate[g, mine], each.watts[g, mine]
        parts.append(
            (rates[0], none, rates[1], each.credit[g, mine], none, each.lack[g, mine], none)
        )
    rate, watts, credit, lack = (getattr(tables.pair, name)[g] for name in RATES)
    pairs = (
        rate[c, d],
        rate[d, c],
        watts[c, d],
        credit[c, d],
        credit[d, c],
        lack[c, d],
        lack[d, c],
    )
    other = np.full(sum(map(len, gpus)), -1)
    other[: len(c)] = d
    numbers = (np.concatenate(each) for each in zip(pairs, *parts, strict=True))
    return OfflineColumns(np.concatenate(gpus), np.concatenate(one), other, *numbers)


def in_whole_numbers(floats: OfflineRelaxation) -> OfflineRelaxation:
    """Return the same LP in whole numbers, rounded to the safe side."""
    columns = tuple(
        replace(
            each,
            rate_one=_up(each.rate_one, TABLE_BITS),
            rate_other=_up(each.rate_other, TABLE_BITS),
            watts=_down(each.watts, 2 * TABLE_BITS + PRICE_BITS),
            credit_one=_up(each.credit_one, TABLE_BITS),
            credit_other=_up(each.credit_other, TABLE_BITS),
            lack_one=_down(each.lack_one, TABLE_BITS),
            lack_other=_down(each.lack_other, TABLE_BITS),
        )
        for each in floats.columns
    )
    budget = floats.budget_s
    return replace(
        floats,
        columns=columns,
        capacity=_up(floats.capacity, SIDE_BITS),
        goal=_down(floats.goal, SIDE_BITS),
        work=_down(floats.work, SIDE_BITS),
        needed=_down(floats.needed, SIDE_BITS),
        limit=_up(floats.limit, SIDE_BITS),
        rate=_up(floats.rate, TABLE_BITS),
        service_rate=_up(floats.service_rate, TABLE_BITS),
        present=_down(floats.present, SIDE_BITS),
        share=_up(floats.share, TABLE_BITS),
        pace=_down(floats.pace, TABLE_BITS),
        budget_s=None if math.isinf(budget) else int(_up(np.array([budget]), SIDE_BITS)[0]),
    )


def _down(values: Floats, bits: int) -> Numbers:
    """⌊v 2^bits⌋: the product is exact in floats, a power of two."""
    return _whole(np.floor(np.ldexp(values, bits)))


def _up(values: Floats, bits: int) -> Numbers:
    return _whole(np.ceil(np.ldexp(values, bits)))


def _whole(values: Floats) -> Numbers:
    out = np.empty(values.size, dtype=object)
    out[:] = [int(v) for v in values.ravel().tolist()]
    return out.reshape(values.shape)


def as_fraction(value: int, bits: int) -> Fraction:
    return Fraction(value, 1 << bits)
