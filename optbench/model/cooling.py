"""Cooled places of an instance; ``temperature`` says how they heat up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Cooling:
    """One row per cooled place: the air around it, its steady rise per watt, how slowly it follows,
    the highest temperature allowed, and its temperature at time 0.
    """

    place: Ints
    ambient_c: Floats
    c_per_w: Floats
    time_constant_s: Floats
    limit_c: Floats
    start_c: Floats
