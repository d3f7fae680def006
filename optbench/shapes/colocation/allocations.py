"""The decision of a co-location instance: which jobs stand on which GPUs in each epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optbench.errors import ModelError
from optbench.shapes.colocation.colocation_data import Bools, Ints

# ``second`` of a row with one job.
NOBODY = -1


def wrong_columns(columns: dict[str, Any]) -> str | None:
    """Return what is wrong with the types of columns of rows: whole numbers, and truth values."""
    for name, column in columns.items():
        wanted = np.bool_ if name == "profile" else np.int64
        if not isinstance(column, np.ndarray) or column.ndim != 1 or column.dtype != wanted:
            kind = f"of {column.dtype}" if isinstance(column, np.ndarray) else "no array"
            return f"{name} is {kind}; it must be a one-dimensional array of {wanted.__name__}"
    return None


@dataclass(frozen=True)
class Allocation:
    """A row per GPU (per gang of GPUs) in use: epoch, GPU type, its one or two jobs.

    A row with ``profile`` runs its one job for the time of a profile run only."""

    epoch: Ints
    gpu_type: Ints
    first: Ints
    second: Ints
    profile: Bools

    def __post_init__(self) -> None:
        sizes = {len(self.epoch), len(self.gpu_type), len(self.first), len(self.second)}
        if sizes != {len(self.profile)}:
            raise ModelError("the columns of an allocation must be of one length")

    @property
    def num_rows(self) -> int:
        return len(self.epoch)

    @classmethod
    def of_epochs(cls, epochs: Sequence[Placement], at: Sequence[int]) -> Allocation:
        """Put the placements of these epochs one below the other."""
        epoch = [
            np.full(each.num_rows, e, dtype=np.int64) for e, each in zip(at, epochs, strict=True)
        ]
        empty = Placement.empty()
        parts = [empty, *epochs]
        return cls(
            np.concatenate([np.zeros(0, dtype=np.int64), *epoch]),
            np.concatenate([each.gpu_type for each in parts]),
            np.concatenate([each.first for each in parts]),
            np.concatenate([each.second for each in parts]),
            np.concatenate([each.profile for each in parts]),
        )


@dataclass(frozen=True)
class Placement:
    """The rows of one epoch: what a policy decides."""

    gpu_type: Ints
    first: Ints
    second: Ints
    profile: Bools

    @property
    def num_rows(self) -> int:
        return len(self.gpu_type)

    def frozen(self) -> Placement:
        """A copy that nobody can change."""
        out = Placement(
            self.gpu_type.copy(), self.first.copy(), self.second.copy(), self.profile.copy()
        )
        for column in vars(out).values():
            column.setflags(write=False)
        return out

    @classmethod
    def empty(cls) -> Placement:
        return cls.of_rows([])

    @classmethod
    def of_rows(
        cls, rows: Sequence[tuple[int, int, int]], profiled: Sequence[tuple[int, int]] = ()
    ) -> Placement:
        """Rows (GPU type, job, other job or -1), and profile runs (GPU type, job)."""
        table = [*rows, *((g, job, NOBODY) for g, job in profiled)]
        columns = np.array(table, dtype=np.int64).reshape(-1, 3)
        profile = np.zeros(len(table), dtype=np.bool_)
        profile[len(rows) :] = True
        return cls(columns[:, 0], columns[:, 1], columns[:, 2], profile)
