"""What an instance has beside its data: trainings that differ are told apart by a fingerprint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from optbench.errors import UnsupportedError
from optbench.gnn.ingestion.given_graph import NodeValues
from optbench.plugins.discovery import load_problem
from optbench.shapes.gnn_training.gnn_training_shape import devices_used, require_known_network
from optbench.shapes.gnn_training.training_origin import TrainingOrigin, remove_trained
from optbench.shapes.gnn_training.training_plan import TrainingPlan

LABELS = NodeValues(labels=np.array([0, 1]), class_names=("a", "b"))
ORIGIN = TrainingOrigin("g.csv", ("ann", "bob"), LABELS, None, 2, 16, 2, 200, 0.01, 5e-4, 0)


def test_fingerprints_tell_trainings_apart(tmp_path: Path) -> None:
    """Epochs, rates, labels, names and the code of the model; the same again is the same."""
    model = tmp_path / "net.py"
    model.write_text("first = 1\n")
    own = replace(ORIGIN, model=f"{model}:Net")
    made = [
        ORIGIN,
        replace(ORIGIN, epochs=201),
        replace(ORIGIN, learning_rate=0.02),
        replace(ORIGIN, nodes=replace(LABELS, labels=np.array([1, 0]))),
        replace(ORIGIN, node_names=("ann", "cid")),
        own,
    ]
    marks = [each.fingerprint for each in made]
    model.write_text("first = 2\n")
    assert len({*marks, own.fingerprint}) == 7
    assert replace(ORIGIN).fingerprint == marks[0] and len(marks[0]) == 8


def test_old_weights_are_removed_and_that_is_said(tmp_path: Path) -> None:
    assert remove_trained(None) == [] == remove_trained(tmp_path)
    for name in ("weights.pt", "training.json", "parts.csv"):
        (tmp_path / name).write_text("old")
    (words,) = remove_trained(tmp_path)
    assert (
        words == f"weights.pt and training.json of an earlier training in {tmp_path} are replaced"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["parts.csv"]


def test_what_a_file_of_the_instance_does_not_hold() -> None:
    wanted = ("names of nodes", "labels and splits", "epochs and learning rate")
    assert ORIGIN.left_out == wanted


def test_devices_that_a_plan_leaves_alone_are_counted() -> None:
    """Nine nodes on the second of two devices."""
    data = load_problem("gnn_training:graph=grid,nodes=9,parts=2,devices=2:1").instance().data
    plan = TrainingPlan(np.zeros(9, dtype=np.int64), np.array([1, 0]))
    assert devices_used(data, plan) == "1 of 2 devices: core1"


def test_operators_without_their_model_name_the_remedy() -> None:
    data = load_problem("gnn_training:graph=grid,nodes=9,parts=2").instance().data
    require_known_network(data)
    renamed = tuple(replace(each, name=f"my_{each.name}") for each in data.operators)
    with pytest.raises(UnsupportedError, match="measure with the target from which it was made"):
        require_known_network(replace(data, operators=renamed, fusions=()))
