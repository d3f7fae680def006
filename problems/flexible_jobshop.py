"""The flexible job shop.

Every job is a chain of operations; each operation may run on any of its own machines. The number of
alternatives is
1 + Binomial(machines − 1, (flexibility − 1) / (machines − 1)), so that ``flexibility`` is its mean;
the duration on each is uniform within ± ``spread`` of a base that is uniform on [low, high].
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
class FlexibleJobShop(Problem):
    """Flexible job shop, from a file (or flexible-jobshop/NAME) or generated: minimise the
    makespan.
    """

    file: str = ""
    jobs: int = 10
    machines: int = 6
    operations: int = 5
    flexibility: float = 2.0
    spread: float = 0.2
    low: int = 1
    high: int = 99

    def __post_init__(self) -> None:
        name = "flexible_jobshop"
        for field in ("jobs", "machines", "operations"):
            require(getattr(self, field) >= 1, name, field, getattr(self, field), "at least 1")
        reachable = 1 <= self.flexibility <= self.machines
        require(
            reachable,
            name,
            "flexibility",
            self.flexibility,
            f"from 1 to machines, which is {self.machines}",
        )
        require(0 <= self.spread < 1, name, "spread", self.spread, "at least 0 and below 1")
        require_range(name, self.low, self.high)

    def instance(self, seed: int = 0) -> Instance:
        if self.file:
            return from_file(self, "flexible_jobshop", self.file)
        rng = np.random.default_rng(seed)
        jobs = [[self._operation(rng) for _ in range(self.operations)] for _ in range(self.jobs)]
        name = f"flexible_jobshop-{self.jobs}x{self.machines}-{seed}"
        return validate(shop_instance(Shop(self.machines, jobs), name, "flexible_jobshop"))

    def _operation(self, rng: np.random.Generator) -> list[tuple[int, int]]:
        """The (machine, duration) alternatives of one operation."""
        others = self.machines - 1
        size = 1 + (int(rng.binomial(others, (self.flexibility - 1) / others)) if others else 0)
        machines = sorted(rng.permutation(self.machines)[:size].tolist())
        base = int(rng.integers(self.low, self.high, endpoint=True))
        factors = rng.uniform(1 - self.spread, 1 + self.spread, size)
        return [
            (machine, max(1, round(base * factor)))
            for machine, factor in zip(machines, factors.tolist(), strict=True)
        ]
