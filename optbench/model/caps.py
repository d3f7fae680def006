"""The arithmetic of power caps, once: what a place draws at rest, and what a running mode adds to it.

    base_q   = Σ_{r under q} rest_r count_r
    net_qk   = power_k [primary_k under q] − Σ_{r under q} rest_r n_kr        own power less the rest of the devices it takes

so that the power at q is base_q plus net_qk of everything that runs. Sums are rounded once (``fsum``): integer models scale
them exactly, and a difference in the last place would cost them a factor of the scale.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optbench.model.instance import Floats, Instance, Ints


def resting_power_w(instance: Instance, place: int) -> float:
    """base_q: the power below a place while nothing runs."""
    pools = instance.pools
    return math.fsum((pools.rest_w * pools.count)[instance.under[place]].tolist())


def net_power_w(instance: Instance, place: int) -> Floats:
    """net_qk of every mode; negative where a mode draws less than the devices it keeps from resting."""
    modes, under = instance.modes, instance.under[place]
    own = np.where((modes.primary >= 0) & under[np.maximum(modes.primary, 0)], modes.power_w, 0.0)
    freed = np.where(under, instance.pools.rest_w, 0.0)[modes.req_pool] * modes.req_count
    return np.asarray(own - _sums(modes.req_ptr, freed), dtype=np.float64)


def _sums(ptr: Ints, values: Any) -> Any:
    """Sum of the values of each row, rounded once: one addition is, so only rows of three and more need care."""
    size = np.diff(ptr)
    out = np.zeros(len(size))
    some = size > 0
    if some.any():
        out[some] = np.add.reduceat(values, ptr[:-1][some])
    for row in np.flatnonzero((size > 2) & (out != 0)).tolist():
        out[row] = math.fsum(values[ptr[row] : ptr[row + 1]].tolist())
    return out
