"""Helpers that the problem families share: reading instances from files and checking parameters."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from optbench.data import data_path, data_sets
from optbench.errors import FileFormatError, ParameterError
from optbench.model.formats import format_registry
from optbench.model.instance import Instance
from optbench.plugins.protocol import Problem


def from_file(problem: Problem, family: str, file: str) -> Instance:
    """Read an instance of this family from a file or a public data set (``jobshop/ft06``)."""
    for entry in fields(problem):  # type: ignore[arg-type]  # every built-in problem is a dataclass
        value = getattr(problem, entry.name)
        if entry.name != "file" and value != _default(entry):
            given = f"{entry.name}={value!r}"
            raise ParameterError(
                f"problem {family!r}: {given} is for generated instances and cannot be combined "
                f"with file={file!r}"
            )
    path = Path(file)
    instance = format_registry.load(path if path.exists() else data_path(file))
    if instance.problem != family:
        raise FileFormatError(
            f"{file}: holds a {instance.problem} instance, not a {family}; use "
            f"{instance.problem}:file={file}"
        )
    return instance


def local_file(file: str) -> Path:
    """The path as given if it exists, else the file of that name in a public data set."""
    path = Path(file)
    return data_path(file) if file.partition("/")[0] in data_sets() and not path.exists() else path


def require(ok: bool, family: str, name: str, value: object, allowed: str) -> None:
    """Raise a ParameterError that names the parameter, its value and what is allowed."""
    if not ok:
        raise ParameterError(f"problem {family!r}: {name} is {value!r}; it must be {allowed}")


def require_range(family: str, low: int, high: int) -> None:
    """Check the range from which durations are drawn: 1 <= low <= high."""
    require(low >= 1, family, "low", low, "at least 1")
    require(high >= low, family, "high", high, f"at least low, which is {low}")


def _default(entry: Field[Any]) -> Any:
    return entry.default if entry.default is not MISSING else None
