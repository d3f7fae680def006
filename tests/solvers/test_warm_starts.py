"""Warm starts against the bounds of a run: whatever was once forgiven in seconds, no bound is above
a verified schedule.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import optbench as ob
from optbench.bounds.streams.stream_bound import slotted_bound, stream_bound
from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.model.streams import with_stream
from optbench.model.verify import verify

TASKS, LAST_S = 6, 1000.0


def short_tasks(**objective: float) -> Instance:
    """Six tasks of 1 ms on one device, all released at 1,000 s: a relative 1e-9 of the time reached
    was 1 µs for each.
    """
    m = ob.Model("short", time="seconds")
    gpu = m.pool("gpu", idle_w=10.0)
    m.tasks(
        np.ones(TASKS),
        modes=[m.mode(gpu, time_s=1e-3, energy_j=1.0)],
        release_s=np.full(TASKS, LAST_S),
    )
    m.minimize(**objective)
    return with_stream(m.build())


def in_a_row(instance: Instance, earlier: int = 0) -> Schedule:
    """One after the other; each starts and ends ``earlier`` ticks before the one in front of it
    allows.
    """
    step = int(instance.pairs.duration[0])
    first = int(instance.tasks.release[0])
    start = first + (step - earlier) * np.arange(TASKS)
    return Schedule(np.arange(TASKS), np.zeros(TASKS, dtype=np.int64), start, start + step)


@pytest.mark.parametrize(
    "objective", [{"makespan_s": 1.0}, {"energy_j": 1.0}, {"flow_time_s": 1.0}]
)
def test_no_bound_contradicts_the_best_warm_start(objective: dict[str, float]) -> None:
    instance = short_tasks(**objective)
    assert (instance.tick_s, int(instance.pairs.duration[0])) == (1e-9, 1_000_000)
    best = in_a_row(instance)
    reached = verify(instance, best).objectives[0]
    for found in (
        stream_bound(instance),
        slotted_bound(instance, 1e-3),
        slotted_bound(instance, 100.0),
    ):
        assert found is not None and found.value <= reached
    # A ContradictionError would come out of here.
    result = ob.solve(instance, "highs", warm_start=best, time_limit_s=10.0)
    assert result.objective == reached
    assert isinstance(result.bound, float) and result.bound <= reached
    assert result.bound == pytest.approx(reached, rel=1e-6)


@pytest.mark.parametrize("earlier", [1, 999])
def test_a_warm_start_that_used_the_old_tolerance_is_infeasible(earlier: int) -> None:
    # Up to 1 µs was forgiven per task at 1,000 s, so that all six together ended 5 µs before they
    # could.
    instance = short_tasks(makespan_s=1.0)
    verdict = verify(instance, in_a_row(instance, earlier))
    assert [each.constraint for each in verdict.violations] == ["capacity"]


def test_the_same_stream_when_all_of_it_has_to_be_done() -> None:
    """Above the verified objective by 2e-6 was the bound of a stream that completes all its work;
    now it is below, and near.
    """
    instance = short_tasks(energy_j=1.0)
    later = replace(
        instance,
        tasks=replace(instance.tasks, release=instance.tasks.release + 100_000 * np.arange(TASKS)),
    )
    reached = verify(later, in_a_row(later)).objectives[0]
    found = stream_bound(later)
    assert found is not None and reached * (1 - 1e-5) <= found.value <= reached
