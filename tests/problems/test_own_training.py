"""A user's own model, graph and devices: one instance of them, and every mistake by its place."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from optbench.cli.main import main
from optbench.errors import OptbenchError
from optbench.plugins.discovery import load_problem

MODEL = """
import torch
from torch_geometric.nn import GCNConv


class Net(torch.nn.Module):
    def __init__(self, num_features, hidden, out_channels):
        super().__init__()
        self.one, self.two = GCNConv(num_features, hidden), GCNConv(hidden, out_channels)

    def forward(self, x, edge_index):
        return self.two(torch.relu(self.one(x, edge_index)), edge_index)


class Odd(Net):
    def __init__(self, depth):
        super().__init__(2, 2, depth)


def narrow():
    return Net(2, 2, 2)


def failing():
    return Net(2, 2, missing)
"""
EDGES = "source,target\n" + "".join(f"{k},{k + 1}\n" for k in range(5)) + "3,3\n"
NODES = "id,label,p,q\n" + "".join(f"{k},{'abc'[k % 3]},{k},1\n" for k in range(7))
DEVICE = {
    "name": "big",
    "gflops": 40.0,
    "gb_per_s": 16.0,
    "idle_w": 4.0,
    "alpha_w": 1.0,
    "beta_w": 1.0,
    "gamma_w": 1.0,
}
DEVICES = {"devices": [DEVICE, {"profile": "L4"}], "links": {"gb_per_s": 3.0}, "speeds": [[1, 0.5]]}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    written: dict[str, Any] = {"my_model.py": MODEL, "my_graph.csv": EDGES, "my_nodes.csv": NODES}
    for name, text in {**written, "my.json": json.dumps(DEVICES)}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def made(spec: str) -> Any:
    problem = load_problem(f"gnn_training:{spec}")
    return problem.imported() or problem.instance()


def test_model_graph_and_devices_of_a_user(folder: Path) -> None:
    """Node 6 is isolated; the loop of node 3 is dropped. Weights: 2 × 3 + 3 and 3 × 3 + 3."""
    own = "model=my_model.py:Net,data=my_graph.csv,node_table=my_nodes.csv,devices=my.json"
    found = made(f"{own},parts=2,hidden=3,latency_s=1ms")
    data = found.instance.data
    assert (found.instance.name, data.graph.num_nodes, data.graph.num_edges) == ("my_graph-2", 7, 5)
    assert data.parameter_bytes == 4 * (2 * 3 + 3 + 3 * 3 + 3)
    assert [each.name for each in data.devices] == ["big", "L4"]
    assert (data.links.gb_per_s == 3.0).all() and (data.links.latency_s == 1e-3).all()
    assert data.windows.tolist() == [[1.0, 0.5]]
    assert [each.kind for each in data.operators[:4]] == ["dense", "gather", "scale", "scatter"]
    assert found.report.read["isolated nodes"] == 1
    assert [each.what for each in found.report.dropped] == ["self-loops"]


def test_the_command_line_solves_it_and_reports_what_was_dropped(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A path of six nodes and an isolated one in two parts of at most four: one edge is cut."""
    spec = "gnn_training:model=my_model.py:Net,data=my_graph.csv,node_table=my_nodes.csv"
    spec += ",devices=my.json,parts=2,max_part=4"
    code = main(["solve", spec, "-s", "metis", "--json"])
    out, said = capsys.readouterr()
    assert (code, json.loads(out)["metrics"]["cut_edges"]) == (0, 1)
    assert "1 self-loops" in said and "isolated nodes" in said


def test_converting_shows_the_whole_report(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Six rows: five edges of a path over six nodes, and a loop."""
    spec = "gnn_training:data=my_graph.csv,parts=2"
    assert main(["convert", spec, "out.json"]) == 0
    said = capsys.readouterr().err
    assert "nodes: 6" in said and "rows: 6" in said and "dropped: 1 x self-loops (3 - 3)" in said
    assert main(["convert", spec, "again.json", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)["report"]
    read = report["read"]
    assert (report["format"], read["edges"], read["components"]) == ("table", 5, 1)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("model=my_model.py", r"model is 'my_model.py'; it must be FILE.py:NAME"),
        ("model=none.py:Net", "model none.py: no such file"),
        ("model=my_model.py:Nett", "unknown class of my_model.py 'Nett'; did you mean 'Net'"),
        ("model=my_model.py:Odd", "needs 'depth', which is not known here"),
        ("model=my_model.py:failing", r"my_model.py, line 25: failing\(\) fails: NameError"),
        ("model=my_model.py:narrow", "fails for x of shape"),
        ("model=my_model.py:Net,network=gat", "network is 'gat'; it must be left out"),
        ("data=my_graph.csv,graph=cora", "graph is 'cora'; it must be left out"),
        ("data=my_graph.csv,nodes=5", "nodes is 5; it must be left out"),
        ("node_table=my_nodes.csv", "node_table is 'my_nodes.csv'; it must be left out"),
        ("scaling=row", "scaling is 'row'; it must be left out"),
        ("data=no.csv", "no.csv: no such file"),
        ("data=my_graph.csv,node_table=my_nodes.csv,features=5", "has 2 for each node"),
        ("data=my_graph.csv,node_table=my_nodes.csv,model=my_model.py:narrow", "gives 2 scores"),
        ("devices=no.json", "no.json: no such file"),
    ],
)
def test_mistakes_are_named(spec: str, words: str, folder: Path) -> None:
    with pytest.raises(OptbenchError, match=words):
        made(spec)


@pytest.mark.parametrize(
    ("held", "words"),
    [
        ([], r"d.json: the document is \[\]; it must be an object"),
        ({"devices": []}, "devices is missing or empty"),
        ({"device": [DEVICE]}, "'device' is unknown; did you mean 'devices'"),
        ({"devices": [{**DEVICE, "gflops": -1}]}, r"devices\[0\].*gflops is -1"),
        ({"devices": [{**DEVICE, "gflop": 1}]}, r"devices\[0\]\.gflop is unknown"),
        ({"devices": [{"profile": "L44"}]}, "L44"),
        ({"devices": [DEVICE], "links": {"gb_per_s": [[1, 2]]}}, r"shape \(1, 2\)"),
        ({"devices": [DEVICE], "links": {"gb_per_s": 0}}, "gb_per_s must be positive"),
        ({"devices": [DEVICE], "speeds": [[1, 1]]}, "a column for each of the 1 devices"),
        ({"devices": [{**DEVICE, "memory_gb": 1e-9}]}, "'big' has 1e-09 GB, which hold no part"),
        ({"devices": [{**DEVICE, "gflops": 0}]}, "'big': gflops is 0.0; it must be positive"),
        ({"devices": [{**DEVICE, "gb_per_s": math.nan}]}, "d.json: NaN is not JSON"),
        ({"devices": [{**DEVICE, "gflops": math.inf}]}, "d.json: Infinity is not JSON"),
        ({"devices": [{**DEVICE, "launch_s": -1}]}, "'big': launch_s is -1.0; .* at least 0"),
        ({"devices": [{**DEVICE, "memory_gb": 0}]}, "'big': memory_gb is 0.0; .* positive"),
        ({"devices": [DEVICE, DEVICE], "speeds": [[1, 0]]}, "speeds holds 0.0; .* are positive"),
        ({"devices": [DEVICE, DEVICE], "speeds": [[1, -2]]}, "speeds holds -2.0"),
        ({"devices": [DEVICE], "links": {"latency_s": -1}}, "latency_s at least 0"),
    ],
)
def test_mistakes_in_files_of_devices_are_named(held: Any, words: str, folder: Path) -> None:
    (folder / "d.json").write_text(json.dumps(held))
    with pytest.raises(OptbenchError, match=words):
        made("graph=grid,nodes=9,parts=2,devices=d.json")


def test_parts_that_nobody_gives_are_the_devices_of_a_file(folder: Path) -> None:
    """Two devices in the file; without one there are 4 parts, and 2 of a graph of two nodes."""
    assert made("data=my_graph.csv,devices=my.json").instance.data.num_parts == 2
    assert made("data=my_graph.csv,devices=2:1").instance.data.num_parts == 4
    (folder / "small.csv").write_text("source,target\n0,1\n")
    assert made("data=small.csv").instance.data.num_parts == 2


def test_names_of_files_are_checked_before_sizes(folder: Path) -> None:
    with pytest.raises(OptbenchError, match=r"devices no\.json: no such file"):
        made("data=my_graph.csv,parts=99,devices=no.json")
