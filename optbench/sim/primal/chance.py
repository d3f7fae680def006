"""Random numbers of the compiled searches: a Lehmer generator whose state belongs to the search, as house rules demand."""

from __future__ import annotations

from optbench.compiling.compiled import inner

# Where a search's state array keeps the generator, 1 to MODULUS - 1.
RANDOM = 0
MODULUS = 2147483647


@inner()
def pick(state, n):  # type: ignore[no-untyped-def]
    """A pseudo-random number below n."""
    state[RANDOM] = state[RANDOM] * 48271 % MODULUS
    return state[RANDOM] % n


def seeded(seed: int) -> int:
    """A state for a seed, far from those of its neighbours."""
    return (seed * 1_000_003 + 12_345) % (MODULUS - 1) + 1
