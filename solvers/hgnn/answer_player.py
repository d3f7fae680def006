"""Playing the list rule of many answers on one instance: plant, state and rule are made once, and
the numbers of each answer are written into them.
"""

from __future__ import annotations

import numpy as np

from optbench.model.instance import Instance, Ints
from optbench.model.schedule import Schedule
from optbench.sim.kernel.dispatch import (
    END_WEIGHT,
    ENERGY_WEIGHT,
    LATE_WEIGHT,
    Rule,
    run,
)
from optbench.sim.kernel.plant import plant_of
from optbench.sim.kernel.pointers import addresses
from optbench.sim.kernel.state import last_moment, new_state, schedule_of
from optbench.sim.rules import refuse_trouble

from .answers import Answers
from .milestone_rule import RuleNumbers, numbers_of, rule_of
from .situation import Situation


class AnswerPlayer:
    """One instance on which answers are played one after another."""

    def __init__(self, instance: Instance, found: Situation) -> None:
        self.instance, self.found = instance, found
        self.plant = plant_of(instance)
        self.state = new_state(self.plant)
        self.rule: Rule = rule_of(instance, found, None)
        self.rows = addresses(self.plant), addresses(self.state), addresses(self.rule)
        self.until = last_moment(instance, np.inf)

    def play(self, answers: Answers) -> Schedule | None:
        """Return the schedule of the rule of these answers; None if a task never runs."""
        write_numbers(self.rule, numbers_of(self.instance, self.found, answers))
        run(*self.rows, self.until)
        refuse_trouble(self.instance, self.state, ())
        return schedule_of(self.instance, self.plant, self.state)


def write_numbers(
    rule: Rule,
    made: RuleNumbers,
    tasks: Ints | slice = slice(None),
    pairs: Ints | slice = slice(None),
) -> None:
    """Write numbers into a rule: those of these tasks and their pairs, and those of the whole."""
    rule.base[tasks], rule.due[tasks] = made.base, made.due
    rule.late_price[tasks] = made.late_price
    rule.pair_cost[pairs] = made.set_cost
    rule.pool_cost[:] = made.pool_cost
    rule.weight[END_WEIGHT] = made.end_weight
    rule.weight[LATE_WEIGHT] = made.late_weight
    rule.weight[ENERGY_WEIGHT] = made.energy_weight
