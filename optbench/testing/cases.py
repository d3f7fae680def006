"""Small instances with an optimum derived by hand, one or two features each, to test every
solver.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from optbench.model.builder import Model
from optbench.model.instance import Instance
from optbench.model.measures import Value
from optbench.model.objective import Objective
from optbench.model.streams import outages_in_seconds, with_stream


@dataclass(frozen=True)
class Case:
    """An instance and its optimum; ``optimum`` is None when no schedule exists.

    ``declare`` fills a model made with ``options``; it returns an instance if that is more than
    the model says.
    """

    name: str
    declare: Callable[[Model], Instance | None]
    optimum: Value | None
    options: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def instance(self) -> Instance:
        return self.make()

    def make(self) -> Instance:
        """Make another instance."""
        model = Model(self.name.replace("_", " "), **self.options)
        declared = self.declare(model)
        return model.build() if declared is None else declared


def sequence(m: Model) -> None:
    """One device, 3 s and 2 s of work: 5 in any order."""
    gpu = m.pool("gpu")
    for seconds in (3, 2):
        m.task(modes=[m.mode(gpu, time_s=seconds)])
    m.minimize(makespan=1.0)


def chain(m: Model) -> None:
    """a from 1 to 3 (release 1), then b to 6; c runs beside them from 0 to 4: 6."""
    x, y = m.pool("x"), m.pool("y")
    a = m.task("a", modes=[m.mode(x, time_s=2)], release_s=1)
    m.task("b", modes=[m.mode(x, time_s=3)], after=a)
    m.task("c", modes=[m.mode(y, time_s=4)])
    m.minimize(makespan=1.0)


def two_devices(m: Model) -> None:
    """4 on one device, 3 + 2 on the other: 5; 9 s of work on 2 devices cannot end before 4.5."""
    gpu = m.pool("gpu", count=2)
    for seconds in (4, 3, 2):
        m.task(modes=[m.mode(gpu, time_s=seconds)])
    m.minimize(makespan=1.0)


def two_modes(m: Model) -> None:
    """One task, 2 s for 100 J or 4 s for 60 J."""
    gpu = m.pool("gpu", idle_w=5)
    m.task("work", modes=[m.mode(gpu, time_s=2, energy_j=100), m.mode(gpu, time_s=4, energy_j=60)])


def weighted(m: Model) -> None:
    """Fast: 100 J + 30 · 2 s = 160. Slow: 60 J + 30 · 4 s = 180. The device is never idle before
    the end.
    """
    two_modes(m)
    m.minimize(energy_j=1.0, makespan_s=30.0)


def in_order(m: Model) -> None:
    """First the makespan, 2 s, which only the fast mode reaches: 100 J."""
    two_modes(m)
    m.minimize_in_order("makespan_s", "energy_j")


def energy_budget(m: Model) -> None:
    """At most 80 J: only the slow mode is left, 4 s."""
    two_modes(m)
    m.limit(energy_j=80)
    m.minimize(makespan=1.0)


def deadline(m: Model) -> None:
    """Done by 3: only the fast mode is left, 100 J."""
    gpu = m.pool("gpu")
    m.task(
        modes=[m.mode(gpu, time_s=2, energy_j=100), m.mode(gpu, time_s=4, energy_j=60)],
        deadline_s=3,
    )
    m.minimize(energy_j=1.0)


def several_pools(m: Model) -> None:
    """a holds x and y for 2, b then needs x for 2 and c needs y for 3: y is busy for 5."""
    x, y = m.pool("x"), m.pool("y")
    m.task("a", modes=[m.mode({x: 1, y: 1}, time_s=2)])
    m.task("b", modes=[m.mode(x, time_s=2)])
    m.task("c", modes=[m.mode(y, time_s=3)])
    m.minimize(makespan=1.0)


def transfer(m: Model) -> None:
    """The consumer stays for 2 + 5 = 7, or goes after 1 s of latency and 1 GB at 8 Gbit/s: 2 + 2 +
    1 = 5.
    """
    x, y = m.pool("x"), m.pool("y")
    m.link(x, y, bandwidth_gbit_s=8, latency_ms=1000)
    producer = m.task("producer", modes=[m.mode(x, time_s=2)])
    m.task("consumer", modes=[m.mode(x, time_s=5), m.mode(y, time_s=1)], data_gb={producer: 1.0})
    m.minimize(makespan=1.0)


def flow_time(m: Model) -> None:
    """Shortest first: 1 + (1 + 3) = 5."""
    gpu = m.pool("gpu")
    for seconds in (3, 1):
        m.task(modes=[m.mode(gpu, time_s=seconds)])
    m.minimize(flow_time_s=1.0)


def power_cap(m: Model) -> None:
    """Two tasks of 100 W under a cap of 150 W, an idle device draws 10 W: one after the other, 2 +
    2 = 4.
    """
    for name in ("x", "y"):
        m.task(modes=[m.mode(m.pool(name, idle_w=10), time_s=2, energy_j=200)])
    m.limit(power_w=150)
    m.minimize(makespan=1.0)


def cooled_place(m: Model) -> None:
    """Alone the place settles within ms at 20 + 0.4 · 100 = 60 °C, together at 100: 3 + 3 s."""
    gpu = m.pool("gpu", count=2)
    for _ in range(2):
        m.task(modes=[m.mode(gpu, time_s=3, energy_j=300)])
    m.cool(ambient_c=20.0, c_per_w=0.4, time_constant_s=0.001, limit_c=80.0)
    m.minimize(makespan=1.0)


def busy_link(m: Model) -> None:
    """A GB takes 1 s, from time 1 on thrice as long: 2 s, 3 s on the way, 1 s."""
    a, b = m.pool("a"), m.pool("b")
    m.link(a, b, bandwidth_gbit_s=8.0)
    first = m.task(modes=[m.mode(a, time_s=2)])
    m.task(modes=[m.mode(b, time_s=1)], data_gb={first: 1.0})
    m.congestion([0, 1], {b: [1.0, 3.0]})
    m.minimize(makespan=1.0)


def cheap_hour(m: Model) -> None:
    """1 kWh in one hour: 0.30 in the first hour, 0.10 in the second."""
    m.task(modes=[m.mode(m.pool("gpu"), time_s=3600, energy_j=3.6e6)])
    m.tariff(price_usd_per_kwh=[0.3, 0.1], every_s=3600)
    m.minimize(cost_usd=1.0)


def fixed_horizon(m: Model) -> None:
    """100 J in 4 s, then 5 W idle for the other 6 s: 130 J."""
    m.task(modes=[m.mode(m.pool("gpu", idle_w=5), time_s=4, energy_j=100)])
    m.minimize(energy_j=1.0)


def in_seconds(m: Model) -> None:
    """1.5 + 2.25 = 3.75 in continuous time."""
    gpu = m.pool("gpu")
    for seconds in (1.5, 2.25):
        m.task(modes=[m.mode(gpu, time_s=seconds)])
    m.minimize(makespan_s=1.0)


def interrupted(m: Model) -> None:
    """a runs 0–1 and 2–5, b arrives at 1 and runs 1–2: flow 5 + 1 = 6; uninterrupted it is 7 (b
    first) or 8.
    """
    gpu = m.pool("gpu")
    m.task("a", modes=[m.mode(gpu, time_s=4)])
    m.task("b", modes=[m.mode(gpu, time_s=1)], release_s=1)
    m.minimize(flow_time_s=1.0)


def unsaved(m: Model) -> None:
    """b arrives at 1; what a has done until then is lost if b interrupts it. b first, 1–2, and a
    2–6: flow 1 + 6; a first it is 4 + 4.
    """
    gpu = m.pool("gpu")
    m.task("a", modes=[m.mode(gpu, time_s=4)], checkpoint_s=math.inf)
    m.task("b", modes=[m.mode(gpu, time_s=1)], release_s=1)
    m.minimize(flow_time_s=1.0)


def sleeping(m: Model) -> None:
    """Work for 20 s, 2,000 J; 30 s are left, in one piece or awake: asleep for 27 s at 10 W, 3 s at
    50 W and 100 J to wake.
    """
    gpu = m.pool("gpu", idle_w=50, sleep_w=10, sleeps=True, wake_s=3, wake_j=100)
    for release_s in (0, 40):
        m.task(modes=[m.mode(gpu, time_s=10, energy_j=1000)], release_s=release_s)
    m.minimize(energy_j=1.0)


def ingress_latency(m: Model) -> Instance:
    """Pool x has a latency of 1 s and takes 4 s, y has 3 s and takes 1 s: 3 + 1 = 4."""
    x, y = m.pool("x"), m.pool("y")
    m.task(modes=[m.mode(x, time_s=4), m.mode(y, time_s=1)])
    m.minimize(makespan=1.0)
    return with_stream(m.build(), latency_s=[[1.0, 3.0]], ingress_names=("door",))


def device_outage(m: Model) -> Instance:
    """Of 4 s of work, 1 s is done before the device fails from 1 to 3: 0–1 and 3–6."""
    m.task(modes=[m.mode(m.pool("gpu"), time_s=4)])
    m.minimize(makespan_s=1.0)
    built = m.build()
    return with_stream(built, outages=outages_in_seconds(built, [1.0, 3.0], 0, [1, -1]))


def open_horizon(m: Model) -> Instance:
    """Two tasks of 3 units, each 10 J and 1 s, and 4 idle seconds at 5 W: (60 + 20) / 6 J per unit.

    One task alone leaves 7 idle seconds for 3 units, (30 + 35) / 3; a part of a task is worse than
    the whole task.
    """
    gpu = m.pool("gpu", idle_w=5)
    m.tasks([3.0, 3.0], kind=m.kind(modes=[m.mode(gpu, time_s=1, energy_j=10)]))
    m.minimize(energy_j=1.0)
    return with_stream(m.build(), opens=0).with_objective(Objective.weighted({"j_per_unit": 1.0}))


def too_tight(m: Model) -> None:
    """Either task alone is done by 3, but not both: 2 + 2 > 3."""
    gpu = m.pool("gpu")
    for _ in range(2):
        m.task(modes=[m.mode(gpu, time_s=2)], deadline_s=3)
    m.minimize(makespan=1.0)


def crowd(tasks: int) -> Model:
    """Tasks on three pools, many of them equal: twelve have ties, eighty take longer than a
    limit.
    """
    m = Model("crowd")
    pools = [m.pool(name, count=2) for name in ("x", "y", "z")]
    for i in range(tasks):
        m.task(
            modes=[m.mode(pool, time_s=3 + (7 * i + 5 * k) % 11) for k, pool in enumerate(pools)]
        )
    m.minimize(makespan=1.0)
    return m


CASES = (
    Case("sequence", sequence, 5.0),
    Case("chain", chain, 6.0),
    Case("two_devices", two_devices, 5.0),
    Case("weighted", weighted, 160.0),
    Case("in_order", in_order, (2.0, 100.0)),
    Case("energy_budget", energy_budget, 4.0),
    Case("deadline", deadline, 100.0),
    Case("several_pools", several_pools, 5.0),
    Case("transfer", transfer, 5.0),
    Case("flow_time", flow_time, 5.0),
    Case("power_cap", power_cap, 4.0),
    Case("cooled_place", cooled_place, 6.0),
    Case("busy_link", busy_link, 6.0),
    Case("cheap_hour", cheap_hour, 0.1, {"tick_s": 3600.0}),
    Case("fixed_horizon", fixed_horizon, 130.0, {"horizon_s": 10}),
    Case("in_seconds", in_seconds, 3.75, {"time": "seconds"}),
    Case("interrupted", interrupted, 6.0, {"time": "seconds", "preemptive": True}),
    Case("unsaved", unsaved, 7.0, {"time": "seconds", "preemptive": True}),
    Case("sleeping", sleeping, 2520.0),
    Case("ingress_latency", ingress_latency, 4.0),
    Case("device_outage", device_outage, 6.0, {"time": "seconds", "preemptive": True}),
    Case("open_horizon", open_horizon, 80.0 / 6.0, {"time": "seconds", "horizon_s": 10}),
)
INFEASIBLE = Case("too_tight", too_tight, None)
