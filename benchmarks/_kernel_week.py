"""A week of jobs at eight pools, played by the event kernel with a compiled caller of its own."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

import optbench as ob
from optbench.compiling.compiled import njit
from optbench.model.instance import Ints, Tasks
from optbench.sim.kernel.dispatch import Rule, rule_at, serve
from optbench.sim.kernel.events import advance, begin, enter, start
from optbench.sim.kernel.plant import Plant, plant_at, plant_of
from optbench.sim.kernel.pointers import addresses
from optbench.sim.kernel.queues import take
from optbench.sim.kernel.state import (
    EVENT_COUNT,
    NUM_DONE,
    NUM_FRESH,
    NUM_TOUCHED,
    State,
    new_state,
    state_at,
)
from optbench.sim.rules import list_rule, queue_of_tasks

RUNS = 3

WEEK_JOBS, WEEK_POOLS, WEEK_S = 97_000, 8, 7 * 86_400.0


@njit(cache=True)
def play_week(plant_row: Ints, state_row: Ints, rule_row: Ints, by_rule: bool) -> None:
    """First come, first served; tasks reach the queue of their pool after a delay, which is in
    ``base``.
    """
    plant, state, rule = plant_at(plant_row), state_at(state_row), rule_at(rule_row)
    begin(plant, state)
    while advance(plant, state, math.inf):
        decide(plant, state, rule, by_rule)


@njit(cache=True)
def decide(plant: Plant, state: State, rule: Rule, by_rule: bool) -> None:
    """The list rule's choice among 64 modes, or the same number of GPUs at one clock, without
    looking.
    """
    for f in range(state.tally[NUM_FRESH]):
        task = state.fresh[f]
        there = plant.release[task] + rule.base[task]
        enter(plant, state, task, rule.home[task], there, there)
    state.tally[NUM_FRESH] = 0
    for q in range(state.tally[NUM_TOUCHED]):
        queue = state.touched[q]
        state.is_touched[queue] = 0
        if queue < WEEK_POOLS and by_rule and state.root[queue] >= 0:
            serve(plant, state, rule, queue)
        while (
            queue < WEEK_POOLS and not by_rule and state.root[queue] >= 0 and state.free[queue] > 0
        ):
            task = take(plant, state, queue)
            start(
                plant,
                state,
                task,
                plant.kind_ptr[plant.kind[task]] + 8 * min(state.free[queue], 8) - 1,
            )
    state.tally[NUM_TOUCHED] = 0


def week(by_rule: bool) -> dict[str, float]:
    """97,000 jobs on 8 pools in 7 days: 64 modes each, as many GPUs as are free up to 8, arrivals
    delayed by up to 0.2 s.
    """
    m = ob.Model("week", tick_s=1e-8)  # what a week in seconds is given
    pools = [m.pool(f"dc{q}", count=16, idle_w=50.0) for q in range(WEEK_POOLS)]
    for pool in pools:
        modes = [m.mode({pool: n}, time_s=1 / (n**0.9 * f), energy_j=300 * f * f, clock=f)
                 for n in range(1, 9) for f in np.linspace(0.3, 1.0, 8).tolist()]  # fmt: skip
        m.task(units=1.0, kind=m.kind(modes=modes))
    m.minimize(energy_j=1.0)
    small, rng, n = m.build(), np.random.default_rng(0), WEEK_JOBS
    tasks = Tasks(
        kind=rng.integers(WEEK_POOLS, size=n), units=rng.lognormal(5.5, 0.7, n),
        release=small.to_ticks(np.sort(rng.uniform(0, WEEK_S, n))), deadline=np.full(n, math.inf),
        deadline_hard=np.ones(n, dtype=bool), weight=np.ones(n), memory_gb=np.zeros(n),
    )  # fmt: skip
    instance = replace(small, tasks=tasks)
    rule = list_rule(
        instance, base=rng.uniform(0.005, 0.2, n) / instance.tick_s, end_weight=1.0, strict=True
    )
    rule = rule._replace(home=queue_of_tasks(instance))
    plant = plant_of(instance)
    state = new_state(plant)
    rows = addresses(plant), addresses(state), addresses(rule)
    play_week(*rows, by_rule)
    seconds = []
    for _ in range(RUNS):
        began = time.perf_counter()
        play_week(*rows, by_rule)
        seconds.append(time.perf_counter() - began)
    assert state.tally[NUM_DONE] == n
    return {"kernel_s": min(seconds), "events": float(state.total[EVENT_COUNT])}
