"""Networks that choose an option, evaluated in compiled code from float32 weights; layers of ReLU,
y = x W + b.

SHARED, one small network for all options, whatever sites there are; o of an option, s of its site,
g of the whole:

    m = mean over sites of relu(s A + g B + a)        z = relu(o U + s V + g W + m M + b)
    score = relu(z X + c) · y + d

FLAT, the encoder of the CHSAC-AF paper on g and all s, with a head for sites and one for numbers of
devices:

    h = relu(relu(relu(x W1 + b1) W2 + b2) W3 + b3)
    score(pool, n) = log softmax(h D + d)_pool + log softmax(h N + e)_n

INPUTS, no network: score = −cost, the cost that the two above are fed (``site_view``); the best
option is taken.

An option is drawn from the softmax of the scores of the legal ones (or the best one is taken).
``theta`` holds the arrays above one after the other, in the order in which the formulas name them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optbench.compiling.compiled import inner, njit
from optbench.model.instance import Floats, Ints
from optbench.sim.kernel.plant import POOLS, TICK_S, Plant, plant_at
from optbench.sim.kernel.sites.sites import (
    Steering,
    open_sites,
    run_until_choice,
    send,
    steering_at,
)
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

SHARED, FLAT, INPUTS = range(3)
# Entries of ``net``.
KIND, HIDDEN, GREEDY = range(3)
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
    plant, state, steering, view = (
        plant_at(plant_row),
        state_at(state_row),
        steering_at(steering_row),
        site_view_at(view_row),
    )
    pools = plant.size[POOLS]
    options = pools * view.shape[WIDEST]
    row, mask = (
        np.zeros(G + pools * S + options * O, dtype=np.float32),
        np.zeros(options, dtype=np.bool_),
    )
    work, score = (
        np.zeros(work_size(pools, view.shape[WIDEST], net), dtype=np.float32),
        np.zeros(options),
    )
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
        since, before, served_s = (
            state.total[NOW],
            waiting(steering, pools),
            view.time[a] * state.remaining[task],
        )
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
def work_size(pools: int, widest: int, net: Ints) -> int:
    return 4 * net[HIDDEN] + pools + widest


@inner()
def choose_option(
    plant: Plant,
    view: SiteView,
    net: Ints,
    theta: Any,
    row: Any,
    mask: Any,
    work: Any,
    score: Floats,
    draw: float,
) -> int:
    """Return the option that the network takes, given a uniform number."""
    pools, widest = plant.size[POOLS], view.shape[WIDEST]
    if net[KIND] == SHARED:
        score_shared(pools, widest, net[HIDDEN], theta, row, mask, work, score)
    elif net[KIND] == INPUTS:
        for a in range(len(score)):
            score[a] = -view.cost[a]
    else:
        score_flat(pools, widest, net[HIDDEN], theta, row, mask, work, score)
    return pick(score, mask, net[GREEDY], draw)


@inner()
def pick(score: Floats, mask: Any, greedy: int, draw: float) -> int:
    """Return the best legal option, or one drawn from the softmax."""
    top, best = -math.inf, 0
    for a in range(len(mask)):
        if mask[a] and score[a] > top:
            top, best = score[a], a
    if greedy:
        return best
    total = 0.0
    for a in range(len(mask)):
        if mask[a]:
            score[a] = math.exp(score[a] - top)
            total += score[a]
    left = draw * total
    for a in range(len(mask)):
        if mask[a]:
            left -= score[a]
            if left <= 0.0:
                return a
    return best


@inner()
def add_layer(theta: Any, at: int, inputs: Any, outputs: Any) -> int:
    """outputs += inputs W, with W at this place of theta; return where W ends."""
    width = len(outputs)
    for i in range(len(inputs)):
        x = inputs[i]
        if x != 0.0:
            weights = theta[at + i * width : at + (i + 1) * width]
            for j in range(width):
                outputs[j] += x * weights[j]
    return at + len(inputs) * width


@inner()
def set_bias(theta: Any, at: int, outputs: Any) -> int:
    bias = theta[at : at + len(outputs)]
    for j in range(len(outputs)):
        outputs[j] = bias[j]
    return at + len(outputs)


@inner()
def rectify(values: Any) -> None:
    for j in range(len(values)):
        values[j] = max(values[j], np.float32(0.0))


@njit(cache=True)
def score_shared(
    pools: int, widest: int, h: int, theta: Any, row: Any, mask: Any, work: Any, score: Floats
) -> None:
    """Compute the module's first formula. Places in theta: A, B, a, U, V, W, M, b, X, c, y, d."""
    a_at, b_at = 0, S * h
    bias_a = b_at + G * h
    u_at = bias_a + h
    v_at = u_at + O * h
    w_at = v_at + S * h
    m_at = w_at + G * h
    bias_b = m_at + h * h
    x_at = bias_b + h
    bias_c = x_at + h * h
    y_at = bias_c + h
    whole, mean, base, hidden, out = (
        row[:G],
        work[:h],
        work[h : 2 * h],
        work[2 * h : 3 * h],
        work[3 * h : 4 * h],
    )
    mean[:] = 0.0
    set_bias(theta, bias_a, base)
    add_layer(theta, b_at, whole, base)
    for pool in range(pools):
        hidden[:] = base
        add_layer(theta, a_at, row[G + pool * S : G + (pool + 1) * S], hidden)
        for j in range(h):
            mean[j] += max(hidden[j], np.float32(0.0)) / np.float32(pools)
    set_bias(theta, bias_b, base)
    add_layer(theta, w_at, whole, base)
    add_layer(theta, m_at, mean, base)
    of_site, last = mean, theta[y_at : y_at + h]
    for pool in range(pools):
        of_site[:] = base
        add_layer(theta, v_at, row[G + pool * S : G + (pool + 1) * S], of_site)
        for n in range(widest):
            a = pool * widest + n
            if not mask[a]:
                continue
            at = G + pools * S + a * O
            hidden[:] = of_site
            add_layer(theta, u_at, row[at : at + O], hidden)
            rectify(hidden)
            set_bias(theta, bias_c, out)
            add_layer(theta, x_at, hidden, out)
            total = theta[y_at + h]
            for j in range(h):
                total += max(out[j], np.float32(0.0)) * last[j]
            score[a] = total


@njit(cache=True)
def score_flat(
    pools: int, widest: int, h: int, theta: Any, row: Any, mask: Any, work: Any, score: Floats
) -> None:
    """Compute the module's second formula. Places in theta: W1, b1, W2, b2, W3, b3, D, d, N, e."""
    x, one, two = row[: G + pools * S], work[:h], work[h : 2 * h]
    sites, counts = work[4 * h : 4 * h + pools], work[4 * h + pools : 4 * h + pools + widest]
    end_1 = len(x) * h
    set_bias(theta, end_1, one)
    add_layer(theta, 0, x, one)
    rectify(one)
    at = end_1 + h
    set_bias(theta, at + h * h, two)
    add_layer(theta, at, one, two)
    rectify(two)
    at += h * h + h
    set_bias(theta, at + h * h, one)
    add_layer(theta, at, two, one)
    rectify(one)
    at += h * h + h
    set_bias(theta, at + h * pools, sites)
    add_layer(theta, at, one, sites)
    at += h * pools + pools
    set_bias(theta, at + h * widest, counts)
    add_layer(theta, at, one, counts)
    # Masks are applied before the softmax of each head: sites with a legal option, numbers of
    # devices legal somewhere.
    site_sum, count_sum = 0.0, 0.0
    for pool in range(pools):
        for n in range(widest):
            if mask[pool * widest + n]:
                site_sum += math.exp(sites[pool])
                break
    for n in range(widest):
        for pool in range(pools):
            if mask[pool * widest + n]:
                count_sum += math.exp(counts[n])
                break
    for a in range(pools * widest):
        score[a] = (
            sites[a // widest] - math.log(site_sum) + counts[a % widest] - math.log(count_sum)
        )


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
        plant, state, steering, view = (
            plant_at(plants[b]),
            state_at(states[b]),
            steering_at(steerings[b]),
            site_view_at(views[b]),
        )
        pools, widest = plant.size[POOLS], view.shape[WIDEST]
        work, score = (
            np.zeros(work_size(pools, widest, net), dtype=np.float32),
            np.zeros(pools * widest),
        )
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
    measured[REGRET_J], measured[NET_J], measured[UNITS] = (
        view.cost[a] - least,
        view.net[a],
        state.remaining[task],
    )
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
