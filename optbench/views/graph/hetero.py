"""Convert tables to a PyG ``HeteroData``, set its states, and read physical values from it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import astuple
from typing import Any

import numpy as np
import torch
from torch_geometric.data import HeteroData

from optbench.errors import ParameterError, UnknownNameError, nearest
from optbench.model.instance import Floats
from optbench.views.graph.feature_columns import (
    COLUMNS,
    DYNAMIC,
    EDGES,
    FORWARD,
    NODE_TYPES,
    PAIR,
    RUNS_ON,
    STATIC,
    EdgeType,
    reverse,
)
from optbench.views.graph.node_tables import GraphTables
from optbench.views.graph.scales import Scales


class InstanceGraph(HeteroData):  # type: ignore[misc]
    """``x_dict``, ``edge_index_dict`` and ``edge_attr_dict`` by kind, and the pairs of task and
    mode that can be chosen.

    ``pair_task``, ``pair_mode`` and ``pair_attr`` (columns PAIR) are the rows of
    ``instance.pairs``; ``pair`` of the edges (task, runs_on, device) and of their reverses is the
    pair behind each edge. ``scales`` are the fields of ``Scales``. In a batch, tasks and pairs are
    numbered on; modes are not.
    """

    def __inc__(self, key: str, value: Any, store: Any = None, *args: Any, **options: Any) -> Any:
        if key == "pair_task":
            return self["task"].num_nodes
        if key == "pair":
            return len(self.pair_task)
        return super().__inc__(key, value, store, *args, **options)


def to_hetero(tables: GraphTables, double: bool = False) -> InstanceGraph:
    """Convert tables; every kind of node and edge is there, with no rows where an instance has
    none, so that a model fits all instances.
    """
    dtype = torch.float64 if double else torch.float32
    graph = InstanceGraph()
    for kind in NODE_TYPES:
        graph[kind].x = torch.as_tensor(tables.nodes[kind], dtype=dtype)
    pair = torch.from_numpy(tables.edge_pair)
    for edge in FORWARD:
        ends = torch.from_numpy(np.ascontiguousarray(tables.ends[edge], dtype=np.int64))
        features = torch.as_tensor(tables.edges[edge], dtype=dtype) if edge in EDGES else None
        for direction, index in ((edge, ends), (reverse(edge), ends.flip(0))):
            graph[direction].edge_index = index
            if features is not None:
                graph[direction].edge_attr = features
            if edge == RUNS_ON:
                graph[direction].pair = pair
    graph.pair_task = torch.as_tensor(tables.pair_task)
    graph.pair_mode = torch.as_tensor(tables.pair_mode)
    graph.pair_attr = torch.as_tensor(tables.pairs, dtype=dtype)
    graph.scales = torch.tensor([astuple(tables.scales)], dtype=torch.float64)
    return graph


def scales_in(graph: InstanceGraph) -> Scales:
    """Return the scales of a graph of one instance."""
    return Scales(*graph.scales[0].tolist())


def physical_values(graph: InstanceGraph, where: str | EdgeType, name: str) -> Floats:
    columns = (
        PAIR
        if where == "pair"
        else EDGES.get(where)
        if isinstance(where, tuple)
        else COLUMNS.get(where)
    )
    if columns is None:
        raise UnknownNameError(
            "part of the graph", str(where), ["pair", *NODE_TYPES, *map(str, EDGES)]
        )
    if name not in columns:
        raise UnknownNameError(f"column of {where!r}:", name, columns)
    features = (
        graph.pair_attr
        if where == "pair"
        else graph[where].edge_attr
        if isinstance(where, tuple)
        else graph[where].x
    )
    values = features[:, list(columns).index(name)].double().cpu().numpy()
    return scales_in(graph).decode(values, columns[name])


def in_state(graph: InstanceGraph, state: Mapping[str, Any]) -> InstanceGraph:
    """Return a copy that shares everything except the features of the given kinds."""
    out, scales = copy.copy(graph), scales_in(graph)
    for kind, given in state.items():
        if kind not in DYNAMIC:
            raise ParameterError(
                f"state of {kind!r}: unknown kind of node; {nearest(kind, NODE_TYPES)}"
            )
        x, columns, values = graph[kind].x, DYNAMIC[kind], np.asarray(given, dtype=float)
        if values.shape != (len(x), len(columns)):
            expected = f"({len(x)}, {len(columns)}): {', '.join(columns)} of every row"
            raise ParameterError(
                f"state of {kind!r} has shape {values.shape}; it must be {expected}"
            )
        rows = torch.as_tensor(
            scales.table(columns, len(x), *values.T), dtype=x.dtype, device=x.device
        )
        out[kind].x = torch.cat((x[:, : len(STATIC[kind])], rows), dim=1)
    return out
