"""Declarations that a ``Model`` stores, and the handles that it returns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from optbench.errors import ModelError
from optbench.power.profiles import Profile

# A single NaN object, so that modes without a clock compare equal and their tasks share a kind.
NO_CLOCK = float("nan")


@dataclass(frozen=True)
class Place:
    """A site or node of the hierarchy."""

    idx: int
    name: str


@dataclass(frozen=True)
class Pool:
    """Handle of a declared pool."""

    idx: int
    name: str


@dataclass(frozen=True)
class Mode:
    """A way to run one unit of work: pools with their devices, the primary pool first."""

    needs: tuple[tuple[int, int], ...]
    time_s: float
    energy_j: float
    power_w: float
    clock: float


@dataclass(frozen=True)
class Task:
    """Handle of a declared task."""

    idx: int


@dataclass(frozen=True)
class Kind:
    """Handle of a declared kind of work."""

    idx: int


@dataclass(frozen=True)
class PoolData:
    """The declaration of one pool."""

    name: str
    count: int
    place: int
    idle_w: float
    sleep_w: float
    sleeps: bool
    memory_gb: float
    profile: Profile | None
    clocks: tuple[float, ...]


@dataclass(frozen=True)
class LinkData:
    """One direction of a link: from every sender to every receiver except itself."""

    senders: tuple[int, ...]
    receivers: tuple[int, ...]
    s_per_gb: float
    latency_s: float
    j_per_gb: float


@dataclass(frozen=True)
class TariffData:
    """A price and carbon series of the pools below a place."""

    place: int
    times_s: tuple[float, ...]
    price_usd_per_kwh: tuple[float, ...]
    carbon_g_per_kwh: tuple[float, ...]


@dataclass(frozen=True)
class FamilyKey:
    """A profile's kind with GPU counts, pools (None: all) and size of its problems."""

    kind: str
    gpus: tuple[int, ...]
    pools: tuple[int, ...] | None
    size_gflop: float | None = None


# The identity of a kind of task: a family of a profile, or explicit modes.
KindKey = FamilyKey | tuple[Mode, ...]


def kind_key(
    label: str,
    kind: str | Kind | None,
    modes: Iterable[Mode] | None,
    gpus: int | Iterable[int],
    pools: Iterable[Pool] | None,
    size_gflop: float | None,
) -> KindKey:
    """Return what tasks of one kind have in common: their modes, or a kind of the profiles."""
    if (kind is None) == (modes is None):
        raise ModelError(
            f"{label}: give either kind='...' (of the pools' profiles) or modes=[m.mode(...), ...]"
        )
    is_size = size_gflop is None or (math.isfinite(size_gflop) and size_gflop > 0)
    if not is_size or (size_gflop is not None and modes is not None):
        raise ModelError(
            f"{label}: size_gflop is {size_gflop!r}; it must be positive, and goes with a kind of "
            "the profiles"
        )
    if modes is not None:
        key = tuple(modes)
        if not key:
            raise ModelError(f"{label}: modes is empty; give at least one m.mode(...)")
        return key
    counts = tuple(sorted({gpus} if isinstance(gpus, int) else set(gpus)))
    where = None if pools is None else tuple(sorted({pool.idx for pool in pools}))
    return FamilyKey(str(kind), counts, where, size_gflop)


def count_of(value: Any, what: str) -> int:
    """A positive whole number, of any integer type."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < 1:
        raise ModelError(f"{what} is {value!r}; it must be a positive integer")
    return int(value)


Series = tuple[float, ...]


def tariff_series(
    price_usd_per_kwh: float | Sequence[float],
    carbon_g_per_kwh: float | Sequence[float],
    times_s: Sequence[float] | None,
    every_s: float,
) -> tuple[Series, Series, Series]:
    """Return times, prices and carbon values of equal length."""
    price, carbon = (
        np.atleast_1d(np.asarray(v, dtype=float)) for v in (price_usd_per_kwh, carbon_g_per_kwh)
    )
    n = max(len(price), len(carbon))
    times = tuple(every_s * i for i in range(n)) if times_s is None else tuple(times_s)
    if len(times) != n or len(price) not in (1, n) or len(carbon) not in (1, n):
        sizes = f"{len(price)} prices, {len(carbon)} carbon values and {len(times)} times"
        raise ModelError(f"tariff: {sizes} do not fit together")
    if times[0] != 0 or any(not late > early for early, late in pairwise(times)):
        raise ModelError(f"tariff: times_s is {list(times)}; it must start at 0 and rise strictly")
    prices, carbons = (tuple(np.broadcast_to(v, n).tolist()) for v in (price, carbon))
    return times, prices, carbons
