"""The state of a training in a file: it is whole or the one before, and knows its job."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from optbench.errors import FileFormatError
from optbench.files import write_whole

FILE = "checkpoint.pt"


@dataclass
class TrainingState:
    """The next step, and the loss of each step before."""

    step: int = 0
    losses: list[float] = field(default_factory=list)


def write_checkpoint(
    folder: Path, job: str, state: TrainingState, network: nn.Module, optimizer: Any
) -> None:
    """Replace the checkpoint; a process that is killed meanwhile leaves the one before."""
    content = {
        "job": job,
        "step": state.step,
        "losses": state.losses,
        "network": network.state_dict(),
        "optimizer": optimizer.state_dict(),
    }
    file = io.BytesIO()
    torch.save(content, file)
    write_whole(folder / FILE, file.getvalue())


def read_checkpoint(folder: Path) -> bytes | None:
    """Return the content of the checkpoint, if there is one."""
    path = folder / FILE
    return path.read_bytes() if path.is_file() else None


def restored(content: bytes | None, job: str, network: nn.Module, optimizer: Any) -> TrainingState:
    """Put a checkpoint's state into network and optimizer; without one, training begins."""
    if content is None:
        return TrainingState()
    found = torch.load(io.BytesIO(content), weights_only=True, map_location="cpu")
    if found["job"] != job:
        raise FileFormatError(
            f"{FILE} belongs to a job with other settings or data. Remove it, or give the new job "
            "a folder of its own"
        )
    network.load_state_dict(found["network"])
    optimizer.load_state_dict(found["optimizer"])
    return TrainingState(found["step"], list(found["losses"]))
