"""What parts may hold: loads of nodes and limits of parts.

For ``minimize=cut`` the load is the number of nodes, and the limit ``max_part`` for all parts.

Otherwise the load of a node is its share of a step's computing, α size + β degree, where α and β
are seconds per unit of size and per arc of the whole graph on the first device. A part's share of
all loads is that of its device in the summed speed 1 / (seconds of the whole graph on that device),
divided among the device's parts, and the limit is above it by a tolerance of ``TOLERANCES``; the
device's memory is a limit of the same kind. Where ``max_part`` is below the largest of these
shares, loads are numbers of nodes, so that both limits are one.

Where exchanging rows takes long, a step is shortest on fewer devices: after all of them, the
fastest m devices are tried for each m. What they cannot reach is known beforehand, the time of all
work at all their speeds with the sum of gradients (``ideal_step_s``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from optbench.shapes.gnn_training.operator_costs import costs_of_plan
from optbench.shapes.gnn_training.step_costs import part_seconds
from optbench.shapes.gnn_training.training_data import Floats, GnnTraining, Ints

TOLERANCES = (0.001, 0.02)
# The mean load of a node, where it is not 1.
MEAN_LOAD = 100


@dataclass(frozen=True)
class PartLoads:
    """The load of each node, and the limit of each part."""

    size: Ints
    limit: Ints


def part_loads(data: GnnTraining, device: Ints | None = None) -> Iterator[PartLoads]:
    """Yield the ways of balancing parts on these devices that are searched, one after the other."""
    ones = np.ones(data.graph.num_nodes, dtype=np.int64)
    if data.minimize == "cut":
        yield PartLoads(ones, np.full(data.num_parts, data.max_part, dtype=np.int64))
        return
    share = part_shares(data, device)
    for tolerance in TOLERANCES:
        if data.max_part < data.graph.num_nodes:
            wanted = np.ceil(share * (1 + tolerance) * data.graph.num_nodes)
            limit = np.minimum(wanted, data.max_part).astype(np.int64)
            yield PartLoads(ones, _with_room(limit, data.graph.num_nodes, data.max_part))
        else:
            size = node_loads(data)
            yield PartLoads(size, np.ceil(share * (1 + tolerance) * size.sum()).astype(np.int64))


def device_choices(data: GnnTraining) -> Iterator[Ints]:
    """Yield the device of every part: on all devices as by default, then on ever fewer ones."""
    default = np.arange(data.num_parts, dtype=np.int64) % data.num_devices
    if data.minimize == "cut":
        yield default
        return
    fastest = np.argsort(-device_speeds(data), kind="stable")
    most = min(data.num_parts, data.num_devices)
    if most == data.num_devices:
        yield default
        most -= 1
    for count in range(most, 0, -1):
        yield np.sort(fastest[:count])[np.arange(data.num_parts) % count]


def device_speeds(data: GnnTraining) -> Floats:
    """1 / (seconds of the whole graph) of each device, in the mean over the windows."""
    costs = costs_of_plan(data.operators, data.fusions, ())
    whole = (float(data.graph.sizes.sum()), 2.0 * data.graph.num_edges)
    seconds = [part_seconds(costs, *whole, each, each.clocks[-1]) for each in data.devices]
    speeds: Floats = data.windows.mean(axis=0) / np.maximum(seconds, 1e-300)
    return speeds


def ideal_step_s(data: GnnTraining, device: Ints) -> float:
    """All work at all speeds of the devices that hold parts."""
    return 1.0 / float(device_speeds(data)[np.unique(device)].sum())


def holds_all(data: GnnTraining, device: Ints) -> bool:
    """Whether the memories of these devices together have room for the whole graph."""
    return float(_memory_shares(data)[np.unique(device)].sum()) >= 1.0


def part_shares(data: GnnTraining, device: Ints | None = None) -> Floats:
    """The share of all work that each part has where devices are done at the same time.

    Part p is on device p modulo their number, unless ``device`` says otherwise."""
    speed = device_speeds(data)
    if device is None:
        device = np.arange(data.num_parts) % data.num_devices
    used = np.bincount(device, minlength=data.num_devices)
    wanted = np.where(used > 0, speed, 0.0) / speed[used > 0].sum()
    most = _memory_shares(data)
    for _ in range(data.num_devices):  # what exceeds a device's memory goes to the others
        over = wanted > most
        free = (~over) & (used > 0)
        if not over.any() or not free.any():
            break
        rest = (wanted - np.minimum(wanted, most)).sum()
        wanted = np.minimum(wanted, most)
        wanted[free] += rest * wanted[free] / wanted[free].sum()
    share: Floats = (wanted / np.maximum(used, 1))[device]
    return share


def _memory_shares(data: GnnTraining) -> Floats:
    """The share of the whole graph that fits into each device's memory."""
    costs = costs_of_plan(data.operators, data.fusions, ())
    node = sum(each.kept_bytes_per_node for each in costs)
    arc = sum(each.kept_bytes_per_arc for each in costs)
    need = node * float(data.graph.sizes.sum()) + arc * 2.0 * data.graph.num_edges
    have = [
        np.inf if each.memory_gb is None else each.memory_gb * 1e9 - data.parameter_bytes
        for each in data.devices
    ]
    return np.maximum(np.array(have), 0.0) / max(need, 1e-300)


def node_loads(data: GnnTraining) -> Ints:
    """Whole loads of the nodes, about ``MEAN_LOAD`` in the mean."""
    costs = costs_of_plan(data.operators, data.fusions, ())
    graph, device = data.graph, data.devices[0]
    nodes, arcs = float(graph.sizes.sum()), 2.0 * graph.num_edges

    def seconds(of_nodes: float, of_arcs: float) -> float:
        return part_seconds(costs, of_nodes, of_arcs, device, device.clocks[-1])

    base = seconds(nodes, arcs)
    per_node = (seconds(1.01 * nodes, arcs) - base) / (0.01 * nodes)
    per_arc = (seconds(nodes, 1.01 * arcs) - base) / (0.01 * arcs) if arcs else 0.0
    degree = np.bincount(graph.tail, minlength=graph.num_nodes)
    degree += np.bincount(graph.head, minlength=graph.num_nodes)
    load = per_node * graph.sizes + per_arc * degree
    if load.mean() <= 0:
        return np.ones(graph.num_nodes, dtype=np.int64)
    return np.maximum(1, np.round(MEAN_LOAD * load / load.mean())).astype(np.int64)


def _with_room(limit: Ints, nodes: int, most: int) -> Ints:
    """Limits raised, the smallest first, until all nodes have room."""
    out = limit.copy()
    while out.sum() < nodes:
        p = int(np.where(out < most, out, nodes + 1).argmin())
        out[p] = min(most, out[p] + nodes - int(out.sum()))
    return out
