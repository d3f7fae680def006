"""From the network's answers to a list rule: milestones as due dates, prices of classes, and costs
of tasks in sets.

With C the span of ``situation``, t the beginning of the first task, R what a tick of the makespan
costs, N the devices, a the answers for the whole, b_i those of task i, p_c of class c, u_i and v_s
the factors of task i and set s:

    makespan     M = t + C exp(a_0) (1 + 0.3 tanh a_2)
    milestone    m_i = early_i + σ(a_1 + b_i0) (max(early_i, M − tail_i) − early_i), and where
                 deadlines want it by l_i, at most early_i + (l_i − early_i) exp(a_7)
    late price   R exp(LATE + a_3 + b_i1) per tick beyond m_i
    key          m_i − shortest_i − a_4 tail_i + C b_i2 / 10
    time price   R exp(TIME + a_5); tardiness costs exp(a_6) times what it does in the objective
    price of c   (R / N) exp(p_c)
    cost (i, s)  (R / N) load_i ⟨u_i, v_s⟩

Exponents, σ's argument and ⟨u_i, v_s⟩ are clipped, so that no answer overflows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.model.instance import Floats, Instance
from optbench.model.objective_prices import joule_price
from optbench.model.ragged import ragged
from optbench.sim.kernel.dispatch import Rule
from optbench.sim.rules import has_choice, list_rule

from .answers import Answers, plain_answers
from .situation import Situation

# What answers of 0 mean: the logarithms of the late price and of the price of time, in R.
LATE, TIME = -2.3, -5.0
# Costs of sets lie within this many times what a task costs at the plain price of its devices.
MOST_SET_COST = 3.0
# Tasks of a queue that are tried.
DEPTH = 160


@dataclass(frozen=True, eq=False)
class RuleNumbers:
    """The numbers of a list rule: per task, per pool, per (task, set of its kind), for all."""

    base: Floats
    due: Floats
    late_price: Floats
    pool_cost: Floats
    set_cost: Floats
    end_weight: float
    late_weight: float
    energy_weight: float


def numbers_of(instance: Instance, found: Situation, answers: Answers | None) -> RuleNumbers:
    """Return the numbers of these answers; None stands for those of no network."""
    seen, tables = found.seen, found.tables
    if answers is None:
        answers = plain_answers(len(seen.task), len(seen.device), len(seen.sets))
    a, b, weights = answers.whole, answers.task, dict(instance.objective.levels[0])
    first = float((found.early - found.shortest).min(initial=np.inf))
    end = first + found.span * np.exp(np.clip(a[0], -1.0, 2.0)) * (1.0 + 0.3 * np.tanh(a[2]))
    position = 1.0 / (1.0 + np.exp(-np.clip(a[1] + b[:, 0], -20, 20)))
    latest = np.maximum(found.early, end - found.tail)
    due = found.early + position * (latest - found.early)
    slack = np.maximum(0.0, found.later_deadline - found.early)
    due = np.minimum(due, found.early + slack * np.exp(np.clip(a[7], -3.0, 1.0)))
    late = tables.end_cost * np.exp(np.clip(LATE + a[3] + b[:, 1], -12.0, 4.0))
    price = tables.device_price * np.exp(np.clip(answers.device, -4.0, 3.0))
    tardiness = weights.get("tardiness_s", 0.0) * instance.tick_s
    return RuleNumbers(
        due - found.shortest - a[4] * found.tail + 0.1 * found.span * b[:, 2],
        due,
        late,
        price[tables.view.pool_class],
        set_costs(instance, found, answers),
        tables.end_cost * float(np.exp(np.clip(TIME + a[5], -18.0, 2.0))),
        tardiness * float(np.exp(np.clip(a[6], -2.0, 2.0))),
        joule_price(instance),
    )


def rule_of(instance: Instance, found: Situation, answers: Answers | None) -> Rule:
    """Return the list rule of these answers."""
    made = numbers_of(instance, found, answers)
    return list_rule(
        instance,
        base=made.base,
        depth=DEPTH,
        lookahead=has_choice(instance),
        end_weight=made.end_weight,
        late_weight=made.late_weight,
        energy_weight=made.energy_weight,
        pool_cost=made.pool_cost,
        due=made.due,
        late_price=made.late_price,
        set_cost=made.set_cost,
    )


def set_costs(instance: Instance, found: Situation, answers: Answers) -> Floats:
    """Return the cost of each task in each set of its kind, one row after the other."""
    ptr, kind = found.tables.view.kind_ptr, instance.tasks.kind
    task, row = ragged(ptr[kind], np.diff(ptr)[kind])
    product = np.einsum("ij,ij->i", answers.task_factor[task], answers.set_factor[row])
    plain = found.tables.device_price * found.load
    return np.asarray(plain[task] * np.clip(product, -MOST_SET_COST, MOST_SET_COST))
