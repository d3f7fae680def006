"""Training of the read-outs for arriving work: the cross-entropy method on whole simulated streams.

Read-outs are drawn around a mean, each number with a deviation of its own, and played on some
streams by the policy as it will be used. Mean and deviation move to those of the best of them, by
the mean logarithm of the objective over that of the first read-outs. The network stays as it is.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection

import numpy as np

from optbench.model.instance import Floats, Instance
from optbench.model.verify import verify
from optbench.plugins.training import OnPoint

from .network_design import AnsweringNetwork
from .online_play import OnlinePlay
from .situation import Surroundings, surroundings_of
from .stream_readouts import (
    SHAPES,
    StreamReadouts,
    num_readouts,
    readouts_from,
    which_readouts,
)

# Draws per step, the best of them, and streams on which each is played.
DRAWS, ELITE, STREAMS = 20, 5, 4
# First and least deviation, and how far mean and deviation move.
SPREAD, LEAST_SPREAD, MOVE = 0.3, 0.02, 0.7


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
    ) -> None:
        self.network, self.rng = network, np.random.default_rng(seed)
        self.moving = which_readouts(trained)
        self.streams = [(each, surroundings_of(each)) for each in streams]
        self.checks = [(each, surroundings_of(each)) for each in validation]
        self.theta = np.zeros(num_readouts()) if start is None else start.flat()
        self.spread = SPREAD * self.moving
        self.first: dict[int, float] = {}
        self.plain = [self.value(self.theta, *each) for each in self.checks]
        self.best, self.least = self.theta.copy(), 1.0
        self.steps, self.history = 0, list[dict[str, float]]()

    def value(self, theta: Floats, instance: Instance, around: Surroundings) -> float:
        """Return the verified objective of a run with these read-outs."""
        play = OnlinePlay(instance, self.network, readouts_from(theta), (), around)
        schedule = play.play(math.inf).schedule
        if schedule is None:
            return math.inf
        verdict = verify(instance, schedule)
        return float(verdict.objectives[0]) if verdict.feasible else math.inf

    def step(self) -> None:
        """Draw read-outs, play each on the same streams, and move to the best."""
        count = min(STREAMS, len(self.streams))
        chosen = self.rng.choice(len(self.streams), size=count, replace=False).tolist()
        for k in chosen:
            if k not in self.first:
                self.first[k] = self.value(self.theta, *self.streams[k])
        drawn = self.theta + self.spread * self.rng.normal(size=(DRAWS, len(self.theta)))
        scores = [
            np.mean([math.log(self.value(row, *self.streams[k]) / self.first[k]) for k in chosen])
            for row in drawn
        ]
        best = drawn[np.argsort(scores)[:ELITE]]
        self.theta = (1.0 - MOVE) * self.theta + MOVE * best.mean(axis=0)
        spread = np.maximum(LEAST_SPREAD * self.moving, best.std(axis=0))
        self.spread = (1.0 - MOVE) * self.spread + MOVE * spread
        self.steps += 1

    def check(self) -> float:
        """Return the mean ratio to the first validation; keep the read-outs if it is the least."""
        values = [self.value(self.theta, *each) for each in self.checks]
        loss = float(np.mean(np.asarray(values) / np.asarray(self.plain)))
        if loss < self.least:
            self.best, self.least = self.theta.copy(), loss
        self.history.append({"stream_step": float(self.steps), "stream_loss": loss})
        return loss

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
        began = time.process_time()
        spent = share = 0.0
        while share < 1.0 and not stopped():
            self.step()
            if self.steps % every == 0:
                loss = self.check()
                if on_point is not None:
                    on_point(int(1000 * min(1.0, share)), 1000, {"loss": loss})
            spent = time.process_time() - began
            share = self.steps / steps if steps else spent / seconds
        self.check()
        return spent
