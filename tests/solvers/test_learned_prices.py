"""Planned starts at learned prices: what they promise, and that what was learned matters."""

from __future__ import annotations

import numpy as np
import pytest

import optbench as ob
from optbench.errors import UnsupportedError
from optbench.learn.sites.prices import EXTRA, SIZE, features, plans_from_parameters
from optbench.model.instance import Instance
from optbench.model.verify import verify
from optbench.plugins.discovery import load_problem, load_solver
from optbench.plugins.policy import Policy
from optbench.sim.sites.plans import board_of, plans_of, play_plans
from solvers.learned_prices import learned

DAY = "geo_dc:days=1,shrink=0.25,rate=0.005,drain=yes,minimize=cost,local_hours=yes,sojourn_s=4h"


@pytest.fixture(scope="module")
def day() -> Instance:
    made: Instance = load_problem(DAY).instance(500)
    return made


def cost(instance: Instance, solver: str) -> float:
    player = load_solver(solver)[1]
    assert isinstance(player, Policy)
    schedule = player.play(instance, np.random.default_rng(0)).schedule
    assert schedule is not None
    verdict = verify(instance, schedule)
    assert verdict.violations == ()
    return float(verdict.metrics["cost_usd"])


def test_it_pays_less_than_rules_that_do_not_wait(day: Instance) -> None:
    assert cost(day, "learned_prices") < 0.99 * min(cost(day, "cost_route"), cost(day, "lp_guided"))


def test_random_weights_pay_more(day: Instance) -> None:
    """With the same plans and the same limit, so that it is the network that saves."""
    board = board_of(day)
    theta = np.concatenate((np.random.default_rng(0).normal(size=SIZE), learned()[SIZE:]))
    schedule = play_plans(board, plans_from_parameters(theta, board, *features(board))).schedule
    assert schedule is not None
    made = verify(day, schedule)
    assert made.metrics["cost_usd"] > 1.02 * cost(day, "learned_prices")


def test_what_was_learned_has_the_size_of_the_network() -> None:
    assert learned().shape == (SIZE + EXTRA,)


def test_without_patience_and_prices_each_job_begins_where_its_energy_costs_least(
    day: Instance,
) -> None:
    """The first job meets an empty plant: its mode is the cheapest of those considered, by hand."""
    board = board_of(day)
    free = np.zeros_like(board.rate)
    schedule = play_plans(
        board, plans_of(board, free, mu=0.0, kappa=0.0, patience_h=0.0, room=1.0)
    ).schedule
    assert schedule is not None
    modes = day.modes
    net = modes.energy_per_unit_j - day.mode_rest_w * modes.time_per_unit_s
    rows = board.modes
    price = board.rate[modes.primary[rows], 0] * net[rows]
    assert schedule.mode[np.argmin(schedule.start)] == rows[np.argmin(price)]


def test_it_refuses_what_it_cannot_plan() -> None:
    """Without tariffs there are no cheap hours; an open stream is not its either."""
    with pytest.raises(UnsupportedError, match="tariffs"):
        ob.solve("geo_dc:days=0.1,drain=yes", "learned_prices")
    with pytest.raises(UnsupportedError, match="open_end"):
        ob.solve("geo_dc:days=0.1", "learned_prices")
