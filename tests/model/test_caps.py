"""The arithmetic of caps: watts at rest and net watts of a mode, by hand and against the verifier's
peak.
"""

from __future__ import annotations

import numpy as np
import pytest

from optbench.model.builder import Model
from optbench.model.caps import Peak, net_power_w, resting_power_w
from optbench.model.instance import Instance
from optbench.model.metrics import peak_power
from optbench.model.schedule import Schedule
from optbench.model.verify import verify


def two_nodes() -> Instance:
    """Node a: 3 devices idling at 10 W; node b: 2 sleeping at 0.1 W; a mode on each, one on both,
    and one on nothing.
    """
    m = Model()
    a, b = m.place("a"), m.place("b")
    here, there = (
        m.pool("here", 3, idle_w=10, at=a),
        m.pool("there", 2, idle_w=5, sleep_w=0.1, sleeps=True, at=b),
    )
    modes = [
        m.mode({here: 2}, 1, power_w=300),
        m.mode(there, 1, power_w=70),
        m.mode({there: 1, here: 3}, 1, power_w=50),
        m.mode(None, 1),
    ]
    m.task(modes=modes)
    m.minimize(makespan_s=1)
    return m.build()


def test_base_and_net_by_hand() -> None:
    # Rest: node a 30 W, node b 0.2 W. Mode 2 draws its 50 W at b and keeps 30 W of rest at a: 30 W
    # less there while it runs.
    instance = two_nodes()
    assert [resting_power_w(instance, place) for place in range(3)] == [30.2, 30.0, 0.2]
    assert net_power_w(instance, 0).tolist() == pytest.approx([280, 69.9, 19.9, 0])
    assert net_power_w(instance, 1).tolist() == [280, 0, -30, 0]
    assert net_power_w(instance, 2).tolist() == pytest.approx([0, 69.9, 49.9, 0])


@pytest.mark.parametrize("place", range(3))
def test_base_and_net_are_what_the_verifier_sees(place: int) -> None:
    instance = two_nodes()
    for mode in range(4):
        schedule = Schedule.of(instance, np.array([mode]), np.array([0]))
        peak = peak_power(instance, schedule, place).watts
        # Devices that draw less than their rest lower the power for a while; the peak is then the
        # rest itself.
        net = max(0.0, float(net_power_w(instance, place)[mode]))
        assert peak == pytest.approx(resting_power_w(instance, place) + net, rel=1e-12)


def test_many_requirements_are_summed_without_loss() -> None:
    # Ten pools that rest at 0.1 W: adding them one by one gives 0.9999999999999999.
    m = Model()
    pools = [m.pool(f"p{i}", idle_w=0.1) for i in range(10)]
    m.task(modes=[m.mode(dict.fromkeys(pools, 1), 1, power_w=5)])
    m.minimize(makespan_s=1)
    instance = m.build()
    assert sum([0.1] * 10) != 1.0
    assert resting_power_w(instance, 0) == 1.0
    assert net_power_w(instance, 0).tolist() == [4.0]


def test_a_sum_of_one_is_rounded_once_too() -> None:
    # In floats, 2^-53 + 1 is 1, and so is 2^-53 + 1 + 2^-53 in any grouping of neighbours. Exactly,
    # it is 1 + 2^-52, and a mode of 1 W draws 2^-52 W less than that.
    m = Model()
    pools = [m.pool(f"p{i}", idle_w=watts) for i, watts in enumerate((2.0**-53, 1.0, 2.0**-53))]
    on_one = m.mode(pools[0], 1, power_w=1)
    m.task(modes=[on_one, m.mode(dict.fromkeys(pools, 1), 1, power_w=1)])
    m.minimize(makespan_s=1)
    assert net_power_w(m.build(), 0).tolist() == [1.0 - 2.0**-53, -(2.0**-52)]


def test_the_least_power_above_the_rest_is_a_peak() -> None:
    m = Model()
    m.task(modes=[m.mode(m.pool("p"), 2, power_w=1)])
    m.minimize(makespan_s=1)
    instance = m.build()
    assert peak_power(instance, Schedule.of(instance, np.array([0]), np.array([5])), 0) == Peak(
        1.0, 5.0
    )


def below_rest() -> Instance:
    """A device that rests at 30 W and works at 20 W for 2 s, under a cap of 25 W."""
    m = Model()
    m.task(modes=[m.mode(m.pool("p", idle_w=30), 2, power_w=20)])
    m.limit(power_w=25)
    m.minimize(makespan_s=1)
    return m.build()


def test_the_peak_is_the_rest_from_time_0_on_where_work_draws_less() -> None:
    # At rest until 5: 30 W are drawn from the beginning on, not first when the work ends at 7.
    instance = below_rest()
    schedule = Schedule.of(instance, np.array([0]), np.array([5]))
    assert peak_power(instance, schedule, 0) == Peak(30.0, 0.0)
    (violation,) = verify(instance, schedule).violations
    assert violation.message == "cluster draws 30 W at 0, the cap is 25 W"


def test_without_segments_the_peak_is_the_rest_from_time_0_on() -> None:
    instance, none = below_rest(), np.zeros(0, dtype=np.int64)
    assert peak_power(instance, Schedule(none, none, none, none), 0) == Peak(30.0, 0.0)


def test_the_peak_is_exact_in_64_bits_and_beyond_them() -> None:
    # Tasks of 1, 2^-30 and 2^40 W run at once from 2 to 3; a common grid of them needs 71 bits.
    m = Model()
    pool = m.pool("p", 3)
    modes = [m.mode(pool, 2, power_w=watts) for watts in (1.0, 2.0**-30, 2.0**40, 2.0)]
    m.tasks(np.ones(3), modes=modes)
    m.minimize(makespan_s=1)
    instance = m.build()
    three = Schedule.of(instance, np.array([0, 1, 2]), np.array([1, 2, 1]))
    # The float nearest to 2^40 + 1 + 2^-30 is 2^40 + 1.
    assert peak_power(instance, three, 0) == Peak(2.0**40 + 1.0, 2.0)
    # Tasks of 1, 2 and 1 W run from 0 to 2, from 2 to 4 and from 3 to 5: 3 W from 3 to 4.
    two = Schedule.of(instance, np.array([0, 3, 0]), np.array([0, 2, 3]))
    assert peak_power(instance, two, 0) == Peak(3.0, 3.0)
