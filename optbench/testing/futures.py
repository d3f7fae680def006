"""Instances of arriving work, and variants of them with another future, to test policies.

Up to a moment both have the same jobs; what comes later differs. Tariffs, horizon, announced
outages and numbers of devices are equal, since policies know them beforehand. Rows are in order of
arrival, as in a record: a policy that draws a number per row draws the same ones for the same jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from optbench.model.builder import Model
from optbench.model.instance import Edges, Instance, Tasks
from optbench.model.objective import Objective
from optbench.model.streams import Outages, outages_in_seconds, with_stream
from optbench.sim.arrivals import TaskArrivals, arrival_times
from optbench.units import HOUR_S

JOBS, HOURS = 72, 6.0
# Shares of the arriving jobs after which the futures differ.
MOMENTS = (0.5,)


@dataclass(frozen=True)
class FutureStream:
    """An instance in which work arrives over time; ``make`` is given the name and the options."""

    name: str
    options: Mapping[str, Any]
    make: Callable[..., Instance] | None = None

    @cached_property
    def instance(self) -> Instance:
        made = (self.make or _sites)(self.name, **self.options)
        return TaskArrivals.of(made).known(np.inf)

    def moment(self, share: float) -> float:
        """A time between two arrivals, by which a share of the tasks has arrived."""
        release = np.unique(arrival_times(self.instance))
        at = int(share * len(release))
        return float(np.floor(0.5 * (release[at - 1] + release[at])))

    def changes(self) -> list[str]:
        """The changes that make a difference here."""
        outages = self.instance.stream is not None and len(self.instance.stream.outages.time) > 0
        return [name for name in FUTURES if outages or "outages" not in name]


def larger(instance: Instance, later: np.ndarray) -> Instance:
    """Later jobs are five times larger."""
    return _scaled(instance, later, 5.0)


def smaller(instance: Instance, later: np.ndarray) -> Instance:
    """Later jobs have a fifth of their size."""
    return _scaled(instance, later, 0.2)


def _scaled(instance: Instance, later: np.ndarray, factor: float) -> Instance:
    units = np.where(later, factor * instance.tasks.units, instance.tasks.units)
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


def none_later(instance: Instance, later: np.ndarray) -> Instance:
    """No job comes any more."""
    kept = np.flatnonzero(~later)
    assert len(kept) == kept[-1] + 1, "rows are in order of arrival"
    return TaskArrivals.of(instance).known(float(arrival_times(instance)[kept].max()))


def twice_as_many(instance: Instance, later: np.ndarray) -> Instance:
    """Each later job comes twice: the second time as a row of its own, after all others."""
    again, n = np.flatnonzero(later), instance.num_tasks
    rows = np.concatenate((np.arange(n), again))
    tasks = instance.tasks
    columns = {f.name: getattr(tasks, f.name) for f in fields(Tasks)}
    columns = {name: each for name, each in columns.items() if isinstance(each, np.ndarray)}
    place = np.full(n, -1)
    place[again] = n + np.arange(len(again))
    edges = instance.edges
    copied = later[edges.target]
    twin = place[edges.source[copied]]
    source = np.where(twin < 0, edges.source[copied], twin)
    out = replace(
        instance,
        tasks=Tasks(**{name: column[rows] for name, column in columns.items()}),
        edges=Edges(
            np.concatenate((edges.source, source)),
            np.concatenate((edges.target, place[edges.target[copied]])),
            np.concatenate((edges.data_gb, edges.data_gb[copied])),
        ),
    )
    stream = instance.stream
    if stream is None:
        return out
    more = replace(stream, ingress=stream.ingress[rows], sent_to=stream.sent_to[rows])
    return replace(out, stream=more)


def all_changes(instance: Instance, later: np.ndarray) -> Instance:
    """Later jobs have other sizes, kinds and times."""
    return at_other_times(of_other_kinds(larger(instance, later), later), later)


def no_outages(instance: Instance, later: np.ndarray) -> Instance:
    """No device fails any more without announcement; one that is lost comes back as before."""
    outages, mine = _unannounced(instance, later)
    return _with_outages(instance, outages, outages.time, ~mine)


def later_outages(instance: Instance, later: np.ndarray) -> Instance:
    """What fails later without announcement fails a quarter of an hour later than before."""
    outages, mine = _unannounced(instance, later)
    time = outages.time + np.where(mine, round(0.25 * HOUR_S / instance.tick_s), 0)
    return _with_outages(instance, outages, time, np.ones(len(time), dtype=bool))


def _unannounced(instance: Instance, later: np.ndarray) -> tuple[Outages, np.ndarray]:
    """The outages, whose rows are a failure and its repair in turn; which begin unannounced after
    the first later arrival.
    """
    stream = instance.stream
    assert stream is not None
    outages, moment = stream.outages, float(np.asarray(instance.tasks.release)[later].min())
    begin = outages.time[np.arange(len(outages.time)) // 2 * 2]
    return outages, ~outages.announced & (begin >= moment)


def _with_outages(instance: Instance, o: Outages, time: Any, kept: np.ndarray) -> Instance:
    stream, rows = instance.stream, np.flatnonzero(kept)
    assert stream is not None
    rows = rows[np.argsort(time[rows], kind="stable")]
    outages = Outages(time[rows], o.pool[rows], o.devices[rows], o.announced[rows])
    return replace(instance, stream=replace(stream, outages=outages))


FUTURES: dict[str, Callable[[Instance, np.ndarray], Instance]] = {
    "larger": larger,
    "smaller": smaller,
    "of other kinds": of_other_kinds,
    "at other times": at_other_times,
    "all of it": all_changes,
    "absent": none_later,
    "twice as many": twice_as_many,
    "without outages": no_outages,
    "with later outages": later_outages,
}


def other_future(instance: Instance, moment: float, change: str) -> Instance:
    """The instance with another future after a moment."""
    return FUTURES[change](instance, arrival_times(instance) > moment)


def _sites(
    name: str,
    *,
    open_end: bool = False,
    tariffs: bool = False,
    preemptive: bool = False,
    cap_w: float | None = None,
    due: bool = False,
    outages: bool = False,
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
        outages=_two_outages(built) if outages else None,
        ingress_names=("east", "coast"),
    )
    return made.with_objective(Objective.weighted({"j_per_unit": 1.0})) if open_end else made


def _two_outages(instance: Instance) -> Outages:
    """An early one and a late one that nobody announces, and an announced one between them."""
    hours = np.array([1.0, 1.5, 3.0, 3.4, 4.5, 5.2]) * HOUR_S
    known = [False, False, True, True, False, False]
    return outages_in_seconds(instance, hours, [0, 0, 1, 1, 2, 2], [1, -1] * 3, known)


def _graphs(name: str, *, data: bool = False) -> Instance:
    """Task graphs that arrive whole: a source, two to four tasks behind it, and a sink."""
    rng = np.random.default_rng(21)
    m = Model(name, tick_s=1.0)
    pools = [m.pool(p, 2, idle_w=9.0) for p in "ab"]
    m.link(*pools, bandwidth_gbit_s=8.0, latency_ms=1000.0)
    kinds = [
        m.kind(modes=[
            m.mode({pool: n}, time_s=slow * (1.0 + 0.2 * p) * n**-0.8, energy_j=90.0 - 20.0 * p)
            for p, pool in enumerate(pools) for n in (1, 2)
        ]) for slow in (1.0, 0.4)
    ]  # fmt: skip
    for release in np.sort(rng.integers(0, 3600, 16)).tolist():

        def task(after: Any = (), release: int = release) -> Any:
            units, kind = float(rng.uniform(40.0, 240.0)), kinds[int(rng.random() < 0.3)]
            before = {"data_gb": dict.fromkeys(after, 2.0)} if data else {"after": after}
            return m.task(units=units, kind=kind, release_s=release, **before)

        first = task()
        task([task([first]) for _ in range(int(rng.integers(2, 5)))])
    m.minimize(energy_j=1.0, makespan_s=30.0)
    return m.build()


STREAMS = (
    FutureStream("open week", {"open_end": True}),
    FutureStream("drained hours", {"tariffs": True}),
    FutureStream("with deadlines", {"due": True}),
    FutureStream("under a cap", {"preemptive": True, "cap_w": 900.0}),
    FutureStream("capped without pauses", {"cap_w": 900.0}),
    FutureStream("with outages", {"preemptive": True, "outages": True}),
    FutureStream("task graphs", {}, _graphs),
    FutureStream("graphs with data", {"data": True}, _graphs),
)
