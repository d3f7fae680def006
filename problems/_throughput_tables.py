"""Throughputs of job types on GPU types, alone and beside each other: what a table file holds."""

from __future__ import annotations

from dataclasses import dataclass

from optbench.errors import ModelError
from optbench.shapes.colocation.colocation_data import Floats, JobType


@dataclass(frozen=True)
class ThroughputTables:
    """Arrays over GPU types g and job types t, s.

    ``alone_per_s[g, t]`` is the throughput of t alone, 0 where it does not run;
    ``beside_per_s[g, t, s]`` that of t beside s, 0 where the pair does not fit or shares no GPU."""

    gpu_names: tuple[str, ...]
    job_types: tuple[JobType, ...]
    alone_per_s: Floats
    beside_per_s: Floats

    def __post_init__(self) -> None:
        g, t = len(self.gpu_names), len(self.job_types)
        for name, size in (("alone_per_s", (g, t)), ("beside_per_s", (g, t, t))):
            if getattr(self, name).shape != size:
                raise ModelError(
                    f"{name} has the size {getattr(self, name).shape}; it must be {size}, from "
                    "gpu_names and job_types"
                )
