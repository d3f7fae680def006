"""What a training came to, in files of its folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RESULT, WEIGHTS = "result.json", "weights.pt"


@dataclass(frozen=True)
class GraphTrainingResult:
    """What a training came to; ``step_s`` are the steps of this attempt on the first process.

    ``solo_speeds`` are measured speeds of throttled devices, 1 for others.
    """

    losses: list[float]
    accuracy: dict[str, float]
    step_s: list[float]
    first_step: int
    attempt: int
    sent_mb_per_step: float
    solo_speeds: list[float]
    device_rows: list[list[dict[str, Any]]]
    backend: str


def read_result(folder: Path) -> GraphTrainingResult:
    return GraphTrainingResult(**json.loads((folder / RESULT).read_text()))


def trained_weights(folder: Path) -> dict[str, Any]:
    """Return the parameters by name."""
    import torch

    found: dict[str, Any] = torch.load(folder / WEIGHTS, weights_only=True, map_location="cpu")
    return found
