"""Replay of a decision from the data alone: what the verifier, pictures and regret are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.model.checks import Violation
from optbench.shapes.colocation.allocation_rules import broken_rules
from optbench.shapes.colocation.allocations import NOBODY, Allocation, Placement, wrong_columns
from optbench.shapes.colocation.colocation_data import Colocation, Floats, Ints
from optbench.shapes.colocation.colocation_process import (
    gpu_types_now,
    public_misfits,
    remaining,
)
from optbench.shapes.colocation.epoch_physics import NEVER, EpochEffects, epoch_effects


@dataclass(frozen=True)
class PlayedEpoch:
    """One epoch of a replay: its rows, what they did, and the jobs that changed the GPU type."""

    epoch: int
    rows: Placement
    effects: EpochEffects
    moves: int
    violations: tuple[Violation, ...]


@dataclass(frozen=True)
class TraceReplay:
    """All epochs of a decision; ``left`` is the work that remains per job."""

    played: tuple[PlayedEpoch, ...]
    left: Floats
    violations: tuple[Violation, ...]

    def by_epoch(self, num_epochs: int, name: str) -> Floats:
        """Return the sums of an array of ``EpochEffects`` by epoch."""
        out = np.zeros(num_epochs)
        for each in self.played:
            out[each.epoch] = float(getattr(each.effects, name).sum())
        return out


def rows_by_epoch(decision: Allocation) -> dict[int, Placement]:
    """Return the rows of each epoch that has any."""
    order = np.argsort(decision.epoch, kind="stable")
    epochs, begins = np.unique(decision.epoch[order], return_index=True)
    parts = np.split(order, begins[1:]) if len(epochs) else []
    return {
        int(epoch): Placement(
            decision.gpu_type[rows],
            decision.first[rows],
            decision.second[rows],
            decision.profile[rows],
        )
        for epoch, rows in zip(epochs, parts, strict=True)
    }


def replay(data: Colocation, decision: Allocation) -> TraceReplay:
    """Play a decision in the true throughputs, epoch after epoch, and check every rule."""
    wrong = wrong_columns(vars(decision))
    if wrong is not None:
        return TraceReplay((), data.jobs.work, (Violation("form", wrong),))
    outside = (decision.epoch < 0) | (decision.epoch >= data.horizon_epochs)
    if outside.any():
        epoch = int(decision.epoch[outside][0])
        words = f"a row is of epoch {epoch}; the horizon has {data.horizon_epochs}"
        return TraceReplay((), data.jobs.work, (Violation("epochs", words, float(outside.sum())),))
    left = data.jobs.work.copy()
    before: Ints = np.full(data.jobs.count, NEVER, dtype=np.int64)
    known = set(public_misfits(data))
    rows_of = rows_by_epoch(decision)
    played: list[PlayedEpoch] = []
    last = max(rows_of, default=-1)
    for epoch in range(data.horizon_epochs):
        if epoch > last and not remaining(data, epoch, left).any():
            break
        rows = rows_of.get(epoch, Placement.empty())
        broken = broken_rules(data, epoch, rows, left, known)
        if any(each.constraint == "form" for each in broken):
            return TraceReplay(tuple(played), left, tuple(broken))
        effects = epoch_effects(data, epoch, rows, left, before)
        moves = _moves(rows, before)
        left = left - effects.progress
        left[np.isfinite(effects.completed_s)] = 0.0
        before = gpu_types_now(before, rows, effects.members)
        known.update(effects.misfits)
        played.append(PlayedEpoch(epoch, rows, effects, moves, tuple(broken)))
    broken = [each for one in played for each in one.violations]
    unfinished = np.flatnonzero(~data.jobs.is_service & (left > 0))
    if len(unfinished):
        job = int(unfinished[0])
        words = (
            f"{len(unfinished):,} training jobs are not done at the horizon, after epoch "
            f"{data.horizon_epochs - 1}; job {job} lacks {left[job]:.6g} units"
        )
        broken.append(Violation("completed", words, float(len(unfinished))))
    return TraceReplay(tuple(played), left, tuple(broken))


def _moves(rows: Placement, before: Ints) -> int:
    """Jobs that go on with another GPU type than in the epoch before, or after waiting."""
    moved = set[int]()
    for jobs in (rows.first, rows.second):
        placed = jobs != NOBODY
        then = before[jobs[placed]]
        moved.update(jobs[placed][(then != NEVER) & (then != rows.gpu_type[placed])].tolist())
    return len(moved)


def offered_load(data: Colocation) -> float:
    """GPU-seconds that the jobs require per second, each alone on its median GPU type, per GPU.

    The seconds are those from the first arrival to the last one; a service requires its rate over
    the throughput for its stay, a training job its work over the throughput."""
    jobs = data.jobs
    span = float(jobs.arrival_s[-1] - jobs.arrival_s[0])
    gpus = sum(each.count for each in data.gpu_types)
    if span <= 0 or gpus == 0:
        return 0.0
    return float(required_gpu_s(data).sum()) / span / gpus


def required_gpu_s(data: Colocation) -> Floats:
    """GPU-seconds that each job requires, alone on its median GPU type."""
    jobs = data.jobs
    rate = data.median_alone_per_s()[jobs.job_type]
    units = np.where(jobs.is_service, jobs.required_per_s * jobs.stay_s, jobs.work)
    out: Floats = units / rate * data.gangs[jobs.job_type]
    return out
