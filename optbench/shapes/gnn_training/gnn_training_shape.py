"""The shape of GNN training: which device computes which nodes, with which kernels.

    cut_edges      = number of edges between two parts
    imbalance      = largest part / (nodes / parts) − 1
    work_imbalance = max_d (share of the work on d / share of the speed of d) − 1

where the work of a part is that of its nodes and arcs, and speeds are the mean over the recorded
windows. ``step_s`` and ``energy_j`` are those of ``step_costs``. What is minimised is data: the
cut, the step, or the energy below a limit of the step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from optbench.errors import UnsupportedError
from optbench.model.result import Bound
from optbench.model.verify import Verdict
from optbench.rendering import resolve
from optbench.shapes.gnn_training.cut_graph import CutGraph
from optbench.shapes.gnn_training.measured_pictures import measured_pictures
from optbench.shapes.gnn_training.operator_costs import costs_of_plan
from optbench.shapes.gnn_training.plan_form import well_formed
from optbench.shapes.gnn_training.step_costs import StepCosts, part_seconds, step_costs
from optbench.shapes.gnn_training.training_data import GnnTraining, Ints
from optbench.shapes.gnn_training.training_origin import (
    names_of,
    parts_table,
    remove_trained,
)
from optbench.shapes.gnn_training.training_pictures import pictures_of
from optbench.shapes.gnn_training.training_plan import TrainingPlan
from optbench.shapes.protocol.data_shape import DataShape, Findings
from optbench.shapes.protocol.measurements import Measurements, MeasuringMachine
from optbench.shapes.protocol.shape import Accepted, Metric
from optbench.shapes.protocol.shaped_instance import ShapedInstance

# The rooms of bounds and of training stand above this one.
BOUNDS = "optbench.shapes.gnn_training_bound.training_bounds:training_bounds"
PROVE = "optbench.shapes.gnn_training_bound.training_bounds:prove_training"
MEASURE = "optbench.gnn.runtime.measured_step:measured_step"
READ_NETWORK = "optbench.gnn.runtime.measured_step:read_network"
MEASURE_OWN = "optbench.gnn.own_model.own_training:measured_training"
FORMULATE = "optbench.shapes.gnn_training_bound.cut_programme:cut_formulation"
METRICS = {
    "cut_edges": Metric("", "edges between two parts"),
    "imbalance": Metric("", "largest part over its fair share of the nodes, less one"),
    "work_imbalance": Metric("", "largest share of work over the share of speed, less one"),
    "step_s": Metric("s", "a training step, by the cost model", also_measured=True),
    "energy_j": Metric("J", "energy of a training step, by the cost model"),
    "busiest_s": Metric("s", "computing of the busiest device in a step"),
    "talk_s": Metric("s", "exchange of rows by the device that exchanges most, in a step"),
    "exchanged_mb": Metric("MB", "rows that devices send each other in a step"),
    "memory_gb": Metric("GB", "memory of the device that needs most"),
    "moved_nodes": Metric("", "nodes in another part than before the graph changed"),
}
CONSTRAINTS = {
    "form": "every node has a part, every part a device and a clock, and fusions exist",
    "max_part": "no part has more nodes than max_part",
    "memory": "what a device keeps fits into its memory",
    "fusion_overlap": "no operator is replaced by two fusions",
    "fusion_cycle": "fused operators do not wait for each other in a circle",
    "step_limit": "a step takes no longer than step_limit_s",
}
FACTS = {
    "num_nodes": "nodes of the graph",
    "num_edges": "edges of the graph",
    "num_parts": "parts",
    "num_operators": "operators of the model",
    "num_devices": "devices",
    "gflops": "rates of all devices at the top clock together, in Gflop/s",
    "slowest_share": "rate of the slowest device over that of the fastest",
    "link_gb_per_s": "mean bandwidth of the links between devices, in GB/s",
}
LEVELS = {"cut": ("cut_edges",), "step": ("step_s",), "energy": ("energy_j",)}


class GnnTrainingShape(DataShape):
    """A graph in parts, on unequal devices."""

    name = "gnn_training"
    decision = "plan"
    data, solution = GnnTraining, TrainingPlan
    metrics: ClassVar[Mapping[str, Metric]] = METRICS
    constraints: ClassVar[Mapping[str, str]] = CONSTRAINTS
    fact_words: ClassVar[Mapping[str, str]] = FACTS
    minimize = "cut_edges"
    capabilities = frozenset({"formulate"})
    usual_solver = "hyperscale"

    def aims(self, data: GnnTraining) -> tuple[str, ...]:
        return LEVELS[data.minimize]

    def facts(self, data: GnnTraining) -> dict[str, float]:
        rates = [each.gflops for each in data.devices]
        count = data.num_devices
        apart = ~np.eye(count, dtype=bool) if count > 1 else np.ones((1, 1), dtype=bool)
        return {
            "num_nodes": float(data.graph.num_nodes),
            "num_edges": float(data.graph.num_edges),
            "num_parts": float(data.num_parts),
            "num_operators": float(len(data.operators)),
            "num_devices": float(count),
            "gflops": sum(rates),
            "slowest_share": min(rates) / max(rates),
            "link_gb_per_s": float(data.links.gb_per_s[apart].mean()),
        }

    def describe(self, instance: ShapedInstance) -> str:
        data: GnnTraining = instance.data
        size = f"{data.graph.num_nodes:,} nodes, {data.graph.num_edges:,} edges"
        return f"{size}, {data.num_parts} parts, {data.num_devices} devices"

    def verify(self, data: GnnTraining, decision: TrainingPlan) -> Findings:
        found = Findings()
        if not well_formed(data, decision, found):
            return found
        costs = step_costs(data, decision)
        found.metrics = metrics_of(data, decision, costs)
        largest = int(CutGraph(data.graph, decision.part, data.num_parts).nodes.max())
        words = f"a part has {largest} nodes; at most {data.max_part} are allowed"
        found.require(largest <= data.max_part, "max_part", words, largest - data.max_part)
        for device, needed in zip(data.devices, costs.memory_bytes.tolist(), strict=True):
            if device.memory_gb is not None:
                words = f"{device.name} keeps {needed / 1e9:.6g} GB of {device.memory_gb:g}"
                over = needed / 1e9 - device.memory_gb
                found.require(over <= 0, "memory", words, over)
        limit = data.step_limit_s
        if limit is not None:
            words = f"a step takes {costs.step_s:.6g} s; at most {limit:g} s are allowed"
            found.require(costs.step_s <= limit, "step_limit", words, costs.step_s - limit)
        return found

    def accept(self, instance: ShapedInstance, decision: TrainingPlan) -> Accepted:
        """Verify a decision, and compare it with the formulation where one was made."""
        verdict = self.verdict_of(instance, decision)
        if verdict.feasible and instance.has_formulation:
            instance.formulation.check_accepted(instance, decision, verdict)
        return Accepted(decision, verdict)

    def formulate(self, instance: ShapedInstance) -> Any:
        return resolve(FORMULATE)(instance)

    def check_decoded(self, instance: ShapedInstance, point: Any, verdict: Verdict) -> None:
        instance.formulation.check_decoded(instance, point, verdict)

    def kernels(self, instance: ShapedInstance, method: str = "auto") -> frozenset[str]:
        return frozenset({"cut_bounds"} if instance.data.minimize == "cut" else ())

    def bounds(
        self, instance: ShapedInstance, method: str, time_limit_s: float, best: Any
    ) -> list[Bound]:
        found: list[Bound] = resolve(BOUNDS)(instance.data, method, time_limit_s, best)
        return found

    def prove(self, instance: ShapedInstance, certificate: str) -> Bound:
        found: Bound = resolve(PROVE)(instance.data, certificate)
        return found

    def measure(
        self, data: GnnTraining, decision: TrainingPlan, machine: MeasuringMachine
    ) -> Measurements:
        found: Measurements = resolve(MEASURE)(data, decision, machine)
        return found

    def measure_instance(
        self, instance: ShapedInstance, decision: TrainingPlan, machine: MeasuringMachine
    ) -> Measurements:
        """Train what the user has given, or else a network with the instance's operators."""
        found: Measurements
        remarks = list[str]()
        if instance.origin is None:
            require_known_network(instance.data)
            found = self.measure(instance.data, decision, machine)
        else:
            remarks = remove_trained(machine.folder)
            found = resolve(MEASURE_OWN)(instance, decision, machine)
        said = found.provenance
        more: dict[str, Any] = {"devices_used": devices_used(instance.data, decision)}
        if remarks:
            more["remarks"] = [*remarks, *said.get("remarks", ())]
        return replace(found, provenance={**said, **more})

    def decision_files(self, instance: ShapedInstance, decision: TrainingPlan) -> Mapping[str, str]:
        names = names_of(instance.origin, instance.data.graph.num_nodes)
        return {"parts.csv": parts_table(instance.data, decision, names)}

    def pictures(self, instance: ShapedInstance, decision: TrainingPlan) -> Mapping[str, str]:
        return pictures_of(instance.data, decision)

    def measured_pictures(
        self, instance: ShapedInstance, decision: TrainingPlan, measured: Measurements
    ) -> Mapping[str, str]:
        drawn = pictures_of(instance.data, decision)
        return {**drawn, **measured_pictures(instance.data, measured.provenance)}

    def labelled(self, instance: ShapedInstance, bound: Bound) -> Bound:
        return self.labelled_by_proof(instance, bound)


def metrics_of(data: GnnTraining, plan: TrainingPlan, costs: StepCosts) -> dict[str, float]:
    """Return every metric of a plan whose indices are valid."""
    cut = CutGraph(data.graph, plan.part, data.num_parts)
    fair = data.graph.num_nodes / data.num_parts
    return {
        "cut_edges": float(cut.cut_edges),
        "imbalance": float(cut.nodes.max()) / fair - 1.0,
        "work_imbalance": _work_imbalance(data, plan, cut),
        "step_s": costs.step_s,
        "energy_j": costs.energy_j,
        "busiest_s": costs.busiest_s,
        "talk_s": float(costs.talk_s.max()),
        "exchanged_mb": costs.exchanged_bytes / 1e6,
        "memory_gb": float(costs.memory_bytes.max()) / 1e9,
        "moved_nodes": float(moved_nodes(data, plan.part)),
    }


def require_known_network(data: GnnTraining) -> None:
    """Refuse operators of a model that is not here, and say where it is."""
    try:
        resolve(READ_NETWORK)(data)
    except UnsupportedError as error:
        raise UnsupportedError(
            f"{error}. A saved instance has no model, names, features or labels: measure with the "
            "target from which it was made, gnn_training:model=FILE.py:NAME,data=FILE,..."
        ) from None


def devices_used(data: GnnTraining, plan: TrainingPlan) -> str:
    """Such as ``1 of 2 devices: left``."""
    used = np.unique(plan.device_of(data)[np.unique(plan.part)]).tolist()
    names = ", ".join(data.devices[d].name for d in used)
    return f"{len(used)} of {data.num_devices} devices: {names}"


def moved_nodes(data: GnnTraining, part: Ints) -> int:
    """Nodes that had a part before the graph changed and have another one."""
    if not len(data.previous):
        return 0
    return int(((data.previous >= 0) & (data.previous != part)).sum())


def _work_imbalance(data: GnnTraining, plan: TrainingPlan, cut: CutGraph) -> float:
    """The largest computing time over what it would be with all work in proportion to speed."""
    device = plan.device_of(data)
    costs = costs_of_plan(data.operators, data.fusions, plan.fusions.tolist())
    mean = data.windows.mean(axis=0)
    total = (float(cut.sizes.sum()), float(cut.arcs.sum()))
    whole = [part_seconds(costs, *total, each, each.clocks[-1]) for each in data.devices]
    speed = mean / np.array(whole) if min(whole) > 0 else mean
    seconds = np.zeros(data.num_devices)
    for p in range(data.num_parts):
        on = data.devices[device[p]]
        given = (float(cut.sizes[p]), float(cut.arcs[p]))
        seconds[device[p]] += part_seconds(costs, *given, on, on.clocks[-1]) / mean[device[p]]
    return float(seconds.max() * speed.sum()) - 1.0
