"""The compiled code of policies for sites: whether the cache holds it, and what compiles it."""

from __future__ import annotations

import numpy as np

from optbench.learn.site_fleet import SiteFleet
from optbench.learn.site_pilot import fly, random_pilot
from optbench.model.builder import Model
from optbench.model.streams import with_stream
from optbench.sim.compiled import in_cache
from optbench.sim.kernel.site_pilot import roll, run_pilot
from optbench.sim.sites import grid_of


def is_compiled() -> bool:
    return in_cache(run_pilot, roll)


def compile_ahead() -> None:
    """Both entries, on one job."""
    m = Model("warm", time="seconds", horizon_s=3.0)
    gpu = m.pool("gpu")
    m.task(modes=[m.mode(gpu, time_s=1.0, energy_j=1.0)])
    m.minimize(energy_j=1.0)
    instance = with_stream(m.build(), opens=0)
    rng = np.random.default_rng(0)
    pilot = random_pilot(grid_of(instance), rng, hidden=4)
    fly(instance, pilot, 1.0, rng, mean_units=1.0)
    SiteFleet([instance]).roll(pilot, 1, rng)
