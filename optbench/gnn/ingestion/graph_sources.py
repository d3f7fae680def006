"""One entry to all sources of graphs: the format follows from the name, unless it is given."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from optbench.errors import FileFormatError, ParameterError
from optbench.formats.text_tables import TextTable, read_table
from optbench.gnn.ingestion.edge_database import graph_in_database
from optbench.gnn.ingestion.edge_files import adjacency_list, edge_list
from optbench.gnn.ingestion.feature_scaling import Scaling
from optbench.gnn.ingestion.given_graph import GivenGraph
from optbench.gnn.ingestion.graph_tables import graph_of_tables
from optbench.gnn.ingestion.graphml import read_graphml
from optbench.gnn.ingestion.ingested_graph import IngestedGraph, ingested
from optbench.gnn.ingestion.ogb_folder import graph_of_ogb, is_ogb
from optbench.gnn.ingestion.pyg_data import graph_of_pyg, saved_pyg
from optbench.model.files.json_fields import read_text, shown

DataFormat = Literal["edges", "adjacency", "table", "graphml", "pyg", "sql", "ogb"]
FORMATS: tuple[str, ...] = get_args(DataFormat)
SUFFIXES: dict[str, DataFormat] = {
    **dict.fromkeys((".edges", ".edgelist", ".el", ".txt"), "edges"),
    **dict.fromkeys((".adj", ".adjlist", ".adjacency"), "adjacency"),
    **dict.fromkeys((".csv", ".tsv"), "table"),
    ".graphml": "graphml",
    **dict.fromkeys((".pt", ".pth"), "pyg"),
}


@dataclass(frozen=True)
class IngestOptions:
    """How a source is read. ``format`` is inferred from the name without one; ``node_table`` is a
    CSV file, or the name of a table of the database; features of nodes and edges are scaled.
    """

    format: DataFormat | None = None
    node_table: str | None = None
    scaling: Scaling = "none"
    edge_scaling: Scaling = "none"


def read_graph(source: Any, options: IngestOptions | None = None) -> IngestedGraph:
    """Read the graph of a file, of a folder in the layout of OGB (or ``ogb:ogbg-molhiv``), of the
    address of a database, or of an object of PyG.
    """
    options = options or IngestOptions()
    where = _where(source)
    return ingested(_given(source, options), where, options.scaling, options.edge_scaling)


def _where(source: Any) -> str:
    if not isinstance(source, (str, Path)):
        return type(source).__name__
    return "the database" if "://" in str(source) else shown(Path(source))


def _given(source: Any, options: IngestOptions) -> GivenGraph:
    """The graph as the source holds it."""
    if not isinstance(source, (str, Path)):
        return graph_of_pyg(source, type(source).__name__)
    format = options.format or _format_of(source)
    if options.node_table is not None and format not in ("table", "sql"):
        raise ParameterError(
            f"node_table is {options.node_table!r}; it goes with a table of edges (CSV, or a "
            f"database), and {str(source)!r} is read as {format!r}"
        )
    if format == "sql":
        return graph_in_database(str(source), options.node_table)
    if format == "ogb":
        return graph_of_ogb(source)
    path = Path(source)
    if format == "pyg":
        return saved_pyg(path, shown(path))
    text = read_text(path, table=True)
    if format == "table":
        return _tables(path, text, options.node_table)
    read = {"edges": edge_list, "adjacency": adjacency_list, "graphml": read_graphml}[format]
    return read(text, shown(path))


def _format_of(source: str | Path) -> DataFormat:
    if "://" in str(source):
        return "sql"
    if is_ogb(source):
        return "ogb"
    path = Path(source)
    suffixes = [each.lower() for each in path.suffixes if each.lower() != ".gz"]
    found = SUFFIXES.get(suffixes[-1]) if suffixes else None
    if found is None:
        raise FileFormatError(
            f"{shown(path)}: the format of a graph does not follow from this name; end it with one "
            f"of {', '.join(SUFFIXES)}, or give data_format as one of {', '.join(FORMATS)}"
        )
    return found


def _tables(path: Path, text: str, node_table: str | None) -> GivenGraph:
    """CSV tables; a table of edges without a header of words is a list of edges."""
    first = text.partition("\n")[0].replace("\t", ",").split(",")
    if node_table is None and all(_is_number(each) for each in first):
        return edge_list(text, shown(path))
    nodes = None if node_table is None else _table(Path(node_table))
    return graph_of_tables("table", _table(path, text), nodes)


def _table(path: Path, text: str | None = None) -> TextTable:
    text = read_text(path, table=True) if text is None else text
    separator = "\t" if "\t" in text.partition("\n")[0] else ","
    return read_table(text, shown(path), separator)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
