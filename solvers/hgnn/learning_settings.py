"""Settings of ``optbench train hgnn``: the parts of the network, the length and the stages of the
training.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from optbench.errors import ParameterError

from .network_settings import Convolution, NetworkSettings, Pooling, Sampling


@dataclass(frozen=True)
class HgnnTraining:
    """``cpu_minutes`` of processor time, or a fixed number of ``steps``, on ``instances`` of each
    problem.

    The first ``imitate`` share imitates schedules that lp_guided finds with ``expert_work``, and the
    LP's prices; the next ``label`` share imitates the best of ``samples`` answers drawn around those of
    the network; the rest is policy gradient with the mean of ``samples`` as the baseline, over
    ``batch`` instances per step. ``start`` is a checkpoint to go on from (a new cluster).
    With ``only_streams`` its network stays and the read-outs for arriving work are trained.
    ``convolution``, ``pooling``, ``sampling`` with ``keep``, and ``levels`` switch parts of the
    network off; ``rate`` is the first learning rate.
    """

    cpu_minutes: float = 20.0
    steps: int = 0
    instances: int = 12
    validation: int = 1
    imitate: float = 0.1
    label: float = 0.1
    samples: int = 8
    batch: int = 8
    rate: float = 6e-4
    expert_work: float = 0.2
    only_streams: bool = False
    check_every: int = 25
    start: str | None = None
    hidden: int = 32
    rounds: int = 2
    levels: Literal["hierarchy", "flat"] = "hierarchy"
    convolution: Convolution = "hybrid"
    pooling: Pooling = "all"
    sampling: Sampling = "none"
    keep: float = 0.15

    def __post_init__(self) -> None:
        for name in ("instances", "validation", "batch", "check_every", "hidden", "rounds"):
            self._require(getattr(self, name) >= 1, name, "at least 1")
        self._require(self.samples >= 2 and self.samples % 2 == 0, "samples", "even, at least 2")
        self._require(self.steps >= 0, "steps", "at least 0; 0 trains for cpu_minutes")
        for name in ("cpu_minutes", "rate", "expert_work"):
            self._require(0 < getattr(self, name) < float("inf"), name, "positive")
        for name in ("imitate", "label"):
            self._require(0 <= getattr(self, name) <= 1, name, "between 0 and 1")
        self._require(self.imitate + self.label <= 1, "label", "at most 1 - imitate")
        holds = not self.only_streams or self.start is not None
        self._require(holds, "only_streams", "no without start, a checkpoint")
        self._require(0 < self.keep <= 1, "keep", "above 0 and at most 1")
        self._require(self.hidden % 4 == 0, "hidden", "a multiple of 4, the heads of attention")

    def _require(self, holds: bool, name: str, allowed: str) -> None:
        if not holds:
            raise ParameterError(
                f"training of hgnn: {name} is {getattr(self, name)!r}; it must be {allowed}"
            )

    @property
    def network(self) -> NetworkSettings:
        return NetworkSettings(
            hidden=self.hidden, rounds=self.rounds, levels=self.levels,
            convolution=self.convolution, pooling=self.pooling, sampling=self.sampling,
            keep=self.keep,
        )  # fmt: skip
