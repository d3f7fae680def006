"""The graph view: an instance as a PyG ``HeteroData``; torch and PyG are imported when a graph is
made.

``graph_of(instance)`` is the static graph; ``with_state`` writes a state into the last columns of
each kind of node; ``physical`` reads values back in their units. ``feature_columns.py`` defines the
columns, ``node_tables.py`` the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from optbench.errors import UnsupportedError
from optbench.views.graph.feature_columns import (
    COLUMNS,
    DYNAMIC,
    EDGE_TYPES,
    EDGES,
    NODE_TYPES,
    PAIR,
    STATIC,
    EdgeType,
    column,
)
from optbench.views.graph.node_tables import GraphTables, tables_of
from optbench.views.graph.scales import Scales

if TYPE_CHECKING:
    from optbench.model.instance import Floats, Instance
    from optbench.shapes.protocol.shaped_instance import ShapedInstance
    from optbench.views.graph.hetero import InstanceGraph


@overload
def graph_of(instance: Instance, *, links: bool = ..., double: bool = ...) -> InstanceGraph: ...


@overload
def graph_of(instance: ShapedInstance, *, links: bool = ..., double: bool = ...) -> Any: ...


def graph_of(instance: Any, *, links: bool = True, double: bool = False) -> Any:
    """The graph of an instance, in single precision unless ``double``; ``links=False`` leaves out
    the pool-to-pool edges.

    Of an instance of another shape it is the bipartite graph of the variables and constraints of
    its formulation, a ``HeteroData``.
    """
    shape = getattr(instance, "shape", None)
    if shape is not None:
        if "formulate" not in shape.capabilities:
            raise UnsupportedError(
                f"{instance.name!r} is of shape {shape.name!r}, which has no formulation and "
                "therefore no graph; a PyomoShape and a file of MPS or LP have one"
            )
        from optbench.views.milp.standard_form import bipartite_graph, form_of_program

        return bipartite_graph(form_of_program(instance.formulation.program), double)
    from optbench.views.graph.hetero import to_hetero

    return to_hetero(tables_of(instance, links=links), double)


def with_state(graph: InstanceGraph, **state: Any) -> InstanceGraph:
    """Return the graph in another state; the given graph is not changed.

    ``task=``, ``device=``, ``node=`` and ``cluster=`` give a row of physical values (s, W, shares)
    for every node of the kind, in the order of DYNAMIC.
    """
    from optbench.views.graph.hetero import in_state

    return in_state(graph, state)


def physical(graph: InstanceGraph, where: str | EdgeType, name: str) -> Floats:
    """Return one column in its unit (s, J, W, GB): of a kind of node, of an edge type, or of
    ``"pair"``.
    """
    from optbench.views.graph.hetero import physical_values

    return physical_values(graph, where, name)


__all__ = [
    "COLUMNS",
    "DYNAMIC",
    "EDGES",
    "EDGE_TYPES",
    "NODE_TYPES",
    "PAIR",
    "STATIC",
    "EdgeType",
    "GraphTables",
    "Scales",
    "column",
    "graph_of",
    "physical",
    "tables_of",
    "with_state",
]
