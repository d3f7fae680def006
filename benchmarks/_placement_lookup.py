"""A lookup table that places parts, as a control of agents.

It holds how often annealed placements of the training instances chose a device whose increases of
the step and of the talk, above the least of all devices, fell into the same bins, by whether the
device had room below the step. The device of the greatest share is taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from optbench.compiling.compiled import inner, njit
from optbench.gnn.placement.allocation_process import FEATURES, observe, scales_of
from optbench.gnn.placement.placement_board import costs_of, empty_board, make_move
from optbench.gnn.placement.placement_search import bound_order, uniform, work_order

BINS, ROOMS = 10, 2
# Where bins begin, as shares of the balanced step times ten; the first one is that of the least.
EDGES = np.array([0.0, 1e-4, 0.01, 0.03, 0.06, 0.1, 0.2, 0.4, 0.8, np.inf])
# Of the increases that the table's draws are made with.
NOISE = 0.1
# Seconds of annealing for each placement that is counted.
TEACHER_S = 0.1


@inner()
def bin_of(edges: Any, value: float) -> int:
    found = 0
    while found < len(edges) - 1 and value > edges[found]:
        found += 1
    return found


@njit()
def walk(
    costs: Any, order: Any, edges: Any, chosen: Any, offered: Any, given: Any, noise: float,
    seed: int,
) -> Any:  # fmt: skip
    """Place by the table; or count the choices of a given placement."""
    board, scales = empty_board(costs), scales_of(costs)
    devices, word = costs.work.shape[1], np.full(1, seed, np.int64)
    seen, left = np.zeros((devices, len(FEATURES)), np.float32), scales.work
    for p in order:
        left -= costs.work[p].sum()
        observe(costs, scales, board, p, left, seen)
        step, talk = seen[:, 0].min(), (seen[:, 5] + seen[:, 6]).min()
        best, most = 0, -1.0
        for d in range(devices):
            i = bin_of(edges, seen[d, 0] - step)
            j = bin_of(edges, seen[d, 5] + seen[d, 6] - talk)
            k = 1 if seen[d, 9] > 0 else 0
            if len(given):
                offered[i, j, k] += 1.0
                chosen[i, j, k] += 1.0 if given[p] == d else 0.0
            share = chosen[i, j, k] / (offered[i, j, k] + 2.0)
            share -= 1e-3 * seen[d, 0] + noise * uniform(word)
            if share > most:
                best, most = d, share
        make_move(costs, board, p, given[p] if len(given) else best)
    return board.device


def time_left_of(budget_s: float) -> Callable[[], float]:
    """Return what is left of a budget of processor time from now on."""
    until = time.process_time() + budget_s
    return lambda: until - time.process_time()


@lru_cache(maxsize=1)
def lookup_table(lines: Path, seeds: int) -> tuple[Any, Any]:
    """Count choices of annealed placements on instances of the training."""
    from benchmarks._placement_cases import table_of
    from optbench.gnn.placement.placement_methods import annealed

    shape = (BINS, BINS, ROOMS)
    chosen, offered = np.zeros(shape), np.zeros(shape)
    for line in lines.read_text(encoding="utf-8").split():
        for seed in range(1000, 1000 + seeds):
            table = table_of(f"gnn_training:{line}", seed)
            rng = np.random.default_rng(seed)
            taught = annealed(table, rng, time_left_of(TEACHER_S))
            costs = costs_of(table)
            for order in (bound_order(costs), work_order(costs)):
                walk(costs, order, EDGES, chosen, offered, taught, 0.0, 0)
    return chosen, offered


def lookup_starts(costs: Any, counts: tuple[Any, Any], rng: np.random.Generator) -> Any:
    """Return the starts of the table: both orders, then draws with noise."""
    orders, none = (bound_order(costs), work_order(costs)), np.zeros(0, dtype=np.int64)

    def starts(number: int) -> list[Any]:
        if number == 0:
            return [walk(costs, order, EDGES, *counts, none, 0.0, 0) for order in orders]
        seed = int(rng.integers(1 << 40))
        return [walk(costs, orders[number % 2], EDGES, *counts, none, NOISE, seed)]

    return starts
