"""Policies over many instances in lockstep, one call per step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optbench.model.instance import Bools, Instance, Ints
from optbench.model.schedule import Schedule
from optbench.model.verify import Verdict
from optbench.sim.kernel.plant import Fault
from optbench.views.env.batch import Batch
from optbench.views.env.layout import EnvError, Layout, Observation, layout_of

# A policy: observations and masks of the running episodes, one row each, to one legal action each.
DecideBatch = Callable[[Observation, Bools], Any]


@dataclass(frozen=True, eq=False)
class PlayedEpisode:
    """One instance run to its end; without a schedule where no remaining task could start."""

    schedule: Schedule | None
    verdict: Verdict | None
    reward: float
    cost: float
    actions: Ints


def play_batch(
    instances: Sequence[Instance],
    decide_batch: DecideBatch,
    *,
    layout: Layout | None = None,
    level: int = 0,
    faults: Sequence[Sequence[Fault]] | None = None,
) -> list[PlayedEpisode]:
    """Run every instance to its end, all in lockstep, with one call of the policy per step."""
    batch = Batch(layout_of(*instances) if layout is None else layout, len(instances), level)
    for b, instance in enumerate(instances):
        batch.seat(b, instance, faults[b] if faults is not None else ())
    batch.open()
    rewards, costs = np.zeros((2, len(instances)))
    taken: list[list[int]] = [[] for _ in instances]
    actions = np.zeros(len(instances), dtype=np.int64)
    live = np.arange(len(instances))
    while len(live):
        seen = {name: part[live] for name, part in batch.observations.items()}
        decided = np.asarray(decide_batch(seen, batch.masks[live]), dtype=np.int64)
        if decided.shape != live.shape:
            raise EnvError(
                f"the policy returned shape {decided.shape}; it must return one action for each "
                f"of {len(live)} rows"
            )
        actions[live] = decided
        batch.step(actions, live)
        wrong = np.flatnonzero(batch.illegal[live])
        if len(wrong):
            b, action = int(live[wrong[0]]), int(decided[wrong[0]])
            legal = np.flatnonzero(batch.masks[b]).tolist()
            raise EnvError(
                f"{instances[b].name}: action {action} is not allowed now; allowed are {legal}"
            )
        for b, action in zip(live.tolist(), decided.tolist(), strict=True):
            taken[b].append(action)
        rewards[live] += batch.rewards[live]
        costs[live] += batch.costs[live]
        live = live[~batch.over[live]]
    return [
        PlayedEpisode(
            seat.schedule(),
            seat.verdict(),
            float(rewards[b]),
            float(costs[b]),
            np.asarray(taken[b], dtype=np.int64),
        )
        for b, seat in enumerate(batch[b] for b in range(len(instances)))
    ]
