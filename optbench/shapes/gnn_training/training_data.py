"""Data of an instance of GNN training: a graph, a model's operators, unequal devices, their links.

The graph is simple and undirected: an edge is stored once, as tail < head, in lexicographic order.
Self-loops and repeated edges are dropped where graphs are read; what a model adds to a node's own
row is part of its operators. ``node_size`` is the work of a node in units of an ordinary one.

``speeds[w, d]`` is the recorded speed of device d in time window w, as a share of its figures; a
step is judged by its mean over the windows. No rows mean one window at full speed.

``previous`` is the part of each node before the graph changed, -1 of a node that is new. It limits
nothing: that nodes move is counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from optbench.errors import ModelError
from optbench.shapes.gnn_training.operator_costs import (
    Fusion,
    Operator,
    check_fusions,
    check_operators,
)
from optbench.shapes.protocol.plain_data import LEFT_OUT_BY_DEFAULT

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Aim = Literal["cut", "step", "energy"]
# Larger graphs are mistakes: an index would not fit.
MOST_NODES = 2**31
# The part before of a node that is new.
NEW = -1


def _no_ints() -> Ints:
    return np.zeros(0, dtype=np.int64)


def _no_speeds() -> Floats:
    return np.zeros((0, 0))


@dataclass(frozen=True)
class DataGraph:
    """The graph on which a network is trained; no sizes mean that every node has size 1."""

    num_nodes: int
    tail: Ints
    head: Ints
    node_size: Ints = field(default_factory=_no_ints)

    def __post_init__(self) -> None:
        if not 1 <= self.num_nodes < MOST_NODES:
            raise ModelError(f"num_nodes is {self.num_nodes}; it must be from 1 to {MOST_NODES:,}")
        if len(self.tail) != len(self.head):
            raise ModelError(f"{len(self.tail)} tails and {len(self.head)} heads of edges")
        wrong = (self.tail < 0) | (self.tail >= self.head) | (self.head >= self.num_nodes)
        for e in np.flatnonzero(wrong)[:1].tolist():
            raise ModelError(
                f"edge {e} is ({self.tail[e]}, {self.head[e]}); an edge is (tail, head) with "
                f"0 <= tail < head < {self.num_nodes}"
            )
        key = self.tail * self.num_nodes + self.head
        for e in np.flatnonzero(np.diff(key) <= 0)[:1].tolist():
            raise ModelError(
                f"edge {e + 1} ({self.tail[e + 1]}, {self.head[e + 1]}) repeats the one before or "
                "stands out of order; edges ascend and are different"
            )
        if len(self.node_size) not in (0, self.num_nodes):
            raise ModelError(f"{len(self.node_size)} node sizes for {self.num_nodes} nodes")
        if (self.node_size < 1).any():
            raise ModelError(f"node_size holds {self.node_size.min()}; sizes are at least 1")

    @property
    def num_edges(self) -> int:
        return len(self.tail)

    @property
    def sizes(self) -> Ints:
        """The size of every node."""
        given = self.node_size
        return given if len(given) else np.ones(self.num_nodes, dtype=np.int64)


@dataclass(frozen=True)
class TrainingDevice:
    """One device: rates at the top clock, memory, and P(c) = alpha_w c³ + beta_w c + gamma_w."""

    name: str
    gflops: float
    gb_per_s: float
    idle_w: float
    alpha_w: float
    beta_w: float
    gamma_w: float
    clocks: tuple[float, ...] = (1.0,)
    memory_gb: float | None = None
    launch_s: float = 0.0

    def __post_init__(self) -> None:
        for name in ("gflops", "gb_per_s"):
            if not getattr(self, name) > 0:
                value = getattr(self, name)
                raise ModelError(f"device {self.name!r}: {name} is {value}; it must be positive")
        for name in ("idle_w", "alpha_w", "beta_w", "gamma_w", "launch_s"):
            if not getattr(self, name) >= 0:
                value = getattr(self, name)
                raise ModelError(f"device {self.name!r}: {name} is {value}; it must be at least 0")
        if self.memory_gb is not None and not self.memory_gb > 0:
            value = self.memory_gb
            raise ModelError(f"device {self.name!r}: memory_gb is {value}; it must be positive")
        rising = all(a < b for a, b in zip(self.clocks, self.clocks[1:], strict=False))
        if not self.clocks or not rising or not 0 < self.clocks[0] <= self.clocks[-1] <= 1:
            raise ModelError(
                f"device {self.name!r}: clocks are {list(self.clocks)}; they must ascend in (0, 1]"
            )

    def power_w(self, clock: float) -> float:
        """Power at work."""
        return self.alpha_w * clock**3 + self.beta_w * clock + self.gamma_w


@dataclass(frozen=True)
class DeviceLinks:
    """Bandwidth and latency between devices; ``overlap`` is the share that computing hides."""

    gb_per_s: Floats
    latency_s: Floats
    overlap: float = 0.0
    joule_per_gb: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.overlap <= 1:
            raise ModelError(f"links: overlap is {self.overlap}; it must be a share from 0 to 1")
        if not self.joule_per_gb >= 0:
            raise ModelError(f"links: joule_per_gb is {self.joule_per_gb}; it must be at least 0")
        if not (self.gb_per_s > 0).all() or not (self.latency_s >= 0).all():
            raise ModelError("links: gb_per_s must be positive, latency_s at least 0")


@dataclass(frozen=True)
class GnnTraining:
    """What is to be trained, and on what; ``max_part`` is the most nodes of a part."""

    graph: DataGraph
    operators: tuple[Operator, ...]
    fusions: tuple[Fusion, ...]
    parameter_bytes: float
    devices: tuple[TrainingDevice, ...]
    links: DeviceLinks
    num_parts: int
    max_part: int
    minimize: Aim = "cut"
    step_limit_s: float | None = None
    speeds: Floats = field(default_factory=_no_speeds)
    previous: Ints = field(default_factory=_no_ints, metadata=LEFT_OUT_BY_DEFAULT)

    def __post_init__(self) -> None:
        check_operators(self.operators)
        check_fusions(self.operators, self.fusions)
        if not self.devices:
            raise ModelError("devices is empty; at least one device is needed")
        n, k = self.graph.num_nodes, self.num_parts
        if not 1 <= k <= n:
            raise ModelError(f"num_parts is {k}; it must be from 1 to the {n} nodes")
        if not n <= self.max_part * k:
            raise ModelError(
                f"max_part is {self.max_part}: {k} parts of at most so many nodes do not hold the "
                f"{n} nodes; it must be at least {-(-n // k)}"
            )
        square = (self.num_devices, self.num_devices)
        for name in ("gb_per_s", "latency_s"):
            if getattr(self.links, name).shape != square:
                shape = getattr(self.links, name).shape
                raise ModelError(f"links.{name} has shape {shape}; it must be {square}")
        if self.speeds.size and (self.speeds.ndim != 2 or self.speeds.shape[1] != self.num_devices):
            raise ModelError(
                f"speeds has shape {self.speeds.shape}; it must have a column for each of the "
                f"{self.num_devices} devices"
            )
        if (self.speeds <= 0).any():
            raise ModelError(f"speeds holds {self.speeds.min()}; shares of speed are positive")
        if not self.parameter_bytes >= 0:
            raise ModelError(f"parameter_bytes is {self.parameter_bytes}; it must be at least 0")
        if self.step_limit_s is not None and not self.step_limit_s > 0:
            raise ModelError(f"step_limit_s is {self.step_limit_s}; it must be positive, or none")
        self._check_previous()

    def _check_previous(self) -> None:
        given, n = self.previous, self.graph.num_nodes
        if len(given) not in (0, n):
            raise ModelError(
                f"previous has {len(given)} entries for {n} nodes; it has all, or none"
            )
        wrong = (given < NEW) | (given >= self.num_parts)
        for v in np.flatnonzero(wrong)[:1].tolist():
            raise ModelError(
                f"previous[{v}] is {given[v]}; it must be a part from 0 to {self.num_parts - 1}, "
                f"or {NEW} for a new node"
            )

    @property
    def num_devices(self) -> int:
        return len(self.devices)

    @property
    def windows(self) -> Floats:
        """The recorded speeds, or one window at full speed."""
        return self.speeds if self.speeds.size else np.ones((1, self.num_devices))
