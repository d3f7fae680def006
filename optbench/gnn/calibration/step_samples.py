"""Training steps that are measured to fit the figures of a core and of its link.

Samples are induced subgraphs of the instance's graph, of the first nodes in the order of a search
in breadth, so that nodes and arcs vary while the network stays the same. On one core the whole
subgraph is one part; on two equal cores its halves are cut once along that order, which exchanges
few rows, and once at random, which exchanges many. The seconds of one core are its processor time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from optbench.errors import UnsupportedError
from optbench.gnn.runtime.core_placement import usable_cores
from optbench.gnn.runtime.measured_turns import measured_in_turns
from optbench.shapes.gnn_training.adjacency import adjacency_of
from optbench.shapes.gnn_training.training_data import (
    DataGraph,
    DeviceLinks,
    GnnTraining,
    Ints,
    TrainingDevice,
)
from optbench.shapes.gnn_training.training_plan import TrainingPlan

# Shares of the graph on one core and on two; a sample has at most so many nodes.
SHARES = ((1.0, 1 / 2, 1 / 4, 1 / 16), (1.0, 1 / 8))
MOST_NODES, LEAST_NODES = 50_000, 16


@dataclass(frozen=True)
class StepSample:
    """A plan on one core or on two equal ones, and the measured seconds of its step."""

    data: GnnTraining
    plan: TrainingPlan
    seconds: float


def measured_samples(
    data: GnnTraining,
    fusions: Ints,
    repeats: int,
    shares: tuple[tuple[float, ...], tuple[float, ...]] = SHARES,
) -> list[StepSample]:
    """Measure steps on one core of this machine, and on two where there are two."""
    shortest = min(data.graph.num_nodes, MOST_NODES)
    if shortest < LEAST_NODES:
        raise UnsupportedError(
            f"the graph has {data.graph.num_nodes} nodes; a core is fitted on at least "
            f"{LEAST_NODES}. Use a larger graph, and the same file of devices for this one"
        )
    plans = [(1, share, False) for share in shares[0]]
    if len(usable_cores()) > 1:
        plans += [(2, share, mixed) for share in shares[1] for mixed in (False, True)]
    order, cases = breadth_first(data.graph), list[tuple[GnnTraining, TrainingPlan]]()
    for cores, share, mixed in plans:
        nodes = max(LEAST_NODES, round(share * shortest))
        part = np.arange(nodes, dtype=np.int64) * cores // nodes
        if mixed:
            part = np.random.default_rng(0).permutation(part)
        given = on_cores(data, induced(data.graph, order[:nodes]), cores)
        cases.append((given, TrainingPlan(part, fusions=fusions)))
    found = list[StepSample]()
    for case, read in zip(cases, measured_in_turns(cases, repeats), strict=True):
        # Other work on the machine only lengthens a step.
        alone = min(row[0] for row in read.provenance["busy_s"])
        both = min(read.readings["step_s"])
        found.append(StepSample(*case, alone if case[0].num_devices == 1 else both))
    return found


def on_cores(data: GnnTraining, graph: DataGraph, cores: int) -> GnnTraining:
    """The same network on another graph, in as many parts as there are equal cores."""
    fastest: TrainingDevice = max(data.devices, key=lambda each: each.gflops)
    core = replace(fastest, memory_gb=None, launch_s=0.0)
    square = (cores, cores)
    return replace(
        data,
        graph=graph,
        devices=(core,) * cores,
        links=DeviceLinks(np.ones(square), np.zeros(square)),
        num_parts=cores,
        max_part=graph.num_nodes,
        minimize="step",
        step_limit_s=None,
        speeds=np.zeros((0, 0)),
    )


def breadth_first(graph: DataGraph) -> Ints:
    """The nodes in the order of a search in breadth, component by component."""
    ptr, neighbour = adjacency_of(graph)
    seen, order = np.zeros(graph.num_nodes, dtype=bool), list[Ints]()
    for first in range(graph.num_nodes):
        if seen[first]:
            continue
        layer = np.array([first], dtype=np.int64)
        seen[first] = True
        while len(layer):
            order.append(layer)
            ends = [neighbour[ptr[v] : ptr[v + 1]] for v in layer.tolist()]
            layer = np.unique(np.concatenate(ends))
            layer = layer[~seen[layer]]
            seen[layer] = True
    return np.concatenate(order)


def induced(graph: DataGraph, nodes: Ints) -> DataGraph:
    """The graph of these nodes, in this order, and the edges between them."""
    number = np.full(graph.num_nodes, -1, dtype=np.int64)
    number[nodes] = np.arange(len(nodes))
    tail, head = number[graph.tail], number[graph.head]
    inside = (tail >= 0) & (head >= 0)
    low, high = np.minimum(tail, head)[inside], np.maximum(tail, head)[inside]
    at = np.lexsort((high, low))
    sizes = graph.node_size[nodes] if len(graph.node_size) else graph.node_size
    return DataGraph(len(nodes), low[at], high[at], sizes)
