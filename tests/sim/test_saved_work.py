"""Faults in the kernel where tasks have checkpoints: the verifier agrees with every part, and the
task goes on from what was saved.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import optbench as ob
from optbench.model.instance import Instance
from optbench.model.task_progress import progress
from optbench.sim.kernel.plant import Fault, plant_of
from optbench.sim.kernel.pointers import addresses
from optbench.sim.kernel.state import BUSY_J, LOST_J, MAKESPAN, NUM_PARTS, new_state, schedule_of
from optbench.sim.rules import list_rule, run_rule
from tests.reference.kernel_runs import disagreements
from tests.reference.mixed_instances import mixed_instance
from tests.sim import driver
from tests.sim.event_runs import one_pool, run


def with_checkpoints(instance: Instance, *every: float) -> Instance:
    """The preemptive instance whose tasks have these checkpoints in turn."""
    column = np.resize(np.array(every, dtype=float), instance.num_tasks)
    tasks = replace(instance.tasks, checkpoint=column)
    return replace(instance, preemptive=True, tasks=tasks)


def mixed(seed: int) -> Instance:
    instance, rng = mixed_instance(seed), np.random.default_rng([seed, 8])
    usual = float(np.median(instance.pairs.duration))
    choices = [0.0, 1.0, math.inf, max(1.0, usual // 3), max(1.0, usual // 2)]
    return with_checkpoints(instance, *rng.choice(choices, instance.num_tasks))


@pytest.mark.parametrize("seed", range(24))
def test_kernel_and_verifier_agree(seed: int) -> None:
    instance = mixed(seed)
    state, schedule = run(instance, seed, stops=30)
    if schedule is None:
        return
    assert disagreements(instance, state, schedule) == []
    assert state.total[LOST_J] == 0.0 or (instance.edges.data_gb > 0).any()


def test_some_work_was_interrupted() -> None:
    states = [run(mixed(seed), seed, stops=30)[0] for seed in range(8)]
    assert sum(int(state.tally[NUM_PARTS]) for state in states) > 20


@pytest.mark.parametrize("seed", range(12))
def test_no_task_runs_a_tick_too_long(seed: int) -> None:
    """With the last segment of any task one tick shorter, it is not complete."""
    instance = mixed(seed)
    _, schedule = run(instance, seed, stops=40)
    if schedule is None:
        return
    assert progress(instance, schedule).complete.all()
    order = np.lexsort((schedule.end, schedule.start, schedule.task))
    last = order[np.append(np.diff(schedule.task[order]) != 0, True)]
    long = last[schedule.end[last] > schedule.start[last]]
    end = schedule.end.copy()
    end[long] -= 1
    assert not progress(instance, replace(schedule, end=end)).complete[schedule.task[long]].any()


@pytest.mark.parametrize(
    ("every", "makespan", "busy_j"),
    [(0.0, 10.0, 1000.0), (3.0, 11.0, 1100.0), (math.inf, 17.0, 1700.0), (8.0, 17.0, 1700.0)],
)
def test_a_task_goes_on_from_its_last_checkpoint(
    every: float, makespan: float, busy_j: float
) -> None:
    """10 s at 100 W, stopped after 7: 7, 6 or none of them are saved."""
    instance = with_checkpoints(one_pool([10.0], idle_w=20.0), every)
    plant = plant_of(instance)
    state = new_state(plant, 1)
    assert driver.start_and_stop(addresses(plant), addresses(state), np.array([7.0])) == 0
    assert state.total[MAKESPAN] == makespan and state.total[LOST_J] == 0.0
    assert state.total[BUSY_J] == pytest.approx(busy_j)
    schedule = schedule_of(instance, plant, state)
    assert schedule is not None
    found = ob.verify(instance, schedule)
    assert found.feasible and found.metrics["busy_energy_j"] == pytest.approx(busy_j)
    assert found.metrics["lost_energy_j"] == pytest.approx(busy_j - 1000.0)


@pytest.mark.parametrize("policy", ["fcfs", "heft", "tuned_rule"])
def test_rules_play_failures(policy: str) -> None:
    """One device fails from 7 s to 9 s: 6 s are saved, and 4 s follow."""
    instance = with_checkpoints(one_pool([10.0], idle_w=20.0), 3.0)
    done = ob.simulate(instance, policy, faults=[Fault(7.0, 0, 1), Fault(9.0, 0, -1)])
    assert done.verified and done.metrics["makespan"] == 13.0
    assert done.metrics["lost_energy_j"] == pytest.approx(100.0) and done.lost_j == 0.0


def test_rules_lose_no_task_of_many() -> None:
    instance = with_checkpoints(one_pool([10.0, 4.0, 7.0, 9.0]), 2.0, math.inf, 0.0, 3.0)
    faults = [Fault(float(t + d), 0, 1 - 2 * (d > 0)) for t in (3, 8, 11, 15) for d in (0, 2)]
    schedule = run_rule(instance, list_rule(instance), faults).schedule
    assert schedule is not None and ob.verify(instance, schedule).feasible
