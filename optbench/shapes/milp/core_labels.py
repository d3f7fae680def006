"""Labels of bounds on instances with a formulation: only the core's own proof certifies one."""

from __future__ import annotations

from collections.abc import Iterable

from optbench.model.result import Bound, Infeasibility
from optbench.shapes.milp.milp_shape import MILPS
from optbench.shapes.protocol.shaped_instance import ShapedInstance

# Modules of optbench itself, of which its plug-ins are not a part.
OURS, PLUGINS = "optbench.", "optbench.plugins."


def is_of_core(module: str) -> bool:
    """Whether a module belongs to optbench, and to no plug-in."""
    return module.startswith(OURS) and not module.startswith(PLUGINS)


def relabelled(instance: ShapedInstance, bounds: Iterable[Bound]) -> list[Bound]:
    """Return bounds on an instance; those of a user's own ``bounds`` are proved again."""
    if is_of_core(type(instance.shape).bounds.__module__):
        return list(bounds)
    return [labelled_by_core(instance, bound) for bound in bounds]


def labelled_by_core(instance: ShapedInstance, bound: Bound) -> Bound:
    """Return a bound with the label that the core's own proof justifies: what the code of a user's
    shape calls proven counts as a solver's word, unless his formulation proves it.
    """
    if is_of_core(type(instance.shape).__module__):
        return instance.shape.labelled(instance, bound)
    if "formulate" not in instance.shape.capabilities:
        return Bound(bound.value, bound.source, "solver", bound.level)
    return MILPS.labelled(MILPS.instance(instance.formulation.program), bound)


def core_infeasibility(instance: ShapedInstance, time_limit_s: float) -> Infeasibility | None:
    """Return the core's own proof on the formulation that no decision exists, if it finds one."""
    if "formulate" not in instance.shape.capabilities:
        return None
    program = MILPS.instance(instance.formulation.program)
    return MILPS.certify_infeasible(program, time_limit_s)
