"""Settings of training a policy for sites: the paper's mode, a corrected mode, and one switch for
each difference.

            paper                              corrected
    reward  −E_unit + α_n / n                  −(u / ū) (c − least c) / least e: energy above rest
                                               and time, relative to the best option of all, weighed
                                               by the work of the job
    penalty −Σ λ_k (c_k − τ_k)₊, per decision  λ c, signed, inside of the reward and of what is seen
    λ       projected: [λ + η (c − τ)]₊        integral of the relative error, on log λ
    credit  the latency that is decided        service when it is decided, waiting as it accrues
                                               (Little)
    seen    the sites                          the sites and every option, with its regret at the
                                               λ of now
    clock   of least energy per unit           of least energy + λ time
    network flat, two factorised heads; one    one network shared by all options; critics of their
            encoder for actor and critics      own
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from optbench.errors import ParameterError

# Budgets whose price is stored with the network; others are interpolated.
BUDGETS_S = (
    700.0,
    800.0,
    900.0,
    1000.0,
    1200.0,
    1490.0,
    1800.0,
    2190.0,
    2600.0,
    3100.0,
    3600.0,
    4200.0,
)

# At 1e-3 the encoder that actor and critics share collapses to one option for all inputs.
LEARNING_RATE = {"flat": 3e-4, "shared": 1e-3}
# The paper's rewards are some ten times larger than the corrected ones: at the learning rate of its
# networks the policy collapses before the temperature reaches the target entropy.
PAPER_TEMPERATURE_RATE, PAPER_TEMPERATURE, TEMPERATURE = 1e-2, 1.0, math.exp(-3.0)


@dataclass(frozen=True)
class SiteTraining:
    """``mode=paper`` sets everything as in the paper; a switch that is given explicitly overrides
    it.

    ``decisions`` is the length of training, by ``envs`` environments in lockstep, ``steps`` at a
    time, each followed by ``updates`` gradient steps on ``batch`` transitions. Prices of latency
    lie between ``lowest_w`` and ``highest_w``.
    """

    mode: Literal["corrected", "paper"] = "corrected"
    network: Literal["shared", "flat"] | None = None
    seen: Literal["regrets", "sites"] | None = None
    reward: Literal["regret", "paper"] | None = None
    dual: Literal["signed", "projected", "clipped"] | None = None
    clock: Literal["balanced", "cheapest"] | None = None
    masks: bool = True
    quantiles: int = 16
    hidden: int | None = None
    gamma: float = 0.99
    decisions: int = 400_000
    envs: int = 24
    steps: int = 32
    updates: int = 6
    batch: int = 256
    replay: int | None = None
    learning_rate: float | None = None
    temperature_rate: float | None = None
    temperature: float | None = None
    target_entropy: float = 0.3
    reward_scale: float = 10.0
    lowest_w: float = 3.0
    highest_w: float = 150.0
    budgets_s: tuple[float, ...] = BUDGETS_S
    calibrate: int = 90
    alpha_n: float = 0.05
    queue_max: float = 50.0
    dual_rate: float = 1e-4
    paper_budget_s: float = 1490.0

    def __post_init__(self) -> None:
        for name in (
            "envs",
            "steps",
            "updates",
            "batch",
            "quantiles",
            "decisions",
            "hidden",
            "replay",
        ):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ParameterError(f"training: {name} is {value!r}; it must be at least 1")
        if self.calibrate < 0:
            raise ParameterError(
                f"training: calibrate is {self.calibrate!r}; it must be at least 0"
            )
        for name in (
            "learning_rate",
            "temperature_rate",
            "temperature",
            "reward_scale",
            "lowest_w",
            "paper_budget_s",
        ):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ParameterError(f"training: {name} is {value!r}; it must be positive")
        if not 0 <= self.gamma < 1:
            raise ParameterError(
                f"training: gamma is {self.gamma!r}; it must be at least 0 and below 1"
            )
        if (
            not self.budgets_s
            or min(self.budgets_s) <= 0
            or list(self.budgets_s) != sorted(set(self.budgets_s))
        ):
            raise ParameterError(
                f"training: budgets_s is {list(self.budgets_s)}; it must be positive numbers, "
                "rising"
            )
        if self.highest_w <= self.lowest_w:
            raise ParameterError(
                f"training: highest_w is {self.highest_w!r}; it must be above lowest_w, "
                f"{self.lowest_w!r}"
            )

    @property
    def full(self) -> SiteTraining:
        """Return settings with every switch set."""
        paper = self.mode == "paper"
        network = self.network or ("flat" if paper else "shared")
        return replace(
            self,
            network=network,
            reward=self.reward or ("paper" if paper else "regret"),
            dual=self.dual or ("projected" if paper else "signed"),
            clock=self.clock or ("cheapest" if paper else "balanced"),
            seen=self.seen or ("sites" if paper else "regrets"),
            temperature=self.temperature or (PAPER_TEMPERATURE if paper else TEMPERATURE),
            temperature_rate=self.temperature_rate
            or (PAPER_TEMPERATURE_RATE if paper else LEARNING_RATE[network]),
            learning_rate=self.learning_rate or LEARNING_RATE[network],
            hidden=self.hidden or (256 if paper else 32),
            replay=self.replay or (200_000 if paper else 60_000),
        )

    @property
    def rolls(self) -> int:
        """The number of rollouts of the training."""
        return max(1, round(self.decisions / (self.envs * self.steps)))
