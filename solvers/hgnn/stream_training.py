"""Training of the read-outs for arriving work: evolution strategies on whole simulated streams.

A direction is a Gaussian vector in the space of the read-outs, played with both signs on a stream by
the policy as it will be used; θ moves along Σ (v₋ − v₊) / deviation · ε. The rest of the network
stays as it is.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from optbench.model.instance import Floats, Instance
from optbench.model.verify import verify

from .forward_pass import ForwardPass
from .online_play import OnlinePlay
from .situation import Surroundings, surroundings_of
from .stream_readouts import StreamReadouts, num_readouts, readouts_from

# Deviation of a direction, length of a step of the whole vector, momentum.
SPREAD, STEP, MOMENTUM = 0.05, 0.06, 0.9
LAST_STEP = 0.1


class StreamTraining:
    """The read-outs while they are trained; ``best`` are those of the lowest validation loss."""

    def __init__(
        self,
        network: ForwardPass,
        streams: list[Instance],
        validation: list[Instance],
        pairs: int,
        seed: int,
        start: StreamReadouts | None = None,
    ) -> None:
        self.network, self.pairs, self.rng = network, pairs, np.random.default_rng(seed)
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
            noise = self.rng.normal(size=len(self.theta))
            up, down = (self.value(self.theta + s * SPREAD * noise, *stream) for s in (1, -1))
            if math.isfinite(up) and math.isfinite(down):
                move += np.clip((down - up) / (1e-3 * (up + down)), -3.0, 3.0) * noise
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
        every: int,
        stopped: Callable[[], bool],
        on_point: Callable[[int, int, dict[str, float]], None] | None = None,
    ) -> float:
        """Train for so many seconds of processor time; return those spent."""
        began = time.process_time()
        spent = 0.0
        while spent < seconds and not stopped():
            self.step(spent / seconds)
            if self.steps % every == 0:
                self.check()
                if on_point is not None:
                    done = int(1000 * min(1.0, spent / seconds))
                    on_point(done, 1000, {"loss": self.history[-1]["stream_loss"]})
            spent = time.process_time() - began
        self.check()
        return spent
