"""Policies that carry names of the CHSAC-AF paper's simulator, on cases derived by hand from what
its code does.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import optbench as ob
from optbench.errors import ParameterError
from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.model.streams import with_stream
from optbench.plugins.discovery import load_problem, load_solver
from optbench.plugins.policy import Policy

# Those of the authors' code, and the learned router built after it.
WITH_PRIORITY = ("default_policy", "ucb1", "joint_nf", "carbon_cost", "eco_route", "chsac_af")


def played(instance: Instance, solver: str, **params: str) -> Schedule:
    policy = load_solver(solver, params)[1]
    assert isinstance(policy, Policy)
    schedule = policy.play(instance, np.random.default_rng(0)).schedule
    assert schedule is not None
    return schedule


def starts(schedule: Schedule) -> list[float]:
    return [float(each) for each in schedule.start[np.argsort(schedule.task)]]


def one_device() -> Instance:
    """A job runs from 0 to 10; training that came at 1 and inference that came at 2 wait for its
    device.
    """
    m = ob.Model("one device", tick_s=1.0)
    gpu = m.pool("gpu")
    training, inference = (
        m.kind(modes=[m.mode(gpu, time_s=seconds, energy_j=9.0)]) for seconds in (1.0, 0.5)
    )
    m.tasks([10.0, 10.0], kind=training, release_s=[0.0, 1.0])
    m.tasks([10.0], kind=inference, release_s=[2.0])
    m.minimize(energy_j=1.0)
    built = m.build()
    named = replace(built, modes=replace(built.modes, kind_names=("training", "inference")))
    return with_stream(named)


@pytest.mark.parametrize("solver", WITH_PRIORITY)
def test_inference_is_served_first_unless_that_is_switched_off(solver: str) -> None:
    """First: inference 10 to 15, training from 15. Without: training 10 to 20, inference
    from 20.
    """
    assert starts(played(one_device(), solver)) == [0.0, 15.0, 10.0]
    assert starts(played(one_device(), solver, inf_priority="no")) == [0.0, 10.0, 20.0]


def two_sites(prices: bool = False) -> Instance:
    """Two jobs at 0 and one at 1, 10 s each. Thrifty: one device, 5 W. Wasteful: two devices, 8 W
    each, cheaper by the hour.
    """
    m = ob.Model("two sites", tick_s=1.0)
    here, there = m.place("here"), m.place("there")
    if prices:
        for place, price in ((here, 0.4), (there, 0.2)):
            m.tariff(
                price_usd_per_kwh=[price, price],
                carbon_g_per_kwh=[100.0, 500.0],
                every_s=3600.0,
                at=place,
            )
    thrifty, wasteful = m.pool("thrifty", at=here), m.pool("wasteful", count=2, at=there)
    kind = m.kind(
        modes=[
            m.mode(thrifty, time_s=1.0, energy_j=5.0),
            m.mode(wasteful, time_s=1.0, energy_j=8.0),
        ]
    )
    m.tasks([10.0, 10.0, 10.0], kind=kind, release_s=[0.0, 0.0, 1.0])
    m.minimize(energy_j=1.0)
    return with_stream(m.build())


def test_eco_route_sends_all_to_the_thriftiest_site_however_full_it_is() -> None:
    schedule = played(two_sites(), "eco_route")
    assert schedule.mode.tolist() == [0, 0, 0] and sorted(schedule.start.tolist()) == [
        0.0,
        10.0,
        20.0,
    ]


def test_eco_route_by_cost_and_by_carbon() -> None:
    """5 J at 0.4 are dearer than 8 J at 0.2; with the same carbon in both places the thrifty one is
    cleaner.
    """
    assert set(played(two_sites(prices=True), "eco_route", objective="cost").mode.tolist()) == {1}
    assert set(played(two_sites(prices=True), "eco_route", objective="carbon").mode.tolist()) == {0}
    policy = load_solver("eco_route:objective=cost")[1]
    assert "needs tariffs" in str(policy.refuse(two_sites()))
    with pytest.raises(ParameterError, match="objective is 'time'"):
        load_solver("eco_route:objective=time")


def test_carbon_cost_is_joint_nf_because_a_price_is_one_factor_for_all_modes_of_a_site() -> None:
    instance = load_problem(
        "geo_dc:days=0.05,shrink=0.2,inference=0.05,drain=yes,minimize=cost,local_hours=yes"
    ).instance(500)
    mine, theirs = played(instance, "carbon_cost"), played(instance, "joint_nf")
    for column in ("task", "mode", "start", "end"):
        assert np.array_equal(getattr(mine, column), getattr(theirs, column))


def test_inference_takes_the_top_clock_in_the_default_policy() -> None:
    instance = load_problem("geo_dc:days=0.02,shrink=0.2,inference=0.1").instance(500)
    schedule = played(instance, "default_policy")
    inference = instance.tasks.kind[schedule.task] == 1
    clock = instance.modes.clock[schedule.mode]
    assert inference.any() and (clock[inference] == 1.0).all() and (clock[~inference] < 1.0).any()


def test_what_does_something_else_has_another_name() -> None:
    """The capped policies keep a cap at every moment, the routers mind what is free: neither is in
    the authors' code.
    """
    for name in ("cap_uniform", "cap_greedy"):
        with pytest.raises(ob.OptbenchError, match=name):
            load_solver(name)
    for name in ("cost_route", "carbon_route", "cap_by_site", "cap_by_job"):
        assert isinstance(load_solver(name)[1], Policy)
