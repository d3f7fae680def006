"""One, two and three real processes compute the same gradients, losses and weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from optbench.gnn.kernels.kernel_names import plain_csr
from optbench.gnn.runtime.process_ranks import ProcessRanks
from optbench.gnn.runtime.training_job import LabelledNodes, TrainingJob, write_job
from optbench.gnn.runtime.training_processes import start_processes
from optbench.gnn.runtime.training_result import GraphTrainingResult, read_result, trained_weights
from optbench.gnn.runtime.training_worker import GRADIENTS, TrainingWorker
from tests.gnn.runtime.small_training import Kind, labelled, small_job

NETWORKS: tuple[Kind, ...] = ("gcn", "sage", "gat")
TOLERANCE = {"float32": 1e-5, "float64": 1e-10}
# Every kernel at least once; those of width 40 sum in compiled loops, narrow ones in torch's.
PLANS: dict[str, tuple[Kind, tuple[str, ...]]] = {
    "gcn": ("gcn", ()),
    "gcn-csr": ("gcn", plain_csr("gcn", 2)),
    "gcn-epilogue": ("gcn", ("spmm_epilogue1", "spmm_epilogue2")),
    "gcn-before": ("gcn", ("aggregated_before", "one_pass1", "aggregated_first2", "one_pass2")),
    "sage": ("sage", ()),
    "sage-csr": ("sage", plain_csr("sage", 2)),
    "sage-product": ("sage", ("spmm1", "one_product1", "one_pass1", "aggregated_last2")),
    "sage-last": ("sage", ("aggregated_last_epilogue1", "aggregated_last_epilogue2")),
    "sage-before": ("sage", ("aggregated_before", "spmm2", "one_product2")),
    "sage-sparse": ("sage", ("aggregated_before", "aggregated_last2")),
    "gat": ("gat", ()),
    "gat-attention": ("gat", ("attention1", "one_pass1", "attention_epilogue2")),
    "gat-sparse": ("gat", ("attention1",)),
    "gat-epilogue": ("gat", ("attention_epilogue1", "attention2")),
}
SPARSE = ("sage-sparse", "gat-sparse")
WIDE = ("gcn-epilogue", "sage-last", "gat-epilogue")
Runs = dict[tuple[str, str, int], Path]


def jobs(devices: int) -> Iterator[tuple[str, str, TrainingJob, LabelledNodes]]:
    nodes = labelled(devices)
    for plan, (network, fusions) in PLANS.items():
        for precision in TOLERANCE:
            # The last job of each waits at once instead of computing meanwhile.
            overlap = precision == "float32"
            job = small_job(
                network,
                devices,
                precision=precision,
                keep_gradients=True,
                overlap=overlap,
                fusions=fusions,
                sparse_features=plan in SPARSE,
            )
            yield plan, precision, job, nodes


def wide(job: TrainingJob) -> TrainingJob:
    """The same with three layers, the hidden ones of width 40."""
    heads = job.network.heads if job.network.network == "gat" else 1
    return replace(job, network=replace(job.network, hidden=(40 // heads, 40 // heads)))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Every plan and precision on two and three processes, and on one without fusions."""
    root, found = tmp_path_factory.mktemp("runs"), Runs()
    for devices in (1, 2, 3):
        folders = []
        for plan, precision, given, nodes in jobs(devices):
            job = wide(given) if plan in WIDE else given
            if devices == 1:
                job = replace(job, fusions=(), sparse_features=False)
            folder = root / f"{plan}-{precision}-{devices}"
            write_job(folder, job, nodes)
            found[plan, precision, devices] = folder
            folders.append(folder)
        if devices > 1:
            start_processes(folders)
            continue
        for folder in folders:
            TrainingWorker(folder, ProcessRanks()).run()
    return found


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("precision", TOLERANCE)
@pytest.mark.parametrize("devices", [2, 3])
def test_gradients_are_those_of_one_process_without_fusions(
    runs: Runs, plan: str, precision: str, devices: int
) -> None:
    alone = torch.load(runs[plan, precision, 1] / GRADIENTS)
    together = torch.load(runs[plan, precision, devices] / GRADIENTS)
    assert alone.keys() == together.keys() and len(alone) >= 4
    for name, wanted in alone.items():
        off = (together[name] - wanted).norm() / wanted.norm()
        assert wanted.norm() > 0 and off <= TOLERANCE[precision], name


@pytest.mark.parametrize("plan", PLANS)
def test_losses_are_added_exactly(runs: Runs, plan: str) -> None:
    alone = read_result(runs[plan, "float64", 1])
    for devices in (2, 3):
        together = read_result(runs[plan, "float64", devices])
        # Losses of nodes differ by roundings far below the unit, 2⁻³², in which they are added.
        assert together.losses == pytest.approx(alone.losses, abs=2.0**-31)
        assert together.accuracy == alone.accuracy and len(together.losses) == 3


def test_rows_of_every_device(runs: Runs) -> None:
    found: GraphTrainingResult = read_result(runs["gcn", "float32", 3])
    assert [rows[-1]["step"] for rows in found.device_rows] == [3, 3, 3]
    for device, rows in enumerate(found.device_rows):
        assert all(row["device"] == device and 0 < row["utilisation"] <= 1 for row in rows)
        assert all(row["memory_mb"] > 0 and row["sent_mb"] > 0 for row in rows)
        assert all(0 < row["waited_s"] < row["seconds"] for row in rows)


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


def test_rows_before_training_are_sent_once(runs: Runs) -> None:
    """With the first layer summed before, a SAGE of plain CSR sends no features in a step."""
    from optbench.shapes.gnn_training.cut_graph import CutGraph

    nodes = labelled(2)
    rows = int(CutGraph(nodes.graph, nodes.device, 2).rows.sum())
    # Plain: rows of 5 features forward, which need no gradient, and of 6 hidden values both ways.
    plain = read_result(runs["sage-csr", "float32", 2]).sent_mb_per_step
    assert plain * 1e6 == pytest.approx(rows * (5 + 6 * 2) * 4)
    before = read_result(runs["sage-before", "float32", 2]).sent_mb_per_step
    assert before * 1e6 == pytest.approx(rows * 6 * 2 * 4)
