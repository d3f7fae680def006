"""One, two and three real processes compute the same gradients, losses and weights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from optbench.gnn.runtime.process_ranks import ProcessRanks
from optbench.gnn.runtime.training_job import LabelledNodes, TrainingJob, write_job
from optbench.gnn.runtime.training_processes import start_processes
from optbench.gnn.runtime.training_result import GraphTrainingResult, read_result, trained_weights
from optbench.gnn.runtime.training_worker import GRADIENTS, TrainingWorker
from tests.gnn.runtime.small_training import Kind, labelled, small_job

NETWORKS: tuple[Kind, ...] = ("gcn", "sage", "gat")
TOLERANCE = {"float32": 1e-5, "float64": 1e-10}
Runs = dict[tuple[str, str, int], Path]


def jobs(devices: int) -> Iterator[tuple[str, str, TrainingJob, LabelledNodes]]:
    nodes = labelled(devices)
    for network in NETWORKS:
        for precision in TOLERANCE:
            # The last job of each waits at once instead of computing meanwhile.
            overlap = precision == "float32"
            others: dict[str, Any] = {"keep_gradients": True, "overlap": overlap}
            yield (
                network,
                precision,
                small_job(network, devices, precision=precision, **others),
                nodes,
            )


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Every network and precision on one, two and three processes."""
    root, found = tmp_path_factory.mktemp("runs"), Runs()
    for devices in (1, 2, 3):
        folders = []
        for network, precision, job, nodes in jobs(devices):
            folder = root / f"{network}-{precision}-{devices}"
            write_job(folder, job, nodes)
            found[network, precision, devices] = folder
            folders.append(folder)
        if devices > 1:
            start_processes(folders)
            continue
        for folder in folders:
            TrainingWorker(folder, ProcessRanks()).run()
    return found


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("precision", TOLERANCE)
@pytest.mark.parametrize("devices", [2, 3])
def test_gradients_are_those_of_one_process(
    runs: Runs, network: str, precision: str, devices: int
) -> None:
    alone = torch.load(runs[network, precision, 1] / GRADIENTS)
    together = torch.load(runs[network, precision, devices] / GRADIENTS)
    assert alone.keys() == together.keys() and len(alone) >= 4
    for name, wanted in alone.items():
        off = (together[name] - wanted).norm() / wanted.norm()
        assert wanted.norm() > 0 and off <= TOLERANCE[precision], name


@pytest.mark.parametrize("network", NETWORKS)
def test_losses_are_added_exactly(runs: Runs, network: str) -> None:
    alone = read_result(runs[network, "float64", 1])
    for devices in (2, 3):
        together = read_result(runs[network, "float64", devices])
        # Losses of nodes differ by roundings far below the unit, 2⁻³², in which they are added.
        assert together.losses == pytest.approx(alone.losses, abs=2.0**-31)
        assert together.accuracy == alone.accuracy and len(together.losses) == 3


def test_rows_of_every_device(runs: Runs) -> None:
    found: GraphTrainingResult = read_result(runs["gcn", "float32", 3])
    assert [rows[-1]["step"] for rows in found.device_rows] == [3, 3, 3]
    for device, rows in enumerate(found.device_rows):
        assert all(row["device"] == device and 0 < row["utilisation"] <= 1 for row in rows)
        assert all(row["memory_mb"] > 0 and row["sent_mb"] > 0 for row in rows)


def test_bytes_sent_are_those_of_the_halo(runs: Runs) -> None:
    """Each of two layers sends, forward and backward, 4 bytes per value of a halo row."""
    from optbench.shapes.gnn_training.cut_graph import CutGraph

    nodes = labelled(2)
    rows = int(CutGraph(nodes.graph, nodes.device, 2).rows.sum())
    # Widths 6 and 3 are exchanged by a GCN, which multiplies before it aggregates.
    sent = read_result(runs["gcn", "float32", 2]).sent_mb_per_step
    assert sent * 1e6 == pytest.approx(rows * (6 + 3) * 2 * 4)


def test_weights_are_returned(runs: Runs) -> None:
    alone = trained_weights(runs["sage", "float64", 1])
    together = trained_weights(runs["sage", "float64", 3])
    for name, wanted in alone.items():
        assert torch.allclose(together[name], wanted, rtol=1e-8, atol=1e-10), name
