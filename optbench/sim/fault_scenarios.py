"""Scenarios of faults, drawn from how often the devices of an instance fail."""

from __future__ import annotations

import math

import numpy as np

from optbench.arguments import check_whole, known_keywords
from optbench.errors import ParameterError
from optbench.model.instance import Instance
from optbench.sim.kernel.plant import Fault


@known_keywords("draw_faults")
def draw_faults(
    instance: Instance, horizon_s: float, repair_s: float, seed: int = 0
) -> list[Fault]:
    """Draw which devices fail within ``horizon_s`` seconds, for ``simulate(..., faults=)``.

    Each device works for an exponential time with the rate of its pool (``failures_per_s``), then
    is gone for ``repair_s`` seconds (a tick at least) and works again. Same seed, same faults.
    """
    check_whole("seed", seed, 0)
    for name, value in (("horizon_s", horizon_s), ("repair_s", repair_s)):
        if not (math.isfinite(value) and value > 0):
            raise ParameterError(f"{name} is {value!r}; it must be a positive number of seconds")
    rates = instance.pools.failures_per_s
    if rates is None:
        raise ParameterError(
            f"{instance.name!r} does not say how often devices fail; give "
            "m.pool(..., failures_per_day=...)"
        )
    rng, until = np.random.default_rng(seed), horizon_s / instance.tick_s
    gone = max(1, int(instance.to_ticks(repair_s)))
    faults: list[Fault] = []
    for pool, rate in enumerate((rates * instance.tick_s).tolist()):
        if rate == 0:
            continue
        devices = int(instance.pools.count[pool])
        first = np.floor(rng.exponential(1.0 / rate, devices))
        for failure in first[first < until].tolist():
            at = failure
            while at < until:
                faults += [Fault(at, pool, 1), Fault(at + gone, pool, -1)]
                at += gone + math.floor(rng.exponential(1.0 / rate))
    return sorted(faults)
