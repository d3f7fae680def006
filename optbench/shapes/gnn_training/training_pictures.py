"""Pictures of a plan: the cut graph, devices at work, what they send, and the fused operators.

What was measured is drawn over time; without readings the cost model's step is drawn instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import Any

import numpy as np

from optbench.rendering import resolve
from optbench.shapes.gnn_training.cut_graph import CutGraph
from optbench.shapes.gnn_training.operator_costs import OperatorCost, costs_of_plan
from optbench.shapes.gnn_training.step_costs import part_seconds, step_costs
from optbench.shapes.gnn_training.training_data import Floats, GnnTraining
from optbench.shapes.gnn_training.training_plan import TrainingPlan

POINTS = "optbench.html.graph_pictures:point_graph"
BUBBLES = "optbench.html.graph_pictures:bubble_graph"
BARS = "optbench.html.device_pictures:stacked_bars"
MATRIX = "optbench.html.device_pictures:matrix_chart"
FLOW, BOX = "optbench.html.flow_picture:flow_picture", "optbench.html.flow_picture:FlowBox"
# Graphs with more nodes or edges are drawn as a graph of their parts.
MOST_NODES, MOST_EDGES = 300, 3000
MILLI, KILO, MEGA = 1e3, 1e3, 1e6
# Less between two devices is written in kB.
LEAST_MB = 0.1


def pictures_of(data: GnnTraining, plan: TrainingPlan) -> dict[str, str]:
    """Return the pictures by title, of the cost model's step."""
    return {
        "Cut graph": cut_picture(data, plan),
        "Utilisation of devices": modelled_utilisation(data, plan),
        "Communication": modelled_communication(data, plan),
        "Fused operators" if len(plan.fusions) else "Operators": operator_picture(data, plan),
    }


def device_names(data: GnnTraining) -> list[str]:
    """The names of the devices, with their numbers where several have the same."""
    names = [each.name for each in data.devices]
    if len(set(names)) == len(names):
        return names
    return [f"{d}: {name}" for d, name in enumerate(names)]


def cut_picture(data: GnnTraining, plan: TrainingPlan) -> str:
    """Every node of a small graph, coloured by part; of a large one the graph of its parts."""
    graph, k = data.graph, data.num_parts
    cut = CutGraph(graph, plan.part, k)
    device, names = plan.device_of(data), device_names(data)
    share = 100 * cut.cut_edges / max(graph.num_edges, 1)
    largest = int(cut.nodes.max())
    words = (
        f"{graph.num_nodes:,} nodes in {_counted(k, 'part')}, at most {largest:,} in one; "
        f"{cut.cut_edges:,} of {_counted(graph.num_edges, 'edge')} cut ({share:.1f} %)"
    )
    if graph.num_nodes <= MOST_NODES and graph.num_edges <= MOST_EDGES:
        parts = [f"part {p} on {names[d]}" for p, d in enumerate(device.tolist())]
        kinds = {"in": "edge within a part", "cut": "edge between two parts"}
        drawn = resolve(POINTS)(plan.part, parts, graph.tail, graph.head, words, kinds)
        return str(drawn)
    labels = [(str(p), f"{count:,} nodes") for p, count in enumerate(cut.nodes.tolist())]
    used = np.unique(device)
    number = np.zeros(data.num_devices, dtype=np.int64)
    number[used] = np.arange(len(used))
    places = [f"on {names[d]}" for d in used.tolist()]
    sizes = cut.nodes.astype(float)
    drawn = resolve(BUBBLES)(sizes, labels, number[device], edges_between(cut), places, words)
    return str(drawn)


def edges_between(cut: CutGraph) -> Floats:
    """The number of edges between each two parts, symmetric."""
    k = cut.num_parts
    tail, head = cut.part[cut.graph.tail[cut.is_cut]], cut.part[cut.graph.head[cut.is_cut]]
    found = np.bincount(tail * k + head, minlength=k * k).reshape(k, k).astype(float)
    both: Floats = found + found.T
    return both


def modelled_utilisation(data: GnnTraining, plan: TrainingPlan) -> str:
    """A step of each device by the cost model: computing, exchange that nothing hides, gradients,
    waiting for the slowest.
    """
    costs, used = step_costs(data, plan), set(plan.device_of(data).tolist())
    work = costs.work_s.mean(axis=0)
    talk = (1 - data.links.overlap) * costs.talk_s
    rows = {}
    for d, name in enumerate(device_names(data)):
        reduce_s = costs.reduce_s if d in used else 0.0
        busy = float(work[d]), float(talk[d]), reduce_s
        parts = {
            "computing": busy[0],
            "exchange of rows": busy[1],
            "adding gradients": busy[2],
            "waiting": max(0.0, costs.step_s - fsum(busy)),
        }
        rows[name] = {part: MILLI * value for part, value in parts.items()}
    share = 100 * float(work.sum()) / (costs.step_s * data.num_devices) if costs.step_s else 0.0
    words = f"A step of {MILLI * costs.step_s:.4g} ms by the cost model; devices compute in "
    words += f"{share:.0f} % of it"
    return str(resolve(BARS)(rows, "ms of a step", words))


def modelled_communication(data: GnnTraining, plan: TrainingPlan) -> str:
    """What each device sends to each other in a step."""
    device = plan.device_of(data)
    costs = costs_of_plan(data.operators, data.fusions, plan.fusions.tolist())
    cut = CutGraph(data.graph, plan.part, data.num_parts).merged(device, data.num_devices)
    sent = cut.rows * fsum(each.row_bytes for each in costs)
    unit, size = ("MB", MEGA) if sent.max() >= LEAST_MB * MEGA else ("kB", KILO)
    sent = sent / size
    words = f"Rows of nodes sent in a step by the cost model: {sent.sum():.4g} {unit} in all"
    names = device_names(data)
    return str(resolve(MATRIX)(names, sent.tolist(), f"{unit} from", "to", words))


def operator_picture(data: GnnTraining, plan: TrainingPlan) -> str:
    """The operators in the order of their work, those that a fusion replaces in its frame."""
    box, chosen = resolve(BOX), [data.fusions[f] for f in plan.fusions.tolist()]
    seconds = _computing_s(data, plan)
    fused = {i for each in chosen for i in each.replaces}
    alone = [each.cost for i, each in enumerate(data.operators) if i not in fused]
    before = seconds([each.cost for each in data.operators])
    after = seconds([*alone, *(each.cost for each in chosen)])

    def share(cost: OperatorCost) -> str:
        return f"{100 * seconds([cost]) / after:.0f} %" if after else ""

    shift = int(any(i < 0 for each in data.operators for i in each.inputs))
    boxes = [box("features", "", (), True)] if shift else []
    for i, each in enumerate(data.operators):
        words = each.kind if i in fused else f"{each.kind}, {share(each.cost)}"
        inputs = tuple(dict.fromkeys(max(j, -1) + shift for j in each.inputs))
        boxes.append(box(each.name, words, inputs))
    frames = {
        f"{each.name}, {share(each.cost)}": [i + shift for i in each.replaces] for each in chosen
    }
    return str(resolve(FLOW)(boxes, frames, _saved_words(data, chosen, before, after)))


def _saved_words(data: GnnTraining, chosen: Sequence[Any], before: float, after: float) -> str:
    count = _counted(len(data.operators), "operator")
    shares = "shares of computing by the cost model"
    if not chosen:
        return f"{count}, none fused; {shares}"
    fused = sum(len(each.replaces) for each in chosen)
    change = f"{MILLI * before:.4g} ms of computing become {MILLI * after:.4g} ms"
    return f"{_counted(len(chosen), 'fusion')} for {fused} of {count}: {change}; {shares}"


def _computing_s(data: GnnTraining, plan: TrainingPlan) -> Any:
    """A function of costs: seconds of computing them on all parts, at full speed."""
    cut = CutGraph(data.graph, plan.part, data.num_parts)
    device, clock = plan.device_of(data).tolist(), plan.clock_of(data).tolist()

    def seconds(costs: Sequence[OperatorCost]) -> float:
        total = 0.0
        for p, (d, c) in enumerate(zip(device, clock, strict=True)):
            on = data.devices[d]
            size = float(cut.sizes[p]), float(cut.arcs[p])
            total += part_seconds(costs, *size, on, on.clocks[c])
        return total

    return seconds


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
