"""The cost model's seconds by kernel, measured on the machine at hand.

Whole steps of several instances, forward and backward, are timed with several plans p: the best one
under the rates so far, the same without each of its fusions, and with each other fusion in place of
those that it excludes. The seconds of a kernel, an operator or a fusion, are a sum over parts of
its work (operations of nodes, their bytes, arcs, launches), with a coefficient f for each stem of a
name and part. With m_pk the modelled seconds of part k, summed over the kernels of its stem in p,
T_p the measured seconds, and c = median T_p / Σ_k m_pk, the f_k ≥ 0 minimise

    Σ_p (Σ_k m_pk f_k / T_p − 1)² + ε² Σ_k (f_k / c − 1)²

(non-negative least squares). The second sum decides among kernels that always occur together, such
as gather and scatter; what a plan costs does not depend on that. Rates are fitted on instances, and
of use for others: graphs that are judged are not among those that they were fitted on.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any, TypeAlias

import numpy as np
import torch

from optbench.gnn.kernels.arc_rows import network_arcs
from optbench.gnn.kernels.fused_network import FusedNetwork, NetworkWidths, network_inputs
from optbench.gnn.kernels.fusion_plan import (
    KernelRates,
    best_fusions,
    fusion_names,
    parts_of_work,
    stem_of,
)
from optbench.shapes.gnn_training.operator_costs import OperatorCost, has_cycle
from optbench.shapes.gnn_training.training_data import Floats, GnnTraining, Ints, TrainingDevice

# The stem of a kernel's name and the number of a part of its work.
PartOfStem: TypeAlias = tuple[str, int]
PARTS = 4
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
    """The coefficients of one case."""
    return common_rates([case], device, repeats)


def common_rates(
    cases: Sequence[KernelCase], device: TrainingDevice, repeats: int, rounds: int = 1
) -> KernelRates:
    """Time the plans of the head of this module, and return the coefficients.

    Each round takes the best plan under the rates of the one before.
    """
    timed: dict[tuple[int, frozenset[str]], tuple[dict[PartOfStem, float], float]] = {}
    rates = KernelRates(device)
    for _ in range(rounds):
        for number, case in enumerate(cases):
            for plan in timed_plans(case.data, rates):
                chosen = np.array(plan, dtype=np.int64)
                names = fusion_names(case.data.fusions, chosen)
                if (number, names) not in timed:
                    taken = TimedStep(case, names).seconds(repeats)
                    timed[number, names] = (work_by_stem(case.data, chosen, device), taken)
        work, seconds = zip(*timed.values(), strict=True)
        rates = rates_of(device, work, seconds)
    return rates


def rates_of(
    device: TrainingDevice, work: Sequence[dict[PartOfStem, float]], seconds: Sequence[float]
) -> KernelRates:
    """Return the coefficients for the work of plans and their measured seconds."""
    columns = sorted({column for row in work for column in row})
    table = np.array([[row.get(column, 0.0) for column in columns] for row in work])
    found = dict(zip(columns, _factors(table, np.array(seconds)), strict=True))
    stems = {stem for stem, _ in columns}
    parts = {stem: tuple(found[stem, part] for part in range(PARTS)) for stem in stems}
    return KernelRates(device, parts=parts)


def timed_plans(data: GnnTraining, rates: KernelRates) -> list[tuple[int, ...]]:
    """The legal plans that differ by one fusion from the best one, which is the first."""
    fusions = data.fusions
    best = best_fusions(data, rates).chosen.tolist()
    found = [tuple(best)]
    for f, each in enumerate(fusions):
        if f in best:
            changed = [g for g in best if g != f]
        else:
            changed = [g for g in best if set(fusions[g].replaces).isdisjoint(each.replaces)] + [f]
        if not has_cycle(data.operators, [fusions[g].replaces for g in changed]):
            found.append(tuple(sorted(changed)))
    return found


def work_by_stem(
    data: GnnTraining, chosen: Ints, device: TrainingDevice
) -> dict[PartOfStem, float]:
    """Modelled seconds of the whole graph by the stem of a kernel's name and part of its work."""
    nodes, arcs = float(data.graph.sizes.sum()), 2.0 * data.graph.num_edges
    out: dict[PartOfStem, float] = {}
    for name, cost in kernels_of(data, chosen):
        for part, seconds in enumerate(parts_of_work(cost, nodes, arcs, device)):
            key = (stem_of(name), part)
            out[key] = out.get(key, 0.0) + seconds
    return out


def plan_seconds(data: GnnTraining, chosen: Ints, rates: KernelRates) -> float:
    """Seconds of a step of the whole graph with a plan, by the rates."""
    nodes, arcs = float(data.graph.sizes.sum()), 2.0 * data.graph.num_edges
    return fsum(rates.seconds(name, cost, nodes, arcs) for name, cost in kernels_of(data, chosen))


def kernels_of(data: GnnTraining, chosen: Ints) -> list[tuple[str, OperatorCost]]:
    """Names and costs of the operators and fusions that a plan executes."""
    plan = [data.fusions[f] for f in chosen.tolist()]
    gone = {k for each in plan for k in each.replaces}
    kernels = [(each.name, each.cost) for k, each in enumerate(data.operators) if k not in gone]
    return kernels + [(each.name, each.cost) for each in plan]


def _factors(table: Floats, measured: Floats) -> list[float]:
    from scipy.optimize import nnls

    common = float(np.median(measured / table.sum(axis=1)))
    # In units of the common factor, so that the prior is 1.
    relative = np.vstack([table * common / measured[:, None], PRIOR * np.eye(table.shape[1])])
    goal = np.concatenate([np.ones(len(measured)), np.full(table.shape[1], PRIOR)])
    found, _ = nnls(relative, goal)
    return [float(each) * common for each in found]
