"""PyTorch Geometric: a ``Data`` object, a data set that holds one, or a file saved by torch.save.

Files are read with ``weights_only=True``: nothing but tensors, plain containers and the classes of
PyG's data is made, so that reading runs no code of the file.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np

from optbench.errors import FileFormatError
from optbench.gnn.ingestion.given_graph import GivenGraph, NodeValues, classes_of
from optbench.shapes.gnn_training.training_data import Floats, Ints

MASKS = ("train_mask", "val_mask", "test_mask")


def saved_pyg(path: Path, where: str) -> GivenGraph:
    """The graph in a file that torch.save has written."""
    import torch
    from torch_geometric.data import Data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    allowed = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]
    try:
        with torch.serialization.safe_globals(allowed):
            found = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise FileFormatError(f"{where}: no such file") from None
    except (pickle.UnpicklingError, RuntimeError, EOFError, OSError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else "empty file"
        raise FileFormatError(
            f"{where}: no tensors that can be read safely ({first[:200]}); write it with "
            "torch.save(data, file), where data is a torch_geometric.data.Data or its to_dict()"
        ) from None
    return graph_of_pyg(found, where)


def graph_of_pyg(given: Any, where: str = "data") -> GivenGraph:
    """The graph of a Data object, of the dict of one, or of a data set of one graph."""
    held = _single(given, where)
    values = held if isinstance(held, dict) else held.to_dict()
    ends = _array(values.get("edge_index"), f"{where}: edge_index")
    if ends is None or ends.ndim != 2 or ends.shape[0] != 2 or ends.dtype.kind not in "iu":
        shape = None if ends is None else f"{ends.dtype} {ends.shape}"
        raise FileFormatError(
            f"{where}: edge_index is {shape}; it must be whole numbers (2, edges)"
        )
    features = _matrix(values.get("x"), f"{where}: x", "node")
    nodes = _num_nodes(values, features, ends, where)
    edges = _matrix(values.get("edge_attr"), f"{where}: edge_attr", "edge")
    for name, rows, wanted in (("x", features, nodes), ("edge_attr", edges, ends.shape[1])):
        if rows.shape[1] and len(rows) != wanted:
            raise FileFormatError(f"{where}: {name} has {len(rows)} rows; there must be {wanted}")
    labels, classes, remarks = _labels(values.get("y"), nodes, where)
    own = NodeValues(
        features,
        tuple(f"x{k}" for k in range(features.shape[1])),
        labels,
        classes,
        _split(values, nodes, where),
    )
    names = tuple(f"edge_attr{k}" for k in range(edges.shape[1]))
    ids = tuple(map(str, range(nodes)))
    arcs = ends.T.astype(np.int64)
    return GivenGraph("pyg", ids, arcs, own, edges, names, "directed", remarks)


def _single(given: Any, where: str) -> Any:
    """The only graph of a data set, or what is given."""
    if isinstance(given, dict) or hasattr(given, "to_dict"):
        return given
    if isinstance(given, tuple) and given and isinstance(given[0], dict):
        return given[0]  # what a processed file of PyG holds: (data, slices, class)
    if hasattr(given, "__len__") and hasattr(given, "__getitem__") and len(given) > 0:
        if len(given) == 1:
            return given[0]
        raise FileFormatError(f"{where}: a data set of {len(given)} graphs; give one of them")
    raise FileFormatError(
        f"{where}: {type(given).__name__}; it must be a torch_geometric.data.Data, its to_dict(), "
        "or a data set of one graph"
    )


def _array(value: Any, where: str) -> Any:
    """A tensor as a numpy array."""
    if value is None:
        return None
    if not hasattr(value, "detach"):
        raise FileFormatError(f"{where} is a {type(value).__name__}; it must be a tensor")
    dense = value.to_dense() if value.is_sparse else value
    return dense.detach().cpu().numpy()


def _matrix(value: Any, where: str, row: str) -> Floats:
    """Finite features, one row for each node or edge."""
    found = _array(value, where)
    if found is None:
        return np.zeros((0, 0))
    out: Floats = found.reshape(len(found), -1).astype(np.float64)
    for i, j in np.argwhere(~np.isfinite(out))[:1].tolist():
        raise FileFormatError(
            f"{where}, {row} {i}, column {j}: {out[i, j]}; features are finite numbers"
        )
    return out


def _num_nodes(values: dict[str, Any], features: Floats, ends: Ints, where: str) -> int:
    nodes = values.get("num_nodes")
    if nodes is None:
        nodes = len(features) if features.size else int(ends.max()) + 1 if ends.size else 0
    wrong = np.argwhere((ends < 0) | (ends >= int(nodes)))
    for side, edge in wrong[:1].tolist():
        raise FileFormatError(
            f"{where}: edge_index[{side}, {edge}] is {ends[side, edge]}; nodes are 0 to "
            f"{int(nodes) - 1}"
        )
    return int(nodes)


def _labels(value: Any, nodes: int, where: str) -> tuple[Ints, tuple[str, ...], tuple[str, ...]]:
    """Classes of nodes, and a remark where y is something else, which is not used."""
    found = _array(value, f"{where}: y")
    if found is None:
        return np.zeros(0, dtype=np.int64), (), ()
    if found.dtype.kind not in "iub" or found.size != nodes:
        words = f"{where}: y is {found.dtype} {found.shape} and is not used; labels are whole "
        words += f"numbers, one for each of the {nodes} nodes"
        if found.ndim == 2 and found.shape[0] == nodes and found.shape[1] > 1:
            words += ", such as data.y.argmax(dim=1) where it is one-hot"
        return np.zeros(0, dtype=np.int64), (), (words,)
    names = [str(int(each)) if each >= 0 else "" for each in found.ravel()]
    return *classes_of(names), ()


def _split(values: dict[str, Any], nodes: int, where: str) -> Ints:
    """The first column of each mask, where PyG has several splits side by side."""
    masks = [_array(values.get(name), f"{where}: {name}") for name in MASKS]
    if all(each is None for each in masks):
        return np.zeros(0, dtype=np.int64)
    split = np.full(nodes, -1, dtype=np.int64)
    for number, mask in enumerate(masks):
        if mask is None:
            continue
        chosen = mask.reshape(nodes, -1)[:, 0].astype(bool)
        for node in np.flatnonzero(chosen & (split >= 0))[:1].tolist():
            raise FileFormatError(
                f"{where}: node {node} is in {MASKS[split[node]]} and in {MASKS[number]}; a node "
                "is in one of them at most"
            )
        split[chosen] = number
    return split
