"""Busy links: a calendar of how much slower the links of a pool are than free ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optbench.errors import ModelError
from optbench.model.timegrid import HORIZON_TICKS

if TYPE_CHECKING:
    from optbench.model.instance import Instance

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Congestion:
    """``factor[p, k]`` ≥ 1 holds from ``times[k]`` to the next time, the last one for ever: data
    that leave or reach pool p then take that many times as long (of both ends the larger counts).
    """

    times: Ints
    factor: Floats

    def between(self, sender: Any, receiver: Any, at: Any) -> Floats:
        """The factor of transfers that start at these times; pools of −1 send nothing."""
        period = np.maximum(np.searchsorted(self.times, at, side="right") - 1, 0)
        both = np.maximum(self.factor[sender, period], self.factor[receiver, period])
        return np.asarray(both, dtype=float)

    def known(self, now: float) -> Congestion:
        """What has been seen by a time: the last factors seem to stay."""
        seen = max(1, int(np.searchsorted(self.times, now, side="right")))
        return replace(self, times=self.times[:seen], factor=self.factor[:, :seen])


def check_congestion(instance: Instance, congestion: Congestion) -> None:
    """Raise a ModelError that names the first invalid value."""
    times, factor, names = congestion.times, congestion.factor, instance.pools.names
    if len(times) == 0 or times[0] != 0 or (np.diff(times) <= 0).any():
        raise ModelError("congestion times must start at 0 and rise strictly")
    if times[-1] > HORIZON_TICKS:
        raise ModelError(f"congestion times go to {times[-1]}; they must be at most 2^52 ticks")
    if factor.shape != (len(names), len(times)):
        shape = (len(names), len(times))
        raise ModelError(f"congestion.factor has shape {factor.shape}; it must be {shape}")
    bad = ~((factor >= 1) & np.isfinite(factor))
    if bad.any():
        pool, period = np.argwhere(bad)[0]
        where = f"congestion of pool {names[pool]!r} in period {period}"
        raise ModelError(f"{where}: factor is {factor[pool, period]}; it must be at least 1")
