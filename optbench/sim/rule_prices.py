"""The prices of a list rule as the columns that the kernel reads: of each task, and of each of its
modes or sets of alike modes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from optbench.errors import ParameterError
from optbench.model.classes import class_view
from optbench.model.instance import Floats, Instance, Ints
from optbench.sim.kernel.mode_choice import BY_PAIR, BY_SET, BY_TASK


@dataclass(frozen=True, eq=False)
class RulePrices:
    """Columns of a ``Rule``: those by task are empty in a rule without prices, the costs where it
    has none; ``priced`` says which of them count.
    """

    priced: int
    end_price: Floats
    due: Floats
    late_price: Floats
    pair_ptr: Ints
    pair_cost: Floats


def rule_prices(
    instance: Instance, end_price: Any, due: Any, late_price: Any, pair_cost: Any, set_cost: Any
) -> RulePrices:
    """Return the columns of given prices, of which None is not given."""
    if pair_cost is not None and set_cost is not None:
        raise ParameterError(
            "list_rule: pair_cost and set_cost are both given; add the costs of sets to those of "
            "pairs, or give one of them"
        )
    pair_ptr, costs = np.zeros(0, dtype=np.int64), np.zeros(0)
    if set_cost is not None:
        priced = BY_SET
        pair_ptr, costs = costs_by_set(instance, set_cost)
    elif pair_cost is not None:
        priced = BY_PAIR
        pair_ptr, costs = costs_by_kind(instance, pair_cost)
    else:
        given = any(part is not None for part in (end_price, due, late_price))
        priced = BY_TASK if given else 0
    n = instance.num_tasks if priced else 0
    return RulePrices(
        priced=priced,
        end_price=_by_task(end_price, 0.0, n),
        due=_by_task(due, math.inf, n),
        late_price=_by_task(late_price, 0.0, n),
        pair_ptr=pair_ptr,
        pair_cost=costs,
    )


def _by_task(given: Any, otherwise: float, n: int) -> Floats:
    """Return a column with an entry per task."""
    return np.array(np.broadcast_to(otherwise if given is None else given, n), dtype=np.float64)


def costs_by_kind(instance: Instance, pair_cost: Any) -> tuple[Ints, Floats]:
    """Return costs of (task, mode) pairs with a row per task and an entry per mode of its kind,
    fitting or not, and where each row begins.
    """
    pairs, modes, kind = instance.pairs, instance.modes, instance.tasks.kind
    ptr = pair_cost_rows(instance)
    costs = np.zeros(int(ptr[-1]))
    costs[ptr[pairs.task] + pairs.mode - modes.kind_ptr[kind[pairs.task]]] = pair_cost
    return ptr, costs


def costs_by_set(instance: Instance, set_cost: Any) -> tuple[Ints, Floats]:
    """Return costs of (task, set of its kind) with a row per task, and where each row begins."""
    ptr = set_cost_rows(instance)
    costs = np.array(set_cost, dtype=np.float64).ravel()
    if len(costs) != ptr[-1]:
        raise ParameterError(
            f"list_rule: set_cost has {len(costs):,} entries; it must have {int(ptr[-1]):,}, one "
            "per task and set of its kind (optbench.rules.set_cost_rows)"
        )
    return ptr, costs


def pair_cost_rows(instance: Instance) -> Ints:
    """Return where the row of each task begins in costs by (task, mode), and the last one ends."""
    return _rows(instance, instance.modes.kind_ptr)


def set_cost_rows(instance: Instance) -> Ints:
    """Return where the row of each task begins in ``set_cost``, and the end of the last one."""
    return _rows(instance, class_view(instance).kind_ptr)


def _rows(instance: Instance, kind_ptr: Ints) -> Ints:
    """Return the same for rows as long as the kind of the task has entries."""
    return np.concatenate(([0], np.cumsum(np.diff(kind_ptr)[instance.tasks.kind]))).astype(np.int64)
