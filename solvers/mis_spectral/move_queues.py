"""One queue of nodes per part, the greatest key first: binary heaps with the place of each node."""

from __future__ import annotations

from typing import NamedTuple

from optbench.compiling.compiled import inner
from optbench.shapes.gnn_training.training_data import Ints


class MoveQueues(NamedTuple):
    """``heap[p, :length[p]]`` are the nodes queued in part p; ``place`` is -1 for all others."""

    heap: Ints
    length: Ints
    place: Ints
    key: Ints


@inner()
def rise(queues: MoveQueues, p: int, i: int) -> None:
    """Restore the order after the key at place i has grown."""
    heap, key, place = queues.heap, queues.key, queues.place
    v = heap[p, i]
    while i > 0:
        above = (i - 1) // 2
        if key[heap[p, above]] >= key[v]:
            break
        heap[p, i] = heap[p, above]
        place[heap[p, i]] = i
        i = above
    heap[p, i] = v
    place[v] = i


@inner()
def sink(queues: MoveQueues, p: int, i: int) -> None:
    """Restore the order after the key at place i has shrunk."""
    heap, key, place = queues.heap, queues.key, queues.place
    v, count = heap[p, i], queues.length[p]
    while True:
        below = 2 * i + 1
        if below >= count:
            break
        if below + 1 < count and key[heap[p, below + 1]] > key[heap[p, below]]:
            below += 1
        if key[v] >= key[heap[p, below]]:
            break
        heap[p, i] = heap[p, below]
        place[heap[p, i]] = i
        i = below
    heap[p, i] = v
    place[v] = i


@inner()
def queue_node(queues: MoveQueues, p: int, v: int, key: int) -> None:
    """Put a node of part p into its queue, or give it another key there."""
    i = queues.place[v]
    if i < 0:
        i = queues.length[p]
        queues.heap[p, i] = v
        queues.length[p] = i + 1
        queues.key[v] = key
        rise(queues, p, i)
        return
    grows = key > queues.key[v]
    queues.key[v] = key
    if grows:
        rise(queues, p, i)
    else:
        sink(queues, p, i)


@inner()
def leave_queue(queues: MoveQueues, p: int, v: int) -> None:
    """Take a node of part p out of its queue, if it is there."""
    i = queues.place[v]
    if i < 0:
        return
    queues.place[v] = -1
    last = queues.length[p] - 1
    queues.length[p] = last
    if i < last:
        moved = queues.heap[p, last]
        queues.heap[p, i] = moved
        queues.place[moved] = i
        rise(queues, p, i)
        sink(queues, p, queues.place[moved])


@inner()
def clear_queues(queues: MoveQueues) -> None:
    """Empty all queues."""
    for p in range(len(queues.length)):
        for i in range(queues.length[p]):
            queues.place[queues.heap[p, i]] = -1
        queues.length[p] = 0
