"""Declare a GPU-scheduling problem once; solve, verify and bound it.

Names are imported when they are first used, so that ``import optbench`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from sys import modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optbench.api import bound as bound
    from optbench.api import solve as solve
    from optbench.bounds.explain import explain as explain
    from optbench.errors import ContradictionError as ContradictionError
    from optbench.errors import FileFormatError as FileFormatError
    from optbench.errors import ModelError as ModelError
    from optbench.errors import OptbenchError as OptbenchError
    from optbench.errors import ParameterError as ParameterError
    from optbench.errors import UnknownNameError as UnknownNameError
    from optbench.errors import UnsupportedError as UnsupportedError
    from optbench.fronts.front_search import pareto as pareto
    from optbench.fronts.points import Front as Front
    from optbench.model.builder import Model as Model
    from optbench.model.formats.format_registry import load as load
    from optbench.model.instance import Instance as Instance
    from optbench.model.objective import Objective as Objective
    from optbench.model.result import Bound as Bound
    from optbench.model.result import Result as Result
    from optbench.model.schedule import Schedule as Schedule
    from optbench.model.verify import Verdict as Verdict
    from optbench.model.verify import verify as verify
    from optbench.plugins.protocol import Problem as Problem
    from optbench.plugins.protocol import Run as Run
    from optbench.plugins.protocol import Solver as Solver
    from optbench.plugins.python_policy import PythonPolicy as PythonPolicy
    from optbench.sim.kernel.plant import Fault as Fault
    from optbench.sim.moments import Moment as Moment
    from optbench.simulation import environment as environment
    from optbench.simulation import simulate as simulate

__version__ = "0.1.0"

_HOME = {
    "Bound": "optbench.model.result",
    "ContradictionError": "optbench.errors",
    "Fault": "optbench.sim.kernel.plant",
    "FileFormatError": "optbench.errors",
    "Front": "optbench.fronts.points",
    "Instance": "optbench.model.instance",
    "Model": "optbench.model.builder",
    "ModelError": "optbench.errors",
    "Moment": "optbench.sim.moments",
    "Objective": "optbench.model.objective",
    "OptbenchError": "optbench.errors",
    "ParameterError": "optbench.errors",
    "Problem": "optbench.plugins.protocol",
    "PythonPolicy": "optbench.plugins.python_policy",
    "Result": "optbench.model.result",
    "Run": "optbench.plugins.protocol",
    "Schedule": "optbench.model.schedule",
    "Solver": "optbench.plugins.protocol",
    "UnknownNameError": "optbench.errors",
    "UnsupportedError": "optbench.errors",
    "Verdict": "optbench.model.verify",
    "bound": "optbench.api",
    "environment": "optbench.simulation",
    "explain": "optbench.bounds.explain",
    "load": "optbench.model.formats.format_registry",
    "pareto": "optbench.fronts.front_search",
    "simulate": "optbench.simulation",
    "solve": "optbench.api",
    "verify": "optbench.model.verify",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(
            f"module 'optbench' has no attribute {name!r}", name=name, obj=modules[__name__]
        )
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
