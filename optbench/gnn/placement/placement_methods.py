"""Methods that place the parts of a table on its devices, by name.

    identity          part p on device p modulo the number of devices
    greedy            longest part first, each on the device that ends earliest with communication
    argmin            the same, each on the device of the least immediate increase of the step
    local_search      a tuned rule with noise, then moves and swaps, again until the time is up

``time_left`` gives the seconds that are left; without a limit (infinity) a search makes ``ROUNDS``
rounds, so that the same seed gives the same placement.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from optbench.errors import UnknownNameError
from optbench.gnn.placement.placement_board import Costs, costs_of
from optbench.gnn.placement.placement_search import (
    bound_order,
    construct,
    descend,
    work_order,
)
from optbench.gnn.placement.placement_table import (
    PlacementTable,
    memory_excess_bytes,
    table_step_s,
)
from optbench.rendering import resolve
from optbench.shapes.gnn_training.training_data import Floats, Ints

TimeLeft = Callable[[], float]
METHODS = ("identity", "greedy", "argmin", "local_search")
# The room of learning stands above this one.
LEARNED: tuple[str, ...] = ()
PLACE_LEARNED = "optbench.learn.placement.learned_placement:place_learned"
# Of searches without a limit of time.
ROUNDS = 32
MOST_MOVES = 1_000
EARLIEST_END, LEAST_INCREASE = (0.0, 1.0, 0.0), (1.0, 0.0, 0.0)


def place(
    method: str, table: PlacementTable, rng: np.random.Generator, time_left: TimeLeft
) -> Ints:
    """Return the device of every part."""
    if method in LEARNED:
        found: Ints = resolve(PLACE_LEARNED)(method, table, rng, time_left)
        return found
    if method not in METHODS:
        raise UnknownNameError("placement method", method, (*METHODS, *LEARNED))
    if method == "identity":
        return np.arange(table.num_parts, dtype=np.int64) % table.num_devices
    costs = costs_of(table)
    if method == "greedy":
        return construct(costs, work_order(costs), np.array(EARLIEST_END), 0.0, 0)
    if method == "argmin":
        return construct(costs, work_order(costs), np.array(LEAST_INCREASE), 0.0, 0)
    return searched(table, costs, rng, time_left)


def placement_key(table: PlacementTable, device: Ints) -> tuple[float, float]:
    """What makes one placement better than another: bytes above the memories, then the step."""
    return float(memory_excess_bytes(table, device).sum()), table_step_s(table, device)


def searched(
    table: PlacementTable, costs: Costs, rng: np.random.Generator, time_left: TimeLeft
) -> Ints:
    """Return the best of many starts by a noisy rule, each improved by moves and swaps."""
    orders = (work_order(costs), bound_order(costs))
    weights: Floats = np.array(EARLIEST_END)
    best = construct(costs, orders[0], weights, 0.0, 0)
    best = descend(costs, best, 0.0, MOST_MOVES)[0]
    least = placement_key(table, best)
    for number in range(1, ROUNDS) if math.isinf(time_left()) else iter(lambda: 1, 0):
        if time_left() <= 0:
            break
        seed = int(rng.integers(1 << 40))
        start = construct(costs, orders[number % 2], weights, 0.1, seed)
        found = descend(costs, start, 0.0, MOST_MOVES)[0]
        key = placement_key(table, found)
        if key < least:
            best, least = found, key
    return best
