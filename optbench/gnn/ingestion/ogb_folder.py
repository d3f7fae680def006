"""Many small graphs in the layout of the Open Graph Benchmark, as one graph of many components.

    ogbg_molhiv/raw/num-node-list.csv.gz    nodes of each graph
                    num-edge-list.csv.gz    edges of each graph
                    edge.csv.gz             two nodes for each edge, numbered within their graph
                    node-feat.csv.gz        a row of numbers for each node       (may be missing)
                    edge-feat.csv.gz        a row of numbers for each edge       (may be missing)
                    graph-label.csv.gz      a row for each graph                 (may be missing)
    ogbg_molhiv/split/NAME/{train,valid,test}.csv.gz    numbers of graphs        (may be missing)

The files are what OGB's own package downloads; that package is not needed to read them. A node has
the id ``graph:node``, and the label and the part in training of its graph. Of several labels the
first one counts, and one that is not known (nan) is no label.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from optbench.errors import FileFormatError
from optbench.gnn.ingestion.given_graph import SPLITS, GivenGraph, NodeValues, classes_of
from optbench.model.files.json_fields import shown
from optbench.shapes.gnn_training.training_data import Floats, Ints

PREFIX = "ogb:"
# Where OGB puts its data sets, below the current folder, and where optbench looks besides.
OGB_ROOT, OWN_ROOT, ROOT_VARIABLE = "dataset", "ogb", "OPTBENCH_DATA"
EDGES, NODE_COUNTS, EDGE_COUNTS = "edge", "num-node-list", "num-edge-list"
NODE_FEATURES, EDGE_FEATURES, LABELS = "node-feat", "edge-feat", "graph-label"


def is_ogb(source: str | Path) -> bool:
    """Whether this is the name of a data set of OGB, or a folder."""
    return str(source).startswith(PREFIX) or Path(source).is_dir()


def graph_of_ogb(source: str | Path) -> GivenGraph:
    """The graphs of a folder, or of ``ogb:ogbg-molhiv`` in one of the usual folders."""
    folder = _folder(str(source))
    raw = folder / "raw" if (folder / "raw").is_dir() else folder
    nodes, edges = (_counts(raw, name) for name in (NODE_COUNTS, EDGE_COUNTS))
    if len(nodes) != len(edges):
        raise FileFormatError(
            f"{shown(raw)}: {NODE_COUNTS} has {len(nodes)} graphs and {EDGE_COUNTS} {len(edges)}; "
            "both have one line for each graph"
        )
    graph_of_node = np.repeat(np.arange(len(nodes)), nodes)
    first = np.cumsum(nodes) - nodes
    ends = _ends(raw, nodes, edges, first)
    local = np.arange(len(graph_of_node)) - first[graph_of_node]
    ids = tuple(map("{}:{}".format, graph_of_node.tolist(), local.tolist()))
    features = _rows(raw, NODE_FEATURES, len(ids), "nodes")
    labels, classes = _labels(raw, len(nodes))
    split = _split(folder, len(nodes))
    values = NodeValues(
        features,
        _numbered(features),
        labels[graph_of_node] if len(labels) else labels,
        classes,
        split[graph_of_node] if len(split) else split,
    )
    edge_features = _rows(raw, EDGE_FEATURES, len(ends), "edges")
    return GivenGraph("ogb", ids, ends, values, edge_features, _numbered(edge_features))


def _folder(source: str) -> Path:
    """The folder of a data set."""
    if not source.startswith(PREFIX):
        return Path(source)
    name = source.removeprefix(PREFIX).replace("-", "_")
    roots = [Path(OGB_ROOT)]
    if ROOT_VARIABLE in os.environ:
        roots.append(Path(os.environ[ROOT_VARIABLE]) / OWN_ROOT)
    found = next((root / name for root in roots if (root / name).is_dir()), None)
    if found is None:
        looked = " and ".join(str(root / name) for root in roots)
        raise FileFormatError(
            f"{source}: there is no folder {looked}; put there what OGB's package has downloaded, "
            "or give the folder itself as data"
        )
    return found


def _table(folder: Path, name: str, kind: Any, is_needed: bool = True) -> Any:
    """The numbers of a file, or None where it may be missing and is."""
    places = (folder / f"{name}.csv.gz", folder / f"{name}.csv")
    path = next((each for each in places if each.is_file()), None)
    if path is None:
        if not is_needed:
            return None
        raise FileFormatError(
            f"{shown(places[0])}: no such file; a folder in the layout of OGB has "
            f"{NODE_COUNTS}, {EDGE_COUNTS} and {EDGES}, each .csv or .csv.gz"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a file without rows
            return np.loadtxt(path, delimiter=",", dtype=kind, ndmin=2)  # also of gzip
    except (ValueError, OSError, EOFError) as error:
        raise FileFormatError(
            f"{shown(path)}: {str(error)[:200]}; it must have rows of numbers, set apart by commas"
        ) from None


def _counts(raw: Path, name: str) -> Ints:
    """A file with one whole number in each line."""
    counts: Ints = _table(raw, name, np.int64).ravel()
    for k in np.flatnonzero(counts < 0)[:1].tolist():
        raise FileFormatError(
            f"{shown(raw / name)}: graph {k} has {counts[k]}; counts are at least 0"
        )
    return counts


def _ends(raw: Path, nodes: Ints, edges: Ints, first: Ints) -> Ints:
    """The ends of all edges as nodes of the whole graph."""
    local: Ints = _table(raw, EDGES, np.int64).reshape(-1, 2)
    if len(local) != edges.sum():
        raise FileFormatError(
            f"{shown(raw / EDGES)}: {len(local)} edges; {EDGE_COUNTS} has {edges.sum()} in all"
        )
    graph = np.repeat(np.arange(len(edges)), edges)
    wrong = (local < 0).any(axis=1) | (local >= nodes[graph][:, None]).any(axis=1)
    for k in np.flatnonzero(wrong)[:1].tolist():
        one, other = local[k].tolist()
        raise FileFormatError(
            f"{shown(raw / EDGES)}: row {k + 1} is {one},{other}; graph {graph[k]} has nodes 0 to "
            f"{nodes[graph[k]] - 1}"
        )
    whole: Ints = local + first[graph][:, None]
    return whole


def _rows(raw: Path, name: str, count: int, what: str) -> Floats:
    """A row of finite numbers for each node or edge; no columns where the file is missing."""
    found = _table(raw, name, np.float64, is_needed=False)
    if found is None:
        return np.zeros((count, 0))
    if len(found) != count:
        raise FileFormatError(f"{shown(raw / name)}: {len(found)} rows for {count} {what}")
    for row in np.flatnonzero(~np.isfinite(found).all(axis=1))[:1].tolist():
        raise FileFormatError(f"{shown(raw / name)}: row {row + 1} has a number that is not finite")
    table: Floats = found
    return table


def _numbered(features: Floats) -> tuple[str, ...]:
    return tuple(map(str, range(features.shape[1])))


def _labels(raw: Path, graphs: int) -> tuple[Ints, tuple[str, ...]]:
    """The label of each graph and the names of classes."""
    found = _table(raw, LABELS, np.float64, is_needed=False)
    if found is None:
        return np.zeros(0, dtype=np.int64), ()
    if len(found) != graphs:
        raise FileFormatError(f"{shown(raw / LABELS)}: {len(found)} rows for {graphs} graphs")
    return classes_of(["" if np.isnan(each) else f"{each:g}" for each in found[:, 0].tolist()])


def _split(folder: Path, graphs: int) -> Ints:
    """0, 1, 2 for graphs of training, validation and testing; -1 for neither."""
    places = sorted(each for each in (folder / "split").glob("*") if each.is_dir())
    if not places:
        return np.zeros(0, dtype=np.int64)
    split = np.full(graphs, -1, dtype=np.int64)
    for name, code in (("train", "train"), ("valid", "validation"), ("test", "test")):
        chosen = _table(places[0], name, np.int64).ravel()
        for k in chosen[(chosen < 0) | (chosen >= graphs)][:1].tolist():
            raise FileFormatError(
                f"{shown(places[0] / name)}: graph {k}; there are graphs 0 to {graphs - 1}"
            )
        split[chosen] = SPLITS[code]
    return split
