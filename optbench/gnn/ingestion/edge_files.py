"""Edge lists and adjacency lists: plain text with one edge, or one node and its neighbours, a line.

    # a comment                       # a comment
    ann bob                           ann bob cid
    bob cid                           dan

Fields are separated by blanks, tabs or commas. Further fields of an edge are numbers, which become
edge features; every line has as many. A line of an adjacency list with one field is a node that has
no neighbours of its own.
"""

from __future__ import annotations

import math
from itertools import chain

import numpy as np

from optbench.errors import FileFormatError
from optbench.formats.text import content_lines, shorten
from optbench.gnn.ingestion.given_graph import GivenGraph, indices_of


def edge_list(text: str, where: str) -> GivenGraph:
    """The graph of a list of edges."""
    rows = _rows(text, where)
    width = len(rows[0][1])
    for line, fields in rows:
        if len(fields) < 2:
            raise FileFormatError(
                f"{where}, line {line}: {len(fields)} field; an edge has two ends. Lists of "
                "neighbours are read with data_format=adjacency"
            )
        if len(fields) != width:
            raise FileFormatError(
                f"{where}, line {line}: {len(fields)} fields, where line {rows[0][0]} has {width}"
            )
    ids, codes = indices_of(chain.from_iterable(fields[:2] for _, fields in rows))
    features = np.array(
        [
            [_number(where, line, k, fields[k]) for k in range(2, width)]
            for line, fields in rows
            if width > 2
        ]
    ).reshape(len(rows), width - 2)
    names = tuple(f"value{k}" for k in range(1, width - 1))
    return GivenGraph(
        "edge list", ids, codes.reshape(-1, 2), edge_features=features, edge_feature_names=names
    )


def adjacency_list(text: str, where: str) -> GivenGraph:
    """The graph of a list of neighbours; each pair may stand at one of its nodes or at both."""
    rows = [fields for _, fields in _rows(text, where)]
    ids, codes = indices_of(chain.from_iterable(rows))
    lengths = np.array([len(fields) for fields in rows], dtype=np.int64)
    first = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    own = np.repeat(codes[first], lengths - 1)
    is_neighbour = np.ones(len(codes), dtype=bool)
    is_neighbour[first] = False
    ends = np.stack([own, codes[is_neighbour]], axis=1)
    return GivenGraph("adjacency list", ids, ends, direction="undirected")


def _rows(text: str, where: str) -> list[tuple[int, list[str]]]:
    rows = [(line, content.replace(",", " ").split()) for line, content in content_lines(text)]
    rows = [(line, fields) for line, fields in rows if fields]
    if not rows:
        raise FileFormatError(f"{where}: no line but comments; a line is an edge, such as 0 1")
    return rows


def _number(where: str, line: int, column: int, token: str) -> float:
    """A finite number."""
    try:
        value = float(token)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise FileFormatError(
            f"{where}, line {line}, field {column + 1}: {shorten(token)}; values of edges are "
            "finite numbers"
        )
    return value
