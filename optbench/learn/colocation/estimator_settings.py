"""Settings of the training of both networks, and their kinds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal["feed_forward", "recurrent", "transformer"]
KINDS: tuple[Kind, ...] = get_args(Kind)
# First sight and refinement with the least validation error (docs/results/gogh_estimation.md).
KINDS_BY_VALIDATION: tuple[Kind, Kind] = ("recurrent", "feed_forward")


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
