"""Training of the read-outs for arriving work: the cross-entropy method on whole simulated streams.

Read-outs are drawn in opposite pairs around a mean, each number with a deviation of its own, and
played on some of the streams, at even distances and in turn, by the policy as it will be used.
Mean and deviation move to those of the best of them. What counts is the verified objective without
what the makespan costs, since the end of a stream comes with its last arrivals,

    v = objective - R makespan,        loss = mean over streams of (v - first) / |first|

with R what a tick of the makespan costs and ``first`` the value of the first read-outs; v may be
negative, and the loss of a run that leaves work undone is MOST_LOSS. The network stays as it is.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from optbench.learn.work_pool import OneProcess, WorkPool
from optbench.model.instance import Floats, Instance
from optbench.model.objective_prices import end_cost
from optbench.model.verify import verify
from optbench.plugins.training import OnPoint

from .network_design import AnsweringNetwork
from .online_play import OnlinePlay
from .situation import Surroundings, surroundings_of
from .stream_readouts import (
    SHAPES,
    StreamReadouts,
    first_readouts,
    readouts_from,
    which_readouts,
)

# Draws per step (even), the best of them, and streams on which each is played.
DRAWS, ELITE, STREAMS = 16, 5, 3
# First and least deviation, and how far mean and deviation move.
SPREAD, LEAST_SPREAD, MOVE = 0.3, 0.02, 0.5
# The loss of a stream that is not played to its end, and the most that any counts.
MOST_LOSS = 3.0


@dataclass(frozen=True, eq=False)
class StreamStage:
    """The network and the streams, on which read-outs are played."""

    network: AnsweringNetwork
    streams: list[tuple[Instance, Surroundings]]


def stage_of(given: tuple[AnsweringNetwork, list[Instance]]) -> StreamStage:
    """Return the streams of instances, with what is around them."""
    network, instances = given
    return StreamStage(network, [(each, surroundings_of(each)) for each in instances])


def value_on(stage: StreamStage, item: tuple[int, Floats]) -> float:
    """Return the verified objective of a run of one stream with these read-outs, without what the
    makespan costs; inf where work is left.
    """
    k, theta = item
    instance, around = stage.streams[k]
    play = OnlinePlay(instance, stage.network, readouts_from(theta), (), around)
    schedule = play.play(math.inf).schedule
    if schedule is None:
        return math.inf
    verdict = verify(instance, schedule)
    if not verdict.feasible:
        return math.inf
    return float(verdict.objectives[0]) - end_cost(instance) * verdict.metrics["makespan"]


class StreamTraining:
    """The read-outs while they are trained; ``best`` are those of the lowest validation loss."""

    def __init__(
        self,
        network: AnsweringNetwork,
        streams: list[Instance],
        validation: list[Instance],
        seed: int,
        start: StreamReadouts | None = None,
        trained: Collection[str] = tuple(SHAPES),
        pool: WorkPool | None = None,
    ) -> None:
        self.pool, self.rng = pool or OneProcess(), np.random.default_rng(seed)
        self.moving = which_readouts(trained)
        self.streams = range(len(streams))
        self.checks = range(len(streams), len(streams) + len(validation))
        self.stage = self.pool.workplace(stage_of, (network, [*streams, *validation]))
        self.theta = first_readouts() if start is None else start.flat()
        self.start, self.spread = self.theta.copy(), SPREAD * self.moving
        self.first: dict[int, float] = {}
        self.plain = self.values([(k, self.theta) for k in self.checks])
        self.best, self.least = self.theta.copy(), 0.0
        self.steps, self.history = 0, list[dict[str, float]]()

    def values(self, items: list[tuple[int, Floats]]) -> list[float]:
        """Return the value of each (stream, read-outs)."""
        return self.stage.map(value_on, items)

    def step(self) -> None:
        """Draw read-outs, play each on the same streams, and move to the best."""
        every = max(1, len(self.streams) // STREAMS)
        chosen = list(range(self.steps % every, len(self.streams), every))
        new = [k for k in chosen if k not in self.first]
        self.first |= zip(new, self.values([(k, self.start) for k in new]), strict=True)
        noise = self.rng.normal(size=(DRAWS // 2, len(self.theta)))
        drawn = self.theta + self.spread * np.concatenate((noise, -noise))
        found = iter(self.values([(k, row) for row in drawn for k in chosen]))
        scores = [np.mean([relative(next(found), self.first[k]) for k in chosen]) for _ in drawn]
        best = drawn[np.argsort(scores, kind="stable")[:ELITE]]
        self.theta = (1.0 - MOVE) * self.theta + MOVE * best.mean(axis=0)
        spread = np.maximum(LEAST_SPREAD * self.moving, best.std(axis=0))
        self.spread = (1.0 - MOVE) * self.spread + MOVE * spread
        self.steps += 1

    def check(self) -> float:
        """Return the mean loss of validation; keep the read-outs if it is the least."""
        values = self.values([(k, self.theta) for k in self.checks])
        loss = float(np.mean([relative(*pair) for pair in zip(values, self.plain, strict=True)]))
        if loss < self.least:
            self.best, self.least = self.theta.copy(), loss
        self.history.append({"stream_step": float(self.steps), "stream_loss": loss})
        return loss

    def processor_s(self) -> float:
        """Processor time of the training, wherever it was spent."""
        return time.process_time() + self.pool.cpu_s

    def train(
        self,
        seconds: float,
        steps: int,
        every: int,
        stopped: Callable[[], bool],
        on_point: OnPoint | None = None,
    ) -> float:
        """Train for so many steps, or with 0 of them for so many seconds of processor time; return
        the seconds spent.
        """
        began = self.processor_s()
        spent = share = 0.0
        while share < 1.0 and not stopped():
            self.step()
            if self.steps % every == 0:
                loss = self.check()
                if on_point is not None:
                    on_point(int(1000 * min(1.0, share)), 1000, {"loss": loss})
            spent = self.processor_s() - began
            share = self.steps / steps if steps else spent / seconds
        self.check()
        return spent


def relative(value: float, first: float) -> float:
    """Return how much more a value is than the first, as a share of it: at most MOST_LOSS, and
    that where work is left.
    """
    if not math.isfinite(value):
        return MOST_LOSS
    if not math.isfinite(first):
        return -MOST_LOSS
    return float(np.clip((value - first) / max(abs(first), 1e-9), -MOST_LOSS, MOST_LOSS))
