"""Settings of ``optbench train``: the length and the stages of a training, and the parts of the
network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from optbench.errors import ParameterError

from .answer_noise import SPREADS
from .hierarchical_design import HierarchicalDesign
from .network_design import NetworkDesign
from .network_settings import Convolution, NetworkSettings, Pooling, Sampling

EXPERTS = ("lp_guided", "cpsat")
ANSWERS = {"all": tuple(SPREADS), "tasks": ("whole", "task")}


@dataclass(frozen=True)
class ListRuleTraining:
    """How a network that fills in a list rule is trained, whatever its design."""

    solver: ClassVar[str]

    cpu_minutes: float = 20.0
    steps: int = 0
    instances: int = 12
    validation: int = 1
    imitate: float = 0.1
    label: float = 0.1
    samples: int = 8
    batch: int = 8
    rate: float = 6e-4
    hold: float = 0.0
    expert: Literal["lp_guided", "cpsat"] = "lp_guided"
    expert_work: float = 0.2
    only_streams: bool = False
    check_every: int = 25
    start: str | None = None

    def __post_init__(self) -> None:
        for name in ("instances", "validation", "batch", "check_every"):
            self._require(getattr(self, name) >= 1, name, "at least 1")
        self._require(self.samples >= 2 and self.samples % 2 == 0, "samples", "even, at least 2")
        self._require(self.steps >= 0, "steps", "at least 0; 0 trains for cpu_minutes")
        for name in ("cpu_minutes", "rate", "expert_work"):
            self._require(0 < getattr(self, name) < float("inf"), name, "positive")
        self._require(0 <= self.hold < float("inf"), "hold", "at least 0")
        for name in ("imitate", "label"):
            self._require(0 <= getattr(self, name) <= 1, name, "between 0 and 1")
        self._require(self.imitate + self.label <= 1, "label", "at most 1 - imitate")
        self._require(self.expert in EXPERTS, "expert", f"one of {', '.join(EXPERTS)}")
        holds = not self.only_streams or self.start is not None
        self._require(holds, "only_streams", "no without start, a checkpoint")

    def _require(self, holds: bool, name: str, allowed: str) -> None:
        if not holds:
            raise ParameterError(
                f"training of {self.solver}: {name} is {getattr(self, name)!r}; it must be "
                f"{allowed}"
            )

    @property
    def design(self) -> NetworkDesign:
        """The network that is trained."""
        raise NotImplementedError

    @property
    def answered(self) -> tuple[str, ...]:
        """The answers that are learned."""
        return self.design.answered


@dataclass(frozen=True)
class HgnnTraining(ListRuleTraining):
    """``cpu_minutes`` of processor time, or a fixed number of ``steps``, on ``instances`` of each
    problem; read-outs for arriving work take 3/7 of either on top.

    The first ``imitate`` share of it imitates schedules that lp_guided finds with ``expert_work``,
    and the LP's prices; with ``expert=cpsat`` those of cpsat up to 60 tasks. The next ``label``
    share imitates the best answers so far of each instance, after ``samples`` more are drawn around
    those of the network. The rest is policy gradient with the mean of ``samples`` as the baseline.
    A step takes ``batch`` instances; validation is every ``check_every`` steps. ``start`` is a
    checkpoint to go on from (a new cluster). With ``only_streams`` its network stays and the
    read-outs for arriving work are trained. ``convolution``, ``pooling``, ``sampling`` with
    ``keep``, and ``levels`` switch parts of the network off; ``rate`` is the first learning rate.
    ``hold`` is the weight of squared answers for the whole and for tasks in policy gradient, which
    keeps them where their noise still changes the schedule. With ``answers=tasks`` only answers for
    the whole and for tasks are learned, and those for devices and sets stay those of no network.
    """

    solver: ClassVar[str] = "hgnn"

    hidden: int = 32
    rounds: int = 2
    levels: Literal["hierarchy", "flat"] = "hierarchy"
    convolution: Convolution = "hybrid"
    pooling: Pooling = "all"
    sampling: Sampling = "none"
    keep: float = 0.15
    answers: Literal["all", "tasks"] = "all"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("hidden", "rounds"):
            self._require(getattr(self, name) >= 1, name, "at least 1")
        self._require(0 < self.keep <= 1, "keep", "above 0 and at most 1")
        self._require(self.answers in ANSWERS, "answers", f"one of {', '.join(ANSWERS)}")
        self._require(self.hidden % 4 == 0, "hidden", "a multiple of 4, the heads of attention")

    @property
    def network(self) -> NetworkSettings:
        return NetworkSettings(
            hidden=self.hidden, rounds=self.rounds, levels=self.levels,
            convolution=self.convolution, pooling=self.pooling, sampling=self.sampling,
            keep=self.keep,
        )  # fmt: skip

    @property
    def design(self) -> NetworkDesign:
        return HierarchicalDesign(self.network)

    @property
    def answered(self) -> tuple[str, ...]:
        return ANSWERS[self.answers]
