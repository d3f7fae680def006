"""Rules that place one part after another, and searches that improve a placement: compiled code.

``construct`` takes the parts in a given order and puts each where

    step_weight × (step of the board) + load_weight × (mean load of the device)
    + talk_weight × (sum of the talk of all devices)

after the placement is least, with every score multiplied by 1 + ``noise`` × a number from 0 to 1:

    (1, 0, 0)   the least immediate increase of the step
    (0, 1, 0)   the earliest end, with communication

``descend`` makes the best move of a single part, or the best swap of two, as long as one lowers the
price. ``anneal`` makes random moves and swaps by Metropolis' rule, and keeps the best placement.
"""

from __future__ import annotations

import numpy as np

from optbench.compiling.compiled import inner, njit
from optbench.gnn.placement.placement_board import (
    Board,
    BoardCosts,
    board_of,
    board_price,
    empty_board,
    make_move,
    move_price,
)
from optbench.shapes.gnn_training.training_data import Floats, Ints

# A linear congruential generator of 64 bits (Knuth's), of which the upper bits are used.
MULTIPLIER, INCREMENT = 6364136223846793005, 1442695040888963407
# Of ``construct``; tuned on the training instances of benchmarks/placement.py.
TUNED_WEIGHTS = (1.0, 0.0, 0.2)
# The least relative improvement that counts, so that rounding makes no endless loop.
LEAST_GAIN = 1e-12


@inner()
def uniform(word: Ints) -> float:
    """Return a pseudo-random number in [0, 1)."""
    word[0] = word[0] * MULTIPLIER + INCREMENT
    drawn: float = ((word[0] >> 11) & 0x1FFFFFFFFFFFFF) / 9007199254740992.0
    return drawn


@njit()
def construct(costs: BoardCosts, order: Ints, weights: Floats, noise: float, seed: int) -> Ints:
    """Return a placement by the rule of the head of this module."""
    board: Board = empty_board(costs)
    devices, windows = board.work.shape
    word = np.full(1, seed, np.int64)
    for p in order:
        best, least = 0, np.inf
        for d in range(devices):
            score = weights[0] * move_price(costs, board, p, d, 0.0)
            load = board.scratch[0, d]
            for w in range(windows):
                load += (board.work[d, w] + costs.work[p, d, w]) / windows
            score += weights[1] * load + weights[2] * board.scratch[0].sum()
            if noise > 0.0:
                score *= 1.0 + noise * uniform(word)
            if score < least:
                best, least = d, score
        make_move(costs, board, p, best)
    return board.device


@njit()
def descend(costs: BoardCosts, device: Ints, blend: float, most: int) -> tuple[Ints, bool]:
    """Return a placement improved by at most ``most`` best moves and swaps, and whether none
    is left.
    """
    board = board_of(costs, device)
    parts, devices = board.out.shape
    now = board_price(costs, board, blend)
    for _ in range(most):
        least, part, goal, other = now * (1.0 - LEAST_GAIN), -1, -1, -1
        for p in range(parts):
            for d in range(devices):
                if d != board.device[p]:
                    price = move_price(costs, board, p, d, blend)
                    if price < least:
                        least, part, goal, other = price, p, d, -1
        if part < 0:
            for p in range(parts):
                a = board.device[p]
                for b in range(devices):
                    if b == a:
                        continue
                    make_move(costs, board, p, b)
                    for q in range(p + 1, parts):
                        if board.device[q] == b:
                            price = move_price(costs, board, q, a, blend)
                            if price < least:
                                least, part, goal, other = price, p, b, q
                    make_move(costs, board, p, a)
        if part < 0:
            return board.device, True
        home = board.device[part]
        make_move(costs, board, part, goal)
        if other >= 0:
            make_move(costs, board, other, home)
        now = board_price(costs, board, blend)
    return board.device, False


@njit()
def anneal(
    costs: BoardCosts,
    device: Ints,
    blend: float,
    hot: float,
    cold: float,
    trials: int,
    swaps: float,
    seed: int,
) -> Ints:
    """Return the best placement of ``trials`` trials at temperatures that fall geometrically.

    ``hot`` and ``cold`` are shares of the first price, ``swaps`` the share of swaps.
    """
    board = board_of(costs, device)
    best = device.copy()
    parts, devices = board.out.shape
    word = np.full(1, seed, np.int64)
    now = board_price(costs, board, blend)
    least, start = board_price(costs, board, 0.0), now
    if devices < 2:
        return best
    for k in range(trials):
        heat = start * hot * (cold / hot) ** (k / trials)
        p = int(uniform(word) * parts)
        a, q = board.device[p], -1
        if uniform(word) < swaps:
            q = int(uniform(word) * parts)
            b = board.device[q]
            if b == a:
                continue
            make_move(costs, board, p, b)
            then = move_price(costs, board, q, a, blend)
        else:
            b = (a + 1 + int(uniform(word) * (devices - 1))) % devices
            then = move_price(costs, board, p, b, blend)
        if then <= now or uniform(word) < np.exp((now - then) / heat):
            if q >= 0:
                make_move(costs, board, q, a)
            else:
                make_move(costs, board, p, b)
            now = then
            if now < least * (1.0 + 2.0 * blend + 1e-9):
                true = board_price(costs, board, 0.0)
                if true < least:
                    least = true
                    best[:] = board.device
        elif q >= 0:
            make_move(costs, board, p, a)
    return best


def work_order(costs: BoardCosts) -> Ints:
    """The parts by descending mean work."""
    found: Ints = np.argsort(-costs.work.mean(axis=(1, 2)), kind="stable")
    return found


def bound_order(costs: BoardCosts) -> Ints:
    """The part of most rows first, then always the one that exchanges most with those before."""
    rows = costs.rows + costs.rows.T
    parts = len(rows)
    weight = rows.sum(axis=1) * 1e-9 + costs.work.mean(axis=(1, 2)) * 1e-12
    first = rows.sum(axis=1)
    chosen = np.zeros(parts, dtype=bool)
    order = np.zeros(parts, dtype=np.int64)
    pull = weight + first * 1e-6
    for k in range(parts):
        order[k] = p = int(np.where(chosen, -1.0, pull).argmax())
        chosen[p] = True
        pull = pull + rows[p]
    return order
