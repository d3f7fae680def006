"""Local search by moves of single nodes between parts (Fiduccia and Mattheyses, k-way).

``pull[v, p]`` is the weight of the edges from node v into part p, so that moving v from p to q
lowers the cut by pull[v, q] − pull[v, p]. A round queues the nodes on the boundary, moves each at
most once, the best first (first of all out of parts over their limit), and also moves that raise
the cut: it ends after ``patience`` moves without an improvement, and what follows the best point is
undone. The best point has the least excess over the limits, then the least cut. Meanwhile loads may
exceed the limits by ``slack``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optbench.compiling.compiled import inner, njit
from optbench.shapes.gnn_training.training_data import Ints

from .move_queues import MoveQueues, clear_queues, leave_queue, queue_node

# Keys are gains in these units; the rest breaks ties at random.
UNIT = 1024
# More than every key: what puts nodes of overloaded parts first.
URGENT = 1 << 52
# A linear congruential generator of 64 bits (Knuth's), of which the upper bits are used.
MULTIPLIER, INCREMENT = 6364136223846793005, 1442695040888963407


class PartMoves(NamedTuple):
    """The state of a search: a graph, its parts with loads and limits, pulls, and moves made."""

    ptr: Ints
    adj: Ints
    weight: Ints
    size: Ints
    part: Ints
    limit: Ints
    most: Ints
    load: Ints
    pull: Ints
    moved: Ints
    origin: Ints
    is_moved: Ints
    chance: Ints


@njit()
def refine(
    ptr: Ints,
    adj: Ints,
    weight: Ints,
    size: Ints,
    part: Ints,
    limit: Ints,
    slack: int,
    patience: int,
    rounds: int,
    seed: int,
) -> int:
    """Change ``part`` by at most ``rounds`` rounds; return by how much the cut has fallen."""
    nodes, parts = len(size), len(limit)
    moves = PartMoves(
        ptr, adj, weight, size, part, limit, limit + slack, np.zeros(parts, np.int64),
        np.zeros((nodes, parts), np.int64), np.empty(nodes, np.int64), np.empty(nodes, np.int64),
        np.zeros(nodes, np.int64), np.full(1, seed, np.int64),
    )  # fmt: skip
    queues = MoveQueues(
        np.empty((parts, nodes), np.int64),
        np.zeros(parts, np.int64),
        np.full(nodes, -1, np.int64),
        np.empty(nodes, np.int64),
    )
    for v in range(nodes):
        moves.load[part[v]] += size[v]
        for e in range(ptr[v], ptr[v + 1]):
            moves.pull[v, part[adj[e]]] += weight[e]
    total = 0
    for number in range(1, rounds + 1):
        before = excess(moves)
        queue_boundary(moves, queues)
        gained = climb(moves, queues, number, patience)
        clear_queues(queues)
        total += gained
        if gained <= 0 and excess(moves) >= before:
            break
    return total


@inner()
def chance_below_unit(moves: PartMoves) -> int:
    """A pseudo-random number from 0 to UNIT - 1."""
    moves.chance[0] = moves.chance[0] * MULTIPLIER + INCREMENT
    return (moves.chance[0] >> 40) & (UNIT - 1)


@inner()
def excess(moves: PartMoves) -> int:
    """The load over the limits, of all parts."""
    total = 0
    for p in range(len(moves.limit)):
        total += max(0, moves.load[p] - moves.limit[p])
    return total


@inner()
def best_target(moves: PartMoves, v: int) -> int:
    """The part with room that pulls node v most, the emptier of two; -1 if there is none.

    One that does not pull at all counts only where the node's own part is over its limit."""
    own, load, limit, pull = moves.part[v], moves.load, moves.limit, moves.pull
    chosen, most = -1, 0 if load[own] <= limit[own] else -1
    for p in range(len(limit)):
        if p == own or pull[v, p] < most or load[p] + moves.size[v] > moves.most[p]:
            continue
        if pull[v, p] > most:
            chosen, most = p, pull[v, p]
        elif chosen >= 0 and limit[p] - load[p] > limit[chosen] - load[chosen]:
            chosen = p
    return chosen


@inner()
def queue_boundary(moves: PartMoves, queues: MoveQueues) -> None:
    """Queue the nodes that have a target: those on the boundary, and in overloaded parts."""
    for v in range(len(moves.part)):
        target = best_target(moves, v)
        if target >= 0:
            p = moves.part[v]
            gain = moves.pull[v, target] - moves.pull[v, p]
            queue_node(queues, p, v, gain * UNIT + chance_below_unit(moves))


@inner()
def next_part(moves: PartMoves, queues: MoveQueues) -> int:
    """The part whose first node is to move next; -1 if nothing is queued."""
    chosen, best = -1, -URGENT - URGENT
    for p in range(len(queues.length)):
        if queues.length[p] == 0:
            continue
        key = queues.key[queues.heap[p, 0]]
        if moves.load[p] > moves.limit[p]:
            key += URGENT
        if key > best:
            chosen, best = p, key
    return chosen


@inner()
def move(moves: PartMoves, v: int, target: int) -> int:
    """Move a node and return by how much the excess changes."""
    own, size = moves.part[v], moves.size[v]
    change = -max(0, moves.load[own] - moves.limit[own])
    change -= max(0, moves.load[target] - moves.limit[target])
    moves.load[own] -= size
    moves.load[target] += size
    change += max(0, moves.load[own] - moves.limit[own])
    change += max(0, moves.load[target] - moves.limit[target])
    moves.part[v] = target
    for e in range(moves.ptr[v], moves.ptr[v + 1]):
        u, weight = moves.adj[e], moves.weight[e]
        moves.pull[u, own] -= weight
        moves.pull[u, target] += weight
    return change


@inner()
def queue_neighbours(moves: PartMoves, queues: MoveQueues, v: int, number: int) -> None:
    """Give the neighbours of a moved node their new keys."""
    for e in range(moves.ptr[v], moves.ptr[v + 1]):
        u = moves.adj[e]
        if moves.is_moved[u] == number:
            continue
        p, target = moves.part[u], best_target(moves, u)
        if target < 0:
            leave_queue(queues, p, u)
        else:
            gain = moves.pull[u, target] - moves.pull[u, p]
            queue_node(queues, p, u, gain * UNIT + chance_below_unit(moves))


@inner()
def climb(moves: PartMoves, queues: MoveQueues, number: int, patience: int) -> int:
    """Move queued nodes, go back to the best point, and return its gain."""
    count, best_count, gain, best_gain = 0, 0, 0, 0
    over = excess(moves)
    least_over = over
    while count - best_count < patience:
        p = next_part(moves, queues)
        if p < 0:
            break
        v = queues.heap[p, 0]
        target = best_target(moves, v)
        if target < 0:
            leave_queue(queues, p, v)
            continue
        now = moves.pull[v, target] - moves.pull[v, p]
        if (now + 1) * UNIT <= queues.key[v]:  # its former target has no room any more
            queue_node(queues, p, v, now * UNIT + chance_below_unit(moves))
            continue
        leave_queue(queues, p, v)
        over += move(moves, v, target)
        moves.is_moved[v] = number
        moves.moved[count], moves.origin[count] = v, p
        count += 1
        gain += now
        queue_neighbours(moves, queues, v, number)
        is_level = over == least_over == 0 and gain == best_gain
        if (
            over < least_over
            or (over == least_over and gain > best_gain)
            or (is_level and chance_below_unit(moves) < UNIT // 2)
        ):
            best_count, best_gain, least_over = count, gain, over
    while count > best_count:
        count -= 1
        move(moves, moves.moved[count], moves.origin[count])
    return best_gain
