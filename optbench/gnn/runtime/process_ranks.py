"""The processes of a training, by the conventions of ``torchrun``.

RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT are read from the environment, and
TORCHELASTIC_RESTART_COUNT for the number of the attempt. The launcher of this package sets the
same names, except that its processes, all on one machine, meet in a file and not at a port.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

# Where the processes of one machine meet, as the launcher sets it.
MEETING = "OPTBENCH_MEETING"


@dataclass(frozen=True)
class ProcessRanks:
    """This process among all, and what it computes on."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    attempt: int = 0

    @classmethod
    def of_environment(cls) -> ProcessRanks:
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RESTART_COUNT")
        rank, size, local, attempt = (int(os.environ.get(name, "0")) for name in names)
        return cls(rank, max(size, 1), local, attempt)

    @property
    def device(self) -> torch.device:
        """A GPU of its own where the machine has enough of them."""
        local_size = int(os.environ.get("LOCAL_WORLD_SIZE", self.size))
        if torch.cuda.device_count() >= local_size > 0:
            return torch.device("cuda", self.local_rank)
        return torch.device("cpu")

    def join(self, timeout_s: float) -> None:
        """Meet the other processes."""
        if self.size == 1:
            return
        gpu = self.device.type == "cuda"
        if gpu:
            torch.cuda.set_device(self.device)
        dist.init_process_group(
            "nccl" if gpu else "gloo",
            init_method=os.environ.get(MEETING, "env://"),
            rank=self.rank,
            world_size=self.size,
            timeout=timedelta(seconds=timeout_s),
        )

    def leave(self) -> None:
        if self.size > 1:
            dist.barrier()
            dist.destroy_process_group()

    def add_up(self, values: Tensor) -> Tensor:
        """Replace values by their sums over all processes."""
        if self.size > 1:
            dist.all_reduce(values)
        return values

    def wait_for_all(self) -> None:
        if self.size > 1:
            dist.barrier()

    def from_first(self, thing: Any) -> Any:
        """Return what process 0 has."""
        held = [thing]
        if self.size > 1:
            dist.broadcast_object_list(held, src=0)
        return held[0]

    def gathered(self, thing: Any) -> list[Any]:
        """Return what every process has, in order of rank."""
        found: list[Any] = [thing] * self.size
        if self.size > 1:
            dist.all_gather_object(found, thing)
        return found
