"""Tables of edges and of nodes: one row each, columns by name; from CSV files or a database.

    source,target,weight            id,label,split,size,x,y
    ann,bob,0.5                     ann,teacher,train,1,0.3,1.2

Ends are ``source`` and ``target``, or another usual pair of names. All further columns of edges are
features. Of nodes, ``label``, ``split`` (train, validation, test or empty) and ``size`` may be
given, and all further columns are features. Features are finite numbers. Without a table of nodes,
the nodes are those that occur in edges; with one, an edge to any other node is an error.
"""

from __future__ import annotations

from itertools import chain

import numpy as np

from optbench.errors import FileFormatError, nearest
from optbench.formats.text import shorten
from optbench.formats.text_tables import TextTable
from optbench.gnn.ingestion.given_graph import (
    END_NAMES,
    ID_NAMES,
    LABEL,
    LABEL_LIKE,
    SIZE,
    SPLIT,
    SPLITS,
    GivenGraph,
    NodeValues,
    classes_of,
    end_columns,
    indices_of,
)
from optbench.shapes.gnn_training.training_data import Floats, Ints


def graph_of_tables(format: str, edges: TextTable, nodes: TextTable | None) -> GivenGraph:
    """The graph of a table of edges and, where one is given, a table of nodes."""
    found = end_columns(edges.columns)
    if found is None:
        pairs = ", ".join(f"{one} and {other}" for one, other in END_NAMES)
        raise FileFormatError(
            f"{edges.where}: no columns with the ends of edges ({pairs}); there are: "
            f"{shorten(', '.join(edges.columns))[1:-1]}"
        )
    names = tuple(name for name in edges.columns if name not in found)
    features = number_columns(edges, names)
    sides = [[each.strip() for each in edges.columns[name]] for name in found]
    for name, side in zip(found, sides, strict=True):
        if "" in side:
            raise edges.wrong(side.index(""), f"{name} is empty; it must be the id of a node")
    if nodes is None:
        ids, codes = indices_of(chain.from_iterable(zip(*sides, strict=True)))
        return GivenGraph(
            format, ids, codes.reshape(-1, 2), edge_features=features, edge_feature_names=names
        )
    ids, values = node_values(nodes)
    ends = np.stack(
        [_known(edges, name, side, ids) for name, side in zip(found, sides, strict=True)], axis=1
    )
    remarks = label_remarks(nodes, values.feature_names)
    return GivenGraph(format, ids, ends, values, features, names, remarks=remarks)


def label_remarks(table: TextTable, names: tuple[str, ...]) -> tuple[str, ...]:
    """Warn of features whose columns are called as labels are."""
    lower = {name.lower(): name for name in names}
    found = [lower[each] for each in LABEL_LIKE if each in lower]
    return tuple(
        f"{table.where}: column {name!r} is read as a feature; if it holds labels, call it "
        f"{LABEL!r}, and otherwise the network is given what it should learn"
        for name in found
        if not (name.lower() == "y" and "x" in lower)
    )


def node_values(table: TextTable) -> tuple[tuple[str, ...], NodeValues]:
    """Ids of nodes in the order of the table, and their values."""
    lower = {name.lower(): name for name in table.columns}
    key = next((lower[name] for name in ID_NAMES if name in lower), None)
    if key is None:
        raise FileFormatError(
            f"{table.where}: no column with the ids of nodes ({', '.join(ID_NAMES)}); there are: "
            f"{shorten(', '.join(table.columns))[1:-1]}"
        )
    ids = tuple(each.strip() for each in table.columns[key])
    seen: set[str] = set()
    for row, each in enumerate(ids):
        if not each or each in seen:
            raise table.wrong(row, f"{key} is {shorten(each)}; ids are different and not empty")
        seen.add(each)
    own = (LABEL, SPLIT, SIZE)
    names = tuple(name for name in table.columns if name != key and name.lower() not in own)
    labels, classes = np.zeros(0, dtype=np.int64), tuple[str, ...]()
    if LABEL in lower:
        labels, classes = classes_of([each.strip() for each in table.columns[lower[LABEL]]])
    split = table.choices(lower[SPLIT], SPLITS) if SPLIT in lower else np.zeros(0, dtype=np.int64)
    sizes = _sizes(table, lower[SIZE]) if SIZE in lower else np.zeros(0, dtype=np.int64)
    values = NodeValues(number_columns(table, names), names, labels, classes, split, sizes)
    return ids, values


def number_columns(table: TextTable, names: tuple[str, ...]) -> Floats:
    """Columns of finite numbers, side by side."""
    out = np.zeros((table.size, len(names)))
    for k, name in enumerate(names):
        values = table.columns[name]
        try:
            out[:, k] = np.array(values, dtype=float)
        except ValueError:
            out[:, k] = [_or_nan(each) for each in values]
        for row in np.flatnonzero(~np.isfinite(out[:, k]))[:1].tolist():
            raise table.wrong(
                row, f"column {name!r} is {shorten(values[row])}; features are finite numbers"
            )
    return out


def _or_nan(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _sizes(table: TextTable, name: str) -> Ints:
    """Whole numbers from 1."""
    sizes = table.whole(name)
    for row in np.flatnonzero(sizes < 1)[:1].tolist():
        raise table.wrong(row, f"{name} is {sizes[row]}; sizes are at least 1")
    return sizes


def _known(edges: TextTable, name: str, side: list[str], ids: tuple[str, ...]) -> Ints:
    """Indices of nodes that the table of nodes has."""
    index = {each: k for k, each in enumerate(ids)}
    codes = np.array([index.get(each, -1) for each in side], dtype=np.int64)
    for row in np.flatnonzero(codes < 0)[:1].tolist():
        raise edges.wrong(
            row,
            f"{name} is {shorten(side[row])}, which is no id of the table of nodes; "
            f"{nearest(side[row], ids)}",
        )
    return codes
