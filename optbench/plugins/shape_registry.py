"""The shape of an instance, and shapes by the names that files give them."""

from __future__ import annotations

from typing import Any

from optbench.errors import UnknownNameError
from optbench.model.instance import Instance
from optbench.shapes.milp.milp_shape import MILPS
from optbench.shapes.schedules import SCHEDULES
from optbench.shapes.shape import Shape

BUILT_IN: dict[str, Shape] = {shape.name: shape for shape in (SCHEDULES, MILPS)}


def shape_of(instance: Any) -> Shape:
    """Return the shape of an instance; those of ``ob.Model`` are schedules."""
    if isinstance(instance, Instance):
        return SCHEDULES
    shape: Shape = instance.shape
    return shape


def shape_named(name: str) -> Shape:
    """Return a built-in shape."""
    if name not in BUILT_IN:
        raise UnknownNameError("shape", name, BUILT_IN)
    return BUILT_IN[name]
