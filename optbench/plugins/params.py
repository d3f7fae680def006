"""Parameter files: ``params=FILE`` among the parameters of a plug-in adds those in the file.

A file is TOML, as ``optbench tune`` writes it: ``solver = "name"`` with ``[params]``, and
``[problem]`` for parameters of the problem, whose name ``problem_name`` may state;
``[provenance]`` says where they come from. Parameters given beside the file override it.
"""

from __future__ import annotations

import dataclasses
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


@dataclass(frozen=True)
class ParameterFile:
    """The content of a parameter file; None where a part is missing."""

    path: Path
    solver: str | None = None
    params: Mapping[str, Any] | None = None
    problem: Mapping[str, Any] | None = None
    problem_name: str | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)


KEYS = tuple(entry.name for entry in dataclasses.fields(ParameterFile) if entry.name != "path")


def with_file(
    kind: Literal["problem", "solver"], name: str, cls: type, given: Mapping[str, Any]
) -> dict[str, Any]:
    """The given parameters, completed by those of the parameter file that they may name."""
    known = [entry.name for entry in specs.parameters(cls)]
    if PARAMS not in given or PARAMS in known:
        return dict(given)
    file = read_parameters(find_parameters(given[PARAMS], f"{kind} {name!r}"))
    found, owner = file.params, file.solver
    if kind == "problem":
        found, owner = file.problem, file.problem_name
    if owner not in (None, name):
        remedy = f"; use -s {owner}" if kind == "solver" else ""
        other = f"holds parameters of {kind} {owner!r}, not of {name!r}{remedy}"
        raise ParameterError(f"{file.path} {other}")
    table = "params" if kind == "solver" else "problem"
    if found is None:
        missing = f"no table [{table}], and therefore no parameters of {kind} {name!r}"
        raise ParameterError(f"{file.path}: {missing}")
    explicit = {key: value for key, value in given.items() if key != PARAMS}
    fields = {_field(key, known) for key in explicit}
    rest = {key: value for key, value in found.items() if _field(key, known) not in fields}
    hints = specs.hints_of(cls, f"{kind} {name!r}")
    for key, value in rest.items():
        field = _field(key, known)
        if field not in known:
            unknown = f"{key!r} is not a parameter of {kind} {name!r}; {nearest(key, known)}"
            raise ParameterError(f"{file.path}: [{table}] {unknown}")
        specs.convert(value, hints[field], field, f"{file.path}: {kind} {name!r}")
    return {**rest, **explicit}


def read_parameters(path: Path) -> ParameterFile:
    """Read a parameter file and check its form."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise FileFormatError(f"parameter file {path}: {reason}") from None
    where = f"parameter file {path}: "
    check_keys(table, KEYS, where)
    for key in ("params", "problem", "provenance"):
        if not isinstance(table.get(key, {}), dict):
            raise FileFormatError(f"{where}{key} is {table[key]!r}; it must be a table, [{key}]")
    for key in ("solver", "problem_name"):
        if not isinstance(table.get(key, ""), str):
            what = f"the name of a {key.removesuffix('_name')}"
            raise FileFormatError(f"{where}{key} is {table[key]!r}; it must be {what}")
    if "params" in table and "solver" not in table:
        remedy = 'write solver = "NAME" above it'
        raise FileFormatError(f"{where}[params] without a solver; {remedy}")
    return ParameterFile(path, **table)


def find_parameters(given: Any, what: str) -> Path:
    """The path of the file, as given or relative to the workspace."""
    if not isinstance(given, (str, Path)) or not str(given).strip():
        example = "it must be a parameter file, such as tuned/NAME.toml"
        raise ParameterError(f"{what}: params is {given!r}; {example}")
    path = Path(given)
    root = activate()
    places = [path, *([root / path] if root is not None and not path.is_absolute() else [])]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        looked = " and ".join(str(place.absolute()) for place in dict.fromkeys(places))
        missing = f"no parameter file {str(path)!r} (looked for {looked})"
        raise ParameterError(f"{what}: {missing}; `optbench tune STUDY` writes one")
    return found


def _field(key: str, known: Sequence[str]) -> str:
    """The field that a key sets; the suffix ``_s`` may be left out."""
    return key if key in known else f"{key}_s"
