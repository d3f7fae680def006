"""Settings of ``optbench train learned_prices``: sizes of the imitation and of the evolution."""

from __future__ import annotations

from dataclasses import dataclass

from optbench.errors import ParameterError


@dataclass(frozen=True)
class PriceTraining:
    """``envs`` and ``validation`` count instances of each problem; the first ``imitate_on`` are
    solved for the imitation.

    A generation runs each of ``pairs`` directions in both signs, on one instance of each problem.
    Every ``check_every`` generations, and after the last, the parameters are evaluated on the
    validation instances; the best of these are written.
    """

    envs: int = 8
    validation: int = 3
    imitate_on: int = 4
    imitation_steps: int = 2500
    generations: int = 60
    pairs: int = 6
    check_every: int = 15
    sigma: float = 0.05
    step: float = 1.05
    slot_s: float = 3600.0

    def __post_init__(self) -> None:
        for name in ("envs", "validation", "imitate_on", "imitation_steps", "pairs", "check_every"):
            if getattr(self, name) < 1:
                raise ParameterError(
                    f"training: {name} is {getattr(self, name)!r}; it must be at least 1"
                )
        if self.generations < 0:
            raise ParameterError(
                f"training: generations is {self.generations!r}; it must be at least 0"
            )
        for name in ("sigma", "step", "slot_s"):
            if not getattr(self, name) > 0:
                raise ParameterError(
                    f"training: {name} is {getattr(self, name)!r}; it must be positive"
                )
        if self.imitate_on > self.envs:
            raise ParameterError(
                f"training: imitate_on is {self.imitate_on!r}; it must be at most envs, "
                f"{self.envs!r}"
            )
