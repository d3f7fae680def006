"""From what a source holds to a simple graph: what is dropped is counted and reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from optbench.errors import FileFormatError
from optbench.formats.imported import ImportFindings, ImportReport
from optbench.gnn.ingestion.feature_scaling import Scaling, scaled
from optbench.gnn.ingestion.given_graph import GivenGraph, NodeValues
from optbench.shapes.gnn_training.simple_graph import kept_pairs
from optbench.shapes.gnn_training.training_data import DataGraph, Floats, Ints


@dataclass(frozen=True, eq=False)
class IngestedGraph:
    """A graph with the ids, features and labels of its nodes, the features of its edges, and the
    report of what was read and dropped.
    """

    graph: DataGraph
    ids: tuple[str, ...]
    nodes: NodeValues
    edge_features: Floats
    report: ImportReport

    @property
    def num_features(self) -> int:
        """Features of a node; 0 where none are given."""
        return int(self.nodes.features.shape[1])

    @property
    def num_classes(self) -> int:
        return len(self.nodes.class_names)


def ingested(
    given: GivenGraph, where: str, scaling: Scaling = "none", edge_scaling: Scaling = "none"
) -> IngestedGraph:
    """Return the simple graph of what is given, with scaled features."""
    if not given.ids:
        raise FileFormatError(f"{where}: no nodes; a graph has at least one")
    findings = ImportFindings()
    first = _kept(given, findings)
    one, other = given.ends[first].min(axis=1), given.ends[first].max(axis=1)
    graph = DataGraph(len(given.ids), one, other, given.nodes.sizes)
    features = given.edge_features
    edge_features = features[first] if features.size else np.zeros((graph.num_edges, 0))
    values = NodeValues(
        scaled(given.nodes.features, scaling),
        given.nodes.feature_names,
        given.nodes.labels,
        given.nodes.class_names,
        given.nodes.split,
        given.nodes.sizes,
    )
    read = {"nodes": graph.num_nodes, "edges": graph.num_edges, "rows": len(given.ends)}
    read |= _structure(graph, given.ids, findings)
    read |= {
        "node features": values.features.shape[1],
        "edge features": edge_features.shape[1],
        "classes": len(values.class_names),
    }
    _note_features(given.nodes.features, scaling, findings)
    for remark in given.remarks:
        findings.add("warnings", remark)
    if features.size:
        columns = ", ".join(given.edge_feature_names[:3])
        words = (
            f"columns of edges ({columns}) are read, but cuts and training count every edge as 1"
        )
        findings.add("warnings", words)
    report = findings.report(given.format, read)
    return IngestedGraph(graph, given.ids, values, scaled(edge_features, edge_scaling), report)


def _kept(given: GivenGraph, findings: ImportFindings) -> Ints:
    """The rows that are kept, in the order of the edges; the others are findings."""
    ids, ends = given.ids, given.ends

    def words(rows: Ints) -> list[str]:
        return [f"{ids[ends[k, 0]]} - {ids[ends[k, 1]]}" for k in rows[:3].tolist()]

    kept = kept_pairs(len(ids), ends[:, 0], ends[:, 1])
    loops = np.flatnonzero(ends[:, 0] == ends[:, 1])
    findings.add_rows("dropped", "self-loops", words(loops), len(loops))
    directed = ends[:, 0] * len(ids) + ends[:, 1]
    once = np.zeros(len(ends), dtype=bool)
    once[np.unique(directed, return_index=True)[1]] = True
    rest = np.ones(len(ends), dtype=bool)
    rest[loops] = rest[kept] = False
    again, back = np.flatnonzero(rest & ~once), np.flatnonzero(rest & once)
    findings.add_rows("dropped", "repeated edges", words(again), len(again))
    what = "edges given in both directions, which count once"
    findings.add_rows("assumed", what, words(back), len(back))
    _note_direction(given, np.unique(directed[ends[:, 0] != ends[:, 1]]), words, findings)
    features = given.edge_features
    if features.size and rest.any():
        kept_row = _row_of(len(ids), ends, kept)[np.flatnonzero(rest)]
        differs = (features[rest] != features[kept_row]).any(axis=1)
        other = np.flatnonzero(rest)[differs]
        what = "repeated edges with other features than the first, which is kept"
        findings.add_rows("warnings", what, words(other), len(other))
    return kept


def _note_direction(
    given: GivenGraph, arcs: Ints, words: Callable[[Ints], list[str]], findings: ImportFindings
) -> None:
    """Note arcs without their reverse, where the source is directed. One that does not say is taken
    to be if some arcs have their reverse and some not: else each edge stands once by convention.
    """
    count = len(given.ids)
    single = arcs[~np.isin(arcs, arcs % count * count + arcs // count)]
    mixed = given.direction == "" and len(single) < len(arcs)
    if not len(single) or not (mixed or given.direction == "directed"):
        return
    keys = given.ends[:, 0] * count + given.ends[:, 1]
    rows = np.flatnonzero(np.isin(keys, single[:3]))
    what = "directed edges without their reverse, which are made undirected"
    findings.add_rows("assumed", what, words(rows), len(single))


def _row_of(num_nodes: int, ends: Ints, kept: Ints) -> Ints:
    """For each row, the kept row of the same pair; of self-loops, any."""
    key = ends.min(axis=1) * num_nodes + ends.max(axis=1)
    place = np.searchsorted(key[kept], key)
    return kept[np.minimum(place, len(kept) - 1)] if len(kept) else np.zeros(len(ends), np.int64)


def _structure(graph: DataGraph, ids: tuple[str, ...], findings: ImportFindings) -> dict[str, int]:
    """Isolated nodes and components."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    degree = np.bincount(np.concatenate([graph.tail, graph.head]), minlength=graph.num_nodes)
    isolated = np.flatnonzero(degree == 0)
    matrix = csr_matrix(
        (np.ones(graph.num_edges, dtype=np.int8), (graph.tail, graph.head)),
        shape=(graph.num_nodes, graph.num_nodes),
    )
    count, component = connected_components(matrix, directed=False)
    largest = int(np.bincount(component).max())
    findings.add_rows(
        "warnings", "isolated nodes", [ids[k] for k in isolated[:3].tolist()], len(isolated)
    )
    if count > 1:
        findings.add("warnings", f"the graph has {count:,} components; the largest has {largest:,}")
    return {
        "isolated nodes": len(isolated),
        "components": int(count),
        "largest component": largest,
    }


def _note_features(features: Floats, scaling: Scaling, findings: ImportFindings) -> None:
    """Note what normalisation leaves at zero."""
    if not features.size:
        return
    if scaling == "row":
        empty = int((~features.any(axis=1)).sum())
        findings.add_rows("assumed", "rows of zeros are not normalised", [], empty)
    if scaling == "standard":
        constant = int((np.ptp(features, axis=0) == 0).sum())
        findings.add_rows("assumed", "constant columns become 0", [], constant)
