"""The raw files of Cora and CiteSeer: pickles of Python 2, read by an unpickler that makes nothing
but the arrays, sparse matrices and dicts that these files hold.
"""

from __future__ import annotations

import io
import pickle
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from optbench.data.registry import data_path
from optbench.errors import FileFormatError
from optbench.shapes.gnn_training.training_data import DataGraph

from ._simple_graph import simple_graph

PLANETOID = ("citeseer", "cora")


@dataclass(frozen=True)
class LabelledGraph:
    """A graph with the number of its features and classes."""

    graph: DataGraph
    num_features: int
    num_classes: int


class RestrictedUnpickler(pickle.Unpickler):
    """Finds the few names that the files of Planetoid use, and refuses all others."""

    def find_class(self, module: str, name: str) -> Any:
        found = _allowed().get((module, name))
        if found is None:
            raise FileFormatError(
                f"the pickle names {module}.{name}; only the arrays, sparse matrices and dicts of "
                "Planetoid's files are read. Remove the file, then fetch it with `optbench data "
                "fetch planetoid`"
            )
        return found


@lru_cache(maxsize=1)
def _allowed() -> dict[tuple[str, str], Any]:
    from numpy._core.multiarray import _reconstruct
    from scipy.sparse import csr_matrix

    arrays = {"_reconstruct": _reconstruct, "ndarray": np.ndarray, "dtype": np.dtype}
    out: dict[tuple[str, str], Any] = {
        (module, name): value
        for module in ("numpy", "numpy.core.multiarray", "numpy._core.multiarray")
        for name, value in arrays.items()
    }
    modules = ("scipy.sparse.csr", "scipy.sparse._csr")
    out |= {(module, "csr_matrix"): csr_matrix for module in modules}
    out |= {(module, "list"): list for module in ("__builtin__", "builtins")}
    return {**out, ("collections", "defaultdict"): defaultdict}


def unpickled(content: bytes) -> Any:
    """Return what a pickle of Python 2 holds."""
    try:
        return RestrictedUnpickler(io.BytesIO(content), encoding="latin1").load()
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, IndexError) as error:
        raise FileFormatError(f"this is no pickle of Planetoid: {error}") from None


@lru_cache(maxsize=2)
def planetoid(name: str) -> LabelledGraph:
    """Return the citation graph, with isolated nodes for test papers that the files leave out."""

    def part(suffix: str) -> Any:
        return unpickled(data_path(f"planetoid/ind.{name}.{suffix}").read_bytes())

    neighbours, known, labels = part("graph"), part("allx"), part("ally")
    tests = np.loadtxt(data_path(f"planetoid/ind.{name}.test.index"), dtype=np.int64)
    nodes = max(int(tests.max()) + 1, known.shape[0], max(neighbours) + 1)
    one = np.repeat(list(neighbours), [len(each) for each in neighbours.values()])
    other = np.concatenate([np.array(each, dtype=np.int64) for each in neighbours.values()])
    graph = simple_graph(nodes, one, other)
    return LabelledGraph(graph, int(known.shape[1]), int(labels.shape[1]))
