"""Milestones without a linear programme: due dates between heads and tails, played by a list rule.

With heads, tails and shortest durations p of ``optbench.rules.windows``, task i is due at

    due_i = a_i + share · max(0, C − tail_i − a_i),        a_i = head_i + p_i

where C = stretch · max(critical path, load) is an estimate of the makespan and

    load = Σ_i units_i / Σ_c n_c / t_ic

is what all work takes if every device always works at its fastest clock: n_c devices of class c
(``class_view``), on each of which a unit of task i takes t_ic. The key of a task is its due date
with ``order`` in the place of ``share``, less p_i. It takes the mode k with the least

    e_ik − rest_k d_ik + time · R · end_ik + late · R · max(0, end_ik − due_i) + tardiness
      + d_ik Σ_c price · R · n_kc (by_speed · v_c / Σ_b n_b v_b + (1 − by_speed) / N)

in the units of the objective: R is what a tick of the makespan costs, N the number of devices, and
v_c the mean of min_b t_ib / t_ic over all work, the speed of class c as a share of the fastest.
Nothing is learned or solved: it is the baseline of policies that predict milestones and prices.
The defaults come from 200 draws on seeds 1000 to 1005 (``benchmarks/path_milestones.py --seed 1``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import optbench as ob
from optbench.rules import (
    Rule,
    RulePolicy,
    class_view,
    end_cost,
    has_choice,
    joule_price,
    list_rule,
    windows,
)


@dataclass(frozen=True)
class PathMilestones(RulePolicy):
    """Due dates between the earliest and the latest end of each task, in one run of a list rule.

    ``stretch`` multiplies the estimate of the makespan, ``share`` is where tasks are due between
    their earliest end (0) and their latest (1), ``order`` the same for their order. ``late``,
    ``time`` and ``price`` are shares of the cost of the makespan: of a tick after the due date, of
    a tick of any end, and of a tick of all devices, which ``by_speed`` divides among them by speed
    (1) or evenly (0).
    """

    stretch: float = 1.2
    share: float = 0.59
    order: float = 0.0
    late: float = 0.053
    time: float = 0.0031
    price: float = 1.4
    by_speed: float = 0.6
    depth: int = 100

    def __post_init__(self) -> None:
        for name in ("stretch", "share", "order", "late", "time", "price", "by_speed"):
            value, is_share = getattr(self, name), name in ("share", "order", "by_speed")
            if not 0.0 <= value < float("inf") or (is_share and value > 1.0):
                allowed = "from 0 to 1" if is_share else "at least 0 and finite"
                raise ob.ParameterError(
                    f"path_milestones: {name} is {value!r}; it must be {allowed}"
                )
        if self.depth < 1:
            raise ob.ParameterError(
                f"path_milestones: depth is {self.depth!r}; it must be at least 1"
            )

    def rule(self, instance: ob.Instance, rng: np.random.Generator) -> Rule:
        known, cost = windows(instance), end_cost(instance)
        load, speed = load_and_speeds(instance)
        count = instance.pools.count.astype(float)
        makespan = self.stretch * max(known.critical_path, load)
        earliest = known.head + known.shortest
        slack = np.maximum(0.0, makespan - known.tail - earliest)
        weights = dict(instance.objective.levels[0])
        by_speed = speed / max(float(count @ speed), 1e-12)
        return list_rule(
            instance,
            base=earliest + self.order * slack - known.shortest,
            depth=self.depth,
            lookahead=has_choice(instance),
            end_weight=max(self.time, LEAST) * cost,
            energy_weight=joule_price(instance),
            late_weight=weights.get("tardiness_s", 0.0) * instance.tick_s,
            pool_cost=self.price
            * cost
            * (self.by_speed * by_speed + (1.0 - self.by_speed) / max(1.0, count.sum())),
            due=earliest + self.share * slack,
            late_price=self.late * cost,
        )


# A price of time below this breaks no ties between modes that end at different times.
LEAST = 1e-9


def load_and_speeds(instance: ob.Instance) -> tuple[float, ob.Floats]:
    """Return the ticks that all work takes on all devices at their fastest clocks, and the speed of
    each pool as a share of the fastest, weighted by work; 0 where a pool runs nothing.
    """
    view = class_view(instance)
    kinds, classes = len(view.kind_ptr) - 1, max(1, view.num_classes)
    ticks = np.full((kinds, classes), np.inf)
    some = view.primary_class >= 0
    np.minimum.at(
        ticks,
        (view.kind[some], view.primary_class[some]),
        (view.time_per_unit_s * view.devices / instance.tick_s)[some],
    )
    count = np.bincount(view.pool_class, weights=instance.pools.count, minlength=classes)
    units = np.bincount(instance.tasks.kind, weights=instance.tasks.units, minlength=kinds)
    busy = np.isfinite(ticks).any(axis=1) & (units > 0)
    if not busy.any():
        return 0.0, np.zeros(instance.num_pools)
    rate = 1.0 / np.maximum(ticks[busy], 1e-12)
    work = units[busy] / (rate @ count)
    speed = work @ (rate / rate.max(axis=1, keepdims=True)) / work.sum()
    return float(work.sum()), speed[view.pool_class]
