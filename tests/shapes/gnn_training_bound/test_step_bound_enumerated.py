"""The bounds on step and energy against all plans of tiny instances."""

from __future__ import annotations

from itertools import chain, combinations, product
from typing import Any

import numpy as np
import pytest

from optbench.shapes.gnn_training.gnn_training_shape import GnnTrainingShape
from optbench.shapes.gnn_training.operator_costs import Fusion, Operator, OperatorCost
from optbench.shapes.gnn_training.training_data import (
    DataGraph,
    DeviceLinks,
    GnnTraining,
    TrainingDevice,
)
from optbench.shapes.gnn_training.training_plan import TrainingPlan
from optbench.shapes.gnn_training_bound.step_bound import step_bound

NODES, PARTS, DEVICES = 5, 2, 2


def random_cost(rng: np.random.Generator) -> OperatorCost:
    flop_node, flop_arc, byte_node, byte_arc = (rng.uniform(0, 2e9, 2).tolist()) + (
        rng.uniform(0, 2e9, 2).tolist()
    )
    rows = float(rng.choice([0.0, 1e8]))
    exchanges, launches = int(rows > 0), int(rng.integers(0, 3))
    return OperatorCost(
        flop_node, flop_arc, byte_node, byte_arc, 1e6, 1e5, rows, exchanges, launches
    )


def random_training(rng: np.random.Generator, **changes: Any) -> GnnTraining:
    """Five nodes, two devices one of which is about twice as fast, three operators, two fusions."""
    pairs = np.array(list(combinations(range(NODES), 2)))
    edges = pairs[np.sort(rng.choice(len(pairs), int(rng.integers(2, 9)), replace=False))]
    graph = DataGraph(NODES, edges[:, 0], edges[:, 1], rng.integers(1, 4, NODES))
    operators = tuple(Operator(f"op{k}", "dense", (k - 1,), random_cost(rng)) for k in range(3))
    fusions = (Fusion("first", (0, 1), random_cost(rng)), Fusion("last", (1, 2), random_cost(rng)))
    speed = float(rng.uniform(0.2, 0.8))
    launch_s = float(rng.choice([0.0, 0.1]))
    devices = tuple(
        TrainingDevice(f"d{k}", s, 2 * s, 5.0, 40.0, 20.0, 10.0, (0.6, 1.0), None, launch_s)
        for k, s in enumerate((1.0, speed))
    )
    square = (DEVICES, DEVICES)
    links = DeviceLinks(np.full(square, 0.5), np.full(square, float(rng.choice([0.0, 0.2]))), 0.5)
    speeds = rng.uniform(0.5, 1.0, (2, DEVICES)) if rng.random() < 0.5 else np.zeros((0, 0))
    settings: dict[str, Any] = {"minimize": "step", "speeds": speeds} | changes
    return GnnTraining(graph, operators, fusions, 1e6, devices, links, PARTS, NODES, **settings)


def all_plans(data: GnnTraining) -> Any:
    """Every partition, placement, set of fusions; clocks at the top for a step, else all."""
    indices = range(len(data.fusions))
    fusions = chain.from_iterable(combinations(indices, r) for r in range(3))
    clocks = [(1, 1)] if data.minimize == "step" else list(product((0, 1), repeat=PARTS))
    choices = list(product(product(range(DEVICES), repeat=PARTS), clocks, list(fusions)))
    for part in product(range(PARTS), repeat=NODES):
        for device, clock, fused in choices:
            columns = [np.array(each, dtype=np.int64) for each in (part, device, clock, fused)]
            yield TrainingPlan(columns[0], columns[1], columns[2], columns[3])


@pytest.mark.parametrize("aim", ["step", "energy"])
def test_no_plan_at_all_is_below_the_bound(aim: Any) -> None:
    """And the bound is worth something: in the mean at least half of the least value."""
    rng = np.random.default_rng(18)
    shares = []
    for _ in range(5 if aim == "step" else 2):
        made = GnnTrainingShape().instance("tiny", random_training(rng, minimize=aim))
        verdicts = (made.shape.verdict_of(made, each) for each in all_plans(made.data))
        least = min(each.objectives[0] for each in verdicts if each.feasible)
        bound = step_bound(made.data).value
        assert 0 < bound <= least
        shares.append(bound / least)
    assert np.mean(shares) > 0.5, shares
