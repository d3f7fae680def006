"""What rules and policies of a user are made of; names are imported when they are first used.

from optbench.rules import RulePolicy, list_rule

class LongestFirst(RulePolicy):
    def rule(self, instance, rng):
        return list_rule(instance, base=-instance.tasks.units, end_weight=1.0)
"""

from __future__ import annotations

from importlib import import_module
from sys import modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optbench.bounds.milestones import Milestones as Milestones
    from optbench.bounds.milestones import find_milestones as find_milestones
    from optbench.model.classes import ClassView as ClassView
    from optbench.model.classes import alike_pools as alike_pools
    from optbench.model.classes import class_view as class_view
    from optbench.model.objective_prices import end_cost as end_cost
    from optbench.model.objective_prices import joule_price as joule_price
    from optbench.model.windows import Windows as Windows
    from optbench.model.windows import by_source as by_source
    from optbench.model.windows import edge_lags as edge_lags
    from optbench.model.windows import latest_ends as latest_ends
    from optbench.model.windows import longest_lags as longest_lags
    from optbench.model.windows import windows as windows
    from optbench.plugins.policy import CARRIED_OUT as CARRIED_OUT
    from optbench.plugins.policy import Policy as Policy
    from optbench.plugins.policy import RulePolicy as RulePolicy
    from optbench.plugins.policy import settle as settle
    from optbench.plugins.python_policy import PythonPolicy as PythonPolicy
    from optbench.sim.kernel.dispatch import CALM as CALM
    from optbench.sim.kernel.dispatch import PRESSED as PRESSED
    from optbench.sim.kernel.dispatch import Rule as Rule
    from optbench.sim.kernel.plant import Fault as Fault
    from optbench.sim.moments import Decision as Decision
    from optbench.sim.moments import Moment as Moment
    from optbench.sim.rule_prices import set_cost_rows as set_cost_rows
    from optbench.sim.rules import Trace as Trace
    from optbench.sim.rules import has_choice as has_choice
    from optbench.sim.rules import list_rule as list_rule
    from optbench.sim.rules import run_rule as run_rule
    from optbench.sim.rules import within_caps as within_caps

# Public names, and the modules that define them.
_HOME = {
    "CALM": "optbench.sim.kernel.dispatch",
    "CARRIED_OUT": "optbench.plugins.policy",
    "ClassView": "optbench.model.classes",
    "Decision": "optbench.sim.moments",
    "Fault": "optbench.sim.kernel.plant",
    "Milestones": "optbench.bounds.milestones",
    "Moment": "optbench.sim.moments",
    "PRESSED": "optbench.sim.kernel.dispatch",
    "Policy": "optbench.plugins.policy",
    "PythonPolicy": "optbench.plugins.python_policy",
    "Rule": "optbench.sim.kernel.dispatch",
    "RulePolicy": "optbench.plugins.policy",
    "Trace": "optbench.sim.rules",
    "Windows": "optbench.model.windows",
    "alike_pools": "optbench.model.classes",
    "by_source": "optbench.model.windows",
    "class_view": "optbench.model.classes",
    "edge_lags": "optbench.model.windows",
    "end_cost": "optbench.model.objective_prices",
    "find_milestones": "optbench.bounds.milestones",
    "has_choice": "optbench.sim.rules",
    "joule_price": "optbench.model.objective_prices",
    "latest_ends": "optbench.model.windows",
    "list_rule": "optbench.sim.rules",
    "longest_lags": "optbench.model.windows",
    "run_rule": "optbench.sim.rules",
    "set_cost_rows": "optbench.sim.rule_prices",
    "settle": "optbench.plugins.policy",
    "windows": "optbench.model.windows",
    "within_caps": "optbench.sim.rules",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(
            f"module 'optbench.rules' has no attribute {name!r}", name=name, obj=modules[__name__]
        )
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
