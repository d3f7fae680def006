"""The plan by the MILP is the best of all legal plans."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from optbench.gnn.kernels.fused_network import NetworkWidths
from optbench.gnn.kernels.fusion_plan import (
    KernelRates,
    best_fusions,
    choose_fusions,
    fusion_names,
    legal_plans,
    stem_of,
    with_best_fusions,
)
from optbench.gnn.kernels.kernel_rates import (
    KernelCase,
    PartOfStem,
    _factors,
    fitted_rates,
    kernels_of,
    plan_seconds,
    rates_of,
    timed_plans,
    work_by_stem,
)
from optbench.shapes.gnn_training.operator_costs import Fusion, Operator, OperatorCost
from optbench.shapes.gnn_training.step_costs import step_costs
from optbench.shapes.gnn_training.training_plan import TrainingPlan
from tests.gnn.kernels.kernel_cases import CLASSES, FEATURES, training_of

FREE = OperatorCost()
# Four operators: 0 and 1 read the features, 2 reads 0, 3 reads 1.
OPERATORS = tuple(
    Operator(name, "any", inputs, FREE)
    for name, inputs in (("a", (-1,)), ("b", (-1,)), ("c", (0,)), ("d", (1,)))
)


def fusions(*sets: tuple[int, ...]) -> tuple[Fusion, ...]:
    return tuple(Fusion(f"f{k}", each, FREE) for k, each in enumerate(sets))


def test_the_packing_of_a_small_graph_is_the_one_derived_by_hand() -> None:
    # Operators take 4, 3, 2, 1 s. Fusions {a, c} for 5 s saves 1, {a, b} for 4 s saves 3 and
    # excludes the first, {d} for 0.5 s saves 0.5: 10 − 3 − 0.5.
    found = choose_fusions(
        OPERATORS, fusions((0, 2), (0, 1), (3,)), [4.0, 3.0, 2.0, 1.0], [5.0, 4.0, 0.5]
    )
    assert found.chosen.tolist() == [1, 2]
    assert found.seconds == pytest.approx(6.5)


def test_fusions_that_wait_for_each_other_are_not_chosen_together() -> None:
    # {a, d} needs b, which is in {b, c}; {b, c} needs a. Each alone is legal: the one that saves
    # more (3 of 10) is chosen.
    found = choose_fusions(OPERATORS, fusions((0, 3), (1, 2)), [4.0, 3.0, 2.0, 1.0], [3.0, 2.0])
    assert found.chosen.tolist() == [1]
    assert found.seconds == pytest.approx(7.0)
    assert list(legal_plans(OPERATORS, fusions((0, 3), (1, 2)))) == [(), (0,), (1,)]


def test_no_fusion_that_costs_more_is_chosen() -> None:
    found = choose_fusions(OPERATORS, fusions((0, 1)), [1.0] * 4, [2.5])
    assert found.chosen.tolist() == []
    assert choose_fusions(OPERATORS, (), [1.0] * 4, []).seconds == 4.0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("network", ["gcn", "sage", "gat"])
def test_the_plan_is_the_best_of_all(network: str, seed: int) -> None:
    data = training_of(network)
    rng = np.random.default_rng(seed)
    alone, fused = rng.random(len(data.operators)), 2 * rng.random(len(data.fusions))

    def seconds(plan: tuple[int, ...]) -> float:
        gone = {k for f in plan for k in data.fusions[f].replaces}
        left = sum(alone[k] for k in range(len(alone)) if k not in gone)
        return float(left + sum(fused[f] for f in plan))

    found = choose_fusions(data.operators, data.fusions, alone.tolist(), fused.tolist())
    best = min(map(seconds, legal_plans(data.operators, data.fusions)))
    assert found.seconds == pytest.approx(best)
    assert seconds(tuple(found.chosen.tolist())) == pytest.approx(best)


def test_a_factor_steers_the_plan_of_an_instance() -> None:
    data = training_of("gcn")
    device = data.devices[0]
    free = best_fusions(data, KernelRates(device))
    assert "aggregated_before" in fusion_names(data.fusions, free.chosen)
    dear = best_fusions(data, KernelRates(device, {"aggregated_before": 1000.0}))
    assert "aggregated_before" not in fusion_names(data.fusions, dear.chosen)
    assert dear.seconds > free.seconds


def test_a_plan_with_the_best_fusions_takes_the_seconds_of_the_programme() -> None:
    # One device, no links in use: the step is computing alone.
    data = training_of("sage")
    rates = KernelRates(data.devices[0])
    identity = TrainingPlan(np.zeros(data.graph.num_nodes, dtype=np.int64))
    fused = with_best_fusions(data, identity, rates)
    assert step_costs(data, fused).step_s == pytest.approx(best_fusions(data, rates).seconds)
    assert step_costs(data, fused).step_s < step_costs(data, identity).step_s


def test_timed_plans_differ_by_one_fusion_from_the_best() -> None:
    data = training_of("gat")
    first, *others = timed_plans(data, KernelRates(data.devices[0]))
    assert list(first) == best_fusions(data, KernelRates(data.devices[0])).chosen.tolist()
    assert len(others) == len(data.fusions)
    legal = set(legal_plans(data.operators, data.fusions))
    assert {first, *others} <= legal
    for f, plan in enumerate(others):
        assert (f in plan) != (f in first)
        assert len(set(plan) - set(first)) == (f not in first)


def test_measured_coefficients_cover_every_kernel() -> None:
    data = training_of("gcn")
    case = KernelCase(data, NetworkWidths("gcn", FEATURES, 16, CLASSES))
    rates = fitted_rates(case, data.devices[0], repeats=1)
    assert {stem_of(each.name) for each in data.fusions} | {"loss"} <= set(rates.parts)
    found = [each for parts in rates.parts.values() for each in parts]
    assert all(each >= 0 for each in found)
    assert sum(found) > 0


def test_rates_of_two_instances_give_back_seconds_that_are_linear_in_the_work() -> None:
    # Kernels take twice the modelled seconds of arcs and three times those of launches, and
    # nothing else: plans of the second size are predicted from those of the first and third.
    small, middle, large = (training_of("gcn", hidden) for hidden in (8, 16, 32))
    device = small.devices[0]

    def taken(work: dict[PartOfStem, float]) -> float:
        return sum(((0.0, 0.0, 2.0, 3.0)[part]) * each for (_, part), each in work.items())

    given = [
        work_by_stem(data, np.array(plan, dtype=np.int64), device)
        for data in (small, large)
        for plan in legal_plans(data.operators, data.fusions)
    ]
    rates = rates_of(device, given, [taken(each) for each in given])
    for plan in legal_plans(middle.operators, middle.fusions):
        chosen = np.array(plan, dtype=np.int64)
        expected = taken(work_by_stem(middle, chosen, device))
        assert plan_seconds(middle, chosen, rates) == pytest.approx(expected, rel=0.05)


def test_factors_of_additive_steps_give_back_the_steps() -> None:
    # Two kernels of 1 and 2 modelled seconds, alone and together; they take 3 and 1 s: factors 3
    # and 1/2, up to the prior.
    found = _factors(np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 2.0]]), np.array([3.0, 1.0, 4.0]))
    assert found == pytest.approx([3.0, 0.5], rel=2e-3)


def test_modelled_seconds_of_kernels_add_up_to_the_step() -> None:
    data = training_of("gcn")
    rates, chosen = KernelRates(data.devices[0]), np.array([0], dtype=np.int64)
    assert "spmm1" in dict(kernels_of(data, chosen))
    found = best_fusions(replace(data, fusions=()), rates)
    assert plan_seconds(data, chosen[:0], rates) == pytest.approx(found.seconds)
    best = best_fusions(data, rates)
    assert plan_seconds(data, best.chosen, rates) == pytest.approx(best.seconds)
