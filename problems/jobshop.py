"""The job shop.

Every job is a chain of operations, one on each machine, in an order of its own; a machine runs one
operation at a time. Instances are generated as by Taillard (1993): durations are uniform on
[low, high], machine orders uniform among permutations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.arguments import require, require_range
from optbench.formats.classical import Shop, shop_instance
from optbench.model.instance import Instance
from optbench.model.validate import validate
from optbench.plugins.protocol import Problem

from ._files import from_file


@dataclass(frozen=True)
class JobShop(Problem):
    """Job shop, from a file (or jobshop/NAME) or generated: minimise the makespan."""

    file: str = ""
    jobs: int = 10
    machines: int = 5
    low: int = 1
    high: int = 99

    def __post_init__(self) -> None:
        require(self.jobs >= 1, "jobshop", "jobs", self.jobs, "at least 1")
        require(self.machines >= 1, "jobshop", "machines", self.machines, "at least 1")
        require_range("jobshop", self.low, self.high)

    def instance(self, seed: int = 0) -> Instance:
        if self.file:
            return from_file(self, "jobshop", self.file)
        rng = np.random.default_rng(seed)
        durations = rng.integers(
            self.low, self.high, (self.jobs, self.machines), endpoint=True
        ).tolist()
        orders = [rng.permutation(self.machines).tolist() for _ in range(self.jobs)]
        jobs = [
            [[step] for step in zip(order, row, strict=True)]
            for order, row in zip(orders, durations, strict=True)
        ]
        return validate(
            shop_instance(
                Shop(self.machines, jobs), f"jobshop-{self.jobs}x{self.machines}-{seed}", "jobshop"
            )
        )
