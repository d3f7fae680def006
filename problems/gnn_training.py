"""Full-graph training of a two-layer network on a graph in parts, which devices compute.

``graph`` is ``cora`` or ``citeseer`` (public data; self-loops and repeated entries are dropped),
or a random family: ``power``, ``mesh``, ``community``, ``grid``, ``molecules``, ``hubs``, with
about ``nodes`` nodes and mean degree ``degree``, drawn by the seed.

What a part may hold, in nodes, is ``max_part``, else floor((1 + imbalance) n / parts), else for
``minimize=cut`` the largest part of METIS's default on that graph, and otherwise all nodes: a step
is short only where parts fit their devices, and energy may be least on one device.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import Literal

import numpy as np

from optbench.arguments import require
from optbench.plugins.protocol import Problem
from optbench.shapes.gnn_training.gnn_training_shape import GnnTrainingShape
from optbench.shapes.gnn_training.training_data import Aim, DataGraph, GnnTraining
from optbench.shapes.protocol.shaped_instance import ShapedInstance

from ._graph_families import FAMILIES
from ._metis_limits import default_largest_part
from ._modelled_networks import Network, modelled
from ._planetoid import PLANETOID, LabelledGraph, planetoid
from ._training_devices import training_devices, uniform_links

NAME = "gnn_training"
Source = Literal[
    "cora", "citeseer", "community", "grid", "hubs", "mesh", "molecules", "power"
]  # fmt: skip


@dataclass(frozen=True)
class GnnTrainingProblem(Problem):
    """A graph cut into parts, a graph neural network, and the devices that train it.

    ``devices`` is ``equal`` (one modelled core per part), relative speeds of modelled cores
    (``2:1``) or shipped profiles (``A100+L4``); part p is computed by device p modulo their
    number, unless a solver places it otherwise. ``features`` and ``classes`` are those of the
    data set, and otherwise 128 and 8. ``step_limit_s`` is the limit of a step.
    """

    graph: Source = "community"
    parts: int = 4
    nodes: int | None = None
    degree: float | None = None
    devices: str = "equal"
    minimize: Aim = "cut"
    max_part: int | None = None
    imbalance: float | None = None
    network: Network = "gcn"
    hidden: int = 16
    features: int | None = None
    classes: int | None = None
    link_gb_per_s: float = 1.0
    latency_s: float = 5e-5
    overlap: float = 0.0
    step_limit_s: float | None = None

    def __post_init__(self) -> None:
        known = (*PLANETOID, *FAMILIES)
        self._require(self.graph in known, "graph", f"one of {', '.join(known)}")
        for name in ("parts", "hidden", "nodes", "features", "classes", "max_part"):
            value = getattr(self, name)
            self._require(value is None or value >= 1, name, "at least 1")
        public = self.graph in PLANETOID
        for name in ("nodes", "degree"):
            drawn = getattr(self, name) is None or not public
            self._require(drawn, name, f"left out for graph={self.graph}, which has its own")
        degree = self.degree
        self._require(degree is None or 0 < degree < np.inf, "degree", "positive")
        if not public:
            takes = degree is None or FAMILIES[self.graph].degree is not None
            self._require(takes, "degree", f"left out for graph={self.graph}, which has its own")
        share = self.imbalance
        self._require(share is None or 0 <= share < np.inf, "imbalance", "none, or at least 0")
        both = share is None or self.max_part is None
        self._require(both, "imbalance", "none where max_part is given")

    def _require(self, holds: bool, field: str, allowed: str) -> None:
        require(holds, NAME, field, getattr(self, field), allowed)

    def instance(self, seed: int = 0) -> ShapedInstance:
        source = self._source(seed)
        return GnnTrainingShape().instance(self._name(source.graph, seed), self._data(source))

    def _name(self, graph: DataGraph, seed: int) -> str:
        drawn = "" if self.graph in PLANETOID else f"-{graph.num_nodes}-{seed}"
        return f"{self.graph}{drawn}-{self.parts}"

    def _source(self, seed: int) -> LabelledGraph:
        """The graph with its numbers of features and classes."""
        if self.graph in PLANETOID:
            return planetoid(self.graph)
        family = FAMILIES[self.graph]
        nodes, degree = self.nodes or family.nodes, self.degree or family.degree or 0.0
        rng = np.random.default_rng(seed)
        return LabelledGraph(family.draw(nodes, degree, rng), 128, 8)

    def _data(self, source: LabelledGraph) -> GnnTraining:
        graph = source.graph
        within = self.parts <= graph.num_nodes
        self._require(within, "parts", f"at most the {graph.num_nodes} nodes")
        devices = training_devices(self.devices, self.parts)
        network = modelled(
            self.network,
            self.features or source.num_features,
            self.hidden,
            self.classes or source.num_classes,
        )
        return GnnTraining(
            graph,
            tuple(network.operators),
            tuple(network.fusions),
            network.parameter_bytes,
            devices,
            uniform_links(len(devices), self.link_gb_per_s, self.latency_s, self.overlap),
            self.parts,
            self._max_part(graph),
            self.minimize,
            self.step_limit_s,
        )

    def _max_part(self, graph: DataGraph) -> int:
        """The most nodes of a part."""
        nodes, least = graph.num_nodes, -(-graph.num_nodes // self.parts)
        if self.max_part is not None:
            enough = self.max_part >= least
            self._require(enough, "max_part", f"at least {least}, the fair share of {nodes} nodes")
            return min(self.max_part, nodes)
        if self.imbalance is not None:
            return max(least, min(nodes, floor((1 + self.imbalance) * nodes / self.parts)))
        return default_largest_part(graph, self.parts) if self.minimize == "cut" else nodes
