"""Modes that another one stands in for: which they are by hand, and that the verifier never minds
the exchange.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.model.dominance import dominating_rows
from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.model.verify import verify
from tests.reference.brute_force import brute_force
from tests.reference.random_instances import tiny_instance

# Rows: 0 and 1 the same, 2 slower and dearer, 3 slower and cheaper, 4 two devices for what 0 does
# with one.
ROWS = ((1, 10.0, 500.0), (1, 10.0, 500.0), (1, 12.0, 600.0), (1, 12.0, 400.0), (2, 10.0, 500.0))


def one_task(
    rows: tuple[tuple[int, float, float], ...] = ROWS, idle_w: float = 0.0, **limits: Any
) -> Instance:
    m = ob.Model("modes", horizon_s=100)
    pool = m.pool("gpu", count=2, idle_w=idle_w)
    m.task("a", modes=[m.mode({pool: n}, time_s, energy_j) for n, time_s, energy_j in rows])
    m.minimize(**limits.pop("minimize", {"energy_j": 1.0}))
    if limits:
        m.limit(**limits)
    return m.build()


def test_by_hand() -> None:
    assert dominating_rows(one_task()).tolist() == [0, 0, 0, 3, 0]


def test_time_alone_needs_no_energy() -> None:
    # With the makespan alone the cheap slow mode is dominated too; with a limit on energy it is
    # not.
    assert dominating_rows(one_task(minimize={"makespan_s": 1.0})).tolist() == [0] * 5
    assert dominating_rows(one_task(minimize={"makespan_s": 1.0}, energy_j=450.0))[3] == 3


def test_energy_counts_net_of_the_rest_that_is_spared() -> None:
    # Two devices for 10 s at 500 J keep 20 device-seconds of 30 W from resting: net -100 J. One
    # device: net 200 J. The slow dear row: 600 - 12 * 30 = 240 J; the slow cheap one: 400 - 360 =
    # 40 J.
    assert dominating_rows(one_task(idle_w=30.0)).tolist() == [0, 0, 0, 3, 4]


def test_a_power_cap_sees_what_a_mode_adds() -> None:
    m = ob.Model("capped", horizon_s=100)
    pool = m.pool("gpu", count=2, idle_w=20)
    rows = ((10, 500, 80), (12, 700, 70), (14, 700, 10))
    m.task(
        "a",
        modes=[
            m.mode(pool, time_s, energy_j, power_w=power_w) for time_s, energy_j, power_w in rows
        ],
    )
    m.limit(power_w=200)
    m.minimize(energy_j=1.0)
    # The second draws less under the cap, the third even less than a resting device: neither may
    # go.
    assert dominating_rows(m.build()).tolist() == [0, 1, 2]


def test_a_pool_of_its_own_is_kept_for_its_links() -> None:
    m = ob.Model("two pools", horizon_s=100)
    a, b = m.pool("a"), m.pool("b")
    m.task("t", modes=[m.mode(a, 10, 500), m.mode(b, 20, 900)])
    m.minimize(energy_j=1.0)
    assert dominating_rows(m.build()).tolist() == [0, 1]


def test_prices_may_make_an_earlier_end_dearer() -> None:
    m = ob.Model("prices", horizon_s=100)
    pool = m.pool("gpu", idle_w=10)
    m.task("a", modes=[m.mode(pool, 10, 500), m.mode(pool, 20, 500)])
    m.tariff(price_usd_per_kwh=[0.1, 0.3], every_s=10)
    m.minimize(cost_usd=1.0)
    assert dominating_rows(m.build()).tolist() == [0, 1]


@pytest.mark.parametrize("seed", range(120))
def test_the_verifier_never_minds_the_exchange(seed: int) -> None:
    instance = tiny_instance(seed)
    best, stand_in = brute_force(instance), dominating_rows(instance)
    if best is None:
        return
    pairs = instance.pairs
    # The optimal starts with the optimal mode, and then with every mode that the optimal one stands
    # in for.
    for task in range(instance.num_tasks):
        for row in range(int(pairs.ptr[task]), int(pairs.ptr[task + 1])):
            mode = np.asarray(best.mode).copy()
            mode[task] = pairs.mode[row]
            before = verify(instance, Schedule.of(instance, mode, best.start))
            mode[task] = pairs.mode[stand_in[row]]
            after = verify(instance, Schedule.of(instance, mode, best.start))
            if before.feasible:
                assert after.feasible
                assert after.objectives[0] <= before.objectives[0] + 1e-9 * abs(
                    before.objectives[0]
                )


def test_the_random_instances_do_have_such_modes() -> None:
    rows = [dominating_rows(tiny_instance(seed)) for seed in range(120)]
    assert sum(bool((found != np.arange(len(found))).any()) for found in rows) >= 20
