"""Unequal devices on the command line: measuring without a number, fitting cores, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

TARGET = "gnn_training:graph=grid,nodes=64,parts=2,minimize=step,features=8"


def test_a_solve_is_measured_beside_its_estimate(cli: Cli) -> None:
    """Five readings where no number is given; a thousand seconds of latency keep to one device."""
    command = ("solve", f"{TARGET},devices=2:1,latency_s=1000", "-s", "mis_spectral")
    done = cli(*command, "--work-limit", "2", "--measure", "--json")
    assert done.code == 0 and done.json["metrics"]["step_s"] > 0
    found = done.json["measured"]
    assert len(found["metrics"]["step_s"]["readings"]) == 5
    assert found["provenance"]["speeds"] == [1.0]


def test_more_devices_than_cores_are_refused(cli: Cli) -> None:
    command = ("solve", "gnn_training:graph=grid,nodes=60,parts=60", "-s", "random_parts")
    done = cli(*command, "--work-limit", "1", "--measure", "1", "--json")
    assert done.code != 0 and "do not fit the" in done.json["error"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((TARGET,), "where should the devices go"),
        (("jobshop:jobs=2,machines=2", "-o", "c.json"), "is of shape 'schedules'; cores are"),
        ((TARGET, "-o", "c.json", "--fusions", "spmm9"), "'spmm9' is unknown"),
        (("gnn_training:graph=grid,nodes=9,parts=2", "-o", "c.json"), "has 9 nodes"),
    ],
)
def test_what_cannot_be_fitted_is_refused(
    words: tuple[str, ...], message: str, cli: Cli, tmp_path: Path
) -> None:
    done = cli("gpu", "cores", *words, "--json")
    assert done.code == 2 and message in done.json["error"]


def test_cores_are_fitted_and_read_back(cli: Cli, tmp_path: Path) -> None:
    """The smallest graph that is fitted; what the figures are depends on the machine."""
    file = tmp_path / "cores.json"
    target = "gnn_training:graph=grid,nodes=16,parts=2,features=4,devices=4:1"
    done = cli("gpu", "cores", target, "--repeats", "1", "-o", str(file), "--json")
    assert done.code == 0 and done.json["largest_error"] >= 0
    fast, slow = json.loads(file.read_text())["devices"]
    assert slow["gflops"] == pytest.approx(fast["gflops"] / 4)
    again = cli("solve", f"{TARGET},devices={file}", "-s", "metis", "--json", "-q")
    assert again.code == 0 and again.json["verified"]
