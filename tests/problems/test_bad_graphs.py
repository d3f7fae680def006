"""Graphs that are odd and graphs that are wrong, from files: right results and clear errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import optbench as ob
from optbench.cli.main import main
from optbench.errors import OptbenchError

SOLVERS = ("mis_spectral", "metis", "ldg", "random_parts")
RING = [(v, (v + 1) % 12) for v in range(12)]
TWO_RINGS = [(v, (v + 1) % 6) for v in range(6)] + [(6 + v, 6 + (v + 1) % 6) for v in range(6)]
PATH_AND_LOOPS = [(0, 1), (1, 2), (2, 3), *((v, v) for v in range(4, 8))]
GRAPHS = {
    # Name: edges, parts, and the least cut.
    "two components": (TWO_RINGS, 2, 0),
    # A path of four and four nodes that are known from their self-loops alone.
    "isolated nodes": (PATH_AND_LOOPS, 2, 0),
    "self-loops alone": ([(v, v) for v in range(4)], 2, 0),
    "repeated edges": ([*RING, (0, 1), (1, 0)], 2, 2),
    "one node": ([(0, 0)], 1, 0),
    "a part for each node": (RING, 12, 12),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, edges: list[tuple[int, int]], head: str = "source,target") -> None:
    text = "".join(f"{a},{b}\n" for a, b in edges)
    (folder / "graph.csv").write_text(f"{head}\n{text}")


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_odd_graphs_are_cut(name: str, solver: str, folder: Path) -> None:
    edges, parts, least = GRAPHS[name]
    write(folder, edges)
    target = f"gnn_training:data=graph.csv,parts={parts}"
    found: Any = ob.solve(target, solver, work_limit=3, bound=False)
    assert found.verified and found.metrics["cut_edges"] >= least
    if solver == "mis_spectral":
        assert found.metrics["cut_edges"] == least


def test_values_of_edges_are_not_used_and_that_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A ring of twelve: two parts cut two edges, whatever their weights."""
    rows = "".join(f"{a},{b},{-1 - a}\n" for a, b in RING)
    (folder / "graph.csv").write_text("source,target,weight\n" + rows)
    words = ["-s", "mis_spectral", "--work-limit", "3", "--json", "--files", "kept"]
    assert main(["solve", "gnn_training:data=graph.csv,parts=2", *words]) == 0
    out, said = capsys.readouterr()
    assert json.loads(out)["metrics"]["cut_edges"] == 2
    assert "columns of edges (weight) are read, but cuts and training count" in said


@pytest.mark.parametrize(
    ("text", "parts", "words"),
    [
        ("", 2, "graph.csv: the file is empty"),
        ("source,target\n", 2, "graph.csv: no row but the header"),
        ("first,second\n0,1\n", 2, "no columns with the ends of edges .* there are: first, second"),
        ("source,target\n0,1\n", 3, "parts is 3; it must be at most the 2 nodes"),
        ("source,target\n0,0\n", 2, "parts is 2; it must be at most the 1 nodes"),
        ("source,target,w\n0,1,nan\n", 2, "line 2: column 'w' is 'nan'; features are finite"),
    ],
)
def test_wrong_graphs_are_refused(text: str, parts: int, words: str, folder: Path) -> None:
    (folder / "graph.csv").write_text(text)
    with pytest.raises(OptbenchError, match=words):
        ob.solve(f"gnn_training:data=graph.csv,parts={parts}", "metis", work_limit=1)


def test_devices_too_small_for_any_part(folder: Path) -> None:
    """Six nodes keep some 4 kB; neither device has them, which every solver's plan is told."""
    write(folder, RING)
    figures = {"gflops": 40, "gb_per_s": 16, "idle_w": 1, "alpha_w": 1, "beta_w": 1, "gamma_w": 1}
    small = [{"name": name, **figures, "memory_gb": 1e-5} for name in ("left", "right")]
    (folder / "small.json").write_text(json.dumps({"devices": small}))
    target = "gnn_training:data=graph.csv,parts=2,devices=small.json,features=2,hidden=2,classes=2"
    room: Any = ob.solve(target, "metis", work_limit=1, bound=False)
    assert room.verified
    for each in small:
        each["memory_gb"] = 3e-7
    (folder / "small.json").write_text(json.dumps({"devices": small}))
    for solver in SOLVERS:
        found: Any = ob.solve(target, solver, work_limit=3, bound=False)
        assert not found.verified and "of 3e-07" in str(found.violations)
