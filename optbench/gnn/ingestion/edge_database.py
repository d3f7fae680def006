"""A table of edges in a database: ``sqlite:///graph.db#edges``, or any address of SQLAlchemy.

What follows ``#`` is the table of edges, by default ``edges``; a table of nodes is given by name.
Tables are read whole, with the columns of ``graph_tables``; nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from optbench.errors import FileFormatError, UnknownNameError
from optbench.formats.text_tables import TextTable
from optbench.gnn.ingestion.given_graph import GivenGraph
from optbench.gnn.ingestion.graph_tables import graph_of_tables

DEFAULT_TABLE = "edges"


def graph_in_database(address: str, node_table: str | None) -> GivenGraph:
    """The graph of a table of edges, and of a table of nodes where one is named."""
    url, _, name = address.partition("#")
    with _connected(url) as (engine, shown):
        edges = _table(engine, name or DEFAULT_TABLE, shown)
        nodes = None if node_table is None else _table(engine, node_table, shown)
    return graph_of_tables("sql", edges, nodes)


@contextmanager
def _connected(url: str) -> Iterator[tuple[Any, str]]:
    """An engine, and the address without its password; errors of the database are named."""
    import sqlalchemy
    from sqlalchemy.exc import ArgumentError, SQLAlchemyError

    try:
        parsed = sqlalchemy.make_url(url)
        shown = parsed.render_as_string(hide_password=True)
        _require_file(parsed, shown)
        engine = sqlalchemy.create_engine(parsed)
    except (ArgumentError, ModuleNotFoundError) as error:
        raise FileFormatError(
            f"data {url.partition('@')[2] or url!r}: {error}; write sqlite:///FILE#TABLE or "
            "postgresql://USER@HOST/DATABASE#TABLE"
        ) from None
    try:
        yield engine, shown
    except SQLAlchemyError as error:
        cause = getattr(error, "orig", None) or error
        raise FileFormatError(f"{shown}: the database answers: {cause}") from None
    finally:
        engine.dispose()


def _require_file(parsed: Any, shown: str) -> None:
    """Refuse a missing SQLite file, which connecting would create."""
    if parsed.get_backend_name() == "sqlite" and not Path(parsed.database or "").is_file():
        raise FileFormatError(f"{shown}: no such file")


def _table(engine: Any, name: str, shown: str) -> TextTable:
    """All rows of a table as text, numbered from 1."""
    import sqlalchemy

    known = sqlalchemy.inspect(engine)
    names = [*known.get_table_names(), *known.get_view_names()]
    if name not in names:
        raise UnknownNameError(f"table of {shown}", name, names)
    table = sqlalchemy.Table(name, sqlalchemy.MetaData(), autoload_with=engine)
    with engine.connect() as connection:
        rows = connection.execute(sqlalchemy.select(table)).all()
    if not rows:
        raise FileFormatError(f"{shown}, table {name!r}: no rows")
    columns = {
        column.name: ["" if row[k] is None else str(row[k]) for row in rows]
        for k, column in enumerate(table.columns)
    }
    return TextTable(f"{shown}, table {name!r}", columns, np.arange(1, len(rows) + 1))
