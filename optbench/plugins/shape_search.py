"""The shape of a name: a built-in one, one of the workspace, or one of an installed package.

A shape of one's own is a public subclass of ``DataShape`` or ``PyomoShape`` in a file of
``problems/`` or ``solvers/`` with its name written out, ``name = "packing"``. Files are read for
that line, and only the one that has it is imported. Packages announce theirs as entry points:

    [project.entry-points."optbench.shapes"]
    packing = "my_package.packing:Packing"
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import optbench.shapes
from optbench.errors import PluginError, UnknownNameError
from optbench.plugins.discovery import import_author_module
from optbench.plugins.installed import installed
from optbench.plugins.schedule_shape import SCHEDULES
from optbench.shapes.protocol.shape import Shape

# Folders of plug-ins that may declare shapes, and what the text of such a file contains.
FOLDERS = ("problems", "solvers")
MENTIONS = "optbench.shapes"
# Where optbench declares its own, each in a room.
BUILT_IN, BUILT_IN_MODULES = Path(optbench.shapes.__file__).parent, "optbench.shapes"
REMEDY = (
    'a shape is declared in a file of problems/ or solvers/ of the workspace, with name = "..." in '
    "its class, or by an entry point of the group optbench.shapes"
)


@dataclass(frozen=True)
class DeclaredShape:
    """Where a shape is declared: module, class and file."""

    name: str
    module: str
    class_name: str
    path: Path


def shape_named(name: str) -> Shape:
    """Return the shape of a name; an error lists the known ones, or the files that both have it."""
    if name == SCHEDULES.name:
        return SCHEDULES
    found = [each for each in declared_shapes() if each.name == name]
    if len(found) > 1:
        places = " and ".join(str(each.path) for each in found)
        raise PluginError(f"two shapes are called {name!r}: {places}; rename one of them")
    if found:
        return _load(found[0])
    in_memory = _in_memory(name)
    if in_memory is None:
        known = {SCHEDULES.name, *(each.name for each in declared_shapes())}
        raise UnknownNameError("shape", name, known)
    return in_memory


def declared_shapes() -> list[DeclaredShape]:
    """Return built-in shapes and those of workspace and packages by name; nothing is imported."""
    found = [*_built_in(), *(each for folder in FOLDERS for each in _of_folder(folder))]
    for name, plugin in installed("shape").items():
        found.append(DeclaredShape(name, plugin.module, plugin.attribute or "", plugin.path))
    return sorted(found, key=lambda each: (each.name, str(each.path)))


def _built_in() -> Iterator[DeclaredShape]:
    """Yield the shapes in ``optbench/shapes``: files that end in ``_shape.py``, with a name."""
    for path in sorted(BUILT_IN.glob("*/*_shape.py")):
        for name, class_name in _names_in(path, path.stat().st_mtime_ns):
            module = f"{BUILT_IN_MODULES}.{path.parent.name}.{path.stem}"
            yield DeclaredShape(name, module, class_name, path)


def _of_folder(folder: str) -> Iterator[DeclaredShape]:
    """Yield the shapes in the files of a folder; of two files of one name the first counts."""
    seen: set[Path] = set()
    for root in map(Path, importlib.import_module(f"optbench.plugins.{folder}").__path__):
        files = sorted(root.rglob("*.py"))
        for path in files:
            relative = path.relative_to(root).with_suffix("")
            if relative in seen:
                continue
            parts = relative.parts[:-1] if relative.name == "__init__" else relative.parts
            module = ".".join(("optbench.plugins", folder, *parts))
            for name, class_name in _names_in(path, path.stat().st_mtime_ns):
                yield DeclaredShape(name, module, class_name, path)
        seen |= {path.relative_to(root).with_suffix("") for path in files}


@cache
def _names_in(path: Path, changed_ns: int) -> tuple[tuple[str, str], ...]:
    """Names of shapes and of their classes in a file, read and not run."""
    del changed_ns
    text = path.read_text(encoding="utf-8", errors="replace")
    if MENTIONS not in text:
        return ()
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # a broken file is reported where its plug-in is used
        return ()
    shapes: dict[str, str] = {}
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    bases = set[str]()
    for node in classes:
        names = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
        if not any(name.endswith("Shape") or name in bases for name in names):
            continue
        bases.add(node.name)
        name = _name_written(node)
        if name is not None and not node.name.startswith("_"):
            shapes[node.name] = name
    return tuple((name, class_name) for class_name, name in shapes.items())


def _name_written(node: ast.ClassDef) -> str | None:
    """Return the text that a class gives to ``name``."""
    for line in node.body:
        targets = line.targets if isinstance(line, ast.Assign) else []
        if isinstance(line, ast.AnnAssign):
            targets = [line.target]
        if any(isinstance(target, ast.Name) and target.id == "name" for target in targets):
            value = line.value if isinstance(line, (ast.Assign, ast.AnnAssign)) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                return value.value
    return None


def _load(declared: DeclaredShape) -> Shape:
    """Import the module of a shape and make the shape."""
    what = f"shape {declared.name!r} is unavailable: {declared.path}"
    module, reason = import_author_module(declared.module, declared.path)
    if module is None:
        raise PluginError(f"shape {declared.name!r} is unavailable: {reason}")
    cls = getattr(module, declared.class_name, None) if declared.class_name else None
    if not declared.class_name:
        own = [
            value
            for value in vars(module).values()
            if isinstance(value, type) and issubclass(value, Shape)
            if getattr(value, "name", None) == declared.name
        ]
        cls = own[0] if len(own) == 1 else None
    if not (isinstance(cls, type) and issubclass(cls, Shape)):
        raise PluginError(
            f"{what} has no subclass of DataShape or PyomoShape for it; its class is "
            f"{declared.class_name or 'not named by the entry point'}"
        )
    if getattr(cls, "__abstractmethods__", None):
        missing = ", ".join(sorted(cls.__abstractmethods__))
        raise PluginError(f"{what}: {cls.__name__} lacks the methods {missing}")
    return cls()


def _in_memory(name: str) -> Shape | None:
    """Return a shape that this program has defined, such as in a notebook; the last one counts."""
    found: dict[tuple[str, str], type[Shape]] = {}
    waiting = list(Shape.__subclasses__())
    while waiting:
        cls = waiting.pop(0)
        waiting += cls.__subclasses__()
        stands_in_a_file = cls.__module__.startswith("optbench.")
        if vars(cls).get("name") == name and not (cls.__abstractmethods__ or stands_in_a_file):
            found[cls.__module__, cls.__qualname__] = cls
    if len(found) > 1:
        places = " and ".join(f"{module}.{title}" for module, title in found)
        raise PluginError(f"two shapes are called {name!r}: {places}; rename one of them")
    return next(iter(found.values()))() if found else None
