"""Files of shapes of one's own: a header that names the shape, and the data in its own form.

{"format": "optbench-shaped", "version": 1, "shape": "packing", "name": ..., "data": ...}
{"format": "optbench-decision", "version": 1, "shape": ..., "instance_hash": ..., "decision": ...}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optbench.errors import FileFormatError
from optbench.model.files import json_columns as col
from optbench.typed_values import refuse

FORMAT, DECISION, VERSION = "optbench-shaped", "optbench-decision", 1


def instance_document(shape: str, name: str, data: Any) -> dict[str, Any]:
    """Return the document of an instance."""
    return {"format": FORMAT, "version": VERSION, "shape": shape, "name": name, "data": data}


def decision_document(shape: str, instance_hash: str, decision: Any) -> dict[str, Any]:
    """Return the document of a decision."""
    header = {"format": DECISION, "version": VERSION, "shape": shape}
    return {**header, "instance_hash": instance_hash, "decision": decision}


def instance_parts(document: Mapping[str, Any], shape: str) -> tuple[str, Any]:
    """Return name and data of a document; a FileFormatError names the field."""
    given = dict(document)
    col.header(given, FORMAT, VERSION)
    fields = col.table(given, "", ("format", "version", "shape", "name", "data"))
    col.text(fields["shape"], "shape", (shape,))
    return col.text(fields["name"], "name"), fields["data"]


def decision_part(document: Mapping[str, Any], shape: str, instance_hash: str) -> Any:
    """Return the decision of a document, which must be one of this instance."""
    given = dict(document)
    col.header(given, DECISION, VERSION)
    fields = col.table(given, "", ("format", "version", "shape", "decision"), ("instance_hash",))
    col.text(fields["shape"], "shape", (shape,))
    check_instance_hash(fields["instance_hash"], instance_hash)
    return fields["decision"]


def check_instance_hash(given: Any, instance_hash: str) -> None:
    """Refuse the hash of another instance; a file without one is of any."""
    if given is None or given == instance_hash:
        return
    if not isinstance(given, str):
        refuse("instance_hash", given, "a text, or absent")
    raise FileFormatError(
        f"instance_hash is {given!r:.60}; this instance's is {instance_hash!r}: the file is of "
        "another instance"
    )
