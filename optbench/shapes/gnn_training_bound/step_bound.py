"""Lower bounds on the time and the energy of a step, from work and speeds alone.

A plan executes one of the sets of kernels that its fusions leave; the bound is the least over all
of these sets (all sets of fusions that replace different operators). Of each set, the parts
together have all nodes N and all arcs A of the graph, and a part with n nodes and a arcs on device
d at clock c takes

    t_dc(n, a) = launches_d + Σ_k max( (flop_n n + flop_a a) / (c F_d),
                                       (byte_n n + byte_a a) / B_d )

over its kernels k. Let u = w n / N + (1 − w) a / A be a measure of work for some share w: the parts
have 1 of it, and a unit takes device d at least q_dc = min { t_dc(n, a) − launches_d : u = 1 }. The
sum is convex, and linear between the directions n : a in which flops and bytes of a kernel take
equally long: the minimum is in one of these or at an end. In a window with speeds s_d and k parts,

    step   ≥ (1 + k min_d launches_d / q_d) / Σ_d (s_d / q_d)         all work over all speeds
    step   ≥ min_d t_d(nodes of ⌈n / k⌉ smallest, their arcs) / s_d    the largest part
    energy ≥ Σ_d min(P_d, idle_d) step + min_dc (P_dc − idle_d)⁺ q_dc / s_d
             + k min_dc (P_dc − idle_d)⁺ launches_d / s_d

at the top clock for the step, over all clocks for the energy, P_d the least power of a clock. The
exchange of rows and of gradients is counted as 0. Where fusions leave more than ``MOST_SETS`` sets
of kernels, one kernel stands for all of them, each operator of which counts its own cost or its
share of the cheapest fusion that replaces it. Sums are of numbers that are not negative; the result
is lowered by ``EVALUATION`` of itself, more than their rounding and that of the cost model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from optbench.errors import OptbenchError
from optbench.model.result import Bound
from optbench.shapes.gnn_training.operator_costs import OperatorCost, costs_of_plan
from optbench.shapes.gnn_training.step_costs import GIGA
from optbench.shapes.gnn_training.training_data import Floats, GnnTraining, TrainingDevice

METHOD = "training_work"
EVALUATION = 2.0**-36
# Shares of nodes and arcs in the measure of work that are tried.
SHARES = np.linspace(0.0, 1.0, 65)
COSTS = ("flop_per_node", "flop_per_arc", "bytes_per_node", "bytes_per_arc", "launches")
MOST_SETS = 2000


@dataclass(frozen=True)
class KernelSet:
    """What a plan executes: a row (flop_n, flop_a, byte_n, byte_a) per kernel, and launches."""

    cost: Floats
    launches: float
    nodes: float
    arcs: float

    def seconds(self, nodes: Floats, arcs: Floats, device: TrainingDevice, clock: float) -> Floats:
        """Seconds of parts without their launches."""
        flop, moved = self._rates(device, clock)
        by_flop = np.outer(nodes, flop[:, 0]) + np.outer(arcs, flop[:, 1])
        by_byte = np.outer(nodes, moved[:, 0]) + np.outer(arcs, moved[:, 1])
        found: Floats = np.maximum(by_flop, by_byte).sum(axis=1)
        return found

    def unit_seconds(self, device: TrainingDevice, clock: float) -> Floats:
        """q: the least seconds of a unit of work, for each of ``shares``."""
        flop, moved = self._rates(device, clock)
        # Directions (x, y) of n = N x, a = A y: the ends, and where x Δ_node + y Δ_arc = 0.
        node = (flop[:, 0] - moved[:, 0]) * self.nodes
        arc = (flop[:, 1] - moved[:, 1]) * self.arcs
        kinks = node * arc < 0
        x = np.concatenate([[1.0, 0.0], np.abs(arc[kinks])])
        y = np.concatenate([[0.0, 1.0], np.abs(node[kinks])])
        x, y = x / (x + y), y / (x + y)
        taken = self.seconds(self.nodes * x, self.arcs * y, device, clock)
        work = np.outer(self.shares, x) + np.outer(1 - self.shares, y)
        each = np.full(work.shape, np.inf)
        np.divide(taken, work, out=each, where=work > 0)
        least: Floats = each.min(axis=1)
        return least

    @cached_property
    def shares(self) -> Floats:
        """Shares to try; where flops alone count, or bytes alone, that of nodes in them is best."""
        total = self.cost.sum(axis=0) * np.array([self.nodes, self.arcs] * 2)
        pairs = [(total[0], total[1]), (total[2], total[3])]
        return np.array([*SHARES, *(a / (a + b) for a, b in pairs if a + b > 0)])

    def _rates(self, device: TrainingDevice, clock: float) -> tuple[Floats, Floats]:
        """Seconds per node and per arc of each kernel, by flops and by bytes."""
        return (
            self.cost[:, :2] / (clock * device.gflops * GIGA),
            self.cost[:, 2:] / (device.gb_per_s * GIGA),
        )


def kernel_sets(data: GnnTraining) -> Iterator[KernelSet]:
    """Yield what plans execute, or one set that costs no more than any of them."""
    sizes = float(data.graph.sizes.sum()), 2.0 * data.graph.num_edges
    chosen = _fusion_sets(data)
    plans = (
        [[least_cost(data)]]
        if chosen is None
        else (costs_of_plan(data.operators, data.fusions, each) for each in chosen)
    )
    for kernels in plans:
        rows = [[float(getattr(each, name)) for name in COSTS] for each in kernels]
        table = np.array(rows, dtype=np.float64).reshape(-1, len(COSTS))
        yield KernelSet(table[:, :4], float(table[:, 4].sum()), *sizes)


def _fusion_sets(data: GnnTraining) -> list[tuple[int, ...]] | None:
    """All sets of fusions that replace different operators; None if there are too many."""
    found: list[tuple[tuple[int, ...], frozenset[int]]] = [((), frozenset())]
    for k, fusion in enumerate(data.fusions):
        members = frozenset(fusion.replaces)
        found += [((*each, k), gone | members) for each, gone in found if not gone & members]
        if len(found) > MOST_SETS:
            return None
    return [each for each, _ in found]


def least_cost(data: GnnTraining) -> OperatorCost:
    """One kernel: each operator counts its own cost, or its share of the cheapest fusion.

    Launches of fusions are shared too: they need not be whole.
    """
    totals: dict[str, Any] = {name: _least_total(data, name) for name in COSTS}
    return OperatorCost(**totals)


def _least_total(data: GnnTraining, name: str) -> float:
    def value(cost: OperatorCost) -> float:
        return float(getattr(cost, name))

    total = 0.0
    for i, operator in enumerate(data.operators):
        fused = [value(f.cost) / len(f.replaces) for f in data.fusions if i in f.replaces]
        total += min([value(operator.cost), *fused])
    return total


def least_step_s(data: GnnTraining) -> float:
    """The mean over the windows of the least step, before it is lowered."""
    return min(float(_least_steps(data, each).mean()) for each in kernel_sets(data))


def _least_steps(data: GnnTraining, kernels: KernelSet) -> Floats:
    """The least step of each window with these kernels."""
    launch = np.array([kernels.launches * each.launch_s for each in data.devices])
    alone = _largest_part_s(data, kernels) + launch
    best: Floats = (alone / data.windows).min(axis=1)
    units = np.array([kernels.unit_seconds(d, d.clocks[-1]) for d in data.devices])
    for unit in units.T[(units > 0).all(axis=0)]:
        work = 1 + data.num_parts * (launch / unit).min()
        best = np.maximum(best, work / (data.windows / unit).sum(axis=1))
    return best


def _largest_part_s(data: GnnTraining, kernels: KernelSet) -> Floats:
    """Seconds of the ⌈n / k⌉ smallest nodes with the fewest arcs, on each device."""
    count = -(-data.graph.num_nodes // data.num_parts)
    ends = np.concatenate([data.graph.tail, data.graph.head])
    arcs = np.sort(np.bincount(ends, minlength=data.graph.num_nodes))[:count].sum()
    nodes = np.sort(data.graph.sizes)[:count].sum()
    given = np.array([float(nodes)]), np.array([float(arcs)])
    return np.array([kernels.seconds(*given, d, d.clocks[-1])[0] for d in data.devices])


def least_energy_j(data: GnnTraining) -> float:
    """The mean over the windows of the least energy, before it is lowered."""
    base = sum(min(d.idle_w, *(d.power_w(c) for c in d.clocks)) for d in data.devices)
    return min(
        float((base * _least_steps(data, each) + _least_beyond_idle(data, each)).mean())
        for each in kernel_sets(data)
    )


def _least_beyond_idle(data: GnnTraining, kernels: KernelSet) -> Floats:
    """Joules above idling of all work, and of all launches, where they need least."""
    work: Floats = np.full((len(data.windows), len(kernels.shares)), np.inf)
    launches: Floats = np.full(len(data.windows), np.inf)
    for d, device in enumerate(data.devices):
        for clock in device.clocks:
            above_w = max(device.power_w(clock) - device.idle_w, 0.0) / data.windows[:, d]
            work = np.minimum(work, np.outer(above_w, kernels.unit_seconds(device, clock)))
            launches = np.minimum(launches, above_w * kernels.launches * device.launch_s)
    out: Floats = work.max(axis=1) + data.num_parts * launches
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
