"""Jobs that cannot be trained are refused before any process starts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optbench.errors import FileFormatError, ModelError
from optbench.gnn.runtime.process_ranks import ProcessRanks
from optbench.gnn.runtime.training_job import (
    GraphNetworkSettings,
    TrainingJob,
    fingerprint,
    read_job,
    write_job,
)
from optbench.gnn.runtime.training_worker import TrainingWorker
from tests.gnn.runtime.small_training import labelled, small_job


def test_a_job_is_read_as_it_was_written(tmp_path: Path) -> None:
    job, nodes = small_job("gat", 2, speeds=(1.0, 0.5), cores=(0, 1)), labelled(2)
    write_job(tmp_path, job, nodes)
    found, read = read_job(tmp_path)
    assert found == job and found.num_devices == 2
    assert read.graph.num_edges == nodes.graph.num_edges
    for name in ("features", "labels", "split", "device"):
        assert np.array_equal(getattr(read, name), getattr(nodes, name))
    before = fingerprint(tmp_path)
    write_job(tmp_path, replace(job, seed=1), nodes)
    assert fingerprint(tmp_path) != before


def test_a_checkpoint_knows_its_data(tmp_path: Path) -> None:
    job, nodes = small_job("gcn", 1, epochs=2, checkpoint_every=1), labelled(1)
    write_job(tmp_path, job, nodes)
    before = fingerprint(tmp_path)
    TrainingWorker(tmp_path, ProcessRanks()).run()
    # Of three classes, every label is another one now.
    write_job(tmp_path, job, replace(nodes, labels=(nodes.labels + 1) % 3))
    assert fingerprint(tmp_path) != before
    with pytest.raises(FileFormatError, match="belongs to a job with other settings or data"):
        TrainingWorker(tmp_path, ProcessRanks()).run()
    write_job(tmp_path, job, nodes)
    assert TrainingWorker(tmp_path, ProcessRanks()).run().first_step == 2


def test_features_must_be_numbers(tmp_path: Path) -> None:
    nodes = labelled(1)
    nodes.features[7, 2] = np.nan
    with pytest.raises(ModelError, match="feature 2 of node 7 is nan; features are finite"):
        write_job(tmp_path, small_job("gcn", 1), nodes)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"labels": np.full(40, 3)}, r"labels\[0\] is 3; it must be from 0 to 2"),
        ({"device": np.full(40, -1)}, r"device\[0\] is -1; it must be from 0 to 0"),
        ({"split": np.zeros(40, dtype=np.int64)}, "split marks no node for training"),
        ({"labels": np.zeros(3, dtype=np.int64)}, "labels has 3 rows for 40 nodes"),
    ],
)
def test_arrays_that_do_not_fit(tmp_path: Path, changed: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        write_job(tmp_path, small_job("gcn", 1), replace(labelled(1), **changed))


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"epochs": 0}, "epochs is 0"),
        ({"speeds": (1.5,)}, r"speeds is \(1.5,\)"),
        ({"cores": (0, 1)}, r"cores is \(0, 1\); it must name one for each device"),
        ({"fusions": ("spmm3",)}, r"'spmm3' is no fusion of a gcn of 2 layers; did you mean"),
        ({"fusions": ("spmm1", "spmm_epilogue1")}, "both replace the sums of layer 1"),
    ],
)
def test_settings_out_of_range(others: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        TrainingJob(GraphNetworkSettings(), 3, **others)


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"network": "mlp"}, "network is 'mlp'; it must be gcn, sage or gat"),
        ({"dropout": 1.0}, r"dropout is 1.0; it must be a share in \[0, 1\)"),
        ({"hidden": (0,)}, r"hidden is \(0,\)"),
    ],
)
def test_networks_out_of_range(others: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        GraphNetworkSettings(**others)


def test_sparse_features_are_not_summed_in_every_step() -> None:
    small_job("gcn", 1, sparse_features=True)
    small_job("sage", 1, sparse_features=True, fusions=("aggregated_last1",))
    with pytest.raises(ModelError, match="sum rows of features in every step; choose one of"):
        small_job("sage", 1, sparse_features=True, fusions=("spmm1",))


def test_a_folder_without_a_job(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"job.json is missing; write_job"):
        read_job(tmp_path)
