"""Local search by moves of single nodes between devices, on the cost model's own objective.

With the nodes n_d and arcs a_d of device d, the rows r_de of d with a neighbour on e, and the costs
k of all operators,

    t_d    = fixed_d + Σ_k max( (flop_node n_d + flop_arc a_d) / F_d, (byte_node n_d + ...) / B_d )
    talk_d = Σ_e (latency_de + second_per_row_de max(r_de, r_ed))   over e with rows either way
    step   = mean_w max_d (t_d / s_wd + talk_d)
    value  = A step + Σ_d b_d mean_w t_d / s_wd + C Σ r + smooth Σ_d (mean_w t_d / s_wd + talk_d)

where the last term lets moves count that do not concern the slowest device. What exceeds nodes or
bytes of a device, or the limit of the step, costs more than any step. A node may move to a device
that computes a neighbour, and from the slowest device to the one that is done first; it moves where
that lowers the value most. In the first rounds no move may raise Σ r, in later ones ever more, so
that what balances devices is a shift of the border and not single nodes beyond it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from optbench.compiling.compiled import inner, njit
from optbench.shapes.gnn_training.training_data import Floats, Ints

# Columns of ``device`` and entries of ``price``.
FLOP_S, BYTE_S, FIXED_S, WORK_PRICE, MOST_NODES, MOST_BYTES = range(6)
STEP_PRICE, ROW_PRICE, SMOOTH, STEP_LIMIT, NODE_BYTES, ARC_BYTES, ROW_BYTES, OWN_BYTES = range(8)
# What exceeds a limit costs at least so many times the value without it.
PENALTY = 1e3
LEAST_GAIN = 1e-12
MULTIPLIER, INCREMENT = 6364136223846793005, 1442695040888963407
# By how many rows a move may raise their sum: one more after each round without much gain.
MOST_RAISED = 8
ROUND_GAIN = 1e-5


class DeviceMoves(NamedTuple):
    """A graph, the device of each node, what devices have, the tables above, and room to work."""

    ptr: Ints
    adj: Ints
    size: Ints
    where: Ints
    pull: Ints
    held: Ints
    load: Ints
    arcs: Ints
    rows: Ints
    cost: Floats
    device: Floats
    pairs: Any
    windows: Floats
    price: Floats
    work: Floats
    talk: Floats


@njit()
def settle_round(
    ptr: Ints,
    adj: Ints,
    size: Ints,
    where: Ints,
    cost: Floats,
    device: Floats,
    pairs: Any,
    windows: Floats,
    price: Floats,
    order: Ints,
    draws: Ints,
) -> bool:
    """Change ``where``, the device of each node, by one round; return if another is worth it.

    ``order``, that of the nodes, and ``draws``, the state of the random numbers and by how many
    rows a move may raise their sum, go on from round to round.
    """
    nodes, devices = len(size), len(device)
    moves = DeviceMoves(
        ptr, adj, size, where, np.zeros((nodes, devices), np.int64), np.zeros(devices, np.int64),
        np.zeros(devices, np.int64), np.zeros(devices, np.int64),
        np.zeros((devices, devices), np.int64), cost, device, pairs, windows, price,
        np.zeros(devices), np.zeros(devices),
    )  # fmt: skip
    count_all(moves)
    now = value(moves)
    chance, raised = draws[0], draws[1]
    before = now
    for i in range(nodes - 1, 0, -1):
        chance = chance * MULTIPLIER + INCREMENT
        j = ((chance >> 33) & 0x3FFFFFFF) % (i + 1)
        order[i], order[j] = order[j], order[i]
    for v in order:
        now = moved_best(moves, v, now, raised)
    draws[0] = chance
    if before - now > ROUND_GAIN * before:
        return True
    draws[1] = 2 * raised + 1 if raised < MOST_RAISED else nodes
    return raised <= MOST_RAISED


@inner()
def count_all(moves: DeviceMoves) -> None:
    """Count what the devices have."""
    for v in range(len(moves.size)):
        own = moves.where[v]
        moves.held[own] += 1
        moves.load[own] += moves.size[v]
        moves.arcs[own] += moves.ptr[v + 1] - moves.ptr[v]
        for e in range(moves.ptr[v], moves.ptr[v + 1]):
            moves.pull[v, moves.where[moves.adj[e]]] += 1
        for d in range(len(moves.held)):
            if d != own and moves.pull[v, d] > 0:
                moves.rows[own, d] += 1


@inner()
def value(moves: DeviceMoves) -> float:
    """What is minimised; ``work`` and ``talk`` are left at those of the devices."""
    devices, price = len(moves.held), moves.price
    total, over, rows = 0.0, 0.0, 0.0
    for d in range(devices):
        n, a = float(moves.load[d]), float(moves.arcs[d])
        seconds, talk = moves.device[d, FIXED_S], 0.0
        for k in range(len(moves.cost)):
            flops = moves.cost[k, 0] * n + moves.cost[k, 1] * a
            moved = moves.cost[k, 2] * n + moves.cost[k, 3] * a
            seconds += max(flops * moves.device[d, FLOP_S], moved * moves.device[d, BYTE_S])
        received = 0.0
        for e in range(devices):
            both = max(moves.rows[d, e], moves.rows[e, d])
            received += moves.rows[e, d]
            if both > 0:
                talk += moves.pairs[0, d, e] + moves.pairs[1, d, e] * both
        moves.work[d], moves.talk[d] = seconds, talk
        rows += received
        kept = price[NODE_BYTES] * n + price[ARC_BYTES] * a + price[ROW_BYTES] * received
        kept += price[OWN_BYTES]
        over += max(0.0, kept / moves.device[d, MOST_BYTES] - 1.0)
        over += max(0.0, moves.held[d] / moves.device[d, MOST_NODES] - 1.0)
        total += price[SMOOTH] * talk
    step = 0.0
    for w in range(len(moves.windows)):
        longest = 0.0
        for d in range(devices):
            seconds = moves.work[d] / moves.windows[w, d]
            longest = max(longest, seconds + moves.talk[d])
            total += (moves.device[d, WORK_PRICE] + price[SMOOTH]) * seconds / len(moves.windows)
        step += longest / len(moves.windows)
    over += max(0.0, step / price[STEP_LIMIT] - 1.0)
    total += price[STEP_PRICE] * step + price[ROW_PRICE] * rows
    return total * (1.0 + PENALTY * over) if over > 0 else total


@inner()
def shift(moves: DeviceMoves, v: int, target: int) -> None:
    """Move a node to another device."""
    own = moves.where[v]
    arcs = moves.ptr[v + 1] - moves.ptr[v]
    for d in range(len(moves.held)):
        if moves.pull[v, d] > 0:
            if d != own:
                moves.rows[own, d] -= 1
            if d != target:
                moves.rows[target, d] += 1
    for e in range(moves.ptr[v], moves.ptr[v + 1]):
        u = moves.adj[e]
        at = moves.where[u]
        moves.pull[u, own] -= 1
        if moves.pull[u, own] == 0 and at != own:
            moves.rows[at, own] -= 1
        if moves.pull[u, target] == 0 and at != target:
            moves.rows[at, target] += 1
        moves.pull[u, target] += 1
    moves.held[own] -= 1
    moves.held[target] += 1
    moves.load[own] -= moves.size[v]
    moves.load[target] += moves.size[v]
    moves.arcs[own] -= arcs
    moves.arcs[target] += arcs
    moves.where[v] = target


@inner()
def slowest_and_first(moves: DeviceMoves) -> tuple[int, int]:
    """The device that works and talks longest, in the mean, and the one that does so least."""
    slowest, first = 0, 0
    most, least = -1.0, np.inf
    for d in range(len(moves.held)):
        seconds = moves.talk[d]
        for w in range(len(moves.windows)):
            seconds += moves.work[d] / moves.windows[w, d] / len(moves.windows)
        if seconds > most:
            slowest, most = d, seconds
        if seconds < least:
            first, least = d, seconds
    return slowest, first


@inner()
def moved_best(moves: DeviceMoves, v: int, now: float, raised: int) -> float:
    """Move a node where that lowers the value most, with at most so many rows more; return the
    value.
    """
    own = moves.where[v]
    inside = moves.pull[v, own] == moves.ptr[v + 1] - moves.ptr[v]
    slowest, first = slowest_and_first(moves) if inside else (-1, -1)
    if inside and own != slowest:
        return now
    chosen, best = -1, now * (1.0 - LEAST_GAIN)
    for d in range(len(moves.held)):
        if d == own or (d != first if inside else moves.pull[v, d] == 0):
            continue
        rows = moves.rows.sum()
        shift(moves, v, d)
        more = moves.rows.sum() - rows
        found = value(moves) if more <= raised else now
        shift(moves, v, own)
        if found < best:
            chosen, best = d, found
    if chosen < 0:
        value(moves)  # of the devices as they are
        return now
    shift(moves, v, chosen)
    return value(moves)
