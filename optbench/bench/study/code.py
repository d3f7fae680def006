"""The hash of a plug-in's code: its own files, and the plug-in files that they import relatively."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from optbench.plugins.discovery import Kind, located


def code_hash(kind: Kind, name: str) -> str:
    """Changes when the plug-in changes; optbench itself counts by its version, which the keys hold too."""
    path = located(kind)[name][0]
    files = sorted(path.parent.rglob("*.py")) if path.name == "__init__.py" else [path]
    seen: dict[Path, bytes] = {}
    waiting = list(files)
    while waiting:
        file = waiting.pop()
        if file not in seen and file.is_file():
            seen[file] = file.read_bytes()
            waiting += _relative_imports(file, seen[file])
    digest = hashlib.sha256()
    for file in sorted(seen, key=lambda each: (each.parent.name, each.name)):
        digest.update(file.name.encode() + b"\0" + seen[file] + b"\0")
    return digest.hexdigest()[:32]


def _relative_imports(file: Path, source: bytes) -> Iterator[Path]:
    """Files that ``from .x import y`` and ``from . import x`` may mean."""
    for level, module, names in _imports(source):
        folder = file.parents[level - 1]
        base = folder.joinpath(*module.split(".")) if module else folder
        for place in (base, *(base / name for name in names)):
            yield place.with_suffix(".py")
            yield place / "__init__.py"


@cache
def _imports(source: bytes) -> tuple[tuple[int, str, tuple[str, ...]], ...]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):  # it will not be imported either, and its cells say so
        return ()
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
    return tuple((node.level, node.module or "", tuple(alias.name for alias in node.names)) for node in found)
