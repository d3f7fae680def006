"""Fusions by name, for commands and solvers alike."""

from __future__ import annotations

import pytest

from optbench.cli.main import main
from optbench.shapes.gnn_training.fusion_names import fusion_numbers, wrong_fusions
from tests.shapes.gnn_training.small_training import training


def test_names_become_numbers() -> None:
    """The square has one fusion, of both its operators."""
    data = training()
    assert fusion_numbers(data, " ax_w ").tolist() == [0]
    assert fusion_numbers(data, "").tolist() == [] and wrong_fusions(data, "ax_w") is None
    assert wrong_fusions(data, "ax_v") == "fusions: 'ax_v' is unknown; did you mean 'ax_w'?"
    assert "replace one operator" in str(wrong_fusions(data, "ax_w+ax_w"))


def test_the_command_for_cores_names_its_option(capsys: pytest.CaptureFixture[str]) -> None:
    target = "gnn_training:graph=grid,nodes=16,parts=2"
    assert main(["gpu", "cores", target, "--fusions", "none_such", "-o", "cores.json"]) == 2
    assert "--fusions: 'none_such' is unknown" in capsys.readouterr().err
