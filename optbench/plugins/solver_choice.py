"""The solvers that take an instance, by its shape and features, and the one for a caller who names
none.
"""

from __future__ import annotations

from typing import Any

from optbench.errors import OptbenchError, UnsupportedError, with_article
from optbench.plugins.discovery import load_class, load_solver, names
from optbench.plugins.process_policy import ProcessPolicy
from optbench.plugins.protocol import Solver, check_supported, takes
from optbench.plugins.schedule_shape import shape_of
from optbench.shapes.protocol.shape import Shape

# Of shapes with a formulation that name no solver of their own.
EXACT = "highs"


def solvers_of_shape(shape: Shape) -> list[str]:
    """Return the names of the solvers that take a shape, whatever the features of the instance."""
    return [name for name in names("solver") if _takes(name, shape)]


def _takes(name: str, shape: Shape) -> bool:
    try:
        cls: type[Solver] = load_class("solver", name)
    except OptbenchError:  # `optbench list` says what is wrong with it
        return False
    return takes(cls, shape)


def refusals(instance: Any) -> dict[str, str | None]:
    """Return by solver the reason to refuse an instance of its shape; None where it takes it."""
    found: dict[str, str | None] = {}
    for name in solvers_of_shape(shape_of(instance)):
        try:
            check_supported(load_solver(name)[1], name, instance)
            found[name] = None
        except OptbenchError as error:
            found[name] = str(error)
    return found


def shape_with_process(instance: Any) -> Shape:
    """Return the instance's shape, which must have a process."""
    shape = shape_of(instance)
    if "process" not in shape.capabilities:
        raise UnsupportedError(
            f"{instance.name!r} has no process that could be simulated: it is "
            f"{with_article(shape.name)}; use `optbench solve`"
        )
    return shape


def usual_policy(instance: Any) -> str:
    """Return the policy of an instance with a process where none is named: the first one that takes
    it and sees only what has happened.
    """
    shape, found, clairvoyant = shape_with_process(instance), refusals(instance), []
    for name in found:
        cls = load_class("solver", name)
        if found[name] is None and issubclass(cls, ProcessPolicy):
            if not cls.clairvoyant:
                return name
            clairvoyant.append(name)
    only = f"only clairvoyant ones do: {', '.join(clairvoyant)}; name one with -s, or "
    raise UnsupportedError(
        f"no policy takes {instance.name!r}, which is {with_article(shape.name)}; "
        f"{only if clairvoyant else ''}write an ob.ProcessPolicy with shapes = {{{shape.name!r}}} "
        "(docs/plugins.md)"
    )


def usual_solver(instance: Any) -> str:
    """Return the solver of an instance where none is named: that of its shape, highs for what has a
    formulation, and else the first one that takes it.
    """
    shape = shape_of(instance)
    if shape.usual_solver is not None:
        return shape.usual_solver
    if "formulate" in shape.capabilities:
        return EXACT
    found = refusals(instance)
    chosen = next((name for name, reason in found.items() if reason is None), None)
    if chosen is None:
        reasons = "; ".join(filter(None, found.values()))
        remedy = f"write one with shapes = {{{shape.name!r}}} (docs/plugins.md)"
        raise UnsupportedError(
            f"no solver takes {instance.name!r}, which is {with_article(shape.name)}; "
            + (reasons or remedy)
        )
    return chosen
