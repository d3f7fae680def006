"""GraphML: nodes and edges of an XML file, with numbers, labels and splits as ``data`` elements.

Data of nodes is read as the columns of a node table are, and that of edges as those of an edge
table. A ``default`` of a key stands where an element gives nothing. Document types are refused,
since entities in them can make a small file large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np

from optbench.errors import FileFormatError
from optbench.formats.text_tables import TextTable
from optbench.gnn.ingestion.given_graph import ID_NAMES, GivenGraph
from optbench.gnn.ingestion.graph_tables import graph_of_tables

Elements = Sequence[ElementTree.Element]
Keys = dict[str, tuple[str, str]]


def read_graphml(text: str, where: str) -> GivenGraph:
    """The graph of a GraphML document."""
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise FileFormatError(f"{where}: it has a document type, which is not read; remove it")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise FileFormatError(f"{where}: no XML: {error}") from None
    nodes = [each for each in root.iter() if _tag(each) == "node"]
    edges = [each for each in root.iter() if _tag(each) == "edge"]
    if _tag(root) != "graphml" or not nodes:
        raise FileFormatError(
            f"{where}: the root is <{_tag(root)}> with {len(nodes)} nodes; GraphML has a root "
            "<graphml> and at least one <node>"
        )
    node_table = _table(root, "node", nodes, ("id",), f"{where}, nodes")
    edge_table = _table(root, "edge", edges, ("source", "target"), f"{where}, edges")
    found = graph_of_tables("graphml", edge_table, node_table)
    default = next((e.get("edgedefault", "") for e in root.iter() if _tag(e) == "graph"), "")
    said = {each.get("directed", "") for each in edges}
    if "true" in said or (default == "directed" and said & {""}):
        return replace(found, direction="directed")
    return replace(found, direction="undirected")


def _table(
    root: ElementTree.Element, kind: str, elements: Elements, own: tuple[str, ...], where: str
) -> TextTable:
    """Attributes of the elements and their data, as a table with a row for each element."""
    keys = _keys(root, kind)
    taken = {*own, *(ID_NAMES if kind == "node" else ())}
    clash = next((name for name, _ in keys.values() if name.lower() in taken), None)
    if clash is not None:
        raise FileFormatError(f"{where}: a key is named {clash!r}; give it another name")
    columns: dict[str, list[str]] = {name: [] for name in (*own, *(n for n, _ in keys.values()))}
    for number, element in enumerate(elements, start=1):
        given = {each.get("key", ""): (each.text or "") for each in element if _tag(each) == "data"}
        for unknown in given.keys() - keys.keys():
            raise FileFormatError(f"{where}, line {number}: data of {unknown!r}, which is no key")
        for name in own:
            columns[name].append(element.get(name, ""))
        for key, (name, default) in keys.items():
            columns[name].append(given.get(key, default).strip())
    return TextTable(where, columns, np.arange(1, len(elements) + 1))


def _keys(root: ElementTree.Element, kind: str) -> Keys:
    """Name and default of each key of nodes or of edges."""
    found: Keys = {}
    for each in root.iter():
        if _tag(each) == "key" and each.get("for", "all") in (kind, "all"):
            default = next((child.text or "" for child in each if _tag(child) == "default"), "")
            name = each.get("attr.name", each.get("id", ""))
            found[each.get("id", "")] = (name, default)
    return found


def _tag(element: ElementTree.Element) -> str:
    """The name without its namespace."""
    return str(element.tag).rpartition("}")[2]
