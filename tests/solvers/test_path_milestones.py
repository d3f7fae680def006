"""path_milestones: due dates, keys, prices and the load, by hand."""

from __future__ import annotations

import numpy as np
import pytest

import optbench as ob
from optbench.model.instance import Instance
from optbench.plugins.solvers.path_milestones import PathMilestones, load_and_speeds


def three_tasks() -> Instance:
    """a, of one unit, before b, of two; c, of one. A unit takes 2 s on a device of either fast pool
    and 4 s on the slow one; a second of the makespan costs 10, rest nothing.
    """
    m = ob.Model("three tasks", tick_s=1.0)
    fast, slow = [m.pool(f"fast {k}") for k in range(2)], m.pool("slow")
    kind = m.kind(modes=[*(m.mode(pool, 2, 50.0) for pool in fast), m.mode(slow, 4, 20.0)])
    a = m.task("a", units=1.0, kind=kind)
    m.task("b", units=2.0, kind=kind, after=a)
    m.task("c", units=1.0, kind=kind)
    m.minimize(energy_j=1.0, makespan_s=10.0)
    return m.build()


def test_the_load_is_that_of_all_devices_at_work() -> None:
    """Two devices do a unit in 2 ticks and one in 4: 1.25 units per tick, 4 units in 3.2 ticks. The
    slow pool has half the speed.
    """
    load, speed = load_and_speeds(three_tasks())
    assert load == pytest.approx(3.2)
    assert speed.tolist() == [1.0, 1.0, 0.5]


def test_due_dates_keys_and_prices() -> None:
    """The critical path of 6 exceeds the load; C = 1.5 · 6 = 9. Earliest ends are 2, 6, 2; latest
    ones 9 − 4, 9, 9, so that slacks are 3, 3, 7. Due dates are half of that later, keys those of
    the latest ends less the durations 2, 4, 2.

    Two fast devices of speed 1 and a slow one of 0.5 have 2.5 together: half of the 10 is divided
    by speed, half evenly, 10 · (0.5 / 2.5 + 0.5 / 3) and 10 · (0.25 / 2.5 + 0.5 / 3).
    """
    policy = PathMilestones(stretch=1.5, share=0.5, order=1.0, late=0.2, price=1.0, by_speed=0.5)
    rule = policy.rule(three_tasks(), np.random.default_rng(0))
    assert rule.due.tolist() == [3.5, 7.5, 5.5]
    assert rule.base.tolist() == [3.0, 5.0, 7.0]
    assert rule.late_price.tolist() == [2.0, 2.0, 2.0]
    assert rule.pool_cost == pytest.approx([11 / 3, 11 / 3, 8 / 3])


def test_with_a_load_above_the_critical_path_the_load_is_stretched() -> None:
    """Alone on one device, three units of 2 s take 6 ticks; each could end at 2."""
    m = ob.Model("three alike", tick_s=1.0)
    pool = m.pool("p")
    for _ in range(3):
        m.task(units=1.0, modes=[m.mode(pool, 2, 1.0)])
    m.minimize(energy_j=1.0, makespan_s=1.0)
    rule = PathMilestones(stretch=2.0, share=1.0).rule(m.build(), np.random.default_rng(0))
    assert rule.due.tolist() == [12.0, 12.0, 12.0]


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("share", 1.5, "from 0 to 1"),
        ("order", -0.1, "from 0 to 1"),
        ("late", float("inf"), "at least 0 and finite"),
        ("depth", 0, "at least 1"),
    ],
)
def test_parameters_out_of_range_are_named(name: str, value: float, allowed: str) -> None:
    with pytest.raises(ob.ParameterError, match=f"path_milestones: {name} is .*{allowed}"):
        PathMilestones(**{name: value})
