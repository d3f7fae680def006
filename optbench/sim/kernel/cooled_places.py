"""The cooled places of an instance as columns of a Plant."""

from __future__ import annotations

from typing import Any

import numpy as np

from optbench.model.instance import Instance
from optbench.model.temperature import resting_c, rises_of, tolerance_c


def cooled_places(instance: Instance) -> dict[str, Any]:
    """Return, per cooled place, where it settles at rest, its limit, its start and 1 / its time
    constant in ticks; per mode, in compressed rows, the places that it heats and what it adds to
    the temperature at which they settle.

    What modes add is rounded up to a grid on which the sum over all devices is exact: nothing
    drifts, and a place at which nothing runs is at rest exactly. Half of the verifier's tolerance
    is left for rounding, here and in the kernel.
    """
    cooling, modes = instance.cooling, instance.num_modes
    if cooling is None:
        names = ("cool_rest_c", "cool_limit_c", "cool_start_c", "cool_rate", "cool_rise_c")
        whole = {"cool_ptr": np.zeros(modes + 1, int), "cool_row": np.zeros(0, int)}
        return dict.fromkeys(names, np.zeros(0)) | whole
    rises = rises_of(instance, cooling)
    most = np.zeros(len(cooling.place))
    np.maximum.at(most, rises.row, rises.celsius)
    grid = 2.0 ** (np.frexp(most * float(instance.pools.count.sum()))[1] - 52)[rises.row]
    number = np.bincount(rises.mode, minlength=modes)
    return {
        "cool_rest_c": resting_c(instance, cooling),
        "cool_limit_c": cooling.limit_c + 0.5 * tolerance_c(cooling),
        "cool_start_c": np.array(cooling.start_c, dtype=float),
        "cool_rate": np.asarray(instance.tick_s / cooling.time_constant_s, dtype=float),
        "cool_ptr": np.concatenate(([0], np.cumsum(number))).astype(np.int64),
        "cool_row": rises.row.astype(np.int64),
        "cool_rise_c": np.ceil(rises.celsius / grid) * grid,
    }


def starts_at_rest(instance: Instance, columns: dict[str, Any]) -> Any:
    """Modes that can start wherever nothing else runs: all but those that overheat a place alone,
    with the very numbers that the kernel compares.
    """
    out = np.ones(instance.num_modes, dtype=bool)
    row, mode = columns["cool_row"], np.repeat(np.arange(len(out)), np.diff(columns["cool_ptr"]))
    steady = columns["cool_rest_c"][row] + columns["cool_rise_c"]
    out[mode[steady > columns["cool_limit_c"][row]]] = False
    return out
