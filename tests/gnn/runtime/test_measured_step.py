"""Readings of a step under a plan, by real processes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.errors import UnsupportedError
from optbench.gnn.kernels.fusion_plan import KernelRates, best_fusions, fusion_names
from optbench.gnn.runtime.measured_step import read_network, relative_speeds
from optbench.gnn.runtime.section_clock import check_speeds
from optbench.shapes.gnn_training.cut_graph import CutGraph
from optbench.shapes.gnn_training.training_plan import TrainingPlan


def made(**settings: Any) -> Any:
    words = ",".join(f"{name}={value}" for name, value in settings.items())
    return ob.load_problem(f"gnn_training:graph=grid,nodes=60,minimize=step,{words}").instance(0)


def plan_of(instance: Any, **others: Any) -> TrainingPlan:
    nodes, parts = instance.data.graph.num_nodes, instance.data.num_parts
    return TrainingPlan(np.arange(nodes, dtype=np.int64) * parts // nodes, **others)


@pytest.mark.parametrize(
    ("network", "widths"), [("gcn", (9, 6, 4)), ("sage", (9, 6, 4)), ("gat", (9, 6, 4))]
)
def test_networks_are_read_from_operators(network: str, widths: tuple[int, ...]) -> None:
    instance = made(network=network, features=9, hidden=6, classes=4, parts=2)
    found = read_network(instance.data)
    assert (found.network, found.widths) == (network, widths)


def test_unknown_operators() -> None:
    data = made(parts=2).data
    with pytest.raises(UnsupportedError, match=r"none of a GCN, GraphSAGE or GAT .* are: none"):
        read_network(replace(data, operators=(), fusions=()))


def test_four_parts_on_two_devices() -> None:
    instance = made(parts=4, devices="1:1", features=9)
    names = [each.name for each in instance.data.fusions]
    before = np.array([names.index("aggregated_before")])
    plan = plan_of(instance, device=np.array([0, 0, 1, 0]), fusions=before)
    found = ob.measure(instance, plan, repeats=2)
    assert len(found.readings["step_s"]) == 2 and min(found.readings["step_s"]) > 0
    assert found.provenance["speeds"] == [1.0, 1.0] == found.provenance["solo_speeds"]
    assert found.provenance["fusions_not_executed"] == []
    # The features' rows are summed before the training: rows of the second layer alone are sent,
    # 4 bytes for each of 8 classes, forward and backward.
    rows = int(CutGraph(instance.data.graph, plan.part, 4).merged(plan.device, 2).rows.sum())
    assert found.provenance["sent_mb_per_step"] * 1e6 == pytest.approx(rows * 8 * 4 * 2)
    assert "step_s" in ob.verify(instance, plan).metrics
    # The rows of each device after the first steps, over time, for pictures; 5 steps come first.
    devices = found.provenance["device_rows"]
    assert [{row["device"] for row in rows} for rows in devices] == [{0}, {1}]
    keys = {"at_s", "seconds", "busy_s", "waited_s", "sent_mb", "memory_mb", "utilisation"}
    assert all(keys <= row.keys() and row["step"] > 5 for rows in devices for row in rows)


@pytest.mark.parametrize(
    "network",
    ["gcn", *(pytest.param(each, marks=pytest.mark.slow) for each in ("sage", "gat"))],
)
def test_the_fusions_of_a_plan_are_executed(network: str) -> None:
    """The best plan of a network is trained; device 1 alone is used, the second of the data."""
    instance = made(parts=2, devices="1:1", features=9, network=network)
    chosen = best_fusions(instance.data, KernelRates(instance.data.devices[0])).chosen
    plan = plan_of(instance, device=np.array([1, 1]), fusions=chosen)
    found = ob.measure(instance, plan, repeats=1)
    assert found.provenance["fusions"] == sorted(fusion_names(instance.data.fusions, chosen))
    assert found.provenance["fusions"] and found.provenance["fusions_not_executed"] == []
    assert [{row["device"] for row in rows} for rows in found.provenance["device_rows"]] == [{1}]


def test_slower_devices_are_relative_to_the_fastest() -> None:
    assert relative_speeds(made(parts=4, devices="4:2:1").data).tolist() == [1.0, 0.5, 0.25]


def test_a_device_of_another_speed_is_refused() -> None:
    check_speeds((1.0, 0.5), [0.7, 0.46])
    with pytest.raises(UnsupportedError, match=r"device 1 alone computed at 0\.400 of a core"):
        check_speeds((1.0, 0.5), [1.0, 0.4])


def test_more_devices_than_cores_are_refused() -> None:
    instance = made(parts=60, devices="equal")
    plan = TrainingPlan(np.arange(60, dtype=np.int64))
    with pytest.raises(UnsupportedError, match=r"60 devices of relative speeds 1, .* do not fit"):
        ob.measure(instance, plan)


def test_lower_clocks_are_refused() -> None:
    instance = made(parts=2)
    plan = plan_of(instance, clock=np.array([5, 0]))
    with pytest.raises(UnsupportedError, match=r"part 1 runs at clock 0\.5; no clocks"):
        ob.measure(instance, plan)
