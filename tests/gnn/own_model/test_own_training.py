"""A user's module, graph and devices by the command line: trained weights, and what they need."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import optbench as ob
from optbench.api import load_target
from optbench.cli.main import main
from optbench.errors import OptbenchError
from optbench.gnn.operators.model_files import load_model
from optbench.gnn.own_model.node_values import values_of_nodes
from optbench.gnn.own_model.own_training import why_withheld
from optbench.gnn.runtime.training_job import TESTED, TRAINED, UNUSED, VALIDATED
from optbench.gnn.runtime.training_result import (
    RESULT,
    WEIGHTS,
    GraphTrainingResult,
    read_result,
)
from optbench.shapes.gnn_training.training_plan import TrainingPlan
from tests.gnn.own_model.users_models import write_code

NODES, EPOCHS = 60, 40
DEVICE = {"gflops": 40.0, "gb_per_s": 16.0, "idle_w": 4, "alpha_w": 1, "beta_w": 1, "gamma_w": 1}
OWN = "gnn_training:data=edges.csv,devices=my.json,parts=4,epochs=40"
LABELLED = f"{OWN},node_table=nodes.csv"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ring of named nodes in three runs of a class each, which a feature shows."""
    monkeypatch.chdir(tmp_path)
    write_code(tmp_path)
    edges = [f"n{v},n{(v + 1) % NODES}\n" for v in range(NODES)]
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(edges))
    rng = np.random.default_rng(0)
    rows = [
        f"n{v},{'pqr'[v // 20]},{v // 20 + 0.1 * rng.standard_normal():.3f},1\n"
        for v in range(NODES)
    ]
    (tmp_path / "nodes.csv").write_text("id,label,height,one\n" + "".join(rows))
    devices = [{"name": name, **DEVICE} for name in ("left", "right")]
    (tmp_path / "my.json").write_text(json.dumps({"devices": devices}))
    return tmp_path


def plan_of(instance: Any, devices: int) -> TrainingPlan:
    """Runs of the ring, on the first devices."""
    n = instance.data.graph.num_nodes
    return TrainingPlan(np.arange(n) * 4 // n, np.arange(4) % devices)


def test_the_command_returns_weights_that_the_users_class_loads(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = f"{LABELLED},model=users_model.py:Sage,hidden=6"
    words = ["-s", "metis", "--time-limit", "2s", "--json", "--files", "kept", "--measure"]
    assert main(["solve", spec, *words]) == 0
    out, said = capsys.readouterr()
    assert "labelled nodes were dealt 60 : 20 : 20" in said
    result = json.loads(out)
    measured, files = result["measured"], result["files"]
    assert len(measured["metrics"]["step_s"]["readings"]) == 5
    assert measured["files"]["weights"] == files["weights"] == str(folder / "kept" / "weights.pt")
    assert measured["provenance"]["solo_speeds"] == [1.0, 1.0]
    summary = json.loads(Path(files["training"]).read_text())
    assert summary["classes"] == ["p", "q", "r"] and len(summary["losses"]) == EPOCHS
    assert summary["nodes"] == {"train": 36, "validation": 12, "test": 12, "unused": 0}
    assert summary["losses"][-1] == measured["outcome"]["last_loss"] < summary["losses"][0]
    # The accuracies are those of the user's class with these weights, computed here.
    module = load_model("users_model.py:Sage", 2, 6, 3)
    module.load_state_dict(torch.load(files["weights"], weights_only=True))
    instance = load_target(spec)
    values = values_of_nodes(instance.origin, NODES)
    graph = instance.data.graph
    arcs = np.stack([np.r_[graph.tail, graph.head], np.r_[graph.head, graph.tail]])
    with torch.no_grad():
        scores = module.eval()(torch.from_numpy(values.features), torch.from_numpy(arcs))
    right = scores.argmax(1).numpy() == values.labels
    splits = {"train": TRAINED, "validation": VALIDATED, "test": TESTED}
    for name, value in splits.items():
        assert measured["outcome"]["accuracy"][name] == right[values.split == value].mean()
    assert not (folder / "kept" / "training").exists()


def test_a_built_in_network_is_trained_on_the_users_graph(folder: Path) -> None:
    instance = load_target(f"{LABELLED},network=gcn,hidden=6")
    found = ob.measure(instance, plan_of(instance, 1), repeats=2, folder="kept")
    weights = torch.load(found.files["weights"], weights_only=True)
    # A product and an offset for each of the layers 2 → 6 → 3.
    assert sorted(each.numel() for each in weights.values()) == [3, 6, 2 * 6, 6 * 3]
    assert found.outcome["epochs"] == EPOCHS
    assert json.loads((folder / "kept" / "training.json").read_text())["network"]["hidden"] == [6]


def test_a_finished_training_is_kept(folder: Path) -> None:
    """It is interrupted before its result was kept, and once more before there was a result."""
    instance = load_target(f"{LABELLED},network=gcn,hidden=6")
    kept = folder / "kept"
    # Where a folder stands in the way, the summary cannot be written.
    (kept / "training.json").mkdir(parents=True)
    with pytest.raises((OSError, OptbenchError)):
        ob.measure(instance, plan_of(instance, 1), repeats=2, folder="kept")
    losses = read_result(kept / "training").losses
    for name in (RESULT, WEIGHTS):
        (kept / "training" / name).unlink()
    with pytest.raises((OSError, OptbenchError)):
        ob.measure(instance, plan_of(instance, 1), repeats=2, folder="kept")
    assert read_result(kept / "training").first_step == EPOCHS
    (kept / "training.json").rmdir()
    found = ob.measure(instance, plan_of(instance, 1), repeats=2, folder="kept")
    assert json.loads((kept / "training.json").read_text())["losses"] == losses
    assert sorted(each.name for each in kept.iterdir()) == sorted(
        Path(each).name for each in found.files.values()
    )
    assert found.readings == {} and "no epoch was left to time" in found.withheld["step_s"]
    assert found.to_dict()["withheld"] == found.withheld and found.outcome["epochs"] == EPOCHS
    with pytest.raises(OptbenchError, match="'step_s' has no readings: the training had been"):
        found.mean("step_s")


def test_seconds_of_a_device_without_its_speed_are_withheld() -> None:
    result = GraphTrainingResult([1.0], {}, [0.1], 0, 0, 0.0, [1.0, 0.4], [], "gloo")
    assert "device 1 alone computed at 0.400 of a core" in why_withheld((1.0, 0.5), result)
    assert why_withheld((1.0, 0.4), result) == ""


def test_without_labels_seconds_are_measured_and_nothing_is_kept(folder: Path) -> None:
    instance = load_target(f"{OWN},model=users_model.py:Gcn,epochs=7".replace("epochs=40,", ""))
    found = ob.measure(instance, plan_of(instance, 1), repeats=3, folder="kept")
    assert len(found.readings["step_s"]) == 3 and found.outcome == {"epochs": 7}
    assert found.files == {} and not list((folder / "kept").iterdir())
    features, labels = found.provenance["remarks"]
    assert "edges.csv has no features: 128 for each node were drawn by the seed" in features
    assert "has no labels" in labels and "there are no weights" in labels


def test_splits(folder: Path) -> None:
    """Half of the nodes have a label; a given split counts for those alone."""
    instance = load_target(LABELLED)
    origin = instance.origin
    some = replace(origin.nodes, labels=np.where(np.arange(NODES) % 2, -1, origin.nodes.labels))
    dealt = values_of_nodes(replace(origin, nodes=some), NODES)
    assert dealt.counts() == {"train": 18, "validation": 6, "test": 6, "unused": 30}
    assert (dealt.split[1::2] == UNUSED).all()
    again = values_of_nodes(replace(origin, nodes=some), NODES)
    assert (again.split == dealt.split).all()
    given = replace(some, split=np.arange(NODES) % 3)
    assert values_of_nodes(replace(origin, nodes=given), NODES).counts()["train"] == 10
    none = replace(some, split=np.full(NODES, 2))
    with pytest.raises(OptbenchError, match=r"nodes\.csv: no node with a label has split train"):
        values_of_nodes(replace(origin, nodes=none), NODES)


def test_one_labelled_node_is_trained_on(folder: Path) -> None:
    origin = load_target(LABELLED).origin
    labels = np.full(NODES, -1)
    labels[7] = 1
    found = values_of_nodes(replace(origin, nodes=replace(origin.nodes, labels=labels)), NODES)
    assert found.split[7] == TRAINED and found.counts()["unused"] == NODES - 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("epochs=0", "epochs is 0; it must be at least 1"),
        ("learning_rate=0", "learning_rate is 0.0; it must be positive"),
        ("weight_decay=-1", "weight_decay is -1.0; it must be positive"),
    ],
)
def test_mistakes_are_named(words: str, message: str) -> None:
    with pytest.raises(OptbenchError, match=message):
        load_target(f"gnn_training:graph=grid,nodes=9,parts=2,{words}")
