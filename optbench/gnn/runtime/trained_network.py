"""Training a network on a graph in parts: from a job to its result and weights."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optbench.gnn.runtime.training_job import LabelledNodes, TrainingJob, write_job
from optbench.gnn.runtime.training_processes import start_processes

RESULT, WEIGHTS = "result.json", "weights.pt"


@dataclass(frozen=True)
class TrainingResult:
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


def train(folder: Path, job: TrainingJob, nodes: LabelledNodes) -> TrainingResult:
    """Train on this machine's cores or GPUs.

    A folder that holds a checkpoint of this job continues it. ``trained_weights`` reads what came
    of it.
    """
    write_job(folder, job, nodes)
    start_processes([folder])
    return read_result(folder)


def read_result(folder: Path) -> TrainingResult:
    return TrainingResult(**json.loads((folder / RESULT).read_text()))


def trained_weights(folder: Path) -> dict[str, Any]:
    """Return the parameters by name."""
    import torch

    found: dict[str, Any] = torch.load(folder / WEIGHTS, weights_only=True, map_location="cpu")
    return found
