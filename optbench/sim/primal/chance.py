"""Random numbers of the compiled searches: a Lehmer generator whose state is part of the search."""

from __future__ import annotations

from optbench.compiling.compiled import inner

# The place of the generator in a search's state array; its value is from 1 to MODULUS - 1.
RANDOM = 0
MODULUS = 2147483647


@inner()
def pick(state, n):  # type: ignore[no-untyped-def]
    """A pseudo-random number below n."""
    state[RANDOM] = state[RANDOM] * 48271 % MODULUS
    return state[RANDOM] % n


def seeded(seed: int) -> int:
    """Return a state for a seed, far from those of neighbouring seeds."""
    return (seed * 1_000_003 + 12_345) % (MODULUS - 1) + 1
