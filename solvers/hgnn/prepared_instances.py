"""Instances prepared for training: features are made once, rules are played many times, and
targets to imitate are computed on demand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optbench.api import solve
from optbench.bounds.milestones import find_milestones
from optbench.model.instance import Floats, Instance
from optbench.model.schedule import Schedule
from optbench.model.verify import verify

from .answer_player import AnswerPlayer
from .answers import Answers, plain_answers
from .instance_kinds import is_judged_by_its_end, value_of_end
from .situation import Situation, situation_of

# Logarithms of prices of classes that are imitated lie within this distance of that of a mean
# device.
MOST_PRICE = 2.5


@dataclass(frozen=True, eq=False)
class ImitationTargets:
    """What an expert's schedule and the LP say: ``stretch`` is the log of makespan over span,
    ``position`` the logit of where each task's end lies between its earliest and its latest one,
    ``movable`` the share of that room in all room, ``price`` the log price of each class over the
    plain one (nan: unknown).
    """

    stretch: float
    position: Floats
    movable: Floats
    price: Floats


class PreparedInstance:
    """One instance; ``best`` are the answers of the lowest objective so far."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.situation: Situation = situation_of(instance)
        self.player = AnswerPlayer(instance, self.situation)
        self.by_end = is_judged_by_its_end(instance)
        seen = self.situation.seen
        plain = plain_answers(len(seen.task), len(seen.device), len(seen.sets))
        self.plain = self.value(plain)
        self.best, self.least = plain, self.plain

    def schedule(self, answers: Answers) -> Schedule | None:
        return self.player.play(answers)

    def value(self, answers: Answers) -> float:
        """Return the objective of the schedule of these answers: verified, inf where a constraint
        is broken or a task never runs. Where the end alone decides it is that of the kernel.
        """
        schedule = self.schedule(answers)
        if schedule is None:
            return math.inf
        if self.by_end:
            return value_of_end(self.instance, schedule)
        verdict = verify(self.instance, schedule)
        return float(verdict.objectives[0]) if verdict.feasible else math.inf

    def keep(self, answers: Answers, value: float) -> None:
        if value < self.least:
            self.best, self.least = answers, value


@dataclass(frozen=True)
class ExpertOrder:
    """The instance that an expert solves, with its work limit and seed."""

    instance: int
    expert: str
    work: float
    seed: int


def prepared_all(instances: Sequence[Instance]) -> list[PreparedInstance]:
    """Return the instances prepared for training."""
    return [PreparedInstance(instance) for instance in instances]


def value_of(prepared: Sequence[PreparedInstance], item: tuple[int, Answers]) -> float:
    """Return the objective of answers for one of the instances."""
    k, answers = item
    return prepared[k].value(answers)


def expert_schedule(prepared: Sequence[PreparedInstance], order: ExpertOrder) -> Schedule | None:
    """Return the schedule that an expert finds."""
    instance = prepared[order.instance].instance
    return solve(
        instance, order.expert, time_limit_s=None, work_limit=order.work, seed=order.seed,
        bound=False,
    ).schedule  # fmt: skip


def targets_of(prepared: PreparedInstance, expert: Schedule | None) -> ImitationTargets | None:
    """Return what can be imitated: ends of the expert's schedule, or of the LP where there is
    none, and the LP's prices of classes; None where there is neither.
    """
    instance, situation = prepared.instance, prepared.situation
    found = find_milestones(instance)
    if expert is not None:
        end = np.zeros(instance.num_tasks)
        np.maximum.at(end, expert.task, expert.end.astype(float))
        makespan = float(expert.end.max(initial=1))
    elif found is not None:
        end, makespan = found.end, found.makespan
    else:
        return None
    latest = np.maximum(situation.early, makespan - situation.tail)
    room = latest - situation.early
    position = np.clip((end - situation.early) / np.maximum(1.0, room), 0.02, 0.98)
    price = np.full(len(situation.seen.device), np.nan)
    if found is not None:
        paid = np.maximum(found.pool_price / situation.tables.device_price, 1e-9)
        price[situation.tables.view.pool_class] = np.clip(np.log(paid), -MOST_PRICE, MOST_PRICE)
    weight = room / max(1e-9, float(room.sum()))
    stretch = math.log(max(1.0, makespan) / situation.span)
    return ImitationTargets(stretch, np.log(position / (1.0 - position)), weight, price)
