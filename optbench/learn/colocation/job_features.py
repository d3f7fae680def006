"""What the user of a new job states, as numbers, and how similar it makes two job types.

The similarity of job types t and s is

    κ(t, s) = exp(−|log2 b_t − log2 b_s| / 2 − |log2 n_t − log2 n_s|) ρ(t, s)

with batch sizes b, numbers of GPUs n, and ρ = 1 for jobs of one name and family, 3/4 for other jobs
of one family, and 1/50 for jobs of two families.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optbench.shapes.colocation.colocation_data import Bools, Floats, Ints, JobType

OTHER_FAMILY, OTHER_NAME = 0.02, 0.75


@dataclass(frozen=True)
class JobFeatures:
    """Numbers of job types: family index, log2 of batch size and GPUs, and whether names agree."""

    family: Ints
    log_batch: Floats
    log_gpus: Floats
    same_name: Bools

    @classmethod
    def of(cls, job_types: Sequence[JobType]) -> JobFeatures:
        families = sorted({each.family for each in job_types})
        stems = [each.name.partition(" (")[0] for each in job_types]
        number = {stem: k for k, stem in enumerate(sorted(set(stems)))}
        stem = np.array([number[each] for each in stems])
        return cls(
            np.array([families.index(each.family) for each in job_types], dtype=np.int64),
            np.log2(np.array([max(each.batch_size, 1.0) for each in job_types])),
            np.log2(np.array([float(each.gpus) for each in job_types])),
            stem[:, None] == stem[None, :],
        )

    def same_family(self) -> Bools:
        out: Bools = self.family[:, None] == self.family[None, :]
        return out

    def similarity(self) -> Floats:
        """κ of every two job types."""
        batch = np.abs(self.log_batch[:, None] - self.log_batch[None, :])
        gpus = np.abs(self.log_gpus[:, None] - self.log_gpus[None, :])
        alike = np.where(self.same_name, 1.0, OTHER_NAME)
        alike = np.where(self.same_family(), alike, OTHER_FAMILY)
        out: Floats = np.exp(-batch / 2 - gpus) * alike
        return out
