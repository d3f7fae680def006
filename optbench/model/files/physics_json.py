"""The ``cooling`` and the ``congestion`` of an instance in JSON."""

from __future__ import annotations

from typing import Any

from optbench.model.congestion import Congestion
from optbench.model.cooling import Cooling
from optbench.model.files import json_columns as col
from optbench.model.instance import Instance

COOLING_COLUMNS: col.Readers = {
    "place": col.ints,
    **dict.fromkeys(("ambient_c", "c_per_w", "time_constant_s", "limit_c", "start_c"), col.floats),
}


def cooling_from(value: Any) -> Cooling | None:
    if value is None:
        return None
    return Cooling(**col.columns(value, "cooling", COOLING_COLUMNS))


def congestion_from(value: Any, num_pools: int) -> Congestion | None:
    if value is None:
        return None
    data = col.columns(value, "congestion", {"times": col.ints}, others=("factor",))
    factor = col.matrix(data["factor"], "congestion.factor", num_pools, len(data["times"]))
    return Congestion(data["times"], factor)


def physics_to_dict(instance: Instance) -> dict[str, Any]:
    """The parts that are there, by their keys."""
    found: dict[str, Any] = {}
    cooling, congestion = instance.cooling, instance.congestion
    if cooling is not None:
        found["cooling"] = {key: getattr(cooling, key).tolist() for key in COOLING_COLUMNS}
    if congestion is not None:
        times, factor = congestion.times.tolist(), congestion.factor.tolist()
        found["congestion"] = {"times": [int(time) for time in times], "factor": factor}
    return found
