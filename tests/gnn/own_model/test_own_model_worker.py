"""A user's module on one, two and three real processes has the same gradients and weights."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from optbench.gnn.own_model.own_model_job import COMPUTED
from optbench.gnn.own_model.own_model_worker import OwnModelWorker
from optbench.gnn.runtime.process_ranks import ProcessRanks
from optbench.gnn.runtime.training_processes import TrainingError, start_processes
from optbench.gnn.runtime.training_result import read_result, trained_weights
from optbench.gnn.runtime.training_worker import GRADIENTS
from optbench.shapes.gnn_training.cut_graph import CutGraph
from tests.gnn.own_model.users_models import labelled_ring, ring, write_code, write_training

MODELS = ("Gcn", "Sage", "Gat", "Gin", "Plain")
TOLERANCE = {"float32": 1e-5, "float64": 1e-10}
# Of two processes, in float32.
FUSED = {"Gcn": ("spmm_epilogue1", "spmm2"), "Sage": ("aggregated_before1", "spmm2")}
Run = tuple[str, str, int]
Runs = dict[Run, Path]
# Exporting a module takes a process a third of a second: on three processes all modules are
# trained in the slow tests, here one whose rows are exchanged and one without layers to exchange.
ON_THREE = ("Sage", "Plain")


def sampled(run: Run) -> bool:
    name, precision, devices = run
    return devices < 3 or (name in ON_THREE and (precision == "float64" or name == "Sage"))


ALL: list[Run] = [(m, p, d) for d in (1, 2, 3) for p in TOLERANCE for m in MODELS]
SAMPLE = [run for run in ALL if sampled(run)]
REST = [run for run in ALL if not sampled(run)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Every module and precision on one and two processes, some on three."""
    return trained(tmp_path_factory.mktemp("runs"), SAMPLE)


@pytest.fixture(scope="module")
def other_runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """The others on three processes, and those on one that they are compared with."""
    alone = [(name, precision, 1) for name, precision, _ in REST]
    return trained(tmp_path_factory.mktemp("others"), [*alone, *REST])


def trained(root: Path, wanted: list[Run]) -> Runs:
    found = Runs()
    code = write_code(root)
    for devices in (1, 2, 3):
        folders = []
        for run in wanted:
            name, precision, size = run
            if size == devices:
                folder = root / f"{name}-{precision}-{devices}"
                write_training(folder, code, name, devices, precision)
                found[run] = folder
                folders.append(folder)
        for name, fusions in FUSED.items() if devices == 2 and folders else ():
            found[name, "fused", 2] = root / f"{name}-fused"
            write_training(root / f"{name}-fused", code, name, 2, "float32", fusions)
            folders.append(root / f"{name}-fused")
        if devices > 1 and folders:
            start_processes(folders)
            continue
        for folder in folders:
            OwnModelWorker(folder, ProcessRanks()).run()
    return found


@pytest.mark.parametrize("run", [run for run in SAMPLE if run[2] > 1])
def test_gradients_are_those_of_one_process(runs: Runs, run: Run) -> None:
    compare_gradients(runs, run)


@pytest.mark.slow
@pytest.mark.parametrize("run", REST)
def test_other_gradients_on_three_processes(other_runs: Runs, run: Run) -> None:
    compare_gradients(other_runs, run)


def compare_gradients(runs: Runs, run: Run) -> None:
    name, precision, _ = run
    alone = torch.load(runs[name, precision, 1] / GRADIENTS)
    together = torch.load(runs[run] / GRADIENTS)
    assert alone.keys() == together.keys() and len(alone) >= 4
    for key, wanted in alone.items():
        off = (together[key] - wanted).norm() / wanted.norm()
        assert wanted.norm() > 0 and off <= TOLERANCE[precision], key


@pytest.mark.parametrize("name", FUSED)
def test_fused_kernels_have_the_same_gradients(runs: Runs, name: str) -> None:
    alone = torch.load(runs[name, "float32", 1] / GRADIENTS)
    fused = torch.load(runs[name, "fused", 2] / GRADIENTS)
    for key, wanted in alone.items():
        assert (fused[key] - wanted).norm() <= 1e-5 * wanted.norm(), key
    found = json.loads((runs[name, "fused", 2] / COMPUTED).read_text())
    assert found["fusions"] == sorted(FUSED[name]) and found["fusions_not_executed"] == []


@pytest.mark.parametrize("name", ON_THREE)
def test_losses_and_accuracies_are_those_of_one_process(runs: Runs, name: str) -> None:
    compare_results(runs, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MODELS if name not in ON_THREE])
def test_losses_and_accuracies_of_the_others(other_runs: Runs, name: str) -> None:
    compare_results(other_runs, name)


def compare_results(runs: Runs, name: str) -> None:
    alone, together = (read_result(runs[name, "float64", devices]) for devices in (1, 3))
    assert together.losses == pytest.approx(alone.losses, abs=2.0**-31)
    assert together.accuracy == alone.accuracy and len(together.losses) == 3


def test_weights_have_the_names_of_the_module(runs: Runs) -> None:
    alone = trained_weights(runs["Sage", "float64", 1])
    together = trained_weights(runs["Sage", "float64", 3])
    assert "one.lin_l.weight" in alone and alone.keys() == together.keys()
    for key, wanted in alone.items():
        assert torch.allclose(together[key], wanted, rtol=1e-8, atol=1e-10), key


def test_a_process_computes_own_nodes_and_few_others(runs: Runs) -> None:
    """On a ring cut into runs, SAGE needs the nodes up to one arc away from own ones: next to each
    of two ends, a neighbour on the ring and up to three by chords. Rows of the second layer alone
    are sent, 4 bytes for each of 6 values, forward and backward.
    """
    folder = runs["Sage", "float32", 3]
    found = json.loads((folder / COMPUTED).read_text())
    assert (found["neighbourhood_depth"], found["refreshed_tensors"]) == (1, 1)
    assert all(40 < nodes <= 40 + 2 * 4 for nodes in found["nodes_computed"])
    rows = int(CutGraph(ring(120), labelled_ring(3).device, 3).rows.sum())
    assert sum(found["nodes_computed"]) - 120 == rows
    assert read_result(folder).sent_mb_per_step * 1e6 == pytest.approx(rows * 6 * 4 * 2)


def test_scores_are_compared_with_those_of_the_whole_graph(tmp_path: Path) -> None:
    """The strip on which depths are found has fewer than 100 nodes, the ring has 120."""
    write_training(tmp_path / "two", write_code(tmp_path), "Counted", 2, "float32")
    words = "neighbourhood of depth 2 the module gives other scores than on the whole"
    with pytest.raises(TrainingError, match=words):
        start_processes([tmp_path / "two"])


@pytest.mark.parametrize("name", ["Batch", "Pooled", "Noisy"])
def test_one_device_trains_what_several_cannot(name: str, tmp_path: Path) -> None:
    write_training(tmp_path / "one", write_code(tmp_path), name, 1, "float32")
    assert len(OwnModelWorker(tmp_path / "one", ProcessRanks()).run().losses) == 3
