"""The solver that a caller names, or gives as an object; wrong arguments beside it are named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from optbench.arguments import refuse_unknown
from optbench.errors import ParameterError, nearest
from optbench.plugins import specs
from optbench.plugins.author_errors import refuse_incomplete
from optbench.plugins.discovery import load_class, load_solver
from optbench.plugins.params import PARAMS
from optbench.plugins.protocol import Solver


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
    return type(solver).__name__.lower(), solver


def _refuse_misspelt(given: Mapping[str, Any], known: set[str], keywords: Sequence[str]) -> None:
    """Refuse what is no parameter and close to one of the keywords of ``ob.solve``."""
    for key in given:
        if key not in known and nearest(key, keywords).startswith("did you mean"):
            refuse_unknown("ob.solve", [key], {*known, *keywords})
