"""Full-graph training of a two-layer network on a graph in parts, which devices compute.

``graph`` is ``cora`` or ``citeseer`` (public data; self-loops and repeated entries are dropped),
or a random family: ``power``, ``mesh``, ``community``, ``grid``, ``molecules``, ``hubs``, with
about ``nodes`` nodes and mean degree ``degree``, drawn by the seed.

    gnn_training:model=my_model.py:Net,data=my_graph.csv,devices=my.json

takes a user's own model, graph and devices. ``data`` is an edge list, a list of neighbours, a CSV
table of edges (with ``node_table``), GraphML, a saved data set of PyTorch Geometric, a table of a
database (``sqlite:///graph.db#edges``), or many small graphs in a folder of the Open Graph
Benchmark (``ogb:ogbg-molhiv``, or the folder); what is dropped is reported. The operators of
``model``, and what can be fused, follow from its code.

What a part may hold, in nodes, is ``max_part``, else floor((1 + imbalance) n / parts), else for
``minimize=cut`` the largest part of METIS's default on that graph, and otherwise all nodes: a step
is short only where parts fit their devices, and energy may be least on one device.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from optbench.arguments import require
from optbench.gnn.ingestion.feature_scaling import Scaling
from optbench.gnn.ingestion.graph_sources import DataFormat
from optbench.plugins.protocol import Problem
from optbench.shapes.gnn_training.gnn_training_shape import GnnTrainingShape
from optbench.shapes.gnn_training.training_data import Aim, DataGraph, GnnTraining
from optbench.shapes.gnn_training.training_origin import TrainingOrigin
from optbench.shapes.protocol.shaped_instance import ShapedInstance

from ._device_files import OwnDevices, read_devices
from ._graph_changes import changed_graph
from ._graph_families import FAMILIES
from ._metis_limits import default_largest_part, default_partition
from ._modelled_networks import ModelledNetwork, Network, modelled
from ._own_training import own_network, require_features, require_files, require_memory
from ._planetoid import PLANETOID, LabelledGraph, planetoid
from ._training_devices import drawn_links, drawn_speeds, training_devices, uniform_links

if TYPE_CHECKING:
    from optbench.formats.imported import Import
    from optbench.gnn.ingestion.ingested_graph import IngestedGraph

NAME = "gnn_training"
# Of graphs that say nothing about them.
FEATURES, CLASSES = 128, 8
# Where neither the user nor a file of devices says how many.
PARTS = 4
# Changes of a graph, and what is drawn of devices, are drawn apart from the graph itself.
CHANGE_STREAM, DEVICE_STREAM = 1, 2
Source = Literal[
    "cora", "citeseer", "community", "grid", "hubs", "mesh", "molecules", "power"
]  # fmt: skip


@dataclass(frozen=True)
class GnnTrainingProblem(Problem):
    """A graph cut into parts, a graph neural network, and the devices that train it.

    ``parts`` is, if it is not given, the number of devices of a JSON file and otherwise 4, and no
    more than nodes.

    ``devices`` is ``equal`` (one modelled core per part), relative speeds of modelled cores
    (``2:1``) or shipped profiles (``A100+L4``); part p is computed by device p modulo their
    number, unless a solver places it otherwise. ``features`` and ``classes`` are those of the
    data set, and otherwise 128 and 8. ``step_limit_s`` is the limit of a step.

    ``changed`` is the share of nodes and edges that the seed deletes or inserts; the part of each
    node before is that of METIS's default, and nodes that leave it are counted.

    ``model`` is FILE.py:NAME instead of ``network``; ``data`` a file or the address of a database
    instead of ``graph``; ``devices`` may be a JSON file. ``scaling`` and ``edge_scaling`` normalise
    the features of nodes and edges.

    ``history`` is a number of windows for which speeds of the devices are drawn, with slowdowns of
    up to ``drop`` of the speed; bandwidths are drawn up to ``link_spread`` times lower or higher
    than ``link_gb_per_s``.
    """

    graph: Source = "community"
    parts: int | None = None
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
    changed: float = 0.0
    model: str | None = None
    data: str | None = None
    data_format: DataFormat | None = None
    node_table: str | None = None
    scaling: Scaling = "none"
    edge_scaling: Scaling = "none"
    epochs: int = 200
    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    history: int = 0
    drop: float = 0.6
    link_spread: float = 1.0

    def __post_init__(self) -> None:
        known = (*PLANETOID, *FAMILIES)
        self._require(self.graph in known, "graph", f"one of {', '.join(known)}")
        for name in ("parts", "hidden", "nodes", "features", "classes", "max_part", "epochs"):
            value = getattr(self, name)
            self._require(value is None or value >= 1, name, "at least 1")
        for name in ("learning_rate", "weight_decay"):
            value = getattr(self, name)
            least = value > 0 or (value == 0 and name == "weight_decay")
            self._require(least and value < np.inf, name, "positive (weight_decay may be 0)")
        self._check_own()
        public = self.graph in PLANETOID
        for name in ("nodes", "degree"):
            drawn = getattr(self, name) is None or not public
            self._require(drawn, name, f"left out for graph={self.graph}, which has its own")
        degree = self.degree
        self._require(degree is None or 0 < degree < np.inf, "degree", "positive")
        if not public:
            takes = degree is None or FAMILIES[self.graph].degree is not None
            self._require(takes, "degree", f"left out for graph={self.graph}, which has its own")
        self._require(0 <= self.changed < 1, "changed", "at least 0 and below 1")
        share = self.imbalance
        self._require(share is None or 0 <= share < np.inf, "imbalance", "none, or at least 0")
        self._require(0 < self.link_gb_per_s < np.inf, "link_gb_per_s", "positive")
        self._require(0 <= self.latency_s < np.inf, "latency_s", "at least 0")
        both = share is None or self.max_part is None
        self._require(both, "imbalance", "none where max_part is given")
        self._require(self.history >= 0, "history", "at least 0")
        self._require(0 <= self.drop < 1, "drop", "from 0 to below 1")
        self._require(1 <= self.link_spread < np.inf, "link_spread", "at least 1")

    def _check_own(self) -> None:
        """Refuse what goes with another source of graphs or networks."""
        if self.data is None:
            for name in ("data_format", "node_table"):
                self._require(getattr(self, name) is None, name, "left out without data=FILE")
            for name in ("scaling", "edge_scaling"):
                value = getattr(self, name)
                self._require(value == "none", name, "left out without data=FILE")
        else:
            known = self.graph == type(self).graph
            self._require(known, "graph", f"left out with data={self.data}")
            still = self.changed == 0
            self._require(still, "changed", f"left out with data={self.data}")
            for name in ("nodes", "degree"):
                value = getattr(self, name)
                self._require(value is None, name, f"left out with data={self.data}")
        if self.model is not None:
            known = self.network == type(self).network
            self._require(known, "network", f"left out with model={self.model}")

    def _require(self, holds: bool, field: str, allowed: str) -> None:
        require(holds, NAME, field, getattr(self, field), allowed)

    @property
    def num_parts(self) -> int:
        """The number of parts that is given, or that of devices in a file, or 4."""
        if self.parts is not None:
            return self.parts
        return len(self._given_devices().devices) if self._has_device_file else PARTS

    @property
    def _has_device_file(self) -> bool:
        return self.devices.endswith(".json")

    def instance(self, seed: int = 0) -> ShapedInstance:
        found = self.imported(seed)
        if found is not None:
            own: ShapedInstance = found.instance  # type: ignore[assignment]  # of this shape
            return own
        self._require_files()
        return self._made(self._source(seed), seed)

    def imported(self, seed: int = 0) -> Import | None:
        if self.data is None:
            return None
        from optbench.formats.imported import Import

        self._require_files()
        found = self.ingested()
        classes = found.num_classes or self.classes or CLASSES
        features = found.num_features or self.features or FEATURES
        source = LabelledGraph(found.graph, features, classes)
        made: Any = self._made(source, seed, found.ids, found.nodes)
        return Import(made, None, found.report)

    def _require_files(self) -> None:
        """Refuse names of files that are not there, before anything is read."""
        devices = self.devices if self._has_device_file else None
        require_files(self.model, self.data, self.node_table, devices)

    def ingested(self) -> IngestedGraph:
        """The graph of ``data``, with its features and labels."""
        from optbench.gnn.ingestion.graph_sources import IngestOptions, read_graph

        options = IngestOptions(self.data_format, self.node_table, self.scaling, self.edge_scaling)
        found = read_graph(self.data, options)
        require_features(found, str(self.data), self.features)
        return found

    def _made(
        self, source: LabelledGraph, seed: int, names: tuple[str, ...] = (), nodes: Any = None
    ) -> ShapedInstance:
        if self.parts is None:
            own = replace(self, parts=min(self.num_parts, source.graph.num_nodes))
            return own._made(source, seed, names, nodes)
        made = self._instance(source, seed)
        if self.data is None and self.model is None:
            return made
        sizes = self._widths(source)
        rates = (self.epochs, self.learning_rate, self.weight_decay)
        place = self.node_table or self.data or f"graph={self.graph}"
        origin = TrainingOrigin(place, names, nodes, self.model, *sizes, *rates, seed)
        return replace(made, origin=origin)

    def _instance(self, source: LabelledGraph, seed: int) -> ShapedInstance:
        name, shape = self._name(source.graph, seed), GnnTrainingShape()
        if self.changed == 0:
            return shape.instance(name, self._data(source, seed))
        self._require_parts(source.graph)
        rng = np.random.default_rng((seed, CHANGE_STREAM))
        after = changed_graph(source.graph, self.changed, rng)
        previous = after.carried(default_partition(source.graph, self.num_parts))
        changed = self._data(replace(source, graph=after.graph), seed)
        data = replace(changed, previous=previous)
        return shape.instance(f"{name}-changed-{self.changed:g}-{seed}", data)

    def _name(self, graph: DataGraph, seed: int) -> str:
        if self.data is not None:
            return f"{Path(self.data.partition('#')[0]).stem}-{self.num_parts}"
        drawn = "" if self.graph in PLANETOID else f"-{graph.num_nodes}-{seed}"
        return f"{self.graph}{drawn}-{self.num_parts}"

    def _source(self, seed: int) -> LabelledGraph:
        """The graph with its numbers of features and classes."""
        if self.graph in PLANETOID:
            return planetoid(self.graph)
        family = FAMILIES[self.graph]
        nodes, degree = self.nodes or family.nodes, self.degree or family.degree or 0.0
        rng = np.random.default_rng(seed)
        return LabelledGraph(family.draw(nodes, degree, rng), FEATURES, CLASSES)

    def _data(self, source: LabelledGraph, seed: int) -> GnnTraining:
        graph = source.graph
        self._require_parts(graph)
        network, devices = self._network(source), self._devices(seed)
        data = GnnTraining(
            graph,
            tuple(network.operators),
            tuple(network.fusions),
            network.parameter_bytes,
            devices.devices,
            devices.links,
            self.num_parts,
            self._max_part(graph),
            self.minimize,
            self.step_limit_s,
            devices.speeds,
        )
        require_memory(data)
        return data

    def _require_parts(self, graph: DataGraph) -> None:
        within = self.num_parts <= graph.num_nodes
        self._require(within, "parts", f"at most the {graph.num_nodes} nodes")

    def _network(self, source: LabelledGraph) -> ModelledNetwork:
        widths = self._widths(source)
        if self.model is not None:
            return own_network(self.model, *widths)
        return modelled(self.network, *widths)

    def _widths(self, source: LabelledGraph) -> tuple[int, int, int]:
        """Features, hidden values and classes."""
        features = self.features or source.num_features
        return features, self.hidden, self.classes or source.num_classes

    def _devices(self, seed: int) -> OwnDevices:
        """The devices, with what is drawn of them; the graph has numbers of its own."""
        found, rng = self._given_devices(), np.random.default_rng((seed, DEVICE_STREAM))
        if self.history:
            free = found.speeds.size == 0
            self._require(free, "history", f"left out: {self.devices} states the speeds")
            speeds = drawn_speeds(len(found.devices), self.history, self.drop, rng)
            found = replace(found, speeds=speeds)
        if self.link_spread > 1:
            found = replace(found, links=drawn_links(found.links, self.link_spread, rng))
        return found

    def _given_devices(self) -> OwnDevices:
        links = (self.link_gb_per_s, self.latency_s, self.overlap)
        if self._has_device_file:
            return read_devices(self.devices, *links)
        devices = training_devices(self.devices, self.num_parts)
        return OwnDevices(devices, uniform_links(len(devices), *links), np.zeros((0, 0)))

    def _max_part(self, graph: DataGraph) -> int:
        """The most nodes of a part."""
        parts, nodes = self.num_parts, graph.num_nodes
        least = -(-nodes // parts)
        if self.max_part is not None:
            enough = self.max_part >= least
            self._require(enough, "max_part", f"at least {least}, the fair share of {nodes} nodes")
            return min(self.max_part, nodes)
        if self.imbalance is not None:
            return max(least, min(nodes, floor((1 + self.imbalance) * nodes / parts)))
        return default_largest_part(graph, parts) if self.minimize == "cut" else nodes
