"""Faults drawn from failure rates, and what they do to the tasks that they stop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.errors import ParameterError
from optbench.model.instance import Instance
from optbench.model.task_progress import progress
from optbench.model.verify import verify
from optbench.sim.fault_scenarios import draw_faults
from optbench.sim.kernel.plant import Fault

DAY = 86_400.0


def farm(preemptive: bool, failures_per_day: float | None = 40.0, count: int = 8) -> Instance:
    """Forty tasks of an hour or less on pools of a node that fail and one that does not."""
    m = ob.Model("farm", preemptive=preemptive)
    a = m.pool("a", count=count, failures_per_day=failures_per_day)
    b = m.pool("b", count=2)
    rng = np.random.default_rng(3)
    for _ in range(40):
        m.task(
            units=float(rng.uniform(600.0, 3600.0)),
            modes=[m.mode(a, time_s=1, energy_j=100), m.mode(b, time_s=1.5, energy_j=90)],
        )
    m.minimize(makespan_s=1.0)
    return m.build()


def first(moment: ob.Moment) -> tuple[int, int]:
    """Start the first option of every moment."""
    return int(moment.task[0]), int(moment.mode[0])


def test_devices_fail_as_often_as_their_pool_says() -> None:
    """1,000 devices fail 2 times a day and are gone for 1,000 s: in 10 days each fails
    864,000 / (43,200 + 1,000) times, 19.55 on average; the deviation of the sum is below 140.
    """
    faults = draw_faults(farm(True, 2.0, 1000), 10 * DAY, 1000.0, seed=1)
    lost = [fault for fault in faults if fault.devices > 0]
    assert {fault.pool for fault in faults} == {0}
    assert abs(len(lost) - 19_548) < 5 * 140
    assert len(faults) == 2 * len(lost) and faults == sorted(faults)
    assert max(fault.time for fault in lost) < 10 * DAY
    gone = np.cumsum([fault.devices for fault in faults])
    assert gone.min() == 0 and gone[-1] == 0 and gone.max() < 1000
    assert draw_faults(farm(True, 2.0, 1000), 10 * DAY, 1000.0, seed=1) == faults
    assert draw_faults(farm(True, 2.0, 1000), 10 * DAY, 1000.0, seed=2) != faults


@pytest.mark.parametrize("preemptive", [True, False])
def test_no_task_is_lost_and_work_counts_only_with_checkpoints(preemptive: bool) -> None:
    instance = farm(preemptive)
    faults = draw_faults(instance, DAY, 300.0, seed=5)
    found: Any = ob.simulate(instance, first, faults=faults, bound=False)
    assert verify(instance, found.schedule).violations == ()
    made = progress(instance, found.schedule)
    assert made.complete.all()
    # Without checkpoints the verified schedule has one segment per task, each of its whole work.
    segments = np.bincount(found.schedule.task, minlength=instance.num_tasks)
    assert (segments.max() > 1) == preemptive and segments.min() == 1
    assert (found.lost_j > 0) == (not preemptive)


def test_a_fault_ends_a_segment_by_hand() -> None:
    """A task of 10 s loses its device at 4 and has it back at 6: it ends at 12 with checkpoints, at
    16 without.
    """
    for preemptive, segments in ((True, [(0, 4), (6, 12)]), (False, [(6, 16)])):
        m = ob.Model("one", preemptive=preemptive)
        m.task(modes=[m.mode(m.pool("gpu"), time_s=10, energy_j=10)])
        m.minimize(makespan_s=1.0)
        faults = [Fault(4.0, 0, 1), Fault(6.0, 0, -1)]
        found: Any = ob.simulate(m.build(), first, faults=faults, bound=False)
        rows = zip(found.schedule.start.tolist(), found.schedule.end.tolist(), strict=True)
        assert sorted(rows) == segments


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ParameterError, match="does not say how often devices fail"):
        draw_faults(farm(True, None), DAY, 1.0)
    with pytest.raises(ParameterError, match=r"repair_s is 0.0; it must be a positive number"):
        draw_faults(farm(True), DAY, 0.0)
    with pytest.raises(ParameterError, match="seed is -1"):
        draw_faults(farm(True), DAY, 1.0, seed=-1)
