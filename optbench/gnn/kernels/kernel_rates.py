"""Factors of the cost model's seconds per kind of kernel, measured on the machine at hand.

Whole steps, forward and backward, of several plans p are timed. With m_pk the modelled seconds of
the kernels of kind k in plan p, T_p the measured ones and c = median T_p / Σ_k m_pk, the factors
f_k ≥ 0 minimise

    Σ_p (Σ_k m_pk f_k / T_p − 1)² + ε² Σ_k (f_k / c − 1)²

(non-negative least squares). The second sum decides among kinds that always occur together, such as
gather and scatter; what a plan costs does not depend on that.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from optbench.gnn.kernels.arc_rows import network_arcs
from optbench.gnn.kernels.fused_network import FusedNetwork, NetworkWidths, network_inputs
from optbench.gnn.kernels.fusion_plan import KernelRates, fusion_names, kind_of, legal_plans
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


def fitted_rates(
    cases: Sequence[KernelCase], device: TrainingDevice, plans: int, repeats: int
) -> KernelRates:
    """Time at most so many plans of each case, drawn at random, and return the factors."""
    rng = np.random.default_rng(0)
    rows: list[dict[str, float]] = []
    measured: list[float] = []
    for case in cases:
        legal = list(legal_plans(case.data.operators, case.data.fusions))
        for p in rng.permutation(len(legal))[:plans].tolist():
            chosen = np.array(legal[p], dtype=np.int64)
            rows.append(modelled_by_kind(case.data, chosen, device))
            names = fusion_names(case.data.fusions, chosen)
            measured.append(TimedStep(case, names).seconds(repeats))
    kinds = sorted({kind for row in rows for kind in row})
    table = np.array([[row.get(kind, 0.0) for kind in kinds] for row in rows])
    return KernelRates(device, dict(zip(kinds, _factors(table, np.array(measured)), strict=True)))


def modelled_by_kind(data: GnnTraining, chosen: Ints, device: TrainingDevice) -> dict[str, float]:
    """Modelled seconds of the whole graph by kind of kernel, with a plan."""
    nodes, arcs = float(data.graph.sizes.sum()), 2.0 * data.graph.num_edges
    plan = [data.fusions[f] for f in chosen.tolist()]
    gone = {k for each in plan for k in each.replaces}
    kernels = [(each.name, each.cost) for k, each in enumerate(data.operators) if k not in gone]
    out: dict[str, float] = {}
    for name, cost in [*kernels, *((each.name, each.cost) for each in plan)]:
        seconds = part_seconds([cost], nodes, arcs, device, 1.0)
        out[kind_of(name)] = out.get(kind_of(name), 0.0) + seconds
    return out


def _factors(table: Floats, measured: Floats) -> list[float]:
    from scipy.optimize import nnls

    common = float(np.median(measured / table.sum(axis=1)))
    # In units of the common factor, so that the prior is 1.
    relative = np.vstack([table * common / measured[:, None], PRIOR * np.eye(table.shape[1])])
    goal = np.concatenate([np.ones(len(measured)), np.full(table.shape[1], PRIOR)])
    found, _ = nnls(relative, goal)
    return [float(each) * common for each in found]
