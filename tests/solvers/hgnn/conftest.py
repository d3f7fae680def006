"""Networks, checkpoints and instances that the tests of hgnn share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from optbench.api import load_target
from optbench.model.instance import Instance
from solvers.hgnn.network_checkpoint import NetworkCheckpoint, write_network
from solvers.hgnn.network_design import Weights
from solvers.hgnn.network_settings import NetworkSettings
from solvers.hgnn.network_shapes import network_shapes
from solvers.hgnn.stream_readouts import num_readouts, readouts_from
from tests.solvers.hgnn.small_clusters import small_cluster


def random_network(settings: NetworkSettings, seed: int = 0) -> Weights:
    """Weights of usual sizes: Gaussian, of deviation 1 / √inputs."""
    rng = np.random.default_rng(seed)
    return {
        name: (rng.normal(size=shape) / np.sqrt(shape[-1])).astype(np.float32)
        for name, shape in network_shapes(settings).items()
    }


@pytest.fixture(scope="session")
def cluster() -> Instance:
    return small_cluster()


@pytest.fixture(scope="session")
def problems(cluster: Instance) -> list[Instance]:
    """Alike pools; one class of devices alone; a task without edges; transfers and hard memory."""
    specs = (
        "gpu_cluster:nodes=2,types=1,cpus=no,tasks=8",
        "gpu_cluster:nodes=6,tasks=30",
        "gpu_dag:tasks=12,gpus=3",
    )
    return [cluster, small_cluster(pools=(("fast", 1), ("old", 1))), *map(load_target, specs)]


@pytest.fixture(scope="session")
def stream() -> Instance:
    made: Instance = load_target("gpu_cluster:nodes=3,types=2,tasks=40,load=0.8")
    return made


@pytest.fixture(scope="session")
def settings() -> NetworkSettings:
    return NetworkSettings(hidden=16)


@pytest.fixture(scope="session")
def weights(settings: NetworkSettings) -> Weights:
    return random_network(settings)


@pytest.fixture(scope="session")
def checkpoint(
    settings: NetworkSettings, weights: Weights, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A file with random weights, a table and read-outs for streams."""
    path = tmp_path_factory.mktemp("hgnn") / "random.safetensors"
    readouts = readouts_from(0.05 * np.random.default_rng(1).normal(size=num_readouts()))
    table = {"whole": [0.1] * 8, "device": {"fast": 0.5, "slow": -0.5}}
    write_network(path, NetworkCheckpoint(settings, weights, readouts, table, {"seed": 1}))
    return path
