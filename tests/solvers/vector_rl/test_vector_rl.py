"""The perceptron without a graph: its vector, its answers, and the training that it shares."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import optbench as ob
from optbench.api import load_target
from optbench.errors import FileFormatError, ParameterError
from optbench.model.instance import Instance
from optbench.plugins.discovery import load_problem
from optbench.plugins.training import TrainingRun
from optbench.testing.causality import compared, streams_for
from solvers.hgnn.gradients import arrays_of
from solvers.hgnn.network_checkpoint import NetworkCheckpoint, read_network, write_network
from solvers.hgnn.seen_arrays import CLASS_COLUMNS, TASK_COLUMNS, WHOLE_COLUMNS
from solvers.hgnn.situation import situation_of
from solvers.vector_rl import VectorRl
from solvers.vector_rl.feature_vector import feature_vector, vector_length
from solvers.vector_rl.vector_design import VectorDesign, VectorSettings, VectorTraining
from tests.solvers.hgnn.small_clusters import small_cluster

SETTINGS = VectorSettings(hidden=12, slots=2)
ON = ("gpu_cluster:nodes=2,types=2,tasks=8", "gpu_cluster:nodes=2,types=2,tasks=8,load=0.8")


@pytest.fixture(scope="module")
def cluster() -> Instance:
    return small_cluster()


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("vector") / "random.safetensors"
    weights = {
        name: (rng.normal(size=shape) / np.sqrt(shape[-1])).astype(np.float32)
        for name, shape in VectorDesign(SETTINGS).shapes().items()
    }
    write_network(path, NetworkCheckpoint(SETTINGS, weights), VectorDesign)
    return path


def test_the_vector_by_hand(cluster: Instance) -> None:
    """Classes in order of slowness: fast (first pool), slow (second), old (fourth); with two rows
    the old one has none.
    """
    seen = situation_of(cluster).seen
    made = feature_vector(seen, 2)
    assert made.row.tolist() == [0, 1, 2]
    whole, task, device = len(WHOLE_COLUMNS), len(TASK_COLUMNS), len(CLASS_COLUMNS)
    assert len(made.values) == vector_length(2) == whole + 2 * task + 4 * device
    parts = np.split(made.values, np.cumsum([whole, task, task, device, device]))
    expected = (
        seen.whole, seen.task.mean(axis=0), seen.task.max(axis=0), seen.device.mean(axis=0),
        seen.device.max(axis=0), seen.device[:2].ravel(),
    )  # fmt: skip
    for found, value in zip(parts, expected, strict=True):
        np.testing.assert_array_equal(found, value)
    padded = feature_vector(seen, 5).values
    assert (padded[-2 * device :] == 0).all() and (padded[-3 * device : -2 * device] != 0).any()


def test_numpy_and_torch_agree(cluster: Instance, checkpoint: Path) -> None:
    seen, design = situation_of(cluster).seen, VectorDesign(SETTINGS)
    weights = read_network(checkpoint, VectorDesign).weights
    module = design.module()
    module.load_state_dict({name: torch.from_numpy(w.copy()) for name, w in weights.items()})
    with torch.no_grad():
        expected = arrays_of(module(design.tensors(seen)))
    found = design.forward_pass(weights).answers(seen)
    for name, value in vars(expected).items():
        np.testing.assert_allclose(getattr(found, name), value, atol=1e-5, err_msg=name)
    assert (found.task == 0).all() and found.device[2] == 0 and (found.device[:2] != 0).all()


def test_the_order_of_tasks_and_devices_does_not_matter(
    cluster: Instance, checkpoint: Path
) -> None:
    found = read_network(checkpoint, VectorDesign)
    network = VectorDesign(SETTINGS).forward_pass(found.weights)
    plain, moved = (
        network.answers(replace(situation_of(each).seen))
        for each in (cluster, small_cluster(order=(3, 2, 0, 1)))
    )
    np.testing.assert_allclose(moved.whole, plain.whole, atol=1e-4)
    # Classes are numbered by their first pools: old, fast, slow.
    np.testing.assert_allclose(moved.device, plain.device[[2, 0, 1]], atol=1e-4)


def test_its_schedules_are_verified_and_deterministic(cluster: Instance, checkpoint: Path) -> None:
    stream = load_target("gpu_cluster:nodes=3,types=2,tasks=30,load=0.8")
    for instance in (cluster, stream):
        one, two = (
            ob.solve(instance, VectorRl(str(checkpoint), samples=4), seed=1, bound=False)
            for _ in range(2)
        )
        assert one.verified and one.schedule is not None and two.schedule is not None
        assert (one.schedule.start == two.schedule.start).all()


def test_no_decision_uses_what_comes_later(checkpoint: Path) -> None:
    policy = VectorRl(str(checkpoint))
    streams = streams_for(policy, "vector_rl")[:3]
    found = [each for stream in streams for each in compared(policy, stream, (0.5,))]
    assert found and [str(each) for each in found if each.difference is not None] == []


def test_it_is_trained_as_hgnn_is(tmp_path: Path) -> None:
    """Stages, validation and streams; the read-outs of tasks stay 0. Twice the same."""
    settings = VectorTraining(
        steps=6, instances=1, samples=2, batch=2, check_every=2, imitate=0.34, label=0.33, hidden=8
    )
    made = []
    for k in range(2):
        path = tmp_path / f"{k}.safetensors"
        run = TrainingRun([load_problem(spec) for spec in ON], path, settings, ON)
        assert not VectorRl().train(run).interrupted
        made.append(read_network(path, VectorDesign))
    one, two = made
    assert all((one.weights[name] == two.weights[name]).all() for name in one.weights)
    assert one.provenance["solver"] == "vector_rl" and one.provenance["gradient_steps"] == 6
    assert one.streams is not None and two.streams is not None
    assert (one.streams.flat() == two.streams.flat()).all() and (one.streams.task == 0).all()


def test_other_checkpoints_and_parameters_are_refused(tmp_path: Path, checkpoint: Path) -> None:
    with pytest.raises(FileFormatError, match="not one that `optbench train hgnn` has written"):
        read_network(checkpoint)
    with pytest.raises(FileFormatError, match="optbench train vector_rl --on PROBLEM"):
        read_network(tmp_path / "absent", VectorDesign)
    with pytest.raises(ParameterError, match="vector_rl: samples is 0; it must be at least 1"):
        VectorRl(samples=0)
    with pytest.raises(ParameterError, match="training of vector_rl: slots is 0"):
        VectorTraining(slots=0)
