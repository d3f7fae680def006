"""Lower bounds on the time and the energy of a step, from work and speeds alone.

Whatever the plan, its parts together have all nodes N and all arcs A of the graph, and its kernels
together at least the flops, bytes and launches of ``least_cost``. A part with n nodes and a arcs on
device d at clock c takes at least

    t_dc(n, a) = max( (flop_n n + flop_a a) / (c F_d), (byte_n n + byte_a a) / B_d ) + launches_d

Let u = w n / N + (1 − w) a / A be a measure of work for some share w: the parts have 1 of it, and a
unit takes device d at least q_dc = min { t_dc(n, a) − launches_d : u = 1 }, at an end of the
segment or where flops and bytes take equally long. In a window with speeds s_d, with k parts,

    step   ≥ (1 + k min_d launches_d / q_d) / Σ_d (s_d / q_d)         all work over all speeds
    step   ≥ min_d t_d(nodes of ⌈n / k⌉ smallest, their arcs) / s_d    the largest part
    energy ≥ Σ_d min(P_d, idle_d) step + min_dc (P_dc − idle_d)⁺ q_dc / s_d
             + k min_dc (P_dc − idle_d)⁺ launches_d / s_d

at the top clock for the step, over all clocks for the energy, P_d the least power of a clock. The
exchange of rows and of gradients is counted as 0. Sums are of numbers that are not negative; the
result is lowered by ``EVALUATION`` of itself, more than their rounding and that of the cost model.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from optbench.errors import OptbenchError
from optbench.model.result import Bound
from optbench.shapes.gnn_training.operator_costs import OperatorCost
from optbench.shapes.gnn_training.step_costs import GIGA
from optbench.shapes.gnn_training.training_data import Floats, GnnTraining, TrainingDevice

METHOD = "training_work"
EVALUATION = 2.0**-36
# Shares of nodes and arcs in the measure of work that are tried.
SHARES = np.linspace(0.0, 1.0, 65).tolist()
COSTS = ("flop_per_node", "flop_per_arc", "bytes_per_node", "bytes_per_arc", "launches")


@dataclass(frozen=True)
class LeastCost:
    """The least that the kernels of any plan cost together, one resource at a time."""

    flop_per_node: float
    flop_per_arc: float
    bytes_per_node: float
    bytes_per_arc: float
    launches: float

    def seconds(self, nodes: float, arcs: float, device: TrainingDevice, clock: float) -> float:
        """Seconds of a part without its launches."""
        flops = self.flop_per_node * nodes + self.flop_per_arc * arcs
        moved = self.bytes_per_node * nodes + self.bytes_per_arc * arcs
        return max(flops / (clock * device.gflops * GIGA), moved / (device.gb_per_s * GIGA))


def least_cost(data: GnnTraining) -> LeastCost:
    """Each operator counts its own cost, or its share of the cheapest fusion that replaces it."""
    return LeastCost(*(_least_total(data, name) for name in COSTS))


def _least_total(data: GnnTraining, name: str) -> float:
    def value(cost: OperatorCost) -> float:
        return float(getattr(cost, name))

    total = 0.0
    for i, operator in enumerate(data.operators):
        fused = [value(f.cost) / len(f.replaces) for f in data.fusions if i in f.replaces]
        total += min([value(operator.cost), *fused])
    return total


def unit_seconds(
    cost: LeastCost, sizes: tuple[float, float], share: float, on: TrainingDevice, clock: float
) -> float:
    """q: the least seconds of a unit of work, with ``share`` of it counted by nodes."""
    nodes, arcs = sizes
    # Points (x, y) of the segment share x + (1 − share) y = 1: n = N x, a = A y.
    if share in (0.0, 1.0):
        ends = [(0.0, 1.0)] if share == 0.0 else [(1.0, 0.0)]
        return min(cost.seconds(nodes * x, arcs * y, on, clock) for x, y in ends)
    rate, moved = clock * on.gflops * GIGA, on.gb_per_s * GIGA
    by_node = (cost.flop_per_node / rate - cost.bytes_per_node / moved) * nodes
    by_arc = (cost.flop_per_arc / rate - cost.bytes_per_arc / moved) * arcs
    points = [(1 / share, 0.0), (0.0, 1 / (1 - share))]
    # Where both take equally long: by_node x + by_arc y = 0.
    if by_node * by_arc < 0:
        y = 1 / ((1 - share) - share * by_arc / by_node)
        points.append((-by_arc / by_node * y, y))
    return min(cost.seconds(nodes * x, arcs * y, on, clock) for x, y in points)


def least_step_s(data: GnnTraining) -> float:
    """The mean over the windows of the least step, before it is lowered."""
    return float(_least_steps(data).mean())


def _least_steps(data: GnnTraining) -> Floats:
    """The least step of each window."""
    cost, sizes = least_cost(data), _sizes(data)
    launch = np.array([cost.launches * each.launch_s for each in data.devices])
    alone = _largest_part_s(data, cost) + launch
    best: Floats = (alone / data.windows).min(axis=1)
    for share in _shares(cost, sizes):
        unit = np.array([unit_seconds(cost, sizes, share, d, d.clocks[-1]) for d in data.devices])
        if (unit > 0).all():
            work = 1 + data.num_parts * (launch / unit).min()
            best = np.maximum(best, work / (data.windows / unit).sum(axis=1))
    return best


def _shares(cost: LeastCost, sizes: tuple[float, float]) -> list[float]:
    """Shares to try; where flops alone count, or bytes alone, that of nodes in them is best."""
    nodes, arcs = sizes
    out = list(SHARES)
    for of_node, of_arc in (
        (cost.flop_per_node * nodes, cost.flop_per_arc * arcs),
        (cost.bytes_per_node * nodes, cost.bytes_per_arc * arcs),
    ):
        if of_node + of_arc > 0:
            out.append(of_node / (of_node + of_arc))
    return out


def _sizes(data: GnnTraining) -> tuple[float, float]:
    return float(data.graph.sizes.sum()), 2.0 * data.graph.num_edges


def _largest_part_s(data: GnnTraining, cost: LeastCost) -> Floats:
    """Seconds of the ⌈n / k⌉ smallest nodes with the fewest arcs, on each device."""
    count = -(-data.graph.num_nodes // data.num_parts)
    ends = np.concatenate([data.graph.tail, data.graph.head])
    arcs = np.sort(np.bincount(ends, minlength=data.graph.num_nodes))[:count].sum()
    nodes = np.sort(data.graph.sizes)[:count].sum()
    given = float(nodes), float(arcs)
    return np.array([cost.seconds(*given, each, each.clocks[-1]) for each in data.devices])


def least_energy_j(data: GnnTraining) -> float:
    """The mean over the windows of the least energy, before it is lowered."""
    cost, sizes = least_cost(data), _sizes(data)
    steps = _least_steps(data)
    base = sum(min(d.idle_w, *(d.power_w(c) for c in d.clocks)) for d in data.devices)
    beyond = np.zeros(len(steps))
    for share in _shares(cost, sizes):
        beyond = np.maximum(beyond, _least_beyond_idle(data, cost, sizes, share))
    return float((base * steps + beyond).mean())


def _least_beyond_idle(
    data: GnnTraining, cost: LeastCost, sizes: tuple[float, float], share: float
) -> Floats:
    """Joules above idling of all work, and of all launches, where they need least."""
    work = np.full(len(data.windows), np.inf)
    launches = work
    for d, device in enumerate(data.devices):
        for clock in device.clocks:
            above_w = max(device.power_w(clock) - device.idle_w, 0.0) / data.windows[:, d]
            work = np.minimum(work, above_w * unit_seconds(cost, sizes, share, device, clock))
            launches = np.minimum(launches, above_w * cost.launches * device.launch_s)
    out: Floats = work + data.num_parts * launches
    return out


def step_bound(data: GnnTraining) -> Bound:
    """Return the bound on the step or on the energy, whichever is minimised."""
    value = least_step_s(data) if data.minimize == "step" else least_energy_j(data)
    lowered = float(np.nextafter(value * (1 - EVALUATION), -np.inf))
    text = json.dumps({"method": METHOD, "minimize": data.minimize}, separators=(",", ":"))
    return Bound(max(lowered, 0.0), METHOD, "combinatorial", certificate=text)


def prove_step(data: GnnTraining, certificate: str) -> Bound:
    """Prove the bound again; its certificate only says what it bounds."""
    given = step_bound(data)
    if certificate != given.certificate:
        raise OptbenchError(f"the certificate is not that of {METHOD!r} for {data.minimize}")
    return given
