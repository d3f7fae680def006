"""The hash of a plug-in's code: its own files and the plug-in files that they import relatively."""

from __future__ import annotations

import ast
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from optbench.plugins.discovery import Kind, files_by_name, package_plugin
from optbench.study.canonical import digest

# Files that declare a shape are code of at most this size.
MOST_BYTES = 4 << 20


def code_hash(kind: Kind, name: str) -> str:
    """Return a hash of the plug-in's code; optbench itself counts by its version in the keys."""
    path = files_by_name(kind)[name][0]
    first = list(_of_package(path.parent)) if path.name == "__init__.py" else [path]
    places = {
        Path(os.path.relpath(file, path.parent)).as_posix(): content
        for file, content in _with_relative_imports(first).items()
    }
    parts = [[place, hashlib.sha256(places[place]).hexdigest()] for place in sorted(places)]
    plugin = package_plugin(kind, name)
    # A package imports its other modules by their full names, which are not followed.
    return digest([*parts, *([] if plugin is None else [[plugin.package]])])[:32]


def definition_digest(files: Iterable[str]) -> str:
    """Return a hash of the files that declare a shape, of what they import relatively, and of all
    files of their packages; empty for a shape of optbench itself, which has none.

    Paths come from a process of the user's: anything but a regular file of code is left out.
    """
    first: list[Path] = []
    for path in map(Path, files):
        packaged = (path.parent / "__init__.py").is_file()
        first += sorted(_of_package(path.parent)) if packaged else [path]
    found = _with_relative_imports([path for path in first if _is_code(path)])
    parts = sorted([path.name, hashlib.sha256(text).hexdigest()] for path, text in found.items())
    return digest(parts)[:32] if parts else ""


def _is_code(path: Path) -> bool:
    return path.suffix == ".py" and path.is_file() and path.stat().st_size <= MOST_BYTES


def _with_relative_imports(files: Iterable[Path]) -> dict[Path, bytes]:
    """Return the contents of files, and of those that they import relatively."""
    seen: dict[Path, bytes] = {}
    waiting = list(files)
    while waiting:
        file = waiting.pop()
        if file not in seen and file.is_file():
            seen[file] = file.read_bytes()
            waiting += _relative_imports(file, seen[file]) if file.suffix == ".py" else ()
    return seen


def _of_package(folder: Path) -> Iterator[Path]:
    """Yield code files and data files of a package; no hidden files and no caches."""
    for path in folder.rglob("*"):
        parts = path.relative_to(folder).parts
        if not any(part == "__pycache__" or part.startswith(".") for part in parts):
            yield path


def contents_of(params: Mapping[str, Any]) -> str:
    """Return a hash of the files that parameters name; empty if there are none."""
    found = {
        name: contents
        for name, value in params.items()
        if (contents := [_content(path) for path in _paths(value)])
    }
    return digest(found)[:32] if found else ""


def _paths(value: Any) -> Iterator[Path]:
    """Yield paths, and text that is the path of an existing file."""
    for each in value if isinstance(value, (list, tuple, set, frozenset)) else [value]:
        if isinstance(each, Path):
            yield each
        elif isinstance(each, str) and ("/" in each or "." in each) and Path(each).is_file():
            yield Path(each)


def _content(path: Path) -> list[list[str]]:
    """Return names and hashes of a file, or of all files of a folder."""
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    return [[each.relative_to(path.parent).as_posix(), file_hash(each)] for each in files]


def file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _relative_imports(file: Path, source: bytes) -> Iterator[Path]:
    """Yield the files to which ``from .x import y`` and ``from . import x`` may refer."""
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
    except (SyntaxError, ValueError):  # importing it fails too, and its cells report that
        return ()
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
    return tuple(
        (node.level, node.module or "", tuple(alias.name for alias in node.names)) for node in found
    )
