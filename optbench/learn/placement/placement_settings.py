"""Settings of the training of agents that place parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from optbench.errors import ParameterError


@dataclass(frozen=True)
class PlacementTraining:
    """``tables`` and ``episodes`` are those of a round, ``kept`` is the number of improved
    episodes in the replay, from which a share ``replayed`` of the rounds learns, too.
    ``cpu_minutes`` and ``rounds`` end the training, whichever is first. ``talk_weight`` is λ of
    the reward.
    """

    agent: Literal["distributional", "policy_gradient"] = "distributional"
    instances: int = 16
    validation: int = 4
    cpu_minutes: float = 3.0
    rounds: int = 100_000
    tables: int = 8
    episodes: int = 8
    improved: int = 1
    trials: int = 3_000
    from_elite: float = 0.5
    replayed: float = 0.1
    steps: int = 16
    kept: int = 6_000
    learning_rate: float = 2e-3
    beta: float = 0.06
    imitation: float = 0.03
    optimism: float = 0.0
    most_weight: float = 5.0
    entropy: float = 0.002
    talk_weight: float = 0.0
    check_every: int = 30

    def __post_init__(self) -> None:
        for name in ("instances", "validation", "tables", "episodes", "steps", "kept"):
            if not getattr(self, name) >= 1:
                raise ParameterError(
                    f"training of placements: {name} is {getattr(self, name)}; at least 1"
                )
        if not 0 <= self.optimism < 1:
            raise ParameterError(
                f"training of placements: optimism is {self.optimism}; from 0 to below 1"
            )
