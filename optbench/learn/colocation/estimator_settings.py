"""Settings of the training of both networks, and their kinds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from optbench.errors import ParameterError

Kind = Literal["feed_forward", "recurrent", "transformer"]
KINDS: tuple[Kind, ...] = get_args(Kind)
# Called with the loss after each step of a training; an exception ends it.
OnStep = Callable[[float], None]
# First sight and refinement with the least validation error (docs/results/gogh_estimation.md).
KINDS_BY_VALIDATION: tuple[Kind, Kind] = ("recurrent", "feed_forward")


ALLOWED = {
    **dict.fromkeys(("steps", "rows", "cells", "most_tokens"), "at least 1"),
    "folds": "at least 2",
    "learning_rate": "above 0 and below 1",
    "network_seed": "at least 0",
    **dict.fromkeys(("weight_decay", "noise"), "at least 0 and below 1"),
}


@dataclass(frozen=True)
class EstimatorSettings:
    """Steps of each network, and the size of a batch: rows, cells of a row, measured cells at most.

    ``folds`` networks are trained of each, on all families but those of a fold."""

    steps: int = 300
    rows: int = 24
    cells: int = 256
    folds: int = 3
    learning_rate: float = 4e-3
    weight_decay: float = 1e-2
    # Measurements that a network reads at most; the low-rank posterior reads all.
    most_tokens: int = 24
    # Standard deviation of a simulated measurement, as a share of the throughput.
    noise: float = 0.03

    def __post_init__(self) -> None:
        for name in ("steps", "rows", "cells", "folds", "most_tokens"):
            self._require(getattr(self, name) >= (2 if name == "folds" else 1), name)
        self._require(0 < self.learning_rate < 1, "learning_rate")
        self._require(0 <= self.weight_decay < 1, "weight_decay")
        self._require(0 <= self.noise < 1, "noise")

    def _require(self, holds: bool, name: str) -> None:
        if not holds:
            words = f"{name} is {getattr(self, name)!r}; it must be {ALLOWED[name]}"
            raise ParameterError(f"training of networks for co-location: {words}")

    @property
    def all_steps(self) -> int:
        """Steps of all networks: first sight and refinement, of throughputs alone and of ratios."""
        return 4 * self.folds * self.steps
