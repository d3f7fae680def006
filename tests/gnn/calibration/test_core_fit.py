"""Fitted cores and links, on samples whose seconds a known core and link have made."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.errors import UnsupportedError
from optbench.gnn.calibration.core_fit import estimate_s, fit_core
from optbench.gnn.calibration.device_file import device_document, throttled
from optbench.gnn.calibration.step_samples import (
    StepSample,
    breadth_first,
    induced,
    measured_samples,
    on_cores,
)
from optbench.gnn.runtime.measured_step import relative_speeds
from optbench.shapes.gnn_training.step_costs import step_costs
from optbench.shapes.gnn_training.training_data import DataGraph, TrainingDevice
from optbench.shapes.gnn_training.training_plan import TrainingPlan

# A core that is bound by flops in dense products and by bytes elsewhere, and a slow link.
CORE = TrainingDevice("core", 12.0, 3.0, 4.0, 6.0, 4.0, 4.0, (1.0,), None, 4e-5)
GB_PER_S, LATENCY_S = 0.4, 2e-4


def data(spec: str = "parts=2,devices=2:1") -> Any:
    return ob.load_problem(f"gnn_training:graph=mesh,nodes=400,{spec}").instance(0).data


def samples(of: Any, sizes: tuple[int, ...] = (400, 200, 100, 50)) -> list[StepSample]:
    """Steps of the known core: on one, and on two with parts that exchange few and many rows."""
    order, found = breadth_first(of.graph), list[StepSample]()
    for nodes in sizes:
        for cores in (1, 2):
            given = on_cores(of, induced(of.graph, order[:nodes]), cores)
            for part in (np.arange(nodes) * cores // nodes, np.arange(nodes) % cores):
                one = StepSample(given, TrainingPlan(part), 0.0)
                link = (GB_PER_S, LATENCY_S)
                found.append(replace(one, seconds=estimate_s(one, CORE, link)))
    return found


def test_a_known_core_and_link_are_found() -> None:
    found = fit_core(samples(data("parts=2,features=600,hidden=64")))
    assert found.core.gflops == pytest.approx(12.0, rel=0.05)
    assert found.core.gb_per_s == pytest.approx(3.0, rel=0.02)
    assert found.core.launch_s == pytest.approx(4e-5, rel=0.02)
    assert found.gb_per_s == pytest.approx(GB_PER_S, rel=0.05)
    assert found.latency_s == pytest.approx(LATENCY_S, rel=0.05)
    assert found.largest_error < 0.01


def test_without_samples_of_two_cores_there_is_no_link() -> None:
    alone = [each for each in samples(data()) if each.data.num_devices == 1]
    found = fit_core(alone)
    assert found.gb_per_s is None is found.latency_s
    assert "links" not in device_document(found, [1.0, 0.5], alone, {})


def test_a_throttled_core_takes_as_many_times_longer() -> None:
    """Rates, launches and power above idle: a step on half a core takes twice as long."""
    of = on_cores(data(), data().graph, 1)
    plan = TrainingPlan(np.zeros(400, dtype=np.int64))
    whole, half = (
        step_costs(replace(of, devices=(throttled(CORE, s, "core"),)), plan) for s in (1.0, 0.5)
    )
    assert half.step_s == pytest.approx(2 * whole.step_s)
    assert throttled(CORE, 0.5, "core").power_w(1.0) == pytest.approx(9.0)  # 4 + (14 - 4) / 2


def test_the_file_is_read_as_devices(tmp_path: Path) -> None:
    of = data("parts=3,devices=4:2:1")
    given = samples(of)
    document = device_document(fit_core(given), relative_speeds(of).tolist(), given, {"cores": 2})
    path = tmp_path / "cores.json"
    path.write_text(json.dumps(document))
    made = data(f"parts=3,devices={path}")
    assert relative_speeds(made).tolist() == [1.0, 0.5, 0.25]
    assert made.links.gb_per_s[0, 1] == document["links"]["gb_per_s"]
    assert made.devices[2].launch_s == pytest.approx(4 * made.devices[0].launch_s)
    assert len(document["about"]["samples"]) == len(given)


def test_subgraphs_of_the_first_nodes_in_breadth() -> None:
    """0-3, 3-1, 1-2 and 4-5: from 0 on, 0 3 1 2, then 4 5."""
    graph = DataGraph(6, np.array([0, 1, 1, 4]), np.array([3, 2, 3, 5]))
    order = breadth_first(graph)
    assert order.tolist() == [0, 3, 1, 2, 4, 5]
    part = induced(graph, order[:3])
    assert list(zip(part.tail.tolist(), part.head.tolist(), strict=True)) == [(0, 1), (1, 2)]


def test_a_real_core_is_measured() -> None:
    """Seconds of real processes; what they are depends on the machine."""
    of = ob.load_problem("gnn_training:graph=grid,nodes=64,parts=2,features=8").instance(0).data
    found = measured_samples(of, np.zeros(0, dtype=np.int64), 1, shares=((1.0,), ()))
    assert [each.data.graph.num_nodes for each in found] == [64] and found[0].seconds > 0
    assert fit_core(found).core.gflops > 0


def test_tiny_graphs_are_refused() -> None:
    of = ob.load_problem("gnn_training:graph=grid,nodes=9,parts=2").instance(0).data
    with pytest.raises(UnsupportedError, match=r"the graph has 9 nodes; .* at least 16"):
        measured_samples(of, np.zeros(0, dtype=np.int64), 1)
