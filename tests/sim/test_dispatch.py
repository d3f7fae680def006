"""The dispatcher where devices go and come, and where there are more of them than a plan has to
know.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import optbench as ob
from optbench.sim.kernel.plant import Fault, plant_of
from optbench.sim.rules import list_rule, run_rule


@pytest.mark.parametrize("keys", [(0, 1, 2, 3), (0, 3, 2, 1), (3, 0, 1, 2)])
@pytest.mark.parametrize("lookahead", [False, True])
def test_a_task_announced_twice_is_queued_once(keys: tuple[int, ...], lookahead: bool) -> None:
    """x on a is announced to those behind it on b, stopped by the fault at 5, and runs again from 6
    to 16: then 3 s each.
    """
    m = ob.Model("announced")
    a, b = m.pool("a"), m.pool("b")
    x = m.task("x", modes=[m.mode(a, time_s=10)])
    for k in range(3):
        m.task(
            f"y{k}",
            modes=[m.mode(b, time_s=3), *([m.mode(a, time_s=50)] if lookahead else [])],
            after=x,
        )
    m.minimize(makespan=1.0)
    instance = m.build()
    rule = list_rule(
        instance,
        base=np.array(keys, dtype=float),
        end_weight=1.0,
        patience=1.0,
        lookahead=lookahead,
    )
    trace = run_rule(instance, rule, [Fault(5.0, 0, 1), Fault(6.0, 0, -1)])
    assert trace.schedule is not None
    assert sorted(trace.state.start.tolist()) == [6, 16, 19, 22]
    assert trace.state.start[1 + np.argsort(keys[1:])].tolist() == [16, 19, 22]


def test_plans_look_at_as_many_devices_as_tasks_can_take() -> None:
    """A pool of 10¹³ devices needs no array of that length: three tasks of at most two devices are
    six.
    """
    m = ob.Model("many")
    gpu = m.pool("gpu", count=10**13)
    for _ in range(3):
        m.task(modes=[m.mode(gpu, time_s=4), m.mode({gpu: 2}, time_s=2)])
    m.minimize(makespan=1.0)
    instance = m.build()
    assert plant_of(instance).device_ptr.tolist() == [0, 6]
    trace = run_rule(instance, list_rule(instance, end_weight=1.0, lookahead=True))
    assert trace.state.start.tolist() == [0, 0, 0]
    assert trace.state.end.tolist() == [2, 2, 2]


def test_plans_stay_within_their_pool_where_devices_are_missing() -> None:
    """A mode of four devices on a pool that has two left: never free, whatever stands next to it in
    memory.
    """
    m = ob.Model("missing")
    gpu, cpu = m.pool("gpu", count=4), m.pool("cpu", count=1)
    m.task(modes=[m.mode({gpu: 4}, time_s=1), m.mode(cpu, time_s=9)])
    m.minimize(makespan=1.0)
    instance = m.build()
    left = replace(instance, pools=replace(instance.pools, count=np.array([2, 1])))
    trace = run_rule(left, list_rule(left, end_weight=1.0, lookahead=True))
    assert trace.schedule is not None
    assert trace.schedule.mode.tolist() == [1]
