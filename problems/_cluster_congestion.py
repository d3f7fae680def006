"""Busy links of gpu_cluster: a calendar of how much slower the transfers of each rack are.

Time has periods of equal length, in each of which a rack is free or busy, independently of others.
A busy rack's pools send and receive by a factor more slowly; the model knows factors of pools, so
that transfers inside of its nodes are slower too. The calendar covers the arrivals and COVERED
periods more; after it all links are free.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from optbench.model.congestion import Congestion
from optbench.model.instance import Instance, Ints

# Length of a period by the scale of tasks, about as long as a task lasts (modelled).
PERIOD_S = {"seconds": 10.0, "minutes": 300.0}
COVERED = 60
# Factors and their shares of periods (modelled: shared uplinks lose half of their bandwidth, or
# three quarters of it, to other traffic).
FACTORS, FACTOR_SHARES = (1.0, 2.0, 4.0), (0.7, 0.2, 0.1)


def with_congestion(
    instance: Instance, rng: np.random.Generator, rack_of_pool: Ints, scale: str
) -> Instance:
    """Draw the calendar of each rack."""
    period = round(PERIOD_S[scale] / instance.tick_s)
    last = int(instance.tasks.release.max(initial=0))
    num_periods = last // period + 1 + COVERED
    racks = int(rack_of_pool.max()) + 1
    factor = rng.choice(FACTORS, p=FACTOR_SHARES, size=(racks, num_periods))
    factor = np.hstack([factor, np.ones((racks, 1))])
    times = np.arange(num_periods + 1, dtype=np.int64) * period
    return replace(instance, congestion=Congestion(times, factor[rack_of_pool]))
