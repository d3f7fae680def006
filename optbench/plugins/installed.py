"""Plug-ins of installed packages, found by entry points without importing anything.

A package names them in its ``pyproject.toml``:

    [project.entry-points."optbench.solvers"]
    mine = "my_package.solvers.mine"        # a module with one public subclass of ob.Solver
    other = "my_package.more:Other"         # or one class of a module
    [project.entry-points."optbench.studies"]
    question = "my_package.studies"         # the file question.toml beside that package's modules
    [project.entry-points."optbench.shapes"]
    packing = "my_package.packing:Packing"  # the class of the shape of this name

``importlib.metadata`` reads the same files; importing it takes longer than a whole ``solve``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from optbench.workspace import FOLDERS

# Folders of plug-ins, and shapes, which have none of their own.
GROUPS = {**FOLDERS, "shape": "shapes"}
_GROUP = re.compile(r"\[\s*optbench\.(\w+)\s*\]")
_ENTRY = re.compile(r"([^=\s]+)\s*=\s*([\w.]+)\s*(?::\s*([\w.]+))?\s*(?:\[.*\])?")


@dataclass(frozen=True)
class Installed:
    """A plug-in of an installed package; ``path`` is its file, or where it is announced."""

    name: str
    module: str
    attribute: str | None
    package: str
    path: Path


def installed(kind: str) -> dict[str, Installed]:
    """Plug-ins of a kind by name; of two packages with one name the first on the path counts."""
    return dict(_announced(tuple(sys.path)).get(GROUPS[kind], {}))


@cache
def _announced(search: tuple[str, ...]) -> dict[str, dict[str, Installed]]:
    """By folder of plug-ins and name, what the packages on a search path announce."""
    found: dict[str, dict[str, Installed]] = {folder: {} for folder in GROUPS.values()}
    for place in dict.fromkeys(search):
        for file in sorted(_entry_point_files(Path(place or "."))):
            for folder, plugin in _entries(file):
                found[folder].setdefault(plugin.name, plugin)
    return found


def _entry_point_files(place: Path) -> Iterator[Path]:
    """Yield the files of entry points of the packages in a folder of the search path."""
    try:
        names = [each.name for each in place.iterdir()]
    except OSError:  # not a folder, such as a zip file
        return
    for name in names:
        if name.endswith((".dist-info", ".egg-info")):
            file = place / name / "entry_points.txt"
            if file.is_file():
                yield file


def _entries(file: Path) -> Iterator[tuple[str, Installed]]:
    """Yield folder and plug-in of each entry point of optbench in a file."""
    text = file.read_text(encoding="utf-8", errors="replace")
    if "optbench." not in text:
        return
    package = " ".join(file.parent.name.rpartition(".")[0].split("-")[:2])
    folder = None
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            group = _GROUP.fullmatch(line)
            folder = group[1] if group and group[1] in GROUPS.values() else None
        elif folder is not None and (entry := _ENTRY.fullmatch(line)):
            name, module, attribute = entry.groups()
            path = _file_of(module, f"{name}.toml" if folder == "studies" else None)
            yield folder, Installed(name, module, attribute, package, path or file)


def _file_of(module: str, beside: str | None) -> Path | None:
    """The file of a module, or a file beside its modules; no package is imported."""
    top, *parts = module.split(".")
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    roots = [Path(place) for place in spec.submodule_search_locations or ()]
    if not parts and beside is None and spec.origin is not None:
        return Path(spec.origin)
    for base in (root.joinpath(*parts) for root in roots):
        files = (base / beside,) if beside else (base.with_suffix(".py"), base / "__init__.py")
        for path in files:
            if path.is_file():
                return path
    return None
