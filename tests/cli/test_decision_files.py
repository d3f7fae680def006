"""Every result on a graph comes with a table that has the part and the device of every node."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.api import load_target
from optbench.cli.main import main

SOLVERS = ("mis_spectral", "metis", "metis_best", "ldg", "random_parts", "highs")
# Those that go on until a limit.
LIMITED = ("mis_spectral", "metis_best")
GRID = "gnn_training:graph=grid,nodes=16,parts=2,devices=2:1"


def solved(target: str, *words: str) -> list[str]:
    return ["solve", target, "--json", *words]


def rows_of(path: str) -> list[dict[str, str]]:
    with Path(path).open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_table_of_every_solver(
    solver: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A grid of 4 × 4 in two parts of eight: the table has the cut that the verifier counts."""
    plan = tmp_path / "plan.json"
    words = ["-s", solver, "--files", str(tmp_path / "kept"), "-o", str(plan)]
    words += ["--work-limit", "2"] if solver in LIMITED else []
    assert main(solved(GRID, *words)) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["files"]["parts"] == str(tmp_path / "kept" / "parts.csv")
    rows = rows_of(found["files"]["parts"])
    assert [row["node"] for row in rows] == [str(v) for v in range(16)]
    part = np.array([int(row["part"]) for row in rows])
    graph = load_target(GRID).data.graph
    assert (part[graph.tail] != part[graph.head]).sum() == found["metrics"]["cut_edges"]
    # Part p is on device p; the table says so by number and by name.
    assert [int(row["device"]) for row in rows] == part.tolist()
    assert len({(row["device"], row["device_name"]) for row in rows}) == 2
    assert part.tolist() == json.loads(plan.read_text())["decision"]["part"]


@pytest.fixture
def named_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPTBENCH_WORKSPACE", raising=False)
    (tmp_path / "edges.csv").write_text('source,target\nann,bob\nbob,"dan, jr"\n"dan, jr",eve\n')
    return "gnn_training:data=edges.csv,parts=2"


def test_nodes_have_the_names_of_the_file(
    named_graph: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A path of four: ann and bob are in one part. Files go to the store of the folder."""
    assert main(solved(named_graph, "-s", "metis")) == 0
    out, said = capsys.readouterr()
    path = Path(json.loads(out)["files"]["parts"])
    assert path.is_relative_to(tmp_path / ".optbench" / "solved") and str(tmp_path) in said
    part = {row["node"]: row["part"] for row in rows_of(str(path))}
    assert list(part) == ["ann", "bob", "dan, jr", "eve"]
    assert part["ann"] == part["bob"] != part["eve"] == part["dan, jr"]


def test_the_terminal_names_the_file(named_graph: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["solve", named_graph, "-s", "metis", "--files", "kept"]
    assert main(words) == 0
    assert "parts written to kept/parts.csv" in capsys.readouterr().out


def test_saved_results_have_it_beside_them(named_graph: str, tmp_path: Path) -> None:
    result: Any = ob.solve(named_graph, "metis")
    result.save(tmp_path / "found.json")
    assert len(rows_of(str(tmp_path / "found.parts.csv"))) == 4


def test_schedules_have_no_such_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(solved("jobshop:jobs=2,machines=2", "-s", "cpsat")) == 0
    assert "files" not in json.loads(capsys.readouterr().out)
    assert not (tmp_path / ".optbench").exists()
