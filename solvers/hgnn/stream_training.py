"""Training of the read-outs for arriving work: evolution strategies on whole simulated streams.

A direction ε is a Gaussian vector in the space of the read-outs, played with both signs on a stream
by the policy as it will be used. θ moves by a fixed length, which falls during training, along the
running mean of Σ clip((v₋ − v₊) / (0.001 (v₋ + v₊)), ±3) ε. The network stays as it is.
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

# Deviation of the read-outs along a direction, first length of a step, its last share, momentum.
SPREAD, STEP, LAST_STEP, MOMENTUM = 0.05, 0.06, 0.1, 0.9
# Differences count in units of this share of the sum, and are clipped to so many of them.
UNIT, MOST_UNITS = 1e-3, 3.0


class StreamTraining:
    """The read-outs while they are trained; ``best`` are those of the lowest validation loss."""

    def __init__(
        self,
        network: AnsweringNetwork,
        streams: list[Instance],
        validation: list[Instance],
        pairs: int,
        seed: int,
        start: StreamReadouts | None = None,
        trained: Collection[str] = tuple(SHAPES),
    ) -> None:
        self.network, self.pairs, self.rng = network, pairs, np.random.default_rng(seed)
        self.moving = which_readouts(trained)
        self.streams = [(each, surroundings_of(each)) for each in streams]
        self.checks = [(each, surroundings_of(each)) for each in validation]
        self.theta = np.zeros(num_readouts()) if start is None else start.flat()
        self.speed = np.zeros(num_readouts())
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

    def step(self, share: float) -> None:
        """Move once, by ``pairs`` directions on one stream each."""
        move = np.zeros(len(self.theta))
        for _ in range(self.pairs):
            stream = self.streams[int(self.rng.integers(len(self.streams)))]
            noise = self.moving * self.rng.normal(size=len(self.theta))
            up, down = (self.value(self.theta + s * SPREAD * noise, *stream) for s in (1, -1))
            if math.isfinite(up) and math.isfinite(down):
                units = (down - up) / (UNIT * (up + down))
                move += np.clip(units, -MOST_UNITS, MOST_UNITS) * noise
        self.speed = MOMENTUM * self.speed + (1.0 - MOMENTUM) * move
        length = float(np.linalg.norm(self.speed))
        if length > 0:
            scale = STEP * max(LAST_STEP, 1.0 - share)
            self.theta = self.theta + scale * self.speed / length
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
            self.step(share)
            if self.steps % every == 0:
                loss = self.check()
                if on_point is not None:
                    on_point(int(1000 * min(1.0, share)), 1000, {"loss": loss})
            spent = time.process_time() - began
            share = self.steps / steps if steps else spent / seconds
        self.check()
        return spent
