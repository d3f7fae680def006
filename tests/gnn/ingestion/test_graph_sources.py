"""The same small graph from every source, and bad input refused by file, row and column."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optbench.errors import FileFormatError, OptbenchError
from optbench.gnn.ingestion.graph_sources import IngestOptions, read_graph
from optbench.gnn.ingestion.ingested_graph import IngestedGraph

# Nodes a, b, c, d, e; edges a-b, b-c (three times, once backwards), a self-loop of c, d-e.
PAIRS = [("a", "b"), ("b", "c"), ("c", "b"), ("b", "c"), ("c", "c"), ("d", "e")]
EDGES = [(0, 1), (1, 2), (3, 4)]


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def edges_of(found: IngestedGraph) -> list[tuple[int, int]]:
    return list(zip(found.graph.tail.tolist(), found.graph.head.tolist(), strict=True))


def dropped(found: IngestedGraph) -> dict[str, int]:
    return {each.what: each.count for each in found.report.dropped}


def in_database(folder: Path) -> str:
    file = folder / "graph.db"
    with sqlite3.connect(file) as base:
        base.execute("create table edges (source text, target text)")
        base.executemany("insert into edges values (?, ?)", PAIRS)
        base.execute("create table people (id text, label text, x real)")
        rows = [(each, "even" if k % 2 else "odd", float(k)) for k, each in enumerate("abcde")]
        base.executemany("insert into people values (?, ?, ?)", rows)
    base.close()
    return f"sqlite:///{file}"


def graphml_text(kind: str = "undirected") -> str:
    nodes = "".join(f'<node id="{each}"><data key="k">{each}1</data></node>' for each in "abcde")
    edges = "".join(f'<edge source="{one}" target="{other}"/>' for one, other in PAIRS)
    return (
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
        '<key id="k" for="node" attr.name="label"/><key id="w" for="node" attr.name="w">'
        f'<default>2.5</default></key><graph edgedefault="{kind}">{nodes}{edges}</graph></graphml>'
    )


@pytest.mark.parametrize("source", ["edges", "csv", "graphml", "sql"])
def test_every_source_gives_the_same_graph(source: str, tmp_path: Path) -> None:
    """Of six rows, one is a self-loop, one repeats, one goes the other way round."""
    lines = "".join(f"{one} {other}\n" for one, other in PAIRS)
    given = {
        "edges": lambda: write(tmp_path, "g.edges", "# two columns\n" + lines),
        "csv": lambda: write(tmp_path, "g.csv", "src,dst\n" + lines.replace(" ", ",")),
        "graphml": lambda: write(tmp_path, "g.graphml", graphml_text()),
        "sql": lambda: in_database(tmp_path),
    }[source]()
    found = read_graph(given)
    assert (found.ids, edges_of(found)) == (("a", "b", "c", "d", "e"), EDGES)
    assert dropped(found) == {"self-loops": 1, "repeated edges": 1}
    # a-b and d-e stand in one direction; GraphML says that its edges have none.
    single = [] if source == "graphml" else [2]
    assert [each.count for each in found.report.assumed] == [1, *single]
    read = found.report.read
    assert (read["rows"], read["components"], read["largest component"]) == (6, 2, 3)


def test_neighbours_numbers_and_isolated_nodes(tmp_path: Path) -> None:
    """Whole numbers ascend: 2, 7, 10, 30 are nodes 0 to 3; node 30 has a line and no neighbour."""
    found = read_graph(write(tmp_path, "g.adj", "10 2 7\n7 10\n30\n"))
    assert (found.ids, edges_of(found)) == (("2", "7", "10", "30"), [(0, 2), (1, 2)])
    assert found.report.read["isolated nodes"] == 1
    (isolated, parts) = found.report.warnings
    assert (isolated.what, isolated.examples) == ("isolated nodes", ("30",)) and "2 comp" in str(
        parts
    )


def test_features_labels_and_splits_of_tables(tmp_path: Path) -> None:
    """Rows: (1, 3) / 4 and (0, 0); columns: 1, 0 has mean and deviation 0.5, so that it is ±1."""
    edges = write(tmp_path, "e.csv", "source,target,weight\nb,a,4\na,b,5\n")
    nodes = write(tmp_path, "n.csv", "id,label,split,size,p,q\na,x,train,2,1,3\nb,,test,1,0,0\n")
    rows = read_graph(edges, IngestOptions(node_table=nodes, scaling="row"))
    assert rows.nodes.features.tolist() == [[0.25, 0.75], [0.0, 0.0]]
    assert (rows.nodes.labels.tolist(), rows.nodes.class_names) == ([0, -1], ("x",))
    assert (rows.nodes.split.tolist(), rows.graph.sizes.tolist()) == ([0, 2], [2, 1])
    assert rows.edge_features.tolist() == [[4.0]]
    assert [each.what for each in rows.report.warnings] == [
        "repeated edges with other features than the first, which is kept",
        "columns of edges (weight) are read, but cuts and training count every edge as 1",
    ]
    standard = read_graph(edges, IngestOptions(None, nodes, "standard", "standard"))
    assert standard.nodes.features.tolist() == [[1.0, 1.0], [-1.0, -1.0]]
    assert standard.edge_features.tolist() == [[0.0]]


def test_graphml_defaults_and_a_node_table_of_a_database(tmp_path: Path) -> None:
    found = read_graph(write(tmp_path, "g.graphml", graphml_text()))
    assert found.nodes.features.tolist() == [[2.5]] * 5 and found.num_classes == 5
    base = read_graph(in_database(tmp_path) + "#edges", IngestOptions(node_table="people"))
    assert base.nodes.features.ravel().tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert base.nodes.class_names == ("odd", "even")


def pyg_data(**other: Any) -> Any:
    import torch
    from torch_geometric.data import Data

    ends = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 2, 4]])
    return Data(x=torch.eye(5), edge_index=ends, y=torch.tensor([0, 1, 0, 1, 0]), **other)


def test_pyg_objects_and_saved_files(tmp_path: Path) -> None:
    import torch

    mask = torch.tensor([True, False, False, False, False])
    for name, held in (("d.pt", pyg_data(train_mask=mask)), ("m.pt", pyg_data().to_dict())):
        torch.save(held, tmp_path / name)
        found = read_graph(tmp_path / name)
        assert edges_of(found) == EDGES and dropped(found) == {"self-loops": 1}
    data = read_graph([pyg_data(train_mask=mask)])
    assert edges_of(data) == EDGES and data.nodes.split.tolist() == [0, -1, -1, -1, -1]
    assert np.array_equal(data.nodes.features, np.eye(5)) and data.num_classes == 2
    with pytest.raises(FileFormatError, match="a data set of 2 graphs"):
        read_graph([pyg_data(), pyg_data()])


def test_directed_graphs_are_made_undirected_with_a_note(tmp_path: Path) -> None:
    """Of a-b, b-c, c-b and d-e, two have no reverse. Edges that stand once each are no arcs."""
    what = "directed edges without their reverse, which are made undirected"
    found = read_graph(write(tmp_path, "g.graphml", graphml_text("directed")))
    assert [(each.what, each.count) for each in found.report.assumed][1:] == [(what, 2)]
    assert found.report.assumed[1].examples == ("a - b", "d - e")
    (arc,) = (each for each in read_graph(pyg_data()).report.assumed if each.what == what)
    assert (arc.count, arc.examples) == (1, ("3 - 4",))
    once = write(tmp_path, "g.edges", "a b\nb c\nd e\n")
    assert read_graph(once).report.assumed == ()


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([0.5, 1, 0, 1, 0], r"y is float32 \(5,\) and is not used"),
        ([[1, 0]] * 5, r"y is int64 \(5, 2\) .*such as data.y.argmax\(dim=1\)"),
    ],
)
def test_labels_of_pyg_that_are_no_classes_are_named(y: Any, words: str) -> None:
    import torch

    data = pyg_data()
    data.y = torch.tensor(y)
    found = read_graph(data)
    assert found.num_classes == 0
    assert any(re.search(words, each.what) for each in found.report.warnings)


def test_masks_that_overlap_are_refused() -> None:
    import torch

    mask = torch.tensor([False, False, True, False, False])
    with pytest.raises(FileFormatError, match="node 2 is in train_mask and in test_mask"):
        read_graph(pyg_data(train_mask=mask, test_mask=mask))


def test_columns_that_are_called_as_labels_are_named(tmp_path: Path) -> None:
    edges = write(tmp_path, "e.csv", "source,target\na,b\n")
    for head, wanted in (("Class,y", ["'y'", "'Class'"]), ("x,y", [])):
        nodes = write(tmp_path, "n.csv", f"id,{head}\na,0,1\nb,1,2\n")
        warned = read_graph(edges, IngestOptions(node_table=nodes)).report.warnings
        assert [each.what.split("column ")[1].split()[0] for each in warned] == wanted


def test_a_saved_file_that_names_code_is_refused(tmp_path: Path) -> None:
    import torch

    torch.save({"x": Path("a")}, tmp_path / "p.pt")
    with pytest.raises(FileFormatError, match=r"p\.pt: no tensors that can be read safely"):
        read_graph(tmp_path / "p.pt")


def test_features_of_pyg_that_are_no_numbers() -> None:
    data = pyg_data()
    data.x[3, 2] = float("nan")
    with pytest.raises(FileFormatError, match="x, node 3, column 2: nan"):
        read_graph(data)
    data = pyg_data()
    data.edge_index[1, 4] = 9
    with pytest.raises(FileFormatError, match=r"edge_index\[1, 4\] is 9; nodes are 0 to 4"):
        read_graph(data)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("g.csv", "source,target,w\na,b,1\nb,c,nan\n", r"g\.csv, line 3: column 'w' is 'nan'"),
        ("g.csv", "source,target,w\na,b,red\n", "line 2: column 'w' is 'red'"),
        ("g.csv", "source,target\na,\n", "line 2: target is empty"),
        ("g.csv", "x,y\na,b\n", "no columns with the ends of edges"),
        ("g.csv", "source,target\na,b,c\n", "line 2: 3 fields, where there are 2 columns"),
        ("g.edges", "a b\nc\n", "line 2: 1 field; an edge has two ends"),
        ("g.edges", "a b 1\nb c\n", "line 2: 2 fields, where line 1 has 3"),
        ("g.edges", "a b 1\nb c inf\n", "line 2, field 3: 'inf'"),
        ("g.edges", "# nothing\n", "no line but comments"),
        ("g.graphml", "<graphml>", "no XML"),
        ("g.graphml", "<!DOCTYPE a><graphml/>", "document type"),
        ("g.graphml", "<graph/>", "the root is <graph> with 0 nodes"),
        ("g.dat", "a b\n", "the format of a graph does not follow"),
    ],
)
def test_bad_files_are_refused(name: str, text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=words):
        read_graph(write(tmp_path, name, text))


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ("id,p\na,1\n", r"e\.csv, line 2: target is 'b', which is no id"),
        ("id,p\na,1\nb,\n", r"n\.csv, line 3: column 'p' is ''"),
        ("id,p\na,1\na,2\n", "line 3: id is 'a'; ids are different"),
        ("name,p\na,1\n", "no column with the ids of nodes"),
        ("id,split\na,trian\nb,\n", "split is 'trian'; did you mean 'train'"),
        ("id,size\na,0\nb,1\n", "size is 0; sizes are at least 1"),
    ],
)
def test_bad_tables_of_nodes_are_refused(nodes: str, words: str, tmp_path: Path) -> None:
    edges = write(tmp_path, "e.csv", "source,target\na,b\n")
    table = write(tmp_path, "n.csv", nodes)
    with pytest.raises(FileFormatError, match=words):
        read_graph(edges, IngestOptions(node_table=table))


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("sqlite:////nowhere/g.db", "no such file"),
        ("nosuch://g", "write sqlite:///FILE#TABLE"),
        ("FILE#edgse", "unknown table of .*'edgse'; did you mean 'edges'"),
    ],
)
def test_bad_databases_are_refused(address: str, words: str, tmp_path: Path) -> None:
    address = address.replace("FILE", in_database(tmp_path))
    with pytest.raises(OptbenchError, match=words):
        read_graph(address)
