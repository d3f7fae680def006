"""Discovery of plug-ins: listing them without importing any, and loading one by its spec.

A plug-in is a module of ``optbench.plugins.problems`` or ``.solvers`` with exactly one public
subclass of Problem or Solver, or a ``.toml`` of ``optbench.plugins.studies``. Its name is the
file's stem; names that begin with ``_`` are helpers. Installed packages add theirs by entry points
(``installed.py``), behind all others of the same name.
"""

from __future__ import annotations

import inspect
import os
import pkgutil
import tomllib
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from importlib.machinery import all_suffixes
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Literal, get_origin

from optbench.errors import OptbenchError, ParameterError, PluginError, UnknownNameError
from optbench.plugins import specs
from optbench.plugins.author_errors import incomplete, is_built_in_file
from optbench.plugins.installed import Installed, installed
from optbench.plugins.params import PARAMS, with_file
from optbench.plugins.protocol import Problem, Solver
from optbench.workspace import FOLDERS

Kind = Literal["problem", "solver", "study"]
KINDS: tuple[Kind, ...] = ("problem", "solver", "study")
_BASES: dict[str, type] = {"problem": Problem, "solver": Solver}
_SUFFIXES = all_suffixes()


@dataclass(frozen=True)
class Entry:
    """A plug-in for ``optbench list``; ``reason`` says why it is unavailable."""

    name: str
    kind: Kind
    path: str
    summary: str
    reason: str | None
    shadows: str | None
    parameters: tuple[specs.Parameter, ...] = ()
    supports: tuple[str, ...] = ()
    clairvoyant: bool = False
    origin: str = "built-in"
    shapes: tuple[str, ...] = ()

    @property
    def available(self) -> bool:
        return self.reason is None


def files_by_name(kind: Kind) -> dict[str, list[Path]]:
    """Files of each plug-in of a kind, of which the first counts; nothing is imported."""
    found = _files_in_folders(kind)
    for name, plugin in installed(kind).items():
        found.setdefault(name, []).append(plugin.path)
    return dict(sorted(found.items()))


def _files_in_folders(kind: Kind) -> dict[str, list[Path]]:
    """The same without plug-ins of installed packages, which need a look at each package."""
    found: dict[str, list[Path]] = {}
    for folder in map(Path, import_module(f"optbench.plugins.{FOLDERS[kind]}").__path__):
        for name, path in sorted(_inside(kind, folder)):
            found.setdefault(name, []).append(path)
    return found


def _files_of(kind: Kind, name: str) -> list[Path]:
    """Files of one plug-in, of which the first counts; none where nothing has this name."""
    return _files_of_one(kind, name) or files_by_name(kind).get(name, [])


def _files_of_one(kind: Kind, name: str) -> list[Path]:
    """What ``_files_in_folders`` finds for one name, without a look at the other files: every
    solve loads its solver by name.
    """
    folders = map(Path, import_module(f"optbench.plugins.{FOLDERS[kind]}").__path__)
    return [path for folder in folders for path in _file_inside(kind, folder, name)]


def package_plugin(kind: Kind, name: str) -> Installed | None:
    """The plug-in of an installed package that a name means; None for one of a folder."""
    return None if _files_of_one(kind, name) else installed(kind).get(name)


def module_of(kind: Kind, name: str) -> str:
    """Full name of the module of a plug-in."""
    plugin = package_plugin(kind, name)
    return f"optbench.plugins.{FOLDERS[kind]}.{name}" if plugin is None else plugin.module


def names(kind: Kind) -> list[str]:
    """Names of all plug-ins of a kind."""
    return list(files_by_name(kind))


def catalogue(kind: Kind | None = None) -> list[Entry]:
    """Every plug-in with summary and parameters, also one that cannot be imported."""
    kinds = KINDS if kind is None else (kind,)
    return [
        _entry(each, name, paths) for each in kinds for name, paths in files_by_name(each).items()
    ]


def load_class(kind: Kind, name: str) -> type:
    """The plug-in's class."""
    paths = _files_of(kind, name)
    if not paths:
        raise UnknownNameError(kind, name, names(kind))
    module, reason = import_author_module(module_of(kind, name), paths[0])
    if module is None:
        raise PluginError(f"{kind} {name!r} is unavailable: {reason}")
    plugin = package_plugin(kind, name)
    if plugin is not None and plugin.attribute is not None:
        return _named_class(module, kind, plugin)
    return _only_class(module, kind, paths[0])


def kernels_of(name: str) -> set[str]:
    """Names of the compiled code that a solver declares, whatever the instance."""
    found: type[Solver] = load_class("solver", name)
    return set(found.needs)


def load_solver(spec: str, params: Mapping[str, Any] | None = None) -> tuple[str, Solver]:
    """Name and solver of ``name:key=value,...``; ``params`` override those of the spec."""
    name, given = specs.parse(spec)
    solver: Solver = make("solver", name, {**given, **(params or {})})
    return name, solver


def load_problem(spec: str, params: Mapping[str, Any] | None = None) -> Problem:
    """The problem of ``name:key=value,...``; ``params`` override those of the spec."""
    name, given = specs.parse(spec)
    problem: Problem = make("problem", name, {**given, **(params or {})})
    return problem


def problem_named_by(target: str) -> str | None:
    """The problem whose spec a target is; None for files and public instances."""
    name = specs.name_of(target)
    return name if _files_of("problem", name) else None


def make(kind: Literal["problem", "solver"], name: str, given: Mapping[str, Any]) -> Any:
    """Make the plug-in's object from text or values, also those of the file ``params=FILE``."""
    cls = load_class(kind, name)
    try:
        return specs.build(cls, f"{kind} {name!r}", with_file(kind, name, cls, given))
    except OptbenchError as error:
        file = given.get(PARAMS)
        if file is None or str(file) in str(error):
            raise
        raise ParameterError(f"{error} (with the parameters of {file})") from error


def study_file(name: str) -> Path:
    """The file of a study of the workspace, the checkout or the wheel."""
    paths = _files_of("study", name)
    if not paths:
        raise UnknownNameError("study", name, names("study"))
    _refuse_announcement(name, paths[0])
    return paths[0]


def _refuse_announcement(name: str, path: Path) -> None:
    """Raise for a study of a package that is announced but not there."""
    if path.suffix != ".toml":
        plugin = installed("study")[name]
        raise PluginError(
            f"study {name!r} is unavailable: {path}: package {plugin.package} has no file "
            f"{name}.toml beside the modules of {plugin.module!r}"
        )


def _inside(kind: Kind, folder: Path) -> list[tuple[str, Path]]:
    """Names and files of one folder."""
    if kind == "study":
        return [(path.stem, path) for path in folder.glob("*.toml")]
    modules = (
        module for module in pkgutil.iter_modules([str(folder)]) if not module.name.startswith("_")
    )
    return [
        (m.name, folder / m.name / "__init__.py" if m.ispkg else folder / f"{m.name}.py")
        for m in modules
    ]


def _file_inside(kind: Kind, folder: Path, name: str) -> list[Path]:
    """The file of one name in a folder, as ``_inside`` finds it among all."""
    found = _listed(folder) if name else set()
    if kind == "study":
        return [folder / f"{name}.toml"] if f"{name}.toml" in found else []
    if name.startswith("_") or "." in name:
        return []
    if name in found and any(f"__init__{end}" in _listed(folder / name) for end in _SUFFIXES):
        return [folder / name / "__init__.py"]
    is_there = any(f"{name}{end}" in found for end in _SUFFIXES)
    return [folder / f"{name}.py"] if is_there else []


def _listed(folder: Path) -> set[str]:
    """Names in a folder; none where there is no folder that can be read."""
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()


def _entry(kind: Kind, name: str, paths: list[Path]) -> Entry:
    found: dict[str, Any] = {"summary": ""}
    reason = None
    try:
        if kind == "study":
            _refuse_announcement(name, paths[0])
            found["summary"] = _question(paths[0])
        else:
            cls = load_class(kind, name)
            found = {
                "summary": summary_of(cls),
                "parameters": specs.parameters(cls),
                "supports": tuple(sorted(getattr(cls, "supports", ()))),
                "clairvoyant": bool(getattr(cls, "clairvoyant", False)),
                "shapes": tuple(sorted(getattr(cls, "shapes", ()))),
            }
    except OptbenchError as error:
        reason = str(error).removeprefix(f"{kind} {name!r} is unavailable: ")
    shadows = str(paths[1]) if len(paths) > 1 else None
    found["origin"] = _origin(kind, name, paths[0])
    return Entry(name, kind, str(paths[0]), reason=reason, shadows=shadows, **found)


def _origin(kind: Kind, name: str, path: Path) -> str:
    """Where a plug-in comes from."""
    plugin = package_plugin(kind, name)
    if plugin is not None:
        return f"package {plugin.package}"
    return "built-in" if is_built_in_file(path) else "workspace"


def summary_of(cls: type) -> str:
    """First paragraph of the class's own docstring, as one line."""
    text = vars(cls).get("__doc__") or ""
    generated = text.startswith(f"{cls.__name__}(")  # what @dataclass writes where there is none
    return "" if generated else " ".join(inspect.cleandoc(text).partition("\n\n")[0].split())


def _question(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return str(tomllib.load(file).get("question", ""))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise PluginError(f"{path}: {error}") from error


def import_author_module(module: str, path: Path) -> tuple[ModuleType | None, str]:
    """The module of a file, or None and the reason.

    A user's file can raise any exception while it is imported, hence the broad ``except``."""
    try:
        return import_module(module), ""
    except (Exception, SystemExit) as error:
        message = error.msg if isinstance(error, SyntaxError) else error
        return None, f"{_place(error, path)}: {type(error).__name__}: {message}"


def _place(error: BaseException, path: Path) -> str:
    """File and line of the plug-in where its import failed."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    inside = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(path.parent)
    ]
    return f"{inside[-1].filename}:{inside[-1].lineno}" if inside else str(path)


def _only_class(module: ModuleType, kind: Kind, path: Path) -> type:
    base, own = _BASES[kind], module.__name__
    public = [
        value
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, base) and not name.startswith("_")
        if value.__module__ == own or value.__module__.startswith(f"{own}.")
    ]
    public = list(dict.fromkeys(public))
    unavailable = f"{kind} {own.rpartition('.')[2]!r} is unavailable: {path}"
    if len(public) != 1:
        found = ", ".join(cls.__name__ for cls in public) or "none"
        raise PluginError(
            f"{unavailable} must define exactly one public subclass of optbench.{base.__name__}, "
            f"found {found}; prefix helpers with an underscore"
        )
    return _checked(public[0], f"{kind} {own.rpartition('.')[2]!r}", path)


def _named_class(module: ModuleType, kind: Kind, plugin: Installed) -> type:
    """The class that an entry point names."""
    found = getattr(module, str(plugin.attribute), None)
    if not (isinstance(found, type) and issubclass(found, _BASES[kind])):
        raise PluginError(
            f"{kind} {plugin.name!r} is unavailable: {plugin.path}: {plugin.attribute!r}, which an "
            f"entry point of {plugin.package} names, is no subclass of "
            f"optbench.{_BASES[kind].__name__} in module {plugin.module!r}"
        )
    return _checked(found, f"{kind} {plugin.name!r}", plugin.path)


def _checked(cls: type, what: str, path: Path) -> type:
    """The class, if its methods and annotations are those of a plug-in."""
    missing = incomplete(cls)
    if missing:
        raise PluginError(f"{what} is unavailable: {missing}")
    stray = _stray_annotations(cls)
    if stray:
        line = inspect.getsourcelines(cls)[1]
        raise PluginError(
            f"{what} is unavailable: {path}:{line}: {stray[0]!r} is annotated like a parameter, "
            f"but {cls.__name__} is not a dataclass; add @dataclass, or make it a ClassVar"
        )
    return cls


def _stray_annotations(cls: type) -> list[str]:
    """Annotated names of the class that have no effect, because it is not a dataclass."""
    known = {entry.name for entry in fields(cls)} if is_dataclass(cls) else set()
    declared = vars(cls).get("__annotations__", {})
    return [
        name for name, hint in declared.items() if name not in known and not _is_class_var(hint)
    ]


def _is_class_var(hint: Any) -> bool:
    return "ClassVar" in hint if isinstance(hint, str) else ClassVar in (hint, get_origin(hint))
