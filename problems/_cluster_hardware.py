"""Hardware of gpu_cluster: nodes in racks, one pool of GPUs and one of CPU sockets per node."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.model.instance import Floats, Ints, Links, Places, Pools
from optbench.power.profiles import Profile, profile
from optbench.units import DAY_S

# Between the GPUs and the sockets of a node: PCI Express 4.0 x16, 31.5 GB/s (PCI-SIG); its latency
# and energy are modelled, as in gpu_dag.
INSIDE_GBIT_S, INSIDE_MS, INSIDE_J_PER_GB = 252.0, 0.01, 1.0
# Within a rack: one 100 Gbit/s port per node (100GBASE of IEEE 802.3bj) and one switch. Energy is
# modelled: 10 J per GB and switch, the value that gpu_dag has for one switch.
RACK_GBIT_S, RACK_MS, RACK_J_PER_GB = 100.0, 0.02, 10.0
# Between racks three switches are passed (leaf, spine, leaf), and uplinks are oversubscribed four
# to one (modelled: a common ratio of leaf-spine networks), so that a node has a quarter of a port.
BETWEEN_GBIT_S, BETWEEN_MS, BETWEEN_J_PER_GB = 25.0, 0.06, 30.0
SOCKETS = 2
# A device that wakes draws twice its idle power (modelled): this share of it beyond idling.
WAKE_SHARE = 1.0
# Failures per day: GPUs had 58.7 % of the 419 unexpected interruptions of 16,384 H100 in 54 days;
# CPUs had two, a socket per four GPUs counted (Llama Team, The Llama 3 Herd of Models,
# 2024, section 3.3.4). Older types fail more often (modelled).
GPU_FAILURES_PER_DAY = 0.587 * 419 / 16_384 / 54
SOCKET_FAILURES_PER_DAY = 2 / 4_096 / 54
AGEING = {"V100-PCIe": 2.0, "T4": 2.0, "P100": 3.0, "K40c": 4.0, "C2070": 4.0}


@dataclass(frozen=True)
class Hardware:
    """The nodes: a type and a number of GPUs each.

    Pools are in the order of the nodes, GPUs before sockets. ``shape_idx`` of a pool is an index
    into ``shapes``, whose last entry is the CPU where there are sockets.
    """

    shapes: tuple[Profile, ...]
    node_type: Ints
    node_gpus: Ints
    has_cpus: bool
    nodes_per_rack: int
    sleeps: bool
    fails: bool
    wake_s: float | None

    @property
    def pool_node(self) -> Ints:
        return np.repeat(np.arange(len(self.node_type)), 1 + self.has_cpus)

    @property
    def shape_idx(self) -> Ints:
        return self._by_pool(self.node_type, len(self.shapes) - 1)

    @property
    def pool_count(self) -> Ints:
        return self._by_pool(self.node_gpus, SOCKETS)

    @property
    def num_gpus(self) -> int:
        return int(self.node_gpus.sum())

    @property
    def room_gb(self) -> float:
        """Memory of the largest GPU."""
        of_gpus = self.shapes[:-1] if self.has_cpus else self.shapes
        return max(shape.memory_gb for shape in of_gpus)

    def is_cpu(self, shape_idx: int) -> bool:
        return self.has_cpus and shape_idx == len(self.shapes) - 1

    def _by_pool(self, of_gpus: Ints, of_sockets: int) -> Ints:
        if not self.has_cpus:
            return of_gpus.copy()
        return np.column_stack([of_gpus, np.full(len(of_gpus), of_sockets)]).ravel()

    def places(self) -> Places:
        """Cluster, racks, nodes."""
        n = len(self.node_type)
        rack = np.arange(n) // self.nodes_per_rack
        racks = int(rack[-1]) + 1
        names = ["cluster", *(f"rack-{r}" for r in range(racks)), *(f"node-{i}" for i in range(n))]
        parent = np.concatenate(([-1], np.zeros(racks), 1 + rack)).astype(np.int64)
        return Places(tuple(names), parent)

    def pools(self) -> Pools:
        """Pools at their nodes, which are the last places."""
        of_pool = [self.shapes[t] for t in self.shape_idx.tolist()]
        node = self.pool_node
        first = len(self.places().names) - len(self.node_type)
        idle_w = np.array([shape.idle_w for shape in of_pool], dtype=float)
        wake = None if self.wake_s is None else np.full(len(node), self.wake_s)
        return Pools(
            tuple(f"{s.name.lower()}-{i}" for s, i in zip(of_pool, node.tolist(), strict=True)),
            first + node,
            self.pool_count,
            idle_w,
            np.array([shape.sleep_w for shape in of_pool], dtype=float),
            np.full(len(node), self.sleeps),
            np.array([shape.memory_gb for shape in of_pool], dtype=float),
            failures_per_s=self.failures_per_s() if self.fails else None,
            wake_s=wake,
            wake_j=None if wake is None else WAKE_SHARE * idle_w * wake,
        )

    def failures_per_s(self) -> Floats:
        """How often a device of each pool fails."""
        cpus = [self.is_cpu(t) for t in range(len(self.shapes))]
        per_day = [
            SOCKET_FAILURES_PER_DAY if cpu else GPU_FAILURES_PER_DAY * AGEING.get(shape.name, 1.0)
            for shape, cpu in zip(self.shapes, cpus, strict=True)
        ]
        return np.array(per_day)[self.shape_idx] / DAY_S

    def links(self) -> Links:
        """Every pool is linked with every other one."""
        node = self.pool_node
        rack = node // self.nodes_per_rack
        same_node, same_rack = node[:, None] == node, rack[:, None] == rack

        def matrix(inside: float, in_rack: float, between: float) -> np.ndarray:
            out = np.where(same_node, inside, np.where(same_rack, in_rack, between))
            np.fill_diagonal(out, 0.0)
            return out

        return Links(
            matrix(INSIDE_MS / 1e3, RACK_MS / 1e3, BETWEEN_MS / 1e3),
            matrix(8 / INSIDE_GBIT_S, 8 / RACK_GBIT_S, 8 / BETWEEN_GBIT_S),
            matrix(INSIDE_J_PER_GB, RACK_J_PER_GB, BETWEEN_J_PER_GB),
        )


def hardware(
    types: tuple[Profile, ...],
    nodes: int,
    gpus: int,
    nodes_per_rack: int,
    *,
    cpus: bool,
    sleeps: bool = False,
    fails: bool = False,
    wake_s: float | None = None,
) -> Hardware:
    """Deal the types over the nodes in turn; nodes have ``gpus`` GPUs and half as many in turn.

    The number changes from node to node and from round to round, so that each type has both and
    an even number of nodes has three quarters of ``gpus`` on average.
    """
    at, used = np.arange(nodes), min(len(types), nodes)
    turn = (at // used + at % used) % 2
    return Hardware(
        (*types[:used], profile("CPU")) if cpus else types[:used],
        at % used,
        np.where(turn == 0, gpus, max(1, gpus // 2)),
        cpus,
        nodes_per_rack,
        sleeps,
        fails,
        wake_s,
    )
