"""Folders in the layout of the Open Graph Benchmark: two molecules, and what is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from optbench.cli.main import main
from optbench.errors import FileFormatError
from optbench.gnn.ingestion.graph_sources import read_graph

# A triangle of nodes 0, 1, 2 and a chain of nodes 0, 1; the second has no known label.
FILES = {
    "raw/num-node-list": "3\n2\n",
    "raw/num-edge-list": "3\n1\n",
    "raw/edge": "0,1\n1,2\n0,2\n0,1\n",
    "raw/node-feat": "6,1\n6,0\n8,1\n7,0\n6,2\n",
    "raw/edge-feat": "1\n1\n2\n1\n",
    "raw/graph-label": "1,nan\nnan,0\n",
    "split/scaffold/train": "0\n",
    "split/scaffold/valid": "",
    "split/scaffold/test": "1\n",
}


def folder_of(place: Path, **changes: str) -> Path:
    for name, text in {**FILES, **{k.replace("__", "/"): v for k, v in changes.items()}}.items():
        path = place / f"{name}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()))
    return place


def test_two_molecules(tmp_path: Path) -> None:
    found = read_graph(folder_of(tmp_path / "ogbg_two"))
    pairs = list(zip(found.graph.tail.tolist(), found.graph.head.tolist(), strict=True))
    assert pairs == [(0, 1), (0, 2), (1, 2), (3, 4)]
    assert found.ids == ("0:0", "0:1", "0:2", "1:0", "1:1")
    assert found.nodes.features.tolist() == [[6, 1], [6, 0], [8, 1], [7, 0], [6, 2]]
    assert found.nodes.class_names == ("1",) and found.nodes.labels.tolist() == [0, 0, 0, -1, -1]
    assert found.nodes.split.tolist() == [0, 0, 0, 2, 2]
    # Edges ascend: 0-2 comes before 1-2.
    assert found.edge_features.ravel().tolist() == [1, 2, 1, 1]
    assert found.report.read["components"] == 2


def test_a_data_set_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileFormatError, match="there is no folder dataset/ogbg_two"):
        read_graph("ogb:ogbg-two")
    folder_of(tmp_path / "dataset" / "ogbg_two")
    assert read_graph("ogb:ogbg-two").graph.num_edges == 4


def test_molecules_stay_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two parts of at most three nodes: one molecule each."""
    monkeypatch.chdir(tmp_path)
    folder_of(tmp_path / "dataset" / "ogbg_two")
    spec = "gnn_training:data=ogb:ogbg-two,parts=2,max_part=3"
    code = main(["solve", spec, "-s", "mis_spectral", "--work-limit", "2", "--json"])
    result: Any = json.loads(capsys.readouterr().out)
    assert code == 0 and result["objective"] == 0 and result["status"] == "optimal"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"raw__edge": "0,1\n1,2\n0,2\n0,2\n"}, "row 4 is 0,2; graph 1 has nodes 0 to 1"),
        ({"raw__edge": "0,1\n"}, "1 edges; num-edge-list has 4"),
        ({"raw__edge": "0,1\n1,x\n"}, "rows of numbers"),
        ({"raw__num-edge-list": "4\n"}, "2 graphs and num-edge-list 1"),
        ({"raw__node-feat": "1\n"}, "1 rows for 5 nodes"),
        ({"raw__node-feat": "1\n2\nnan\n4\n5\n"}, "row 3 has a number that is not finite"),
        ({"raw__graph-label": "1\n"}, "1 rows for 2 graphs"),
        ({"split__scaffold__test": "7\n"}, "graph 7; there are graphs 0 to 1"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, changes: dict[str, str], words: str) -> None:
    with pytest.raises(FileFormatError, match=words):
        read_graph(folder_of(tmp_path, **changes))


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="no such file; a folder in the layout of OGB"):
        read_graph(tmp_path)
