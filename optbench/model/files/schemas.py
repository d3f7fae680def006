"""The published JSON Schemas (draft 2020-12), shipped beside the code."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from optbench.errors import UnknownNameError

KINDS = ("instance", "schedule", "result")


def schema(kind: str) -> dict[str, Any]:
    """The JSON Schema of ``instance``, ``schedule`` or ``result``."""
    if kind not in KINDS:
        raise UnknownNameError("schema", kind, KINDS)
    file = files("optbench.model") / "schemas" / f"{kind}.json"
    out: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return out
