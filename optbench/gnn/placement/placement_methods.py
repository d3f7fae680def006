"""Methods that place the parts of a table on its devices, by name.

    identity          part p on device p modulo the number of devices
    greedy            longest part first, each on the device that ends earliest with communication
    argmin            the same, each on the device of the least immediate increase of the step
    local_search      a rule with noise, then moves and swaps, again until the time is up
    annealing         the tuned rule with noise, then the planner: simulated annealing
    milp              the exact programme with HiGHS, from the placement of the annealing
    agent             the trained agent, then the same planner; policy_gradient: the plain one
    random_weights, permuted_weights        the agent with other weights, as controls

The last five lines leave out devices where that is faster (``fewer_devices``); for the searches by
``search_on_fewer``, within their time. The first three place on all devices, as do single episodes.

``time_left`` gives the seconds that are left; without a limit (infinity) a search makes ``ROUNDS``
rounds, and the exact programme ``MILP_NODES`` nodes of its tree, so that the same seed gives the
same placement. Once ``time_left`` is 0 these end, too, the exact programme after ``most_s``.
"""

from __future__ import annotations

import math

import numpy as np

from optbench.errors import UnknownNameError
from optbench.gnn.placement.fewer_devices import search_on_fewer
from optbench.gnn.placement.placement_board import BoardCosts, costs_of
from optbench.gnn.placement.placement_milp import solve_placement
from optbench.gnn.placement.placement_planner import (
    Planner,
    PlannerSettings,
    Starts,
    TimeLeft,
    descended,
    placement_key,
)
from optbench.gnn.placement.placement_search import (
    TUNED_WEIGHTS,
    bound_order,
    construct,
    work_order,
)
from optbench.gnn.placement.placement_table import PlacementTable
from optbench.rendering import resolve
from optbench.shapes.gnn_training.training_data import Floats, Ints

METHODS = ("identity", "greedy", "argmin", "local_search", "annealing", "milp")
# The room of learning stands above this one.
LEARNED = ("agent", "policy_gradient", "random_weights", "permuted_weights")
PLACE_LEARNED = "optbench.learn.placement.learned_placement:place_learned"
# Of local searches and of the exact programme without a limit of time.
ROUNDS, MILP_NODES = 32, 200
# Of the exact programme with one.
MILP_S = 60.0
# Products of two variables above which the exact programme is not tried.
MOST_PRODUCTS = 200_000
# The share of the time of ``milp`` that its start takes.
START_SHARE = 0.1
EARLIEST_END = (0.0, 1.0, 0.0)
RULES = {"greedy": EARLIEST_END, "argmin": (1.0, 0.0, 0.0)}
# Tuned on the training instances of benchmarks/placement.py, as the weights are.
TUNED_NOISE = 0.03
RULE_PLANNER = PlannerSettings()


def place(
    method: str,
    table: PlacementTable,
    rng: np.random.Generator,
    time_left: TimeLeft,
    most_s: float = math.inf,
) -> Ints:
    """Return the device of every part."""
    if method in LEARNED:
        found: Ints = resolve(PLACE_LEARNED)(method, table, rng, time_left)
        return found
    if method not in METHODS:
        raise UnknownNameError("placement method", method, (*METHODS, *LEARNED))
    if method == "identity":
        return np.arange(table.num_parts, dtype=np.int64) % table.num_devices
    if method in RULES:
        costs = costs_of(table)
        placed: Ints = construct(costs, work_order(costs), np.array(RULES[method]), 0.0, 0)
        return placed
    if method == "milp":
        return exactly_placed(table, rng, time_left, most_s)
    search = searched if method == "local_search" else annealed
    return search_on_fewer(table, lambda some, left: search(some, rng, left), time_left)


def annealed(table: PlacementTable, rng: np.random.Generator, time_left: TimeLeft) -> Ints:
    """Return the placement of the annealing on all devices, from the starts of the tuned rule."""
    costs = costs_of(table)
    return Planner(table, costs, RULE_PLANNER, rng, time_left).run(rule_starts(costs, rng))


def exactly_placed(
    table: PlacementTable,
    rng: np.random.Generator,
    time_left: TimeLeft,
    most_s: float,
) -> Ints:
    """Return the placement of the exact programme, which starts from that of the annealing."""
    budget_s = time_left()
    until = (1 - START_SHARE) * budget_s

    def start_left() -> float:
        return time_left() if math.isinf(budget_s) else time_left() - until

    known = search_on_fewer(table, lambda some, left: annealed(some, rng, left), start_left)
    both = np.triu(table.rows + table.rows.T, 1) > 0
    if int(both.sum()) * table.num_devices**2 > MOST_PRODUCTS or time_left() <= 0:
        return known
    if math.isinf(budget_s):
        return solve_placement(table, known, most_s, MILP_NODES).device
    return solve_placement(table, known, min(MILP_S, most_s, time_left())).device


def rule_starts(costs: BoardCosts, rng: np.random.Generator) -> Starts:
    """Return the starts of the tuned rule: without noise in both orders first, then with it."""
    orders, weights = (work_order(costs), bound_order(costs)), np.array(TUNED_WEIGHTS)

    def starts(number: int) -> list[Ints]:
        if number == 0:
            return [construct(costs, order, weights, 0.0, 0) for order in orders]
        seed = int(rng.integers(1 << 40))
        return [construct(costs, orders[number % 2], weights, TUNED_NOISE, seed)]

    return starts


def searched(table: PlacementTable, rng: np.random.Generator, time_left: TimeLeft) -> Ints:
    """Return the best of many starts by a noisy rule, each improved by moves and swaps."""
    costs = costs_of(table)
    orders = (work_order(costs), bound_order(costs))
    weights: Floats = np.array(EARLIEST_END)
    best = descended(costs, construct(costs, orders[0], weights, 0.0, 0), time_left)
    least = placement_key(table, best)
    for number in range(1, ROUNDS) if math.isinf(time_left()) else iter(lambda: 1, 0):
        if time_left() <= 0:
            break
        seed = int(rng.integers(1 << 40))
        start = construct(costs, orders[number % 2], weights, 0.1, seed)
        found = descended(costs, start, time_left)
        key = placement_key(table, found)
        if key < least:
            best, least = found, key
    return best
