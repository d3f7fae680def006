"""Reading of instances from files, which several problem families share."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from optbench.data.registry import data_path
from optbench.errors import FileFormatError, ParameterError
from optbench.formats import format_registry
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


def _default(entry: Field[Any]) -> Any:
    return entry.default if entry.default is not MISSING else None
