"""Instances of a shape of one's own as cases for the conformance suite of solvers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from optbench import api
from optbench.model.measures import Value
from optbench.plugins import discovery

# Seconds for an exact solver to prove the optimum of a small instance.
PROVING_S = 20.0


@dataclass(frozen=True)
class ShapedCase:
    """An instance of a problem; its optimum is None where no exact solver proves it."""

    spec: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.spec}-{self.seed}"

    @cached_property
    def instance(self) -> Any:
        return self.make()

    def make(self) -> Any:
        """Make another instance."""
        return discovery.load_problem(self.spec).instance(self.seed)

    @cached_property
    def optimum(self) -> Value | None:
        """The optimum that HiGHS proves on the shape's model, if it has one."""
        if "formulate" not in self.instance.shape.capabilities:
            return None
        result = api.solve(self.instance, "highs", time_limit_s=PROVING_S)
        return result.objective if result.status == "optimal" else None


@cache
def shaped_case(spec: str, seed: int) -> ShapedCase:
    """Return the case of a problem and a seed, made and solved once."""
    return ShapedCase(spec, seed)
