"""From the network's answers to a list rule: milestones as due dates, prices of classes, and costs of
tasks in sets.

With C the span of ``situation``, a the answers for the whole, b_i those of task i, p_c of class c:

    makespan     M = C exp(a_0)
    milestone    m_i = early_i + σ(a_1 + b_i0) (max(early_i, a_2' M − tail_i) − early_i)
                 and, where it or a task behind it has a deadline, no later than that allows
    late price   R exp(a_3 + b_i1) per tick beyond m_i
    key          m_i − shortest_i − a_4 tail_i + C b_i2 / 10
    time price   R exp(a_5)
    price of c   (R / N) exp(p_c)
    cost (i, s)  (R / N) load_i ⟨u_i, v_s⟩
"""

from __future__ import annotations

import numpy as np

from optbench.model.instance import Floats, Instance
from optbench.model.objective_prices import joule_price
from optbench.sim.kernel.dispatch import Rule
from optbench.sim.rules import has_choice, list_rule
from optbench.sim.sampling import DEEPEST

from .answers import Answers
from .situation import Situation

# Answers of zero mean these values.
HALF, LATE, TIME, STRETCH = 0.0, -2.3, -5.0, 1.0


def rule_of(instance: Instance, seen: Situation, answers: Answers, set_costs: bool = True) -> Rule:
    """Return the list rule of these answers."""
    a, b, tables = answers.whole, answers.task, seen.tables
    weights = dict(instance.objective.levels[0])
    span = seen.span * np.exp(np.clip(a[0], -1.0, 2.0))
    position = 1.0 / (1.0 + np.exp(-np.clip(HALF + a[1] + b[:, 0], -20, 20)))
    latest = np.maximum(seen.early, (STRETCH + 0.3 * np.tanh(a[2])) * span - seen.tail)
    due = seen.early + position * (latest - seen.early)
    slack = np.maximum(0.0, seen.later_deadline - seen.early)
    due = np.minimum(due, seen.early + slack * float(np.exp(np.clip(a[7], -3.0, 1.0))))
    late = tables.end_cost * np.exp(np.clip(LATE + a[3] + b[:, 1], -12.0, 4.0))
    base = due - seen.shortest - a[4] * seen.tail + 0.1 * seen.span * b[:, 2]
    price = tables.device_price * np.exp(np.clip(answers.device, -4.0, 3.0))
    cost = None
    if set_costs:
        cost = pair_costs(instance, seen, answers)
    return list_rule(
        instance,
        base=base,
        depth=min(DEEPEST, max(1, instance.num_tasks)),
        lookahead=has_choice(instance),
        end_weight=tables.end_cost * float(np.exp(np.clip(TIME + a[5], -18.0, 2.0))),
        late_weight=weights.get("tardiness_s", 0.0) * instance.tick_s * float(np.exp(np.clip(a[6], -2, 2))),
        energy_weight=joule_price(instance),
        pool_cost=price[tables.view.pool_class],
        due=due,
        late_price=late,
        pair_cost=cost,
    )


def pair_costs(instance: Instance, seen: Situation, answers: Answers) -> Floats:
    pairs, view = instance.pairs, seen.tables.view
    product = np.einsum(
        "ij,ij->i", answers.task_factor[pairs.task], answers.set_factor[view.mode_set[pairs.mode]]
    )
    return seen.tables.device_price * seen.load[pairs.task] * np.clip(product, -3.0, 3.0)
