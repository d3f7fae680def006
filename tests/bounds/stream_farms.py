"""Instances with streams for the tests of their bounds: a farm by hand, one with prices, and random
small ones.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

import optbench as ob
from optbench.bounds.lp.exact_check import certificate, proven_bound, round_down
from optbench.model.instance import Floats, Instance
from optbench.model.objective import Objective
from optbench.model.streams import outages_in_seconds, with_stream

HOUR = 3600.0
POLICIES = ("default_policy", "joint_nf", "ucb1")


def farm(
    units: Any,
    release_s: Any,
    horizon_s: float | None,
    *,
    count: int = 2,
    way_s: float = 0.0,
    **options: Any,
) -> Instance:
    """``count`` devices that sleep at 1 W; a unit takes 10 s and 40 J at the high clock, 20 s and
    50 J at the low one.

    Above sleep that is 30 J in 10 s, or 30 J in 20 s less: 40 − 10 = 30, 50 − 20 = 30; ``cheap``
    makes the low one 45 J.
    """
    m = ob.Model(
        "farm", time="seconds", horizon_s=horizon_s, preemptive=options.pop("preemptive", False)
    )
    site = m.place("site")
    if "price" in options:
        m.tariff(price_usd_per_kwh=options.pop("price"), every_s=HOUR, at=site)
    pool = m.pool("site", count=count, at=site, sleep_w=1.0, sleeps=True)
    fast = m.mode(pool, 10.0, energy_j=40.0, clock=1.0)
    slow = m.mode(pool, 20.0, energy_j=options.pop("slow_j", 45.0), clock=0.5)
    m.tasks(
        np.asarray(units, dtype=float),
        kind=m.kind(modes=[fast, slow]),
        release_s=np.asarray(release_s, dtype=float),
    )
    m.minimize(**{options.pop("minimize", "energy_j"): 1.0})
    built, away = m.build(), options.pop("away", None)
    if away is not None:
        options["outages"] = outages_in_seconds(built, *away)
    made = with_stream(built, latency_s=way_s, opens=None if horizon_s is None else 0, **options)
    return (
        made if horizon_s is None else made.with_objective(Objective.weighted({"j_per_unit": 1.0}))
    )


# Prices of 1 and 0.1 $/kWh in turn, by the hour. A task of 100 units comes at 0, one of 1 unit at
# 3,600 s: one device rests for the whole first hour at least. A unit costs 30 J above rest at the
# high clock, 50 J at the low one.
PRICES = [1.0, 0.1, 1.0, 0.1, 1.0, 1.0]
J_PER_KWH = 3.6e6


def priced(**options: Any) -> Instance:
    return farm(
        [100, 1],
        [0, 3600.0],
        None,
        count=1,
        price=PRICES,
        minimize="cost_usd",
        slow_j=70.0,
        **options,
    )


def small(
    seed: int, *, drained: bool = False, tick_s: float | Literal["auto"] = "auto"
) -> Instance:
    """Up to 20 tasks of up to two kinds, up to three pools and ways in, half of them with
    outages.
    """
    rng = np.random.default_rng([seed, 77])
    fails = bool(rng.random() < 0.5)
    m = ob.Model(
        f"small-{seed}", tick_s=tick_s, preemptive=fails, horizon_s=None if drained else 12.0
    )
    counts = rng.integers(1, 5, rng.integers(1, 4)).tolist()
    pools = [
        m.pool(f"p{k}", count=c, sleep_w=float(rng.integers(0, 3)), sleeps=True)
        for k, c in enumerate(counts)
    ]
    kinds = int(rng.integers(1, 3))
    total = 0
    for _ in range(kinds):
        modes = [
            m.mode(
                {pool: n},
                float(rng.choice([0.25, 0.5, 1.0])),
                energy_j=float(rng.integers(1, 9)),
                clock=clock,
            )
            for pool, c in zip(pools, counts, strict=True)
            for n in range(1, min(3, c) + 1)
            for clock in (0.5, 1.0)
        ]
        n = int(rng.integers(1, 11))
        total += n
        m.tasks(
            rng.integers(1, 9, n) * 1.0,
            kind=m.kind(modes=modes),
            release_s=np.sort(rng.integers(0, 16, n) * 0.5),
        )
    m.minimize(energy_j=1.0)
    built = m.build()
    rows = sorted(
        row
        for p, c in enumerate(counts)
        if fails and rng.random() < 0.7
        for begin, n in [(float(rng.integers(0, 8)), int(rng.integers(1, c + 1)))]
        for row in [(begin, p, n), (begin + float(rng.integers(1, 5)), p, -n)]
    )
    time, pool, gone = np.array(rows, dtype=float).reshape(-1, 3).T
    outages = outages_in_seconds(built, time, pool, gone)
    ways = rng.integers(0, 4, (2, len(pools))) * 0.5
    made = with_stream(
        built,
        ingress=rng.integers(0, 2, total),
        latency_s=ways,
        outages=outages,
        opens=None if drained else 0,
        ingress_names=("north", "south"),
    )
    return made if drained else made.with_objective(Objective.weighted({"j_per_unit": 1.0}))


def waste_could_pay(instance: Instance) -> bool:
    """Whether a mode draws no more than its devices at rest: interrupted work that runs on after
    its end costs nothing then.
    """
    modes = instance.modes
    allowed = (
        instance.preemptive
        and modes.energy_per_unit_j <= instance.mode_rest_w * modes.time_per_unit_s * (1 + 1e-6)
    )
    return bool(np.any(allowed))


def worth(program: Any, dual: Floats) -> float:
    proven = proven_bound(program.lp, certificate(program.lp, dual))
    return -math.inf if proven is None else round_down(proven)
