"""List rules by named weights, and running one of them: the Python side of ``kernel.dispatch``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optbench.arguments import known_keywords
from optbench.errors import OptbenchError
from optbench.model.caps import net_power_w, resting_power_w
from optbench.model.instance import Bools, Instance, Ints
from optbench.model.schedule import Schedule
from optbench.model.sleeping import kept_awake
from optbench.model.temperature import can_run_alone
from optbench.model.timegrid import narrowed
from optbench.model.windows import task_groups
from optbench.sim.kernel.dispatch import CALM, PRESSED, Rule, run
from optbench.sim.kernel.plant import Fault, Plant, plant_of
from optbench.sim.kernel.pointers import addresses
from optbench.sim.kernel.state import NONE, TROUBLE, State, last_moment, new_state, schedule_of
from optbench.sim.rule_prices import rule_prices
from optbench.sim.rule_prices import set_cost_rows as set_cost_rows

# Tasks of a queue that are tried before giving up, unless a rule sets another number: this bounds
# the cost of a long queue.
DEPTH = 100


class NoRoomError(OptbenchError):
    """The kernel ran out of room for its events or for interrupted parts."""


@dataclass(frozen=True, eq=False)
class Trace:
    """The result of a run; ``schedule`` is None if tasks have not ended."""

    plant: Plant
    state: State
    schedule: Schedule | None


@known_keywords("list_rule")
def list_rule(
    instance: Instance,
    *,
    base: Any = 0.0,
    ready_weight: float = 0.0,
    end_weight: float = 0.0,
    late_weight: float = 0.0,
    energy_weight: float = 0.0,
    load: float = math.inf,
    patience: float = 0.0,
    depth: int = DEPTH,
    strict: bool = False,
    lookahead: bool = False,
    mode_cost: Any = 0.0,
    pool_cost: Any = 0.0,
    allowed: Any = CALM | PRESSED,
    fixed: Any = NONE,
    end_price: Any = None,
    due: Any = None,
    late_price: Any = None,
    pair_cost: Any = None,
    set_cost: Any = None,
) -> Rule:
    """Create a list rule (the formulas are in ``kernel.dispatch``); one number stands for a whole
    array.

    ``end_price``, ``due`` and ``late_price`` are per task, ``pair_cost`` has an entry per row of
    ``instance.pairs``. ``set_cost`` takes its place where alike modes cost the same: it has a row
    per task with an entry per set of its kind (``class_view``), one after another, whether the task
    fits or not.
    """
    n, modes, pools = instance.num_tasks, instance.num_modes, instance.num_pools
    needless = (np.diff(instance.modes.req_ptr) == 0).any()
    prices = rule_prices(instance, end_price, due, late_price, pair_cost, set_cost)
    return Rule(
        base=np.array(np.broadcast_to(base, n), dtype=np.float64),
        after=np.zeros(n),
        home=queue_of_tasks(instance),
        weight=np.array(
            [ready_weight, end_weight, late_weight, energy_weight, load, patience, math.inf],
            dtype=np.float64,
        ),
        option=np.array([depth, strict, lookahead, needless, prices.priced], dtype=np.int64),
        mode_cost=np.array(np.broadcast_to(mode_cost, modes), dtype=np.float64),
        pool_cost=np.array(np.broadcast_to(pool_cost, pools), dtype=np.float64),
        allowed=np.array(np.broadcast_to(allowed, modes), dtype=np.int64) * within_caps(instance),
        fixed=np.array(np.broadcast_to(fixed, n), dtype=np.int64),
        end_price=prices.end_price,
        due=prices.due,
        late_price=prices.late_price,
        pair_ptr=prices.pair_ptr,
        pair_cost=prices.pair_cost,
    )


def has_choice(instance: Instance) -> bool:
    """Whether any kind of task has several modes; without a choice, looking ahead would only block
    devices. Which kinds there are is known before any task of them arrives.
    """
    return bool((np.diff(instance.modes.kind_ptr) > 1).any())


def within_caps(instance: Instance) -> Bools:
    """Return the modes that every power cap and every cooled place allows while nothing else runs,
    so that no task waits for ever.
    """
    instance = kept_awake(instance)
    limits, out = instance.limits, can_run_alone(instance)
    for place, cap_w in zip(limits.cap_place.tolist(), limits.cap_w.tolist(), strict=True):
        out &= net_power_w(instance, place) <= narrowed(cap_w) - resting_power_w(instance, place)
    return out


def queue_of_tasks(instance: Instance) -> Ints:
    """Return the queue of each task: that of its pool if it has only one, else that of the whole
    plant (the last).

    Where a mode takes several pools, or a cap or the cooling of a place joins them, freeing one
    pool can unblock a task of another: then there is one queue for all.
    """
    whole = instance.num_pools
    joined = len(instance.limits.cap_w) > 0 or instance.cooling is not None
    if joined or (np.diff(instance.modes.req_ptr) != 1).any():
        return np.full(instance.num_tasks, whole, dtype=np.int64)
    group, pools = task_groups(instance)
    of_group = np.array(
        [int(each[0]) if len(each) == 1 else whole for each in pools], dtype=np.int64
    )
    return of_group[group] if len(of_group) else np.zeros(0, dtype=np.int64)


def run_rule(
    instance: Instance, rule: Rule, faults: Sequence[Fault] = (), until: float = math.inf
) -> Trace:
    """Run a list rule from time 0."""
    plant = plant_of(instance, faults)
    state = new_state(plant)
    run(addresses(plant), addresses(state), addresses(rule), last_moment(instance, until))
    refuse_trouble(instance, state, faults)
    return Trace(plant, state, schedule_of(instance, plant, state))


def refuse_trouble(instance: Instance, state: State, faults: Sequence[Fault]) -> None:
    """Raise where the kernel ran out of room."""
    if state.tally[TROUBLE]:
        raise NoRoomError(
            f"{instance.name}: {len(faults)} faults interrupted more work than there was room to "
            "record"
        )
