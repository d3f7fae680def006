"""Factors of the cost model's seconds by kernel, measured on the machine at hand.

Whole steps of an instance, forward and backward, are timed with several plans p: the best one of
the cost model alone, the same without each of its fusions, and with each other fusion in place of
those that it excludes. With m_pk the modelled seconds of kernel k in plan p (an operator or a
fusion), T_p the measured ones and c = median T_p / Σ_k m_pk, the factors f_k ≥ 0 minimise

    Σ_p (Σ_k m_pk f_k / T_p − 1)² + ε² Σ_k (f_k / c − 1)²

(non-negative least squares). The second sum decides among kernels that always occur together, such
as gather and scatter; what a plan costs does not depend on that.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from optbench.gnn.kernels.arc_rows import network_arcs
from optbench.gnn.kernels.fused_network import FusedNetwork, NetworkWidths, network_inputs
from optbench.gnn.kernels.fusion_plan import KernelRates, best_fusions, fusion_names
from optbench.shapes.gnn_training.operator_costs import has_cycle
from optbench.shapes.gnn_training.step_costs import part_seconds
from optbench.shapes.gnn_training.training_data import Floats, GnnTraining, Ints, TrainingDevice

# ε of the head of this module.
PRIOR = 0.02


@dataclass(frozen=True)
class KernelCase:
    """A training instance with the widths of its network."""

    data: GnnTraining
    widths: NetworkWidths


class TimedStep:
    """A step of a case on random features that are stored densely, or on given ones."""

    def __init__(self, case: KernelCase, fused: frozenset[str], features: Any = None):
        nodes, widths = case.data.graph.num_nodes, case.widths
        drawn = np.random.default_rng(0).random((nodes, widths.features), dtype=np.float32)
        given = torch.from_numpy(drawn) if features is None else features
        rows = network_arcs(case.data.graph, widths.kind)
        self.network, self.fused = FusedNetwork(widths, seed=0), fused
        self.inputs = network_inputs(widths.kind, fused, rows, given)

    def __call__(self) -> None:
        self.network.zero_grad()
        self.network(self.inputs, self.fused).square().sum().backward()

    def seconds(self, repeats: int) -> float:
        """The median of processor seconds, after a step that is not counted."""
        return median_seconds(self, repeats)


def median_seconds(step: Any, repeats: int) -> float:
    """The median of processor seconds of calls, after one that is not counted."""
    step()
    taken = []
    for _ in range(repeats):
        begin = time.process_time()
        step()
        taken.append(time.process_time() - begin)
    return float(np.median(taken))


def fitted_rates(case: KernelCase, device: TrainingDevice, repeats: int) -> KernelRates:
    """Time the plans of the head of this module, and return the factors."""
    rows: list[dict[str, float]] = []
    measured: list[float] = []
    for plan in timed_plans(case.data, device):
        chosen = np.array(plan, dtype=np.int64)
        rows.append(modelled_by_kernel(case.data, chosen, device))
        names = fusion_names(case.data.fusions, chosen)
        measured.append(TimedStep(case, names).seconds(repeats))
    kernels = sorted({name for row in rows for name in row})
    table = np.array([[row.get(name, 0.0) for name in kernels] for row in rows])
    return KernelRates(device, dict(zip(kernels, _factors(table, np.array(measured)), strict=True)))


def timed_plans(data: GnnTraining, device: TrainingDevice) -> list[tuple[int, ...]]:
    """The legal plans that differ by one fusion from the best one of the cost model alone."""
    fusions = data.fusions
    best = best_fusions(data, KernelRates(device)).chosen.tolist()
    found = [tuple(best)]
    for f, each in enumerate(fusions):
        if f in best:
            changed = [g for g in best if g != f]
        else:
            changed = [g for g in best if set(fusions[g].replaces).isdisjoint(each.replaces)] + [f]
        if not has_cycle(data.operators, [fusions[g].replaces for g in changed]):
            found.append(tuple(sorted(changed)))
    return found


def modelled_by_kernel(data: GnnTraining, chosen: Ints, device: TrainingDevice) -> dict[str, float]:
    """Modelled seconds of the whole graph by operator or fusion, with a plan."""
    nodes, arcs = float(data.graph.sizes.sum()), 2.0 * data.graph.num_edges
    plan = [data.fusions[f] for f in chosen.tolist()]
    gone = {k for each in plan for k in each.replaces}
    kernels = [(each.name, each.cost) for k, each in enumerate(data.operators) if k not in gone]
    kernels += [(each.name, each.cost) for each in plan]
    return {name: part_seconds([cost], nodes, arcs, device, 1.0) for name, cost in kernels}


def _factors(table: Floats, measured: Floats) -> list[float]:
    from scipy.optimize import nnls

    common = float(np.median(measured / table.sum(axis=1)))
    # In units of the common factor, so that the prior is 1.
    relative = np.vstack([table * common / measured[:, None], PRIOR * np.eye(table.shape[1])])
    goal = np.concatenate([np.ones(len(measured)), np.full(table.shape[1], PRIOR)])
    found, _ = nnls(relative, goal)
    return [float(each) * common for each in found]
