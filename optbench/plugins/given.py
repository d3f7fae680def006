"""What a caller gives: a target (a file, a public data set, a problem spec, a problem, an instance)
and a solver, by name or as an object; what is wrong with either is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optbench.arguments import refuse_unknown
from optbench.errors import OptbenchError, ParameterError, nearest
from optbench.model.instance import Instance
from optbench.plugins import specs
from optbench.plugins.author_errors import (
    author_code,
    plugin_name,
    refuse_incomplete,
    refuse_result,
)
from optbench.plugins.discovery import load_class, load_problem, load_solver
from optbench.plugins.params import PARAMS
from optbench.plugins.protocol import Problem, Solver
from optbench.shapes.protocol.shaped_instance import ShapedInstance

if TYPE_CHECKING:
    from optbench.formats.imported import ImportReport


Target = str | Path | Instance | ShapedInstance | Problem


def read_target(
    target: Target,
    seed: int = 0,
    format: str | None = None,
) -> tuple[Any, ImportReport | None]:
    """The instance that a target names, with a report of what was dropped where a problem reads a
    record.

    ``format`` is that of a file whose content fits more than one."""
    if isinstance(target, (Instance, ShapedInstance)):
        return target, None
    if isinstance(target, Problem):
        return instance_made_by(target, seed)
    if not isinstance(target, (str, Path)):
        raise ParameterError(_no_target(target))
    text = str(target)
    if format is not None or _exists(target):
        return _in_file(Path(target), format), None
    if not isinstance(target, Path) and "/" in text:
        from optbench.data.registry import data_path, data_sets

        if text.partition("/")[0] in data_sets():
            return _in_file(data_path(text)), None
    name = specs.name_of(text)
    if isinstance(target, Path) or any(mark in name for mark in "./\\"):
        allowed = (
            "a TARGET is an instance file, a public instance such as jobshop/ft06, or a problem "
            "such as gpu_dag:tasks=20"
        )
        raise OptbenchError(f"no such file: {text!r}; {allowed}")
    instance, report = instance_made_by(load_problem(text), seed)
    return replace(instance, problem=text), report


def instance_made_by(problem: Problem, seed: int) -> tuple[Any, ImportReport | None]:
    """The instance of a problem, with a report where it reads a record."""
    refuse_incomplete(type(problem))
    with author_code(problem, "imported"):
        found = problem.imported(seed)
    if found is not None:
        return found.instance, found.report
    with author_code(problem, "instance"):
        made: object = problem.instance(seed)
    if isinstance(made, (Instance, ShapedInstance)):
        return made, None
    remedy = "return model.build(), an ob.Instance"
    raise refuse_result(problem, "instance", made, f"end it with {remedy}")


def _no_target(target: object) -> str:
    """The message for a value that cannot be a target."""
    if not isinstance(target, type) and callable(getattr(target, "build", None)):
        return (
            f"the target is a {type(target).__name__}, which is still being declared; give the "
            "instance that its build() returns"
        )
    if isinstance(target, type):
        return f"the target is the class {target.__name__}; give an object, {target.__name__}()"
    return (
        f"the target is {target!r}; it must be an instance, a problem, the path of an instance "
        "file, or a spec such as 'gpu_dag:tasks=20'"
    )


def _in_file(path: Path, format: str | None = None) -> Any:
    """Read a file; problems, which most targets are, need none of the formats."""
    from optbench.plugins.shape_files import load

    return load(path, format)


def _exists(target: str | Path) -> bool:
    try:
        return Path(target).exists()
    except (OSError, ValueError):  # It cannot be a path: it is too long, or contains a NUL.
        return False


def solver_given(
    solver: str | Solver, params: Mapping[str, Any], keywords: Sequence[str]
) -> tuple[str, Solver]:
    """Name and object of a solver; ``keywords`` are what the caller takes beside parameters."""
    if isinstance(solver, str):
        cls = load_class("solver", specs.name_of(solver)) if params else Solver
        fields = [each.name for each in specs.parameters(cls)]
        known = {PARAMS, *fields, *(name.removesuffix("_s") for name in fields)}
        _refuse_misspelt(params, known, keywords)
        return load_solver(solver, params)
    if isinstance(solver, type):
        raise ParameterError(
            f"the solver is the class {solver.__name__}; give an object, {solver.__name__}()"
        )
    if not isinstance(solver, Solver):
        raise ParameterError(
            f"the solver is {solver!r}; it must be the name of a solver, such as 'cpsat', or an "
            "object of a subclass of ob.Solver"
        )
    if params:
        _refuse_misspelt(params, set(), keywords)
        raise ParameterError(
            f"parameters {sorted(params)} can only be given with a solver's name; "
            "this solver is already an object"
        )
    refuse_incomplete(type(solver))
    return plugin_name(type(solver)) or type(solver).__name__.lower(), solver


def _refuse_misspelt(given: Mapping[str, Any], known: set[str], keywords: Sequence[str]) -> None:
    """Refuse what is no parameter and close to one of the keywords of ``ob.solve``."""
    for key in given:
        if key not in known and nearest(key, keywords).startswith("did you mean"):
            refuse_unknown("ob.solve", [key], {*known, *keywords})
