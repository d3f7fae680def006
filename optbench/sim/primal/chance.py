"""What the compiled searches share: the graph of tasks, and random numbers from a Lehmer generator
whose state is part of the search.
"""

from __future__ import annotations

from typing import NamedTuple

from optbench.compiling.compiled import inner
from optbench.model.instance import Ints

# The place of the generator in a search's state array; its value is from 1 to MODULUS - 1.
RANDOM = 0
MODULUS = 2147483647


class TaskGraph(NamedTuple):
    """Predecessors and successors of each task as compressed rows, and the release times."""

    pred_ptr: Ints
    pred: Ints
    succ_ptr: Ints
    succ: Ints
    release: Ints


@inner()
def pick(state, n):  # type: ignore[no-untyped-def]
    """A pseudo-random number below n."""
    state[RANDOM] = state[RANDOM] * 48271 % MODULUS
    return state[RANDOM] % n


def seeded(seed: int) -> int:
    """Return a state for a seed, far from those of neighbouring seeds."""
    return (seed * 1_000_003 + 12_345) % (MODULUS - 1) + 1
