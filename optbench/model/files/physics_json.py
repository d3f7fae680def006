"""The ``cooling`` of an instance in JSON."""

from __future__ import annotations

from typing import Any

from optbench.model.cooling import Cooling
from optbench.model.files import json_columns as col

COOLING_COLUMNS: col.Readers = {
    "place": col.ints,
    **dict.fromkeys(("ambient_c", "c_per_w", "time_constant_s", "limit_c", "start_c"), col.floats),
}


def cooling_from(value: Any) -> Cooling | None:
    if value is None:
        return None
    return Cooling(**col.columns(value, "cooling", COOLING_COLUMNS))


def physics_to_dict(cooling: Cooling | None) -> dict[str, Any]:
    """The parts that are there, by their keys."""
    if cooling is None:
        return {}
    return {"cooling": {key: getattr(cooling, key).tolist() for key in COOLING_COLUMNS}}
