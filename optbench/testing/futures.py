"""Streams of arriving work, and variants of them with another future, to test policies.

Up to a moment both streams have the same jobs; those that arrive later differ. Tariffs, horizon,
announced outages and numbers of devices are equal, since policies know them beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from optbench.model.builder import Model
from optbench.model.instance import Instance
from optbench.model.objective import Objective
from optbench.model.streams import with_stream
from optbench.units import HOUR_S

JOBS, HOURS = 72, 6.0
# Shares of the arriving jobs after which the streams differ.
MOMENTS = (0.5,)


@dataclass(frozen=True)
class FutureStream:
    """An instance in which jobs of two kinds arrive at two ingresses of three sites."""

    name: str
    options: Mapping[str, Any]

    @cached_property
    def instance(self) -> Instance:
        return _sites(self.name, **self.options)

    def moment(self, share: float) -> float:
        """A time between two arrivals, by which a share of the jobs has arrived."""
        release = np.sort(np.asarray(self.instance.tasks.release, dtype=float))
        at = int(share * len(release))
        return float(np.floor(0.5 * (release[at - 1] + release[at])))


def larger(instance: Instance, later: np.ndarray) -> Instance:
    """Later jobs are five times larger."""
    units = np.where(later, 5.0 * instance.tasks.units, instance.tasks.units)
    return replace(instance, tasks=replace(instance.tasks, units=units))


def of_other_kinds(instance: Instance, later: np.ndarray) -> Instance:
    """All later jobs are of the kind that is rare before."""
    kind = np.where(later, len(instance.modes.kind_names) - 1, instance.tasks.kind)
    return replace(instance, tasks=replace(instance.tasks, kind=kind))


def at_other_times(instance: Instance, later: np.ndarray) -> Instance:
    """Later jobs arrive within half of the time; the last one arrives half an hour later than
    before.
    """
    release, deadline = instance.tasks.release, instance.tasks.deadline
    begin, end = release[later].min(), release.max()
    moved = np.where(later, begin + np.floor(0.5 * (release - begin)), release)
    last = end + round(0.5 * HOUR_S / instance.tick_s)
    moved = np.where(release == end, last, moved).astype(release.dtype)
    dated = np.isfinite(np.asarray(deadline, dtype=float))
    due = np.where(dated, deadline + (moved - release), deadline).astype(deadline.dtype)
    return replace(instance, tasks=replace(instance.tasks, release=moved, deadline=due))


def all_changes(instance: Instance, later: np.ndarray) -> Instance:
    """Later jobs have other sizes, kinds and times."""
    return at_other_times(of_other_kinds(larger(instance, later), later), later)


FUTURES: dict[str, Callable[[Instance, np.ndarray], Instance]] = {
    "larger": larger,
    "other kinds": of_other_kinds,
    "other times": at_other_times,
    "all of it": all_changes,
}


def other_future(instance: Instance, moment: float, change: str) -> Instance:
    """The instance with other jobs after a moment."""
    return FUTURES[change](instance, np.asarray(instance.tasks.release, dtype=float) > moment)


def _sites(
    name: str,
    *,
    open_end: bool = False,
    tariffs: bool = False,
    preemptive: bool = False,
    cap_w: float | None = None,
    due: bool = False,
) -> Instance:
    """Frequent long work and rare short work, on barely enough devices."""
    rng = np.random.default_rng(20)
    horizon_s = HOURS * HOUR_S if open_end else None
    m = Model(name, tick_s=1.0, horizon_s=horizon_s, preemptive=preemptive)
    places = [m.place(each) for each in ("north", "south", "west")]
    pools = [m.pool(p, 2, at=at, idle_w=9.0) for p, at in zip("nsw", places, strict=True)]
    if tariffs:
        for at, shift in zip(places, (0, 8, 16), strict=True):
            hour = np.arange(int(HOURS) + 25) + shift
            price = (0.12 + 0.08 * np.sin(hour * np.pi / 12)).tolist()
            carbon = [400.0 * x for x in price]
            m.tariff(price_usd_per_kwh=price, carbon_g_per_kwh=carbon, every_s=HOUR_S, at=at)
    kinds = []
    for slow in (1.0, 0.7):
        modes = [
            m.mode({pool: n}, time_s=0.03 * slow * (1.0 + 0.1 * p) * n**-0.8 / clock,
                   energy_j=(8.0 - p) * n**0.1 * clock**1.5)
            for p, pool in enumerate(pools) for n in (1, 2) for clock in (0.6, 0.8, 1.0)
        ]  # fmt: skip
        kinds.append(m.kind(modes=modes))
    release = np.sort(np.floor(rng.uniform(0.0, HOURS * HOUR_S - 60.0, JOBS)))
    short = rng.random(JOBS) < 0.2
    small, large = rng.uniform(800.0, 4000.0, JOBS), rng.lognormal(np.log(40_000.0), 0.5, JOBS)
    units = np.where(short, small, large)
    for k, (kind, rows) in enumerate(zip(kinds, (~short, short), strict=True)):
        dated = release[rows] + 600.0 if due and k == 1 else None
        hard = None if dated is None else False
        m.tasks(units[rows], kind=kind, release_s=release[rows], deadline_s=dated, hard=hard)
    m.minimize(**({"cost_usd": 1.0} if tariffs else {"energy_j": 1.0}))
    if cap_w is not None:
        m.limit(power_w=cap_w)
    built = m.build()
    made = with_stream(
        built,
        ingress=rng.integers(0, 2, JOBS),
        latency_s=[[0.0, 3.0, 9.0], [5.0, 0.0, 2.0]],
        opens=0 if open_end else None,
        ingress_names=("east", "coast"),
    )
    return made.with_objective(Objective.weighted({"j_per_unit": 1.0})) if open_end else made


STREAMS = (
    FutureStream("open week", {"open_end": True}),
    FutureStream("drained hours", {"tariffs": True}),
    FutureStream("with deadlines", {"due": True}),
    FutureStream("under a cap", {"preemptive": True, "cap_w": 900.0}),
)
