"""The whole: plans of parts, fusions, devices and clocks, for each aim, with parts switched off."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.plugins.discovery import load_problem
from optbench.plugins.solvers.hyperscale.energy_search import least_energy
from optbench.plugins.solvers.hyperscale.fusion_choice import after_fusion, best_plan, fusion_plans
from optbench.shapes.gnn_training.operator_costs import costs_of_plan
from optbench.shapes.gnn_training.step_costs import step_costs
from optbench.shapes.gnn_training.training_plan import TrainingPlan
from tests.shapes.gnn_training.small_training import instance as by_hand
from tests.shapes.gnn_training.small_training import training

SMALL = "gnn_training:graph=community,nodes=120,parts=4,features=32,devices=2:1"


def made(changes: str) -> Any:
    return load_problem(f"{SMALL},{changes}").instance(0)


def solved(instance: Any, solver: str = "hyperscale", **options: Any) -> Any:
    settings = {"work_limit": 8, "time_limit_s": 60.0, "bound": False} | options
    return ob.solve(instance, solver, **settings)


@pytest.mark.parametrize("aim", ["cut", "step", "energy"])
def test_a_plan_for_each_aim_is_no_worse_than_parts_alone(aim: str) -> None:
    instance = made(f"minimize={aim}")
    whole, parts = solved(instance), solved(instance, "mis_spectral")
    assert whole.verified and whole.objective <= parts.objective
    assert len(whole.schedule.fusions) and len(whole.schedule.device) == 4
    assert [p.objective for p in whole.trajectory if p.objective is not None]


def test_cuts_are_those_of_mis_spectral_at_equal_work() -> None:
    instance = made("minimize=cut")
    assert solved(instance).objective == solved(instance, "mis_spectral").objective


@pytest.mark.parametrize("aim", ["cut", "step", "energy"])
def test_the_same_seed_gives_the_same_plan(aim: str) -> None:
    instance = made(f"minimize={aim}")
    one, again = (solved(instance, seed=3).schedule for _ in range(2))
    for name in ("part", "device", "clock", "fusions"):
        assert np.array_equal(getattr(one, name), getattr(again, name))


@pytest.mark.parametrize(
    "switch",
    [
        "partition=metis",
        "partition=random",
        "fusion=off",
        "overlap=off",
        "placement=identity",
        "placement=greedy",
        "placement=argmin",
    ],
)
def test_each_part_can_be_switched(switch: str) -> None:
    result = solved(made("minimize=step,overlap=0.5"), f"hyperscale:{switch}")
    assert result.verified
    assert (len(result.schedule.fusions) == 0) == (switch == "fusion=off")
    assert result.schedule.overlap == (switch != "overlap=off")


def test_a_plan_without_overlap_waits_for_every_row() -> None:
    """Overlap hides a quarter of the exchange: of the same plan, the step is longer without."""
    data = training()
    plan = TrainingPlan(np.array([0, 0, 0, 1]))
    hidden, waiting = step_costs(data, plan), step_costs(data, replace(plan, overlap=False))
    # The slow device computes for less time, so that both wait for the fast one's exchange.
    assert waiting.step_s == pytest.approx(hidden.step_s + 0.25 * hidden.talk_s[0])


def test_fusions_are_those_with_the_shorter_step() -> None:
    """ax_w takes 1.5e9 flop per node: 3.01 s of 4 nodes on the fast device, where the operators
    apart take 2 + 5 + 0.02 s; it is the one plan.
    """
    data = training()
    plans = fusion_plans(data)
    assert [each.tolist() for each in plans] == [[0]]
    plan = TrainingPlan(np.array([0, 0, 0, 1]))
    assert best_plan(data, plan, [np.zeros(0, dtype=np.int64), plans[0]]).tolist() == [0]
    fused = after_fusion(data, plans[0])
    assert costs_of_plan(fused.operators, (), ()) == [data.fusions[0].cost]


def test_the_least_energy_of_two_parts_by_enumeration() -> None:
    """All devices and clocks of two parts: 2 clocks of the fast device and 1 of the slow one. One
    row crosses per pair of devices, so that added rows are exact.
    """
    for limit in (None, 6.0, 7.5):
        data = training(minimize="energy", step_limit_s=limit)
        plan = TrainingPlan(np.array([0, 0, 0, 1]))
        places = [(d, c) for d, each in enumerate(data.devices) for c in range(len(each.clocks))]
        verdicts = []
        shape = by_hand(minimize="energy", step_limit_s=limit)
        for pair in product(places, repeat=2):
            device, clock = (np.array(each, dtype=np.int64) for each in zip(*pair, strict=True))
            given = replace(plan, device=device, clock=clock)
            found = shape.shape.verdict_of(shape, given)
            if found.feasible:
                verdicts.append(found.objectives[0])
        best = least_energy(data, plan, True, lambda: np.inf)
        got = shape.shape.verdict_of(shape, replace(plan, device=best.device, clock=best.clock))
        assert got.feasible == bool(verdicts)
        if verdicts:
            assert got.objectives[0] == pytest.approx(min(verdicts))


def test_clocks_alone_stay_on_their_devices() -> None:
    data = training(minimize="energy")
    plan = TrainingPlan(np.array([0, 0, 0, 1]))
    found = least_energy(data, plan, False, lambda: np.inf)
    assert found.device.tolist() == [0, 1]
