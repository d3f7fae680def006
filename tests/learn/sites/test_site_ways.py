"""Two jobs on their way to one free device: the second is not sent there."""

import numpy as np

import optbench as ob
from optbench.model.instance import Instance
from optbench.model.streams import with_stream
from optbench.plugins.discovery import load_solver


def two_sites() -> Instance:
    """One cheap device and one dear one, a second away; two jobs a tenth of a second apart, ten
    seconds of work each.
    """
    m = ob.Model("ways", time="seconds")
    cheap, dear = m.pool("cheap"), m.pool("dear")
    modes = [
        m.mode(cheap, time_s=10, energy_j=100, clock=1.0),
        m.mode(dear, time_s=10, energy_j=200, clock=1.0),
    ]
    m.tasks([1.0, 1.0], modes=modes, release_s=[0.0, 0.1])
    m.minimize(energy_j=1.0)
    return with_stream(m.build(), latency_s=1.0)


def test_no_job_waits_for_a_device_that_another_on_its_way_wants() -> None:
    instance = two_sites()
    _, pilot = load_solver("chsac_af", {"price_w": 1000.0})
    trace = pilot.play(instance, np.random.default_rng(0))  # type: ignore[attr-defined]
    assert trace.schedule is not None
    assert sorted(trace.schedule.start.tolist()) == [10**9, 11 * 10**8]
    assert sorted(instance.modes.primary[trace.schedule.mode].tolist()) == [0, 1]
