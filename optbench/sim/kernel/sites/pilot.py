"""Runs in which a network routes: week after week, or many environments in lockstep for training.

``network_scores`` evaluates the network.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optbench.compiling.compiled import inner, njit
from optbench.model.instance import Floats, Ints
from optbench.sim.kernel.plant import POOLS, TICK_S, Plant, plant_at
from optbench.sim.kernel.sites.network_scores import choose_option, work_size
from optbench.sim.kernel.sites.sites import open_sites, run_until_choice, send
from optbench.sim.kernel.sites.steering import Steering, steering_at
from optbench.sim.kernel.sites.view import (
    PRICE_W,
    WIDEST,
    G,
    O,
    S,
    SiteView,
    observe_sites,
    site_view_at,
)
from optbench.sim.kernel.state import NONE, NOW, State, state_at

# Columns of ``measured``: cost and effects of an option when it was chosen. PASSED and WAITED are
# over the time until the next decision: seconds, and seconds times waiting jobs.
REGRET_J, NET_J, ENERGY_J, UNITS, DEVICES, SERVICE_S, PASSED_S, WAITED_S, LONGEST, PRICE, OVER = (
    range(11)
)
NUM_MEASURED = 11
# Entries of ``dual``: the budget in seconds (inf: none), the step of log price per relative error,
# the range of the price.
BUDGET_S, GAIN, LEAST_W, MOST_W = range(4)
# A lower limit would clip long jobs more often than short ones, and the mean would settle above the
# budget.
MOST_ERROR = 10.0


@njit(cache=True)
def run_pilot(
    plant_row: Ints,
    state_row: Ints,
    steering_row: Ints,
    view_row: Ints,
    net: Ints,
    theta: Any,
    draws: Floats,
    dual: Floats,
    until: float,
) -> int:
    """Simulate from time 0 to the last event or up to ``until``; return the number of decisions.

    The price of latency follows the budget: after each decision its logarithm moves by the gain
    times the relative error of service and waiting since the one before. It therefore does not
    depend on the load for which the price was found.
    """
    plant, state, steering = plant_at(plant_row), state_at(state_row), steering_at(steering_row)
    view = site_view_at(view_row)
    pools = plant.size[POOLS]
    options = pools * view.shape[WIDEST]
    row = np.zeros(G + pools * S + options * O, dtype=np.float32)
    mask = np.zeros(options, dtype=np.bool_)
    work = np.zeros(work_size(pools, view.shape[WIDEST], net), dtype=np.float32)
    score = np.zeros(options)
    open_sites(plant, state, steering)
    asked, since, before, served_s = 0, 0.0, 0, 0.0
    while True:
        task = run_until_choice(plant, state, steering, until)
        if task == NONE:
            return asked
        if asked > 0 and dual[BUDGET_S] < math.inf:
            queued = waiting(steering, pools)
            latency_s = (
                served_s
                + 0.5 * (before + queued) * (state.total[NOW] - since) * plant.scalar[TICK_S]
            )
            update_price(view, dual, latency_s)
        observe_sites(plant, state, steering, view, task, row, mask)
        a = choose_option(
            plant, view, net, theta, row, mask, work, score, draws[asked % len(draws)]
        )
        asked += 1
        since, before = state.total[NOW], waiting(steering, pools)
        served_s = view.time[a] * state.remaining[task]
        send(
            plant,
            state,
            steering,
            task,
            a // view.shape[WIDEST],
            a % view.shape[WIDEST] + 1,
            view.clock[a],
        )


@inner()
def update_price(view: SiteView, dual: Floats, latency_s: float) -> None:
    """Take one step of the signed dual on the logarithm of the price; one job moves it by a few
    gains at most.
    """
    error = max(-1.0, min(MOST_ERROR, (latency_s - dual[BUDGET_S]) / dual[BUDGET_S]))
    price_w = view.scale[PRICE_W] * math.exp(dual[GAIN] * error)
    view.scale[PRICE_W] = min(max(price_w, dual[LEAST_W]), dual[MOST_W])


@njit(cache=True)
def open_fleet(plants: Ints, states: Ints, steerings: Ints, chosen: Ints) -> None:
    """Begin the chosen environments at time 0."""
    for b in chosen:
        open_sites(plant_at(plants[b]), state_at(states[b]), steering_at(steerings[b]))


@njit(cache=True)
def roll(
    plants: Ints,
    states: Ints,
    steerings: Ints,
    views: Ints,
    net: Ints,
    theta: Any,
    draws: Floats,
    until: Floats,
    asked: Ints,
    rows: Any,
    masks: Any,
    actions: Ints,
    measured: Floats,
) -> None:
    """Run many environments in lockstep: each takes as many decisions as ``draws`` has columns and
    restarts at its end.

    ``asked`` is the job that each one decides about (NONE: it has to be opened). ``rows`` and
    ``masks`` have one more step than ``actions``: the inputs after the last one.
    """
    envs, steps = draws.shape
    for b in range(envs):
        plant, state, steering = plant_at(plants[b]), state_at(states[b]), steering_at(steerings[b])
        view = site_view_at(views[b])
        pools, widest = plant.size[POOLS], view.shape[WIDEST]
        work = np.zeros(work_size(pools, widest, net), dtype=np.float32)
        score = np.zeros(pools * widest)
        if asked[b] == NONE:
            open_sites(plant, state, steering)
            asked[b] = run_until_choice(plant, state, steering, until[b])
        observe_sites(plant, state, steering, view, asked[b], rows[b, 0], masks[b, 0])
        for t in range(steps):
            a = choose_option(
                plant, view, net, theta, rows[b, t], masks[b, t], work, score, draws[b, t]
            )
            actions[b, t] = a
            take_step(plant, state, steering, view, asked, b, a, until[b], measured[b, t])
            observe_sites(plant, state, steering, view, asked[b], rows[b, t + 1], masks[b, t + 1])


@inner()
def take_step(
    plant: Plant,
    state: State,
    steering: Steering,
    view: SiteView,
    asked: Ints,
    b: int,
    a: int,
    until: float,
    measured: Floats,
) -> None:
    """Send the job of environment b to an option and advance to its next decision."""
    task, since, pools, widest = asked[b], state.total[NOW], plant.size[POOLS], view.shape[WIDEST]
    least = math.inf
    for other in range(pools * widest):
        least = min(least, view.cost[other])
    measured[REGRET_J], measured[NET_J] = view.cost[a] - least, view.net[a]
    measured[UNITS] = state.remaining[task]
    measured[DEVICES], measured[SERVICE_S] = a % widest + 1, view.time[a] * state.remaining[task]
    mode = steering.mode_at[
        ((plant.kind[task] * pools + a // widest) * widest + a % widest) * view.shape[1]
        + view.clock[a]
    ]
    measured[ENERGY_J], measured[PRICE] = plant.energy_j[mode], view.scale[0]
    send(plant, state, steering, task, a // widest, a % widest + 1, view.clock[a])
    before = waiting(steering, pools)
    asked[b] = run_until_choice(plant, state, steering, until)
    measured[OVER] = 0.0
    measured[PASSED_S] = (state.total[NOW] - since) * plant.scalar[TICK_S]
    # Waiting jobs are counted at both ends of the interval, which is a few seconds long, while a
    # wait takes thousands.
    measured[WAITED_S] = 0.5 * (before + waiting(steering, pools)) * measured[PASSED_S]
    measured[LONGEST] = longest(steering, pools)
    if asked[b] == NONE:
        measured[OVER] = 1.0
        open_sites(plant, state, steering)
        asked[b] = run_until_choice(plant, state, steering, until)


@njit(cache=True)
def waiting(steering: Steering, pools: int) -> int:
    total = 0
    for pool in range(pools):
        total += steering.waiting[pool]
    return total


@njit(cache=True)
def longest(steering: Steering, pools: int) -> int:
    most = 0
    for pool in range(pools):
        most = max(most, steering.waiting[pool])
    return most
