"""The hash of a plug-in's code: its own files, and the plug-in files that they import relatively."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from optbench.bench.study.canonical import digest
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


def contents_of(params: Mapping[str, Any]) -> str:
    """Hash of the files that parameters name: another checkpoint of the same name is another solver. Empty without any."""
    found = {name: _content(path) for name, value in params.items() for path in _paths(value)}
    return digest(found)[:32] if found else ""


def _paths(value: Any) -> Iterator[Path]:
    """Paths, and text that is one: a file that is there."""
    for each in value if isinstance(value, (list, tuple, set, frozenset)) else [value]:
        if isinstance(each, Path):
            yield each
        elif isinstance(each, str) and ("/" in each or "." in each) and Path(each).is_file():
            yield Path(each)


def _content(path: Path) -> list[list[str]]:
    """Names and hashes of a file, or of all files of a folder; what is not there has none."""
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    return [[each.relative_to(path.parent).as_posix(), file_hash(each)] for each in files]


def file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
