"""Parameter files: ``params=FILE`` among the parameters of a plug-in adds those in the file.

A file is TOML, as ``optbench tune`` writes it: ``solver = "name"`` with ``[params]``, and
``[problem]`` for parameters of the problem, whose name ``problem_name`` may state;
``[provenance]`` says where they come from. Parameters given beside the file override it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from optbench.errors import FileFormatError, ParameterError, nearest
from optbench.plugins import specs
from optbench.typed_values import check_keys
from optbench.workspace import activate

# Reserved among the parameters of every solver and problem.
PARAMS = "params"
TOP = ("solver", "params", "problem_name", "problem", "provenance")


@dataclass(frozen=True)
class ParameterFile:
    """The content of a parameter file; None where a part is missing."""

    path: Path
    solver: str | None
    params: Mapping[str, Any] | None
    problem: Mapping[str, Any] | None
    problem_name: str | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)


def with_file(kind: Literal["problem", "solver"], name: str, cls: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """The given parameters, completed by those of the parameter file that they may name."""
    if PARAMS not in given or PARAMS in {entry.name for entry in specs.parameters(cls)}:
        return dict(given)
    file = read_parameters(find_parameters(given[PARAMS], f"{kind} {name!r}"))
    if kind == "problem" and file.problem_name not in (None, name):
        raise ParameterError(f"{file.path} holds parameters of problem {file.problem_name!r}, not of {name!r}")
    if kind == "solver" and file.solver is not None and file.solver != name:
        raise ParameterError(f"{file.path} holds parameters of solver {file.solver!r}, not of {name!r}; use -s {file.solver}")
    found = file.params if kind == "solver" else file.problem
    table = "params" if kind == "solver" else "problem"
    if found is None:
        raise ParameterError(f"{file.path}: no table [{table}], and therefore no parameters of {kind} {name!r}")
    explicit = {key: value for key, value in given.items() if key != PARAMS}
    known = [entry.name for entry in specs.parameters(cls)]
    fields = {_field(key, known) for key in explicit}
    rest = {key: value for key, value in found.items() if _field(key, known) not in fields}
    _check(file.path, table, kind, name, cls, rest)
    return {**rest, **explicit}


def read_parameters(path: Path) -> ParameterFile:
    """Read a parameter file and check its form."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise FileFormatError(f"parameter file {path}: {reason}") from None
    check_keys(table, TOP, f"parameter file {path}: ")
    for key in ("params", "problem", "provenance"):
        if not isinstance(table.get(key, {}), dict):
            raise FileFormatError(f"parameter file {path}: {key} is {table[key]!r}; it must be a table, [{key}]")
    solver, problem_name = table.get("solver"), table.get("problem_name")
    for key, value, what in (("solver", solver, "solver"), ("problem_name", problem_name, "problem")):
        if value is not None and not isinstance(value, str):
            raise FileFormatError(f"parameter file {path}: {key} is {value!r}; it must be the name of a {what}")
    if "params" in table and solver is None:
        raise FileFormatError(f'parameter file {path}: [params] without a solver; write solver = "NAME" above it')
    return ParameterFile(path, solver, table.get("params"), table.get("problem"), problem_name, table.get("provenance", {}))


def find_parameters(given: Any, what: str) -> Path:
    """The path of the file, as given or relative to the workspace."""
    if not isinstance(given, (str, Path)) or not str(given).strip():
        raise ParameterError(f"{what}: params is {given!r}; it must be a parameter file, such as tuned/NAME.toml")
    path = Path(given)
    root = activate()
    places = [path, *([root / path] if root is not None and not path.is_absolute() else [])]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        looked = " and ".join(str(place.absolute()) for place in dict.fromkeys(places))
        raise ParameterError(f"{what}: no parameter file {str(path)!r} (looked for {looked}); `optbench tune STUDY` writes one")
    return found


def _field(key: str, known: Sequence[str]) -> str:
    """The field that a key sets; the suffix ``_s`` may be left out."""
    return key if key in known else f"{key}_s"


def _check(path: Path, table: str, kind: str, name: str, cls: type, values: Mapping[str, Any]) -> None:
    """Check that every value fits its field; an error names the file."""
    hints = specs.hints_of(cls, f"{kind} {name!r}")
    known = [entry.name for entry in specs.parameters(cls)]
    for key, value in values.items():
        name_of = _field(key, known)
        if name_of not in known:
            raise ParameterError(f"{path}: [{table}] {key!r} is not a parameter of {kind} {name!r}; {nearest(key, known)}")
        specs.convert(value, hints[name_of], name_of, f"{path}: {kind} {name!r}")
