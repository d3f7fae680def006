"""A schedule's columns in the fluid LP, written down by hand."""

from __future__ import annotations

import pytest

import optbench as ob
from optbench.bounds.fluid.fluid_point import point_of
from optbench.bounds.fluid.fluid_program import fluid_model
from optbench.model.schedule import Schedule


def test_starts_ends_and_lateness_of_three_tasks() -> None:
    m = ob.Model("three")
    gpu = m.pool("gpu")
    for deadline_s, hard in ((3, False), (9, True), (None, False)):
        m.task(modes=[m.mode(gpu, time_s=5)], deadline_s=deadline_s, hard=hard)
    m.minimize(tardiness_s=1.0)
    instance = m.build()
    fluid = fluid_model(instance)
    of = fluid.groups.group
    # One after the other: [0, 5), [5, 10), [10, 15). The soft deadline is missed by 2; missing
    # the hard one, by 1, is no lateness.
    point = point_of(fluid, Schedule.of(instance, [0, 0, 0], [0, 5, 10]))
    assert point[fluid.start][of].tolist() == [0, 5, 10]
    assert point[fluid.late][of].tolist() == [2, 0, 0]
    assert point[fluid.share].tolist() == [1, 1, 1]
    assert point[fluid.makespan] == 15


def test_time_by_tariff_period_and_rest() -> None:
    # A task of three hours from 0:30 on: half an hour, an hour, an hour, and half an hour.
    m = ob.Model("priced", tick_s=1800, horizon_s=4 * 3600)
    gpu = m.pool("gpu", count=2, idle_w=500)
    m.task(modes=[m.mode(gpu, time_s=3 * 3600, energy_j=1e6)])
    m.tariff(price_usd_per_kwh=(0.1, 0.2, 0.3, 0.4))
    m.minimize(cost_usd=1.0)
    instance = m.build()
    fluid = fluid_model(instance)
    point = point_of(fluid, Schedule.of(instance, [0], [1]))
    assert point[fluid.slot].tolist() == [1, 2, 2, 1]
    # Two devices of 500 W over four hours: 3.6e6 J in each, times 0.1 + 0.2 + 0.3 + 0.4.
    assert point[fluid.rest["cost_usd"]] == pytest.approx(3.6e6)
