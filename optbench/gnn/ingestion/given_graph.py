"""A graph as its source holds it, and node ids as indices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from optbench.shapes.gnn_training.training_data import Floats, Ints

Direction: TypeAlias = Literal["", "directed", "undirected"]
# Columns that name the two ends of an edge, in the order in which they are looked for.
END_NAMES = (("source", "target"), ("src", "dst"), ("from", "to"), ("tail", "head"), ("u", "v"))
# Columns of a node table that are no features.
ID_NAMES = ("id", "node", "node_id")
LABEL, SIZE, SPLIT = "label", "size", "split"
# Columns that hold labels elsewhere; y beside x is a coordinate.
LABEL_LIKE = ("y", "class", "classes", "labels", "target", "category")
SPLITS = {"": -1, "train": 0, "validation": 1, "val": 1, "test": 2}


def _no_floats() -> Floats:
    return np.zeros((0, 0))


def _no_ints() -> Ints:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class NodeValues:
    """Values of the nodes, in the order of their ids; empty arrays stand for what is not given.

    ``labels`` are indices of ``class_names``, or -1; ``split`` is 0 for training, 1 for validation,
    2 for testing, -1 for neither.
    """

    features: Floats = field(default_factory=_no_floats)
    feature_names: tuple[str, ...] = ()
    labels: Ints = field(default_factory=_no_ints)
    class_names: tuple[str, ...] = ()
    split: Ints = field(default_factory=_no_ints)
    sizes: Ints = field(default_factory=_no_ints)


@dataclass(frozen=True, eq=False)
class GivenGraph:
    """``ends`` has a row for each edge that is given; nothing is dropped yet. ``direction`` is what
    the source says of its edges, and empty where it says nothing. ``remarks`` warn of what is not
    read as its owner may think.
    """

    format: str
    ids: tuple[str, ...]
    ends: Ints
    nodes: NodeValues = field(default_factory=NodeValues)
    edge_features: Floats = field(default_factory=_no_floats)
    edge_feature_names: tuple[str, ...] = ()
    direction: Direction = ""
    remarks: tuple[str, ...] = ()


def indices_of(tokens: Iterable[str]) -> tuple[tuple[str, ...], Ints]:
    """The ids of nodes, and the index of each token among them.

    Ids that are all whole numbers ascend; others stand in the order of their first appearance.
    """
    index: dict[str, int] = {}
    codes = np.array([index.setdefault(token, len(index)) for token in tokens], dtype=np.int64)
    ids = list(index)
    if not all(_is_whole(each) for each in ids):
        return tuple(ids), codes
    order = sorted(range(len(ids)), key=lambda k: int(ids[k]))
    place = np.empty(len(ids), dtype=np.int64)
    place[order] = np.arange(len(ids))
    return tuple(ids[k] for k in order), place[codes] if len(codes) else codes


def _is_whole(token: str) -> bool:
    """Whether a token is a whole number as Python writes it: 7, and not 07."""
    digits = token.isascii() and token.isdigit()
    return digits and (token == "0" or token[0] != "0")


def classes_of(words: Sequence[str]) -> tuple[Ints, tuple[str, ...]]:
    """Labels as indices of their sorted names; an empty label is -1."""
    names = sorted({each for each in words if each}, key=lambda each: (len(each), each))
    index = {"": -1} | {name: k for k, name in enumerate(names)}
    return np.array([index[each] for each in words], dtype=np.int64), tuple(names)


def end_columns(columns: Mapping[str, object]) -> tuple[str, str] | None:
    """The two columns that hold the ends of edges, whatever the case of their names."""
    known = {name.lower(): name for name in columns}
    for one, other in END_NAMES:
        if one in known and other in known:
            return known[one], known[other]
    return None
