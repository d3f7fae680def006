"""What the zygote loads before the first cell, so that cells need not: libraries, optbench's
modules, compiled kernels.

The files of a study's plug-ins, and the optbench modules that they reach, are scanned for imports,
including those inside functions. Only known libraries and optbench's own plug-ins are imported
here: a user's plug-in may hang or crash and is imported only in its cells.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from optbench.compiling.kernel_table import BOUNDING, POLICIES, kernels_used_by, prepare
from optbench.errors import PluginError
from optbench.plugins.discovery import Kind, files_by_name, kernels_of, module_of
from optbench.sandbox.trial_import import is_part_of_optbench
from optbench.workspace import FOLDERS

LIBRARIES = {
    "gymnasium",
    "highspy",
    "joblib",
    "matplotlib",
    "networkx",
    "numba",
    "numpy",
    "ortools",
    "pandas",
    "polars",
    "pyarrow",
    "pymetis",
    "pyomo",
    "safetensors",
    "scipy",
    "sklearn",
    "torch",
    "torch_geometric",
}
# Large libraries that few solvers import, inside functions: they are loaded only if a plug-in names
# them or a loaded module needs them.
LATE = LIBRARIES - {"highspy", "numba", "numpy", "ortools", "scipy"}
# Every cell needs these.
ALWAYS = ("optbench.execute.tasks", "optbench.compiling.compiled")
# Cells of instances that are no schedules need these: programmes in files, shapes of a user's.
SHAPED = (
    "optbench.execute.shaped_cells",
    "optbench.shapes.pyomo_models.pyomo_shape",
    "optbench.views.milp",
)
PROGRAMMES, MENTIONS = (".mps", ".lp"), b"optbench.shapes"
FROM = r"from[ \t]+([.\w]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n#]+)"
IMPORT = re.compile(rf"^([ \t]*)(?:{FROM}|import[ \t]+([\w., \t]+))", re.M)
NAME = re.compile(r"(\w+)(?:[ \t]+as[ \t]+\w+)?")


def preload(solvers: Iterable[str], problems: Iterable[str]) -> list[str]:
    """Load what these plug-ins need, compile missing kernels; return the names of the modules."""
    files = _user_files(solvers, problems)
    modules = [*ALWAYS, *_of_plugins("solver", solvers), *_of_plugins("problem", problems)]
    modules += SHAPED if _is_shaped(files, problems) else ()
    wanted = reached(modules, files)
    done = [name for name in wanted if _import(name)]
    prepare(_needed(solvers, problems))
    return done


def _is_shaped(files: Iterable[Path], problems: Iterable[str]) -> bool:
    """Whether a problem is a programme's file, or a user's file declares a shape."""
    if any(name.lower().endswith(PROGRAMMES) for name in problems):
        return True
    return any(file.is_file() and MENTIONS in file.read_bytes() for file in files)


def _needed(solvers: Iterable[str], problems: Iterable[str]) -> set[str]:
    """Return the kernels that optbench's own solvers declare. For a user's plug-in, which is not
    imported here, these are the kernels whose callers it imports. Instances are bounded in
    separate cells.
    """
    needed = set(BOUNDING)
    for name in solvers:
        path = _file("solver", name)
        if path is not None and is_part_of_optbench(path):
            with contextlib.suppress(PluginError):  # its cells report it
                needed |= kernels_of(name)
    files = _user_files(solvers, problems)
    needed |= kernels_used_by(reached(_of_plugins("problem", problems), files))
    # A user's policy takes its class from ``import optbench as ob``.
    return needed | (POLICIES if files else set())


def _of_plugins(kind: Kind, names: Iterable[str]) -> list[str]:
    """Modules of optbench's own plug-ins."""
    return [
        module_of(kind, name)
        for name in names
        if (path := _file(kind, name)) and is_part_of_optbench(path)
    ]


def _user_files(solvers: Iterable[str], problems: Iterable[str]) -> list[Path]:
    pairs: list[tuple[Kind, str]] = [("solver", name) for name in solvers]
    pairs += [("problem", name) for name in problems]
    found = (_file(kind, name) for kind, name in pairs)
    paths = [path for path in found if path is not None and not is_part_of_optbench(path)]
    return [
        file
        for path in paths
        for file in (sorted(path.parent.rglob("*.py")) if path.name == "__init__.py" else [path])
    ]


def _file(kind: Kind, name: str) -> Path | None:
    return next(iter(files_by_name(kind).get(name, [])), None)


def reached(modules: Iterable[str], files: Iterable[Path]) -> list[str]:
    """Known libraries and modules of optbench that modules and files import, directly or not."""
    found: dict[str, None] = {}
    waiting = list(modules)
    for file in files:
        waiting += [name for name, _ in _imports(file, "") if not name.startswith(".")]
    while waiting:
        name = waiting.pop()
        if name in found or name.partition(".")[0] not in LIBRARIES | {"optbench"}:
            continue
        found[name] = None
        if name.startswith("optbench.") and (source := _source(name)) is not None:
            package = name if source.name == "__init__.py" else name.rpartition(".")[0]
            is_plugin = name.startswith("optbench.plugins.")
            for each, nested in _imports(source, package):
                if is_plugin or not nested or each.partition(".")[0] not in LATE:
                    waiting.append(each)
    return [name for name in found if name != "optbench"]


def _imports(file: Path, package: str) -> Iterator[tuple[str, bool]]:
    """Yield all imports of a file and whether each is nested; ``from a import b`` gives a, a.b."""
    try:
        source = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):  # its cells report it
        return
    for indent, base, names, plain in IMPORT.findall(source):
        if plain:
            yield from (
                (part.split()[0], bool(indent)) for part in plain.split(",") if part.strip()
            )
            continue
        full = (
            importlib.util.resolve_name(base, package) if base.startswith(".") and package else base
        )
        yield full, bool(indent)
        yield from ((f"{full}.{name}", bool(indent)) for name in NAME.findall(names))


def _source(name: str) -> Path | None:
    """The file of a module of optbench, found without importing it."""
    parts = name.split(".")
    if parts[:2] == ["optbench", "plugins"] and len(parts) > 3:
        kind = next((kind for kind, folder in FOLDERS.items() if folder == parts[2]), None)
        bases = (
            [Path(place) for place in importlib.import_module(".".join(parts[:3])).__path__]
            if kind
            else []
        )
        parts = parts[3:]
    else:
        bases, parts = [Path(__file__).parents[1]], parts[1:]
    for path in (base.joinpath(*parts) for base in bases):
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                return file
    return None


def _import(name: str) -> bool:
    """Import a module if there is one: what looks like a submodule may be a function."""
    if name in sys.modules:
        return True
    if name.startswith("optbench.") and (
        (source := _source(name)) is None or not is_part_of_optbench(source)
    ):
        return False
    try:
        importlib.import_module(name)
    except (ImportError, OSError):  # a shared library that cannot be loaded is an OSError
        return False
    return True
