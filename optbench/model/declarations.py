"""Declarations that a ``Model`` stores, and the handles that it returns."""

from __future__ import annotations

from dataclasses import dataclass

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
    failures_per_s: float | None
    wake_s: float | None
    wake_j: float | None


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
class CongestionData:
    """How much slower the links of pools are than free ones, from each time on."""

    times_s: tuple[float, ...]
    pools: tuple[int, ...]
    factor: tuple[float, ...]


@dataclass(frozen=True)
class CoolingData:
    """How a place heats up, and how warm it may become."""

    place: int
    ambient_c: float
    c_per_w: float
    time_constant_s: float
    limit_c: float
    start_c: float


@dataclass(frozen=True)
class FamilyKey:
    """A profile's kind with GPU counts, pools (None: all) and size of its problems."""

    kind: str
    gpus: tuple[int, ...]
    pools: tuple[int, ...] | None
    size_gflop: float | None = None


# The identity of a kind of task: a family of a profile, or explicit modes.
KindKey = FamilyKey | tuple[Mode, ...]
