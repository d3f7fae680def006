"""The shape of an instance, and shapes by the names that files give them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from optbench.errors import FileFormatError, UnknownNameError
from optbench.model.files.json_fields import read_text, shown
from optbench.model.files.strict_json import parse_json
from optbench.model.instance import Instance
from optbench.shapes.milp.milp_shape import MILPS
from optbench.shapes.protocol.shape import Shape
from optbench.shapes.schedules.schedule_shape import SCHEDULES

BUILT_IN: dict[str, Shape] = {shape.name: shape for shape in (SCHEDULES, MILPS)}


def shape_of(instance: Any) -> Shape:
    """Return the shape of an instance; those of ``ob.Model`` are schedules."""
    if isinstance(instance, Instance):
        return SCHEDULES
    shape: Shape = instance.shape
    return shape


def read_decision(path: str | Path, instance: Any) -> Any:
    """Read a decision of this instance from a file; an error names file and field."""
    from optbench.model.files.schedule_json import read_schedule

    shape = shape_of(instance)
    if shape is SCHEDULES:
        return read_schedule(path, instance)
    try:
        data = parse_json(read_text(Path(path)))
        if not isinstance(data, dict):
            raise FileFormatError("not a JSON object")
        return shape.read_decision(instance, data)
    except FileFormatError as error:
        words = str(error)
        named = words if words.startswith(shown(Path(path))) else f"{shown(Path(path))}: {words}"
        raise FileFormatError(named) from None


def shape_named(name: str) -> Shape:
    """Return a built-in shape."""
    if name not in BUILT_IN:
        raise UnknownNameError("shape", name, BUILT_IN)
    return BUILT_IN[name]
