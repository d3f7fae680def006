"""One run of random decisions three ways: by the environment, by the kernel driven by hand, and as
the verifier sees it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from optbench.compiling.compiled import njit
from optbench.model.instance import Floats, Instance, Ints
from optbench.model.schedule import Schedule
from optbench.model.verify import verify
from optbench.sim.kernel.events import advance, begin, can_start, close_accounts, pass_time, start
from optbench.sim.kernel.plant import CAPS, TASKS, Fault, Plant, plant_at, plant_of
from optbench.sim.kernel.pointers import addresses
from optbench.sim.kernel.state import (
    BUSY_J,
    CARBON,
    COST,
    DONE,
    FLOW,
    MAKESPAN,
    NOW,
    NUM_DONE,
    READY,
    REST_J,
    RUNNING,
    TARDY,
    TRANSFER_J,
    State,
    new_state,
    partial_schedule,
    state_at,
)  # fmt: skip
from optbench.views.env import SchedulingEnv

# What a policy may break; everything else the kernel has to keep.
OF_THE_POLICY = ("deadline", "horizon", "limit")
# Metrics that rest is a part of.
OF_REST = ("energy_j", "cost_usd", "carbon_g")
RELATIVE = 1e-9
# (environment, legal actions) → action.
Choose = Callable[[SchedulingEnv, Ints], int]


@dataclass(frozen=True, eq=False)
class Episode:
    """An episode and the decisions it came from: rows of (time, task, mode), and how many waits."""

    env: SchedulingEnv
    decisions: list[tuple[float, int, int]]
    waits: int
    reward: float
    cost: float
    schedule: Schedule | None
    objective: object
    observations: bytes


def at_random(rng: np.random.Generator) -> Choose:
    """Any legal action; waiting, which slows everything down, a little less often."""

    def choose(env: SchedulingEnv, legal: Ints) -> int:
        starts = legal[legal != env.layout.wait]
        if len(starts) == 0 or (len(starts) < len(legal) and rng.random() < 0.15):
            return env.layout.wait
        return int(rng.choice(starts))

    return choose


def by_keys(keys: np.ndarray) -> Choose:
    """The task and mode with the least key of task identity and mode; waits where that key is high
    and it is allowed.
    """

    def choose(env: SchedulingEnv, legal: Ints) -> int:
        starts = legal[legal != env.layout.wait]
        if len(starts) == 0:
            return env.layout.wait
        task, offset = env.slot_task[starts // env.layout.modes], starts % env.layout.modes
        key = keys[task, offset]
        best = int(key.argmin())
        return (
            env.layout.wait if key[best] > 0.7 and len(starts) < len(legal) else int(starts[best])
        )

    return choose


def play(env: SchedulingEnv, choose: Choose, seed: int = 0) -> Episode:
    """One episode from ``reset(seed)`` to its end."""
    seen, info = env.reset(seed=seed)
    record = [*(part.tobytes() for part in seen.values())]
    decisions, waits, reward, cost, over = [], 0, 0.0, 0.0, False
    while not over:
        legal = np.flatnonzero(info["action_mask"])
        action = choose(env, legal)
        if action == env.layout.wait:
            waits += 1
        else:
            task = int(env.slot_task[action // env.layout.modes])
            mode = (
                int(env.instance.modes.kind_ptr[env.instance.tasks.kind[task]])
                + action % env.layout.modes
            )
            decisions.append((info["time"], task, mode))
        seen, r, over, cut, info = env.step(action)
        assert not cut, "an episode of legal actions was truncated"
        reward, cost = reward + r, cost + info["cost"]
        record += [part.tobytes() for part in seen.values()]
    return Episode(
        env, decisions, waits, reward, cost, info["schedule"], info["objective"], b"".join(record)
    )


@njit(cache=True)
def drive(plant_row: Ints, state_row: Ints, times: Floats, task: Ints, mode: Ints) -> int:
    """Begin, let time pass to each decision, start; returns the decisions that were possible (all
    of them, or it is wrong).
    """
    plant, state = plant_at(plant_row), state_at(state_row)
    begin(plant, state)
    for k in range(len(task)):
        while not can_start(plant, state, task[k], mode[k]) or state.total[NOW] < times[k]:
            if not advance(plant, state, times[k]):
                if state.total[NOW] >= times[k]:
                    return k
                pass_time(plant, state, times[k])
        start(plant, state, task[k], mode[k])
    while advance(plant, state):
        pass
    if state.tally[NUM_DONE] == plant.size[TASKS]:
        close_accounts(plant, state)
    return len(task)


def driven(
    instance: Instance, decisions: Sequence[tuple[float, int, int]], faults: Sequence[Fault] = ()
) -> tuple[Plant, State]:
    """The kernel driven directly with these decisions."""
    plant = plant_of(instance, faults)
    state = new_state(plant)
    times, task, mode = (
        np.array(column, dtype=dtype)
        for column, dtype in zip(
            zip(*decisions, strict=True) if decisions else ((), (), ()),
            (np.float64, np.int64, np.int64),
            strict=True,
        )
    )
    possible = drive(addresses(plant), addresses(state), times, task, mode)
    assert possible == len(decisions), (
        f"{instance.name}: decision {possible} of {len(decisions)} is not possible"
    )
    return plant, state


def totals(state: State) -> dict[str, float]:
    """The kernel's own metrics."""
    x = state.total
    return {
        "makespan": float(x[MAKESPAN]),
        "energy_j": float(x[BUSY_J] + x[TRANSFER_J] + x[REST_J]),
        "flow_time_s": float(x[FLOW]),
        "tardiness_s": float(x[TARDY]),
        "cost_usd": float(x[COST]),
        "carbon_g": float(x[CARBON]),
    }


def disagreements(instance: Instance, state: State, schedule: Schedule) -> list[str]:
    """Where the kernel's totals differ from the verifier's metrics, and violations that the kernel
    should have prevented.
    """
    verdict = verify(instance, schedule)
    out = [
        str(each) for each in verdict.violations if not each.constraint.startswith(OF_THE_POLICY)
    ]
    late = any(each.constraint == "horizon" for each in verdict.violations)
    for name, value in totals(state).items():
        right = verdict.metrics[name]
        if (
            late and name in OF_REST
        ):  # rest is paid up to the horizon, and what it is after that has no meaning
            continue
        if not math.isclose(value, right, rel_tol=RELATIVE, abs_tol=1e-12):
            out.append(f"{name} is {value!r} in the kernel, {right!r} for the verifier")
    return out


def why_not_dead(instance: Instance, plant: Plant, state: State) -> list[str]:
    """Of a run that stopped early: ready tasks that could have started, by the instance's own
    arrays; empty when it is right.
    """
    wrong = [f"task {task} runs" for task in np.flatnonzero(state.status == RUNNING).tolist()]
    done = state.status == DONE
    for task in np.flatnonzero(~done).tolist():
        before = instance.edges.source[instance.edges.target == task]
        if done[before].all() != (state.status[task] == READY):
            wrong.append(
                f"task {task} has status {state.status[task]}, its predecessors "
                f"{state.status[before]}"
            )
        if done[before].all():
            wrong += [
                f"task {task} could start in mode {mode}"
                for mode in _open_modes(instance, plant, state, task, before)
            ]
    return wrong


def _open_modes(
    instance: Instance, plant: Plant, state: State, task: int, before: Ints
) -> list[int]:
    """Modes in which a task could start on the empty plant: fitting, linked, under every cap."""
    kind, modes = instance.tasks.kind[task], instance.modes
    data = instance.edges.data_gb[instance.edges.target == task]
    out = []
    for mode in range(int(modes.kind_ptr[kind]), int(modes.kind_ptr[kind + 1])):
        linked = np.isfinite(
            instance.lag(modes.primary[state.mode[before]], modes.primary[mode], data)
        ).all()
        caps = plant.size[CAPS]
        kept = all(plant.cap_net_w[mode * caps + c] <= plant.cap_room_w[c] for c in range(caps))
        if instance.fits(task, mode) and linked and kept:
            out.append(mode)
    return out


def whole_trace(instance: Instance, plant: Plant, state: State) -> bytes:
    """Everything that has ended, as bytes."""
    schedule = partial_schedule(instance, plant, state)
    columns = (schedule.task, schedule.mode, schedule.start, schedule.end)
    return b"".join(np.ascontiguousarray(column).tobytes() for column in columns)


__all__ = [
    "Episode",
    "at_random",
    "by_keys",
    "disagreements",
    "driven",
    "play",
    "totals",
    "whole_trace",
    "why_not_dead",
]
