"""Ranks of tasks by their data, which break ties."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optbench.model.instance import Instance, Ints

# Rounds in which the hash of a task takes in those of its neighbours.
ROUNDS = 2

Words = NDArray[np.uint64]


def tie_ranks(instance: Instance) -> Ints:
    """Return the rank of each task by its data and not by its position: it breaks ties, so that
    permuted tasks get a permuted schedule.

    Each task gets a hash of its own row; two rounds mix in the hashes of its predecessors and
    successors. Tasks with equal hashes cannot be distinguished within two steps of the graph and
    are ranked by position.
    """
    tasks, edges = instance.tasks, instance.edges
    word = np.zeros(instance.num_tasks, dtype=np.uint64)
    for column in (
        tasks.kind,
        tasks.units,
        tasks.release,
        tasks.deadline,
        tasks.deadline_hard,
        tasks.weight,
        tasks.memory_gb,
    ):
        word = _mix(word + np.ascontiguousarray(column, dtype=np.float64).view(np.uint64))
    if len(edges.source):
        data = _mix(np.ascontiguousarray(edges.data_gb, dtype=np.float64).view(np.uint64))
        ends = [
            (rows, other, np.argsort(rows, kind="stable"))
            for rows, other in ((edges.target, edges.source), (edges.source, edges.target))
        ]
        for _ in range(ROUNDS):
            before, after = (
                _gathered(word[other] ^ data, rows, order, len(word)) for rows, other, order in ends
            )
            word = _mix(word + _mix(before) + _mix(_mix(after)))
    out = np.empty(len(word), dtype=np.int64)
    out[_order_of(word)] = np.arange(len(word))
    return out


def _order_of(word: Words) -> Ints:
    """Return the stable order; words nearly always differ, and then any faster sort gives
    the same.
    """
    order = np.argsort(word)
    ranked = word[order]
    return np.argsort(word, kind="stable") if (ranked[1:] == ranked[:-1]).any() else order


def _gathered(values: Words, rows: Ints, order: Ints, size: int) -> Words:
    """Return the sum of mixed values per row, which does not depend on the order of neighbours."""
    out = np.zeros(size, dtype=np.uint64)
    present, first = np.unique(rows[order], return_index=True)
    out[present] = np.add.reduceat(_mix(values)[order], first)
    return out


def _mix(word: Words) -> Words:
    """A bijection of 64-bit words without visible structure (the finaliser of a multiplicative
    hash).
    """
    with np.errstate(over="ignore"):
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(word ^ (word >> np.uint64(31)), dtype=np.uint64)
