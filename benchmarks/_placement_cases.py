"""Instances on which placements are compared, and one run of a method in processor time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from optbench.gnn.placement.placement_table import PlacementTable
    from optbench.shapes.gnn_training.training_data import GnnTraining, Ints
    from optbench.shapes.gnn_training.training_plan import TrainingPlan

COMMON = "minimize=step,history=12,link_spread=3,features=64,hidden=32,overlap=0.3,latency_s=1e-5"
# Graph, nodes, devices, parts per device, GB/s of a link. None of these lines was trained on.
SMALL = (
    ("mesh", 1200, "2:1", 5, 0.1),
    ("power", 1200, "2:1", 4, 0.1),
    ("community", 1200, "3:1", 5, 0.1),
    ("hubs", 1200, "2:1:1", 4, 0.05),
    ("molecules", 1200, "2:1:1", 5, 0.1),
    ("grid", 1225, "4:2:1", 4, 0.05),
    ("mesh", 1200, "3:2:1", 4, 0.05),
    ("hubs", 1200, "2:2:1:1", 4, 0.05),
    ("power", 1200, "4:1", 5, 0.2),
    ("community", 1200, "A100+L4", 4, 2.0),
)
LARGE = (
    ("community", 3000, "4:2:2:1:1", 8, 0.2),
    ("power", 2500, "3:2:2:1:1", 8, 0.2),
    ("mesh", 3000, "4:3:2:2:1:1", 8, 0.05),
    ("hubs", 3000, "4:2:2:2:1:1", 8, 0.06),
    ("community", 3500, "4:4:3:2:2:1:1:1", 8, 0.2),
    ("power", 3500, "4:2:2:2:2:1:1:1", 7, 0.2),
    ("mesh", 3500, "3:3:2:2:1:1:1:1", 8, 0.05),
    ("grid", 3600, "4:2:2:2:1:1:1:1", 8, 0.04),
)
# Larger than any instance above, for planning times in which annealing has not converged.
HUGE = (
    ("community", 4500, "4:4:3:2:2:2:1:1:1:1", 9, 0.2),
    ("power", 4500, "4:3:3:2:2:2:1:1:1:1:1", 8, 0.2),
    ("mesh", 4500, "4:4:3:3:2:2:2:1:1:1", 10, 0.05),
    ("hubs", 4500, "4:3:2:2:2:1:1:1:1:1:1", 8, 0.06),
    ("grid", 4900, "4:4:3:2:2:2:2:1:1:1:1:1", 9, 0.04),
    ("molecules", 4500, "4:3:3:2:2:1:1:1:1:1:1:1", 8, 0.1),
    ("community", 5500, "4:4:3:3:2:2:2:2:1:1:1:1:1:1:1:1", 7, 0.15),
    ("power", 5500, "4:4:4:3:3:2:2:2:2:1:1:1:1:1", 8, 0.1),
    ("mesh", 5500, "3:3:3:2:2:2:2:1:1:1:1:1:1:1:1:1", 8, 0.05),
    ("hubs", 5500, "4:4:4:4:2:2:2:1:1:1:1:1:1:1", 8, 0.08),
)


@dataclass(frozen=True, eq=False)
class PlacementCase:
    """An instance whose parts METIS has made."""

    name: str
    data: GnnTraining
    plan: TrainingPlan
    table: PlacementTable


@dataclass(frozen=True)
class PlacementRow:
    """One run: the table's step, the cost model's, and the processor time used."""

    case: str
    parts: int
    devices: int
    method: str
    seed: int
    budget_s: float
    step_s: float
    verified_s: float
    used_s: float
    bound_s: float | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def spec_of(line: tuple[str, int, str, int, float]) -> str:
    graph, nodes, devices, each, link = line
    parts = each * len(devices.replace("+", ":").split(":"))
    return (
        f"gnn_training:graph={graph},nodes={nodes},devices={devices},parts={parts},"
        f"link_gb_per_s={link},{COMMON}"
    )


def case_of(spec: str, seed: int) -> PlacementCase:
    """Draw the instance and partition its graph by METIS's k-way method."""
    from optbench.gnn.placement.placement_table import placement_table

    data, plan = _planned(spec, seed)
    fields = dict(each.split("=") for each in spec.partition(":")[2].split(","))
    name = f"{fields['graph']} on {fields['devices']}, seed {seed}"
    return PlacementCase(name, data, plan, placement_table(data, plan))


def table_of(spec: str, seed: int) -> PlacementTable:
    """The table of an instance alone."""
    from optbench.gnn.placement.placement_table import placement_table

    return placement_table(*_planned(spec, seed))


def _planned(spec: str, seed: int) -> tuple[GnnTraining, TrainingPlan]:
    from optbench.api import load_target
    from optbench.plugins.solvers._metis_runs import MetisRuns
    from optbench.shapes.gnn_training.training_plan import TrainingPlan

    data: Any = load_target(spec, seed=seed).data
    return data, TrainingPlan(MetisRuns(data).part(recursive=False)[1])


def run_method(
    case: PlacementCase,
    method: str,
    budget_s: float,
    seed: int,
    placed: Callable[[Any, Callable[[], float]], Ints] | None = None,
) -> PlacementRow:
    """Run a method of ``place``, or a function, for so many seconds of processor time."""
    from optbench.gnn.placement.placement_methods import place
    from optbench.gnn.placement.placement_table import table_step_s, verified_step_s

    rng, began = np.random.default_rng(seed), time.process_time()

    def time_left() -> float:
        return budget_s - (time.process_time() - began)

    if placed is None:
        device = place(method, case.table, rng, time_left)
    else:
        device = placed(rng, time_left)
    used = time.process_time() - began
    return PlacementRow(
        case.name,
        case.table.num_parts,
        case.table.num_devices,
        method,
        seed,
        budget_s,
        table_step_s(case.table, device),
        verified_step_s(case.data, case.plan, device),
        used,
    )
