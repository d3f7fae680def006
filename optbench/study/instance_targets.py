"""The problems of a study: specs with grids, public instances, files, and glob patterns."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from optbench.data.registry import (
    DataError,
    DataFile,
    data_path,
    data_sets,
    locate,
    remedy,
)
from optbench.errors import FileFormatError, OptbenchError, UnknownNameError, nearest
from optbench.plugins import specs
from optbench.plugins.discovery import load_class, load_problem, names, problem_named_by
from optbench.study.canonical import canonical
from optbench.study.fields import elements, shown, text
from optbench.study.grids import expand_grid, spec_text
from optbench.study.instance_sources import is_public

EXAMPLE = '["gpu_dag:tasks=20", "jobshop/ft06", "mine/*.json"]'
GLOB = frozenset("*?[")
# Files of public sets that are not instances.
NO_INSTANCES = ("bounds.json",)


def read_targets(value: Any, folder: Path) -> tuple[str, ...]:
    """Return the targets of ``problems``; files are relative to ``folder``."""
    found: dict[str, tuple[str, int, bool]] = {}
    for k, entry in enumerate(elements(value, "problems", EXAMPLE)):
        field = f"problems[{k}]"
        spec = text(entry, field, f"text, such as one of {EXAMPLE}")
        try:
            targets = targets_of(spec, folder)
        except OptbenchError as error:
            raise FileFormatError(f"{field}: {error}") from None
        globbed = is_glob(spec)
        for target in targets:
            what = identity(target)
            if what not in found:
                found[what] = (target, k, globbed)
            elif not (globbed or found[what][2]):
                other, at, _ = found[what]
                raise FileFormatError(
                    f"{field} is {target!r}, the same as problems[{at}] ({other!r}); each "
                    "problem counts once"
                )
    return tuple(target for target, _, _ in found.values())


def targets_of(spec: str, folder: Path) -> list[str]:
    """Return the specs, names of public instances or absolute paths that one entry stands for."""
    name = problem_named_by(spec)
    if name is not None:
        return _specs(spec, name)
    if is_glob(spec):
        return _expand_public_glob(spec) if _public(spec, folder) else _file_glob(spec, folder)
    if _public(spec, folder):
        data_path(spec)
        return [spec]
    path = folder / _expanded(spec)
    if _is_file(path):
        return [str(path.absolute())]
    raise _no_target(spec, path)


def _expanded(spec: str) -> Path:
    try:
        return Path(spec).expanduser()
    except RuntimeError:
        raise FileFormatError(f"{spec!r}: no such home folder: {Path(spec).parts[0]!r}") from None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError as error:
        raise FileFormatError(f"{shown(str(path))} cannot be read: {error.strerror}") from None


def is_glob(spec: str) -> bool:
    return problem_named_by(spec) is None and bool(GLOB & set(spec))


def identity(target: str) -> str:
    """Return the same text for targets with the same instances."""
    name = problem_named_by(target)
    return target if name is None else canonical([name, specs.values_of(load_problem(target))])


def _public(spec: str, folder: Path) -> bool:
    return is_public(spec) and not (folder / spec).exists()


def _specs(spec: str, name: str) -> list[str]:
    _, params = specs.parse(spec)
    found = [
        spec_text(name, each) for each in expand_grid(name, params, load_class("problem", name))
    ]
    for each in found:
        load_problem(each)  # invalid values are found here, before anything is run
    return found


def _expand_public_glob(spec: str) -> list[str]:
    """Return the short names of the public instances that a pattern matches, in natural order
    (``la2`` before ``la10``); the pattern is compared with path, stem and short name.
    """
    entry = data_sets()[spec.partition("/")[0]]
    files = [
        file
        for file in entry.files
        if Path(file.path).name not in NO_INSTANCES and _matches(file, spec)
    ]
    if not files:
        known = [file.name for file in entry.files]
        raise DataError(
            f"no instance of the public data set matches {spec!r}; "
            f"{nearest(spec.strip('*'), known)}"
        )
    absent = [file for file in files if locate(file)[0] not in ("data", "cache")]
    if absent:
        what = f"{len(absent)} of {len(files)} instances are not here, such as {absent[0].path}"
        raise DataError(f"{spec!r}: {what}; {remedy(absent[0])}")
    return sorted((file.name for file in files), key=natural)


def _matches(file: DataFile, spec: str) -> bool:
    return any(
        fnmatchcase(name, spec) for name in (file.path, file.path.rsplit(".", 1)[0], file.name)
    )


def _file_glob(spec: str, folder: Path) -> list[str]:
    pattern = _expanded(spec)
    root, inner = (
        (Path(pattern.anchor), pattern.relative_to(pattern.anchor))
        if pattern.is_absolute()
        else (folder, pattern)
    )
    try:
        found = [path for path in root.glob(str(inner)) if path.is_file()]
    except (ValueError, NotImplementedError) as error:
        raise FileFormatError(f"{spec!r} is not a valid file pattern: {error}") from None
    if not found:
        raise FileFormatError(
            f"no file matches {spec!r} in {root.absolute()}; paths are relative to the study file"
        )
    return sorted((str(path.absolute()) for path in found), key=natural)


def natural(name: str) -> list[tuple[bool, int, str]]:
    """Return a sort key by which numbers within names are ordered as numbers."""
    return [
        (not part.isdigit(), int(part) if part.isdigit() else 0, part)
        for part in re.split(r"(\d+)", name)
    ]


def _no_target(spec: str, path: Path) -> OptbenchError:
    """Explain why an entry is not a target: a missing file or an unknown name."""
    name = specs.name_of(spec)
    if any(mark in name for mark in "./\\"):
        words = f"no such file: {path.absolute()}; paths are relative to the study file"
        folder = spec.partition("/")[0]
        close = _set_like(folder, data_sets())
        return FileFormatError(
            f"{words}, and there is no public data set {folder!r}{close}" if "/" in spec else words
        )
    return UnknownNameError("problem", name, names("problem"))


def _set_like(name: str, known: Iterable[str]) -> str:
    hint = nearest(name, known)
    return f"; {hint}" if hint.startswith("did") else ""
