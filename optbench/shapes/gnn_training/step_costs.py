"""The cost model of a training step: seconds, joules and bytes from the data alone.

With parts p on devices d at clock c_p, the costs k of the fusion plan, n_p the summed node sizes
of a part and a_p its arcs, in a window w with speeds s_wd:

    t_p    = Σ_k max( (flop_node n_p + flop_arc a_p) / (c_p F_d),
                      (byte_node n_p + byte_arc a_p) / B_d ) + launches × launch_s
    work_d = Σ p on d t_p / s_wd
    talk_d = Σ_k Σ_e≠d exchanges_k × latency_de + row_bytes_k max(rows_de, rows_ed) / bandwidth_de
             over neighbours e with rows_de + rows_ed > 0 (links carry both directions at once)
    step_w = max_d ( work_d + (1 − overlap) talk_d ) + reduce
    reduce = 2 (D − 1) / D × parameter_bytes / (least bandwidth) + 2 (D − 1) × (longest latency)

over the D devices that hold parts (a ring); a plan without overlap has overlap = 0. ``step_s`` is
the mean of step_w over the windows, and

    energy_j = mean_w Σ_d [ Σ p on d P_d(c_p) t_p / s_wd + idle_d (step_w − work_d) ]
               + joule_per_gb × exchanged GB

over all devices, those without a part idle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np

from optbench.shapes.gnn_training.cut_graph import CutGraph
from optbench.shapes.gnn_training.operator_costs import OperatorCost, costs_of_plan
from optbench.shapes.gnn_training.training_data import Floats, GnnTraining, Ints, TrainingDevice
from optbench.shapes.gnn_training.training_plan import TrainingPlan

GIGA = 1e9


@dataclass(frozen=True)
class StepCosts:
    """One step of a plan: seconds by window and device, memory by device, exchanged bytes."""

    work_s: Floats
    talk_s: Floats
    reduce_s: float
    step_s: float
    energy_j: float
    memory_bytes: Floats
    exchanged_bytes: float

    @property
    def busiest_s(self) -> float:
        """Mean over the windows of the longest computing."""
        return float(self.work_s.max(axis=1).mean())


def part_seconds(
    costs: Sequence[OperatorCost], nodes: float, arcs: float, device: TrainingDevice, clock: float
) -> float:
    """Seconds of computing a part, at full speed of the device."""
    rate, moved = clock * device.gflops * GIGA, device.gb_per_s * GIGA
    return fsum(
        max(
            (each.flop_per_node * nodes + each.flop_per_arc * arcs) / rate,
            (each.bytes_per_node * nodes + each.bytes_per_arc * arcs) / moved,
        )
        + each.launches * device.launch_s
        for each in costs
    )


def step_costs(data: GnnTraining, plan: TrainingPlan) -> StepCosts:
    """Return the costs of a plan whose indices are valid."""
    device, clock = plan.device_of(data), plan.clock_of(data)
    costs = costs_of_plan(data.operators, data.fusions, plan.fusions.tolist())
    cut = CutGraph(data.graph, plan.part, data.num_parts)
    alone, joules = np.zeros(data.num_devices), np.zeros(data.num_devices)
    for p in range(data.num_parts):
        on = data.devices[device[p]]
        share = on.clocks[clock[p]]
        seconds = part_seconds(costs, float(cut.sizes[p]), float(cut.arcs[p]), on, share)
        alone[device[p]] += seconds
        joules[device[p]] += seconds * on.power_w(share)
    by_device = cut.merged(device, data.num_devices)
    rows = by_device.rows.astype(float)
    loads = DeviceLoads(alone, joules, by_device.sizes, by_device.arcs, rows, np.unique(device))
    return costs_of_loads(data, costs, loads, plan.overlap)


@dataclass(frozen=True)
class DeviceLoads:
    """What devices have to do in a step: seconds and joules of computing at full speed, sizes and
    arcs of their nodes, the rows that they send each other, and which of them hold parts.
    """

    alone_s: Floats
    alone_j: Floats
    sizes: Ints
    arcs: Ints
    rows: Floats
    used: Ints


def costs_of_loads(
    data: GnnTraining, costs: Sequence[OperatorCost], loads: DeviceLoads, overlap: bool = True
) -> StepCosts:
    """Return the costs of a step in which devices have these loads."""
    rows, used = loads.rows, loads.used
    talk = _talk_s(data, costs, rows)
    reduce_s = _reduce_s(data, used.tolist())
    work = loads.alone_s / data.windows
    hidden = data.links.overlap if overlap else 0.0
    steps = (work + (1 - hidden) * talk).max(axis=1) + reduce_s
    idle = np.array([each.idle_w for each in data.devices])
    drawn = (loads.alone_j / data.windows + idle * (steps[:, None] - work)).sum(axis=1)
    exchanged = float(rows.sum()) * fsum(each.row_bytes for each in costs)
    return StepCosts(
        work,
        talk,
        reduce_s,
        float(steps.mean()),
        float(drawn.mean()) + data.links.joule_per_gb * exchanged / GIGA,
        _memory_bytes(costs, loads) + data.parameter_bytes * np.isin(range(len(idle)), used),
        exchanged,
    )


def _talk_s(data: GnnTraining, costs: Sequence[OperatorCost], rows: Floats) -> Floats:
    """Seconds of exchanging rows, of each device."""
    both = np.maximum(rows, rows.T)
    meets = both > 0
    latency = fsum(each.exchanges for each in costs if each.row_bytes > 0) * data.links.latency_s
    moved = fsum(each.row_bytes for each in costs) * both / (data.links.gb_per_s * GIGA)
    exchanging = any(each.row_bytes > 0 for each in costs)
    talk: Floats = (meets * (latency + moved)).sum(axis=1) if exchanging else np.zeros(len(rows))
    return talk


def _reduce_s(data: GnnTraining, used: list[int]) -> float:
    """Seconds of adding up the gradients of the devices in use, in a ring."""
    count = len(used)
    if count < 2 or data.parameter_bytes == 0:
        return 0.0
    apart = ~np.eye(count, dtype=bool)
    slowest = float(data.links.gb_per_s[np.ix_(used, used)][apart].min()) * GIGA
    longest = float(data.links.latency_s[np.ix_(used, used)][apart].max())
    return 2 * (count - 1) * (data.parameter_bytes / count / slowest + longest)


def _memory_bytes(costs: Sequence[OperatorCost], loads: DeviceLoads) -> Floats:
    """Bytes that are kept for the backward pass, with the rows received from others."""
    node = fsum(each.kept_bytes_per_node for each in costs)
    arc = fsum(each.kept_bytes_per_arc for each in costs)
    received = fsum(each.row_bytes for each in costs) / 2
    kept: Floats = node * loads.sizes + arc * loads.arcs + received * loads.rows.sum(axis=0)
    return kept
