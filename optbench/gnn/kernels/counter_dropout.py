"""Dropout masks that are a function of (seed, step, layer, item, column) and of nothing else.

An item is a node or an arc by its global number, so that whichever process computes a row, with
whichever others, the row has the same mask, and a run that restarts continues as it would have.
Philox-4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) maps a counter
of four 32-bit words and a key of two to four random words:

    counter = (item mod 2³², ⌊item / 2³²⌋, layer × 2²⁴ + ⌊column / 4⌋, step),   key = seed,

and word (column mod 4) belongs to the column. Ten rounds of

    (c₀, c₁, c₂, c₃) ← (hi(M₁ c₂) ⊕ c₁ ⊕ k₀, lo(M₁ c₂), hi(M₀ c₀) ⊕ c₃ ⊕ k₁, lo(M₀ c₀))

with (k₀, k₁) increased by two constants between rounds. Different arguments have different
counters. A value is dropped where its word is below rate × 2³², else divided by 1 − rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from optbench.compiling.compiled import njit
from optbench.errors import ModelError

if TYPE_CHECKING:
    import torch

Ints: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]

WORD = 2**32
LAYERS, COLUMNS = 2**8, 2**26
M0, M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
STEP0, STEP1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


@njit()
def philox(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any) -> Any:
    """Four random 32-bit words, as 64-bit integers, of a counter and a key."""
    for _ in range(10):
        a, b = M0 * c0, M1 * c2
        c0, c1, c2, c3 = (b >> HALF) ^ c1 ^ k0, b & LOW, (a >> HALF) ^ c3 ^ k1, a & LOW
        k0, k1 = (k0 + STEP0) & LOW, (k1 + STEP1) & LOW
    return c0, c1, c2, c3


@njit()
def fill_kept(items: Any, tag: Any, step: Any, seed: Any, threshold: Any, kept: Any) -> None:
    """Write 1 for every value that stays; ``tag`` is layer × 2²⁴."""
    width = kept.shape[1]
    k0, k1 = seed & LOW, seed >> HALF
    for r in range(items.shape[0]):
        item = np.uint64(items[r])
        for block in range((width + 3) // 4):
            words = philox(item & LOW, item >> HALF, tag + np.uint64(block), step, k0, k1)
            for j in range(min(4, width - 4 * block)):
                kept[r, 4 * block + j] = words[j] >= threshold


@dataclass(frozen=True)
class CounterDropout:
    """Dropout of a share ``rate`` of the values of a run with this seed."""

    rate: float
    seed: int

    def __post_init__(self) -> None:
        if not 0 <= self.rate < 1:
            raise ModelError(f"dropout: rate is {self.rate}; it must be at least 0 and below 1")
        _require_below("seed", self.seed, WORD**2)

    def kept(self, step: int, layer: int, items: Ints, width: int) -> Bytes:
        """1 for every value that stays, 0 for every dropped one: a row per item, ``width`` columns.

        ``layer`` numbers the places of a network that drop values, so that no two have one mask.
        """
        _require_below("step", step, WORD)
        _require_below("layer", layer, LAYERS)
        _require_below("width", width, COLUMNS)
        numbers = np.ascontiguousarray(items, dtype=np.int64)
        if len(numbers) and numbers.min() < 0:
            raise ModelError(f"dropout: items hold {numbers.min()}; global numbers are at least 0")
        out: Bytes = np.empty((len(numbers), width), dtype=np.uint8)
        threshold = np.uint64(round(self.rate * WORD))
        tag = np.uint64(layer * 2**24)
        fill_kept(numbers, tag, np.uint64(step), np.uint64(self.seed), threshold, out)
        return out

    def mask(
        self, step: int, layer: int, items: Ints, width: int, dtype: torch.dtype
    ) -> torch.Tensor:
        """What the values are multiplied by: 0, or 1 / (1 − rate)."""
        import torch

        kept = torch.from_numpy(self.kept(step, layer, items, width))
        return kept.to(dtype).mul_(1 / (1 - self.rate))

    def drop(self, values: torch.Tensor, step: int, layer: int, items: Ints) -> torch.Tensor:
        """Return the values of items, a row each, with dropout; the gradient has the same mask."""
        if self.rate == 0:
            return values
        return values * self.mask(step, layer, items, values.shape[1], values.dtype)


def arc_numbers(target: Ints, source: Ints, num_nodes: int) -> Ints:
    """Return the global numbers of arcs between nodes given by their global numbers."""
    return np.asarray(target, dtype=np.int64) * num_nodes + source


def _require_below(name: str, value: int, limit: int) -> None:
    if not 0 <= value < limit:
        raise ModelError(f"dropout: {name} is {value}; it must be from 0 to {limit - 1}")
