"""The decision of one epoch's allocation: a row per GPU (per gang) in use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optbench.errors import ModelError
from optbench.shapes.colocation.allocations import NOBODY, Placement
from optbench.shapes.colocation.colocation_data import Ints


@dataclass(frozen=True)
class EpochRows:
    """GPU type, job and other job (-1: none) of each row; jobs are numbered as in the demand."""

    gpu_type: Ints
    first: Ints
    second: Ints

    def __post_init__(self) -> None:
        if not len(self.gpu_type) == len(self.first) == len(self.second):
            raise ModelError("gpu_type, first and second of an allocation must be of one length")

    @property
    def num_rows(self) -> int:
        return len(self.gpu_type)

    @classmethod
    def of(cls, rows: Sequence[tuple[int, int, int]]) -> EpochRows:
        """Rows (GPU type, job, other job or -1)."""
        table = np.array(rows, dtype=np.int64).reshape(-1, 3)
        return cls(table[:, 0], table[:, 1], table[:, 2])

    def placement(self, jobs: Ints) -> Placement:
        """Return the rows as a policy's answer; ``jobs`` are the names of the demand's jobs."""
        second = np.where(self.second == NOBODY, NOBODY, jobs[self.second])
        profile = np.zeros(self.num_rows, dtype=np.bool_)
        return Placement(self.gpu_type, jobs[self.first], second, profile)
