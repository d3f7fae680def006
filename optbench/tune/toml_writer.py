"""Parameter files as TOML."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import tomli_w


def render(document: Mapping[str, Any]) -> str:
    """The text of a document; it is read again as what ``plain`` makes of it."""
    return tomli_w.dumps(plain(document))


def plain(value: Any) -> Any:
    """A value of TOML's types; None is the text "none", which every optional parameter takes."""
    if value is None:
        return "none"
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (set, frozenset)):
        value = sorted(value)
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, PurePath):
        return str(value)
    return value.item() if hasattr(value, "item") else value  # numpy's numbers
