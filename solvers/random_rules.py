"""Best of many randomised dispatching rules: a sample is one run of the list dispatcher with random
parameters.

Sampling is adaptive: weights of features are drawn around those of the best sample, keys around the
start times of the current one, refined by a run backwards in time. No schedule is repaired; the
maths is in ``kernel.sampling``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from optbench.errors import ParameterError
from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.plugins.policy import CARRIED_OUT, Policy, settle
from optbench.plugins.protocol import Run
from optbench.sim.kernel.plant import Fault
from optbench.sim.rules import Trace, run_rule
from optbench.sim.sampling import Sampler

# Samples where neither k nor a budget sets a number.
DEFAULT_SAMPLES = 1000
# Seconds of sampling between two checks of the clock.
PORTION_S = 0.02


@dataclass(frozen=True)
class RandomRules(Policy):
    """Best of k randomised dispatching rules; k = 0: until the time or work limit, which counts
    samples.

    Rules are tried on the whole instance, including future jobs: in ``simulate`` it is a
    clairvoyant reference, not a policy.
    """

    k: int = 0

    clairvoyant: ClassVar[bool] = True
    # The value per unit of work of an open instance is not a sum over its tasks, by which samples
    # are compared.
    supports: ClassVar[frozenset[str] | set[str]] = CARRIED_OUT - {"open_end", "per_unit"}
    needs: ClassVar[frozenset[str] | set[str]] = frozenset({"sampling"})

    def __post_init__(self) -> None:
        if self.k < 0:
            raise ParameterError(
                f"random_rules: k is {self.k!r}; it must be at least 0 (0: until the budget is "
                "spent)"
            )

    def play(
        self,
        instance: Instance,
        rng: np.random.Generator,
        faults: Sequence[Fault] = (),
        until: float = math.inf,
    ) -> Trace:
        """Choose the rule on the instance as it is known in advance, then run it."""
        sampler = Sampler(instance, int(rng.integers(2**31)))
        sampler.sample(self.k or DEFAULT_SAMPLES)
        return run_rule(instance, sampler.rule(), faults, until)

    def solve(self, instance: Instance, run: Run) -> Schedule | None:
        sampler = Sampler(instance, run.seed)
        if run.best is not None and run.objective is not None:
            sampler.begin_with(run.best, run.objective)
        most, per_s, best = self._most(run), 1.0 / PORTION_S, None
        while sampler.made < most and (sampler.made == 0 or run.time_left() > 0):
            count = int(min(most - sampler.made, max(1, per_s * min(PORTION_S, run.time_left()))))
            began = time.perf_counter()
            if sampler.sample(count):
                best = sampler.schedule()
                if best is not None:
                    run.report(best)
            if sampler.made > 1:  # the first one may include compiling
                per_s = count / max(time.perf_counter() - began, 1e-6)
        if run.time_left() <= 0:
            run.report_termination("time_limit")
        elif not self.k and run.work_limit is not None:
            run.report_termination("work_limit")
        run.info["samples"] = sampler.made
        return run.best if run.best is not None else settle(instance, run, best)

    def _most(self, run: Run) -> float:
        """Return the largest number of samples."""
        limits = [limit for limit in (self.k or None, run.work_limit) if limit is not None]
        if limits:
            return max(1.0, min(limits))
        return math.inf if run.time_limit_s is not None else DEFAULT_SAMPLES
