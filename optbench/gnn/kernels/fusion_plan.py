"""The best fusion plan of an operator graph as a small MILP, which HiGHS solves.

With t_k the seconds of operator k, t_f those of fusion f, and x_f = 1 where f is chosen:

    min  Σ_k t_k + Σ_f (t_f − Σ_{k in f} t_k) x_f
    one_k     Σ_{f with k} x_f ≤ 1                each operator is computed once (set packing)
    cycle_S   Σ_{f in S} x_f ≤ |S| − 1            fusions S that would wait for each other

Rows ``cycle`` are added for the chosen sets until a plan has none; there are few of either kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import fsum
from typing import Any

import numpy as np

from optbench.errors import ModelError
from optbench.shapes.gnn_training.operator_costs import (
    Fusion,
    Operator,
    OperatorCost,
    has_cycle,
)
from optbench.shapes.gnn_training.step_costs import GIGA, part_seconds
from optbench.shapes.gnn_training.training_data import GnnTraining, Ints, TrainingDevice
from optbench.shapes.gnn_training.training_plan import TrainingPlan


@dataclass(frozen=True)
class KernelRates:
    """Seconds of kernels on a device: the cost model's, times a factor by the name of the kernel,
    1 where there is none.

    ``parts`` are coefficients of the parts of a kernel's work, by the stem of its name; they come
    before factors.
    """

    device: TrainingDevice
    factors: Mapping[str, float] = field(default_factory=dict)
    parts: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def seconds(self, name: str, cost: OperatorCost, nodes: float, arcs: float) -> float:
        """Seconds of an operator or a fusion in a step."""
        known = self.parts.get(stem_of(name))
        if known is not None:
            parts = parts_of_work(cost, nodes, arcs, self.device)
            return fsum(a * b for a, b in zip(known, parts, strict=True))
        modelled = part_seconds([cost], nodes, arcs, self.device, 1.0)
        return self.factors.get(name, 1.0) * modelled


def stem_of(name: str) -> str:
    """The name of a kernel without the number of its layer."""
    return name.rstrip("0123456789")


def parts_of_work(
    cost: OperatorCost, nodes: float, arcs: float, device: TrainingDevice
) -> tuple[float, ...]:
    """Seconds of the operations of nodes, of their bytes, of arcs, and of launches, each alone."""
    rate, moved = device.gflops * GIGA, device.gb_per_s * GIGA
    of_arcs = max(cost.flop_per_arc * arcs / rate, cost.bytes_per_arc * arcs / moved)
    of_nodes = (cost.flop_per_node * nodes / rate, cost.bytes_per_node * nodes / moved)
    return (*of_nodes, of_arcs, cost.launches * device.launch_s)


@dataclass(frozen=True)
class FusionChoice:
    """Indices of chosen fusions, ascending, and the seconds of the step that are left."""

    chosen: Ints
    seconds: float


def fusion_names(fusions: Sequence[Fusion], chosen: Ints) -> frozenset[str]:
    """The names of chosen fusions, as the kernels take them."""
    return frozenset(fusions[k].name for k in chosen.tolist())


def best_fusions(data: GnnTraining, rates: KernelRates) -> FusionChoice:
    """Return the fusions with the least seconds of the whole graph (``TrainingPlan.fusions``)."""
    nodes, arcs = float(data.graph.sizes.sum()), 2.0 * data.graph.num_edges
    alone = [rates.seconds(each.name, each.cost, nodes, arcs) for each in data.operators]
    fused = [rates.seconds(each.name, each.cost, nodes, arcs) for each in data.fusions]
    return choose_fusions(data.operators, data.fusions, alone, fused)


def with_best_fusions(data: GnnTraining, plan: TrainingPlan, rates: KernelRates) -> TrainingPlan:
    """Return a plan with its fusions replaced by the best ones; exchanging rows costs nothing."""
    return replace(plan, fusions=best_fusions(data, rates).chosen)


def choose_fusions(
    operators: Sequence[Operator],
    fusions: Sequence[Fusion],
    alone: Sequence[float],
    fused: Sequence[float],
) -> FusionChoice:
    """Return the best plan for given seconds of operators and of fusions."""
    saved = [fused[f] - fsum(alone[k] for k in each.replaces) for f, each in enumerate(fusions)]
    cycles: list[list[int]] = []
    while True:
        chosen = _packing(len(operators), fusions, saved, cycles)
        if not has_cycle(operators, [fusions[f].replaces for f in chosen]):
            break
        cycles.append(chosen)
    seconds = fsum([*alone, *(saved[f] for f in chosen)])
    return FusionChoice(np.array(chosen, dtype=np.int64), seconds)


def _packing(
    num_operators: int, fusions: Sequence[Fusion], saved: Sequence[float], cycles: list[list[int]]
) -> list[int]:
    """Solve the programme of the head of this module."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    if not fusions:
        return []
    size = len(fusions)
    rows = np.zeros((num_operators + len(cycles), size))
    for f, each in enumerate(fusions):
        rows[list(each.replaces), f] = 1.0
    upper = np.ones(len(rows))
    for r, members in enumerate(cycles, start=num_operators):
        rows[r, members], upper[r] = 1.0, len(members) - 1
    # HiGHS compares costs with absolute tolerances: the largest is scaled to 1.
    cost = np.array(saved) / max(np.abs(saved).max(), np.finfo(float).tiny)
    rule: Any = LinearConstraint(rows, -np.inf, upper)
    found: Any = milp(
        cost, constraints=rule, integrality=np.ones(size, dtype=np.int64), bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0},
    )  # fmt: skip
    if found.x is None:
        raise ModelError(f"fusion plan: HiGHS ended without a plan: {found.message}")
    return [int(f) for f in np.flatnonzero(found.x > 0.5)]


def legal_plans(
    operators: Sequence[Operator], fusions: Sequence[Fusion]
) -> Iterator[tuple[int, ...]]:
    """Yield every legal plan, the empty one first."""

    def extend(chosen: tuple[int, ...], first: int) -> Iterator[tuple[int, ...]]:
        if not has_cycle(operators, [fusions[f].replaces for f in chosen]):
            yield chosen
        taken = {k for f in chosen for k in fusions[f].replaces}
        for f in range(first, len(fusions)):
            if taken.isdisjoint(fusions[f].replaces):
                yield from extend((*chosen, f), f + 1)

    return extend((), 0)
