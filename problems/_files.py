"""What the problem families share: instances from files, and checks of parameters."""

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
    """The instance in a file, or of a public data set such as ``jobshop/ft06``; it must be of this family."""
    for entry in fields(problem):  # type: ignore[arg-type]  # every built-in problem is a dataclass
        value = getattr(problem, entry.name)
        if entry.name != "file" and value != _default(entry):
            given = f"{entry.name}={value!r}"
            raise ParameterError(f"problem {family!r}: {given} goes with generated instances, not with file={file!r}")
    path = Path(file)
    instance = format_registry.load(path if path.exists() else data_path(file))
    if instance.problem != family:
        raise FileFormatError(f"{file}: holds a {instance.problem} instance, not a {family}; use {instance.problem}:file={file}")
    return instance


def local_file(file: str) -> Path:
    """A file that is here, or one of a public data set, by its name there."""
    path = Path(file)
    return data_path(file) if file.partition("/")[0] in data_sets() and not path.exists() else path


def require(ok: bool, family: str, name: str, value: object, allowed: str) -> None:
    """A ParameterError that names the parameter, its value and what is allowed."""
    if not ok:
        raise ParameterError(f"problem {family!r}: {name} is {value!r}; it must be {allowed}")


def require_range(family: str, low: int, high: int) -> None:
    """Durations are drawn from low to high, both at least 1."""
    require(low >= 1, family, "low", low, "at least 1")
    require(high >= low, family, "high", high, f"at least low, which is {low}")


def _default(entry: Field[Any]) -> Any:
    return entry.default if entry.default is not MISSING else None
