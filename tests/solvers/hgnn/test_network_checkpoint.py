"""Checkpoints come back as they were written; anything else is refused with its reason."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from optbench.api import load_target
from optbench.errors import FileFormatError
from solvers.hgnn.network_checkpoint import NetworkCheckpoint, read_network
from solvers.hgnn.network_design import Weights
from solvers.hgnn.network_settings import NetworkSettings
from solvers.hgnn.stream_readouts import num_readouts, readouts_from


@pytest.fixture
def parts(checkpoint: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Tensors and header, to change."""
    with safe_open(str(checkpoint), framework="numpy") as file:
        about = json.loads(file.metadata()["optbench"])
        return {name: file.get_tensor(name) for name in file.keys()}, about  # noqa: SIM118


def refused(path: Path, match: str) -> None:
    with pytest.raises(FileFormatError, match=match) as error:
        read_network(path)
    assert str(path) in str(error.value)


def written(path: Path, tensors: dict[str, Any], about: Any) -> Path:
    save_file(tensors, str(path), metadata={"optbench": json.dumps(about)})
    return path


def test_it_comes_back_as_it_was_written(
    checkpoint: Path, settings: NetworkSettings, weights: Weights
) -> None:
    found = read_network(checkpoint)
    assert found.settings == settings
    assert found.weights.keys() == weights.keys()
    assert all((found.weights[name] == each).all() for name, each in weights.items())
    assert found.streams is not None and len(found.streams.flat()) == num_readouts()
    assert found.table["device"] == {"fast": 0.5, "slow": -0.5}
    assert found.provenance == {"seed": 1}


class Touches:
    """Unpickling it writes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_a_pickle_is_refused_and_not_run(tmp_path: Path) -> None:
    path, trace = tmp_path / "net.pt", tmp_path / "it_ran"
    path.write_bytes(pickle.dumps(Touches(trace)))
    refused(path, "not a readable safetensors file")
    assert not trace.exists()


def test_files_of_other_formats_are_refused(tmp_path: Path, weights: Weights) -> None:
    refused(tmp_path / "absent.safetensors", "no such checkpoint; `optbench train hgnn --on")
    text = tmp_path / "text.safetensors"
    text.write_text("weights")
    refused(text, "not a readable safetensors file")
    bare = tmp_path / "bare.safetensors"
    save_file(dict(weights), str(bare))
    refused(bare, "not one that `optbench train hgnn` has written")
    refused(written(tmp_path / "a", dict(weights), {"format": "optbench-chsac-1"}), "optbench-hgnn")
    refused(written(tmp_path / "b", dict(weights), ["a", "list"]), "optbench-hgnn")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_refused(
    tmp_path: Path, parts: tuple[dict[str, Any], dict[str, Any]], value: float
) -> None:
    tensors, about = parts
    for name in ("rounds.1.mix.weight", "streams.task"):
        changed = tensors | {name: tensors[name].copy()}
        changed[name].flat[3] = value
        refused(written(tmp_path / f"{name}.st", changed, about), f"{name}.* not a finite float32")


def test_other_columns_and_settings_are_refused(
    tmp_path: Path, parts: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    tensors, about = parts
    columns = about["columns"] | {"task": about["columns"]["task"][1:]}
    for k, given in enumerate((columns, {}, None, "task")):
        path = written(tmp_path / f"columns{k}", tensors, about | {"columns": given})
        refused(path, "other features of task rows")
    for k, given in enumerate(({"hidden": 16}, about["settings"] | {"hidden": "16"}, None)):
        path = written(tmp_path / f"settings{k}", tensors, about | {"settings": given})
        refused(path, "not those of a network of hgnn")
    wider = about | {"settings": about["settings"] | {"hidden": 32}}
    refused(written(tmp_path / "wider", tensors, wider), r"is of shape .* it must be")
    flat = about | {"settings": about["settings"] | {"levels": "flat"}}
    refused(written(tmp_path / "flat", tensors, flat), "does not belong to its settings")
    for k, table in enumerate(([1], {"whole": [0.0], "device": {}}, {"whole": None, "device": {}})):
        path = written(tmp_path / f"table{k}", tensors, about | {"table": table})
        refused(path, "table of means")


def test_wrong_shapes_and_missing_layers_are_refused(
    tmp_path: Path, parts: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    tensors, about = parts
    for name in ("to_task.att", "soft.assign.weight", "streams.whole"):
        cut = tensors | {name: np.ascontiguousarray(tensors[name][..., :-1])}
        refused(written(tmp_path / f"{name}.cut", cut, about), f"{name}.* it must be")
        rest = {key: each for key, each in tensors.items() if key != name}
        refused(written(tmp_path / f"{name}.rest", rest, about), f"{name}.* is missing")
    double = tensors | {"key.bias": tensors["key.bias"].astype(np.float64)}
    refused(written(tmp_path / "double", double, about), r"key\.bias.* not a finite float32")


def test_features_of_the_training_are_names(
    tmp_path: Path, parts: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    tensors, about = parts
    assert read_network(written(tmp_path / "as_it_was", tensors, about)).features is None
    known = about | {"provenance": {"features": ["modes", "precedence"]}}
    found = read_network(written(tmp_path / "known", tensors, known))
    assert found.features == frozenset({"modes", "precedence"})
    for k, given in enumerate((["modes", 3], "modes", None)):
        path = written(tmp_path / f"f{k}", tensors, about | {"provenance": {"features": given}})
        refused(path, "provenance is damaged")


def test_read_outs_are_for_streams_like_those_of_their_training(
    weights: Weights, settings: NetworkSettings
) -> None:
    """Trained where work enters anywhere; with ingress and latency they are left out."""
    streams = readouts_from(np.zeros(num_readouts()))
    near = load_target("gpu_cluster:nodes=2,types=2,tasks=8,load=0.8")
    far = load_target("geo_dc:days=0.02,drain=yes")
    assert "access" in far.features - near.features
    for stated, used in ((["releases"], False), (["access", "releases"], True)):
        about = {"stream_features": stated}
        found = NetworkCheckpoint(settings, weights, streams, {}, about)
        assert found.streams_for(near) is streams
        assert (found.streams_for(far) is streams) == used
    assert NetworkCheckpoint(settings, weights, streams).streams_for(far) is streams
