"""Stream bounds of short windows and short slots late in a long horizon, where sums of floats lose
the most.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import optbench as ob
from optbench.bounds.streams.stream_bound import path_bound, stream_bounds
from optbench.errors import ModelError
from optbench.model.schedule import Schedule
from optbench.model.streams import with_stream
from optbench.model.verify import verify
from tests.bounds.stream_farms import farm


@pytest.mark.parametrize("window_s", [1.0, 1e-2, 1e-6])
def test_a_short_window_late_in_a_week_pays_for_its_own_rest(window_s: float) -> None:
    """The rest of 1,000 devices in the last moment of a week: as a difference of two integrals it
    was up to 6e-5 too much.
    """
    week, rng = 7 * 86400, np.random.default_rng(1)
    m = ob.Model(tick_s=1e-9, horizon_s=float(week))
    gpu = m.pool("gpu", count=1000, idle_w=100.0)
    m.tariff(price_usd_per_kwh=rng.random(week // 600).tolist(), every_s=600.0)
    m.task(
        modes=[m.mode(gpu, time_s=window_s / 2, energy_j=50 * window_s)], release_s=week - window_s
    )
    m.minimize(cost_usd=1.0)
    built = m.build()
    instance = with_stream(built, opens=week * 10**9 - round(window_s * 1e9))
    objective = verify(instance, Schedule.of(instance, [0], built.tasks.release[:1])).objectives[0]
    found = stream_bounds(instance, 5.0)
    assert found and all(objective * (1 - 1e-4) <= bound.value <= objective for bound in found)


@pytest.mark.parametrize("ticks", [2, 1000])
def test_slots_are_as_long_as_they_are_whatever_the_time_of_day(ticks: int) -> None:
    """Seven tasks fill the last 7 · ticks of a week: in seconds, rounding makes that less, and they
    did not fit.
    """
    week, tick_s = 7 * 86400.0, 1e-8
    opens = round(week / tick_s) - 7 * ticks
    m = ob.Model(tick_s=tick_s, horizon_s=week)
    cheap, dear = m.pool("cheap", idle_w=10.0), m.pool("dear", idle_w=10.0)
    modes = [
        m.mode(cheap, time_s=ticks * tick_s, energy_j=1.0),
        m.mode(dear, time_s=ticks * tick_s, energy_j=100.0),
    ]
    m.tasks(np.ones(7), modes=modes, release_s=opens * tick_s)
    m.minimize(energy_j=1.0)
    instance = with_stream(m.build(), opens=opens)
    verdict = verify(instance, Schedule.of(instance, np.zeros(7), opens + ticks * np.arange(7)))
    assert verdict.feasible
    floor = path_bound(instance, 7.0)
    assert floor is not None and floor.energy_j <= verdict.metrics["energy_j"]


def test_a_stream_out_of_reach_is_refused_before_any_bound() -> None:
    with pytest.raises(ModelError, match="'t0' arrives at 'in0'"):
        farm([5], [0], 1000.0, way_s=math.inf)
