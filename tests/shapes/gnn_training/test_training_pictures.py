"""Pictures of a plan: what they say of the square on two devices, with and without readings."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest

from optbench.run.verification import LONGEST_PICTURE, MOST_PICTURES
from optbench.shapes.gnn_training.cut_graph import CutGraph
from optbench.shapes.gnn_training.measured_pictures import MOST_SAMPLES, samples_of
from optbench.shapes.gnn_training.training_data import DataGraph
from optbench.shapes.gnn_training.training_pictures import device_names, edges_between, pictures_of
from optbench.shapes.protocol.measurements import Measurements
from tests.shapes.gnn_training.small_training import FAST, SQUARE, instance, plan, training

SVG = "{http://www.w3.org/2000/svg}"


def words(picture: str) -> list[str]:
    return [each.text or "" for each in ET.fromstring(picture).iter(f"{SVG}text")]


def shown(**changes: Any) -> dict[str, str]:
    return pictures_of(training(**changes), plan([0, 0, 0, 1]))


def test_a_plan_has_its_pictures_as_svg_that_a_study_keeps() -> None:
    made = instance()
    found = made.shape.pictures(made, plan([0, 0, 0, 1]))
    assert tuple(found) == ("Cut graph", "Utilisation of devices", "Communication", "Operators")
    assert len(found) <= MOST_PICTURES
    for text in found.values():
        assert text.startswith("<svg") and len(text) < LONGEST_PICTURE
        assert ET.fromstring(text).attrib["aria-label"] in words(text)


def test_the_cut_in_words() -> None:
    # Node 3 alone: 1-3 and 2-3 of five edges are cut.
    found = words(shown()["Cut graph"])
    assert "4 nodes in 2 parts, at most 3 in one; 2 of 5 edges cut (40.0 %)" in found
    assert {"part 0 on fast", "part 1 on slow"} <= set(found)


def test_a_step_by_device_in_words() -> None:
    # The fast device computes for 5.52 s (test_step_costs.py), and shares of both are shown.
    found = words(shown()["Utilisation of devices"])
    assert {"fast", "slow", "computing", "exchange of rows", "adding gradients"} <= set(found)
    assert any("by the cost model; devices compute in" in each for each in found)


def test_what_devices_send_each_other() -> None:
    # Nodes 1 and 2 are needed by the slow device, node 3 by the fast one; 0.2 GB a row.
    found = words(shown()["Communication"])
    assert {"400", "200", "MB from ↓"} <= set(found)
    assert "Rows of nodes sent in a step by the cost model: 600 MB in all" in found


def test_a_fusion_is_framed_with_its_name() -> None:
    found = pictures_of(training(), plan([0, 0, 0, 1], fusions=[0]))
    assert "Operators" not in found
    said = words(found["Fused operators"])
    assert {"features", "xw", "ax", "ax_w, 100 %"} <= set(said)
    assert any(each.startswith("1 fusion for 2 of 2 operators: ") for each in said)


def test_a_large_graph_is_drawn_as_its_parts() -> None:
    path = DataGraph(400, np.arange(399), np.arange(1, 400))
    data = training(graph=path, max_part=300)
    found = words(pictures_of(data, plan([0] * 100 + [1] * 300))["Cut graph"])
    assert "400 nodes in 2 parts, at most 300 in one; 1 of 399 edges cut (0.3 %)" in found
    assert {"100 nodes", "300 nodes", "on fast", "on slow"} <= set(found)


def test_edges_between_parts() -> None:
    cut = CutGraph(SQUARE, np.array([0, 1, 1, 2]), 3)
    # 0-1 and 0-2 join parts 0 and 1, 1-3 and 2-3 parts 1 and 2, 1-2 lies within part 1.
    assert edges_between(cut).tolist() == [[0, 2, 0], [2, 0, 2], [0, 2, 0]]


def test_devices_of_one_name_are_numbered() -> None:
    assert device_names(training()) == ["fast", "slow"]
    assert device_names(training(devices=(FAST, FAST))) == ["0: fast", "1: fast"]


def sample(device: int, step: int, at_s: float, **changes: Any) -> dict[str, Any]:
    row = {"device": device, "attempt": 0, "step": step, "at_s": at_s, "seconds": 1.0}
    return {**row, "busy_s": 0.5, "waited_s": 0.25, "sent_mb": 4.0, "memory_mb": 9.0, **changes}


def test_samples_are_drawn_over_time_in_place_of_the_model() -> None:
    made = instance()
    rows = [[sample(d, 2 * k, 100.0 + k) for k in (1, 2, 3)] for d in (0, 1)]
    measured = Measurements({"step_s": (0.5,)}, {"device_rows": rows})
    found = made.shape.measured_pictures(made, plan([0, 0, 0, 1]), measured)
    said = words(found["Utilisation of devices"])
    assert any(each.startswith("Measured: devices computed in 50 % of the time") for each in said)
    assert {"fast", "slow", "waiting for others"} <= set(said)
    # 4 MB in each two steps, from the end of the first sample on.
    assert {"MB per step", "step", "2", "6"} <= set(words(found["Communication"]))
    assert tuple(found) == tuple(made.shape.pictures(made, plan([0, 0, 0, 1])))


@pytest.mark.parametrize(
    "provenance",
    [
        {},
        {"device_rows": []},
        {"device_rows": [[{"device": 0}]]},
        {"device_rows": [[sample(7, 1, 1.0)]]},
    ],
)
def test_without_samples_the_model_is_drawn(provenance: dict[str, Any]) -> None:
    made = instance()
    measured = Measurements({"step_s": (0.5,)}, provenance)
    chosen = plan([0, 0, 0, 1])
    assert made.shape.measured_pictures(made, chosen, measured) == made.shape.pictures(made, chosen)


def test_many_samples_are_joined() -> None:
    rows = [sample(0, k, 100.0 + k) for k in range(1, 2 * MOST_SAMPLES + 1)]
    found = samples_of(json.loads(json.dumps({"device_rows": [rows]})), 2)[0]
    assert len(found) == MOST_SAMPLES
    assert found[0]["seconds"] == 2.0 and found[0]["step"] == 2 and found[0]["at_s"] == 102.0
