"""One price of time and one price per type of pool, longest remaining path first; a task may wait
for the devices of the mode that it prefers.

Task i takes the mode k with the least

    e_ik − rest_k d_ik + time · R · end_ik + Σ_c price_c · (R / N) · n_kc d_ik + tardiness

in the units of the objective: e − rest d is energy beyond that of resting devices, R is what a
tick of the makespan costs (its own price, and the rest of all N devices), and n_kc the devices of
type c. Types are the classes of alike pools, in the order of their first pools; those after the
sixth have the sixth price. The shipped values come from 200 trials on five sizes of three types
(``benchmarks/milestones.py --tune``); the prices of further types are not tuned. Tuned for one size
alone they are better there and much worse elsewhere: ``optbench tune gpu_dag_prices`` is a start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

import optbench as ob
from optbench.rules import (
    Rule,
    RulePolicy,
    alike_pools,
    end_cost,
    has_choice,
    joule_price,
    list_rule,
    windows,
)


@dataclass(frozen=True)
class TunedRule(RulePolicy):
    """A list rule with one tuned price of time and one per type of pool.

    ``time`` is the share of the cost of the makespan that the end of a task is charged with,
    ``price_1`` to ``price_6`` are shares of it per device of each type. ``order`` is that of the
    queue: by the longest remaining path, or by arrival. ``depth`` tasks of it are tried.
    """

    job_by_job: ClassVar[bool] = True

    time: float = 0.0209
    price_1: float = 2.749
    price_2: float = 1.548
    price_3: float = 1.848
    price_4: float = 1.0
    price_5: float = 1.0
    price_6: float = 1.0
    order: Literal["path", "arrival"] = "path"
    depth: int = 100

    def __post_init__(self) -> None:
        for name in ("time", *(f"price_{k}" for k in range(1, 7))):
            value = getattr(self, name)
            if not 0.0 <= value < float("inf"):
                raise ob.ParameterError(
                    f"tuned_rule: {name} is {value!r}; it must be at least 0 and finite"
                )
        if self.depth < 1:
            raise ob.ParameterError(f"tuned_rule: depth is {self.depth!r}; it must be at least 1")

    def rule(self, instance: ob.Instance, rng: np.random.Generator) -> Rule:
        known, cost = windows(instance), end_cost(instance)
        prices = np.array([getattr(self, f"price_{k}") for k in range(1, 7)])
        share = prices[np.minimum(alike_pools(instance), len(prices) - 1)]
        weights = dict(instance.objective.levels[0])
        arrival = np.asarray(instance.tasks.release, dtype=float)
        return list_rule(
            instance,
            base=arrival if self.order == "arrival" else -(known.shortest + known.tail),
            depth=self.depth,
            end_weight=max(self.time, LEAST) * cost,
            energy_weight=joule_price(instance),
            late_weight=weights.get("tardiness_s", 0.0) * instance.tick_s,
            pool_cost=share * cost / max(1.0, float(instance.pools.count.sum())),
            lookahead=has_choice(instance),
        )


# A price of time below this breaks no ties between modes that end at different times.
LEAST = 1e-9
