"""The cooled places of an instance as columns of a Plant."""

from __future__ import annotations

import numpy as np

from optbench.model.instance import Floats, Instance
from optbench.model.temperature import resting_c, rise_c


def cooled_places(instance: Instance) -> dict[str, Floats]:
    """Return, per cooled place, where it settles at rest, its limit, its start and 1 / its time
    constant in ticks; per (mode, place), row by row, what a mode adds where it settles.

    What modes add is rounded up to a grid on which the sum over all devices is exact: nothing
    drifts, and a place at which nothing runs is at rest exactly.
    """
    cooling = instance.cooling
    if cooling is None:
        names = ("cool_rest_c", "cool_limit_c", "cool_start_c", "cool_rate", "cool_rise_c")
        return dict.fromkeys(names, np.zeros(0))
    rise = rise_c(instance, cooling)
    most = rise.max(axis=0, initial=0.0) * float(instance.pools.count.sum())
    grid = 2.0 ** (np.frexp(most)[1] - 52)
    return {
        "cool_rest_c": resting_c(instance, cooling),
        "cool_limit_c": np.array(cooling.limit_c, dtype=float),
        "cool_start_c": np.array(cooling.start_c, dtype=float),
        "cool_rate": np.asarray(instance.tick_s / cooling.time_constant_s, dtype=float),
        "cool_rise_c": (np.ceil(rise / grid) * grid).ravel(),
    }
