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
    from optbench.blaming import blame as blame
    from optbench.bounds.explain import explain as explain
    from optbench.bounds.streams.stream_bound import path_bound as path_bound
    from optbench.compiling.compiled import njit as njit
    from optbench.compiling.kernel_table import KERNELS as KERNELS
    from optbench.errors import ContradictionError as ContradictionError
    from optbench.errors import FileFormatError as FileFormatError
    from optbench.errors import ModelError as ModelError
    from optbench.errors import OptbenchError as OptbenchError
    from optbench.errors import ParameterError as ParameterError
    from optbench.errors import PluginCrashError as PluginCrashError
    from optbench.errors import PluginError as PluginError
    from optbench.errors import UnknownNameError as UnknownNameError
    from optbench.errors import UnsupportedError as UnsupportedError
    from optbench.formats.format_registry import FORMATS as FORMATS
    from optbench.formats.format_registry import detect as detect
    from optbench.formats.format_registry import load_import as load_import
    from optbench.formats.format_registry import parse as parse
    from optbench.formats.imported import ImportOptions as ImportOptions
    from optbench.fronts.front_search import pareto as pareto
    from optbench.fronts.points import Front as Front
    from optbench.model.builder import Model as Model
    from optbench.model.checks import CONSTRAINTS as CONSTRAINTS
    from optbench.model.declarations import Kind as Kind
    from optbench.model.declarations import Mode as Mode
    from optbench.model.declarations import Place as Place
    from optbench.model.declarations import Pool as Pool
    from optbench.model.declarations import Task as Task
    from optbench.model.features import FEATURES as FEATURES
    from optbench.model.files.result_json import write_result as write_result
    from optbench.model.files.schedule_json import read_schedule as read_schedule
    from optbench.model.files.schedule_json import write_schedule as write_schedule
    from optbench.model.files.schemas import schema as schema
    from optbench.model.instance import Bools as Bools
    from optbench.model.instance import Floats as Floats
    from optbench.model.instance import Instance as Instance
    from optbench.model.instance import Ints as Ints
    from optbench.model.objective import METRICS as METRICS
    from optbench.model.objective import Objective as Objective
    from optbench.model.result import Bound as Bound
    from optbench.model.result import Result as Result
    from optbench.model.schedule import Schedule as Schedule
    from optbench.model.schedule import Sleep as Sleep
    from optbench.model.sleeping import with_sleep as with_sleep
    from optbench.model.verify import Verdict as Verdict
    from optbench.plugins.discovery import load_problem as load_problem
    from optbench.plugins.discovery import load_solver as load_solver
    from optbench.plugins.policy import Policy as Policy
    from optbench.plugins.process_policy import ProcessPolicy as ProcessPolicy
    from optbench.plugins.protocol import Problem as Problem
    from optbench.plugins.protocol import Run as Run
    from optbench.plugins.protocol import Solver as Solver
    from optbench.plugins.python_policy import PythonPolicy as PythonPolicy
    from optbench.plugins.schedule_shape import read_decision as read_decision
    from optbench.plugins.shape_files import convert as convert
    from optbench.plugins.shape_files import load as load
    from optbench.plugins.shape_files import measure as measure
    from optbench.plugins.shape_files import read_instance as read_instance
    from optbench.plugins.shape_files import verify as verify
    from optbench.plugins.shape_files import write_decision as write_decision
    from optbench.plugins.shape_files import write_instance as write_instance
    from optbench.power.profiles import Profile as Profile
    from optbench.power.profiles import profile as profile
    from optbench.process_simulation import ProcessSimulation as ProcessSimulation
    from optbench.sim.fault_scenarios import draw_faults as draw_faults
    from optbench.sim.kernel.plant import Fault as Fault
    from optbench.sim.moments import Moment as Moment
    from optbench.simulation import Simulation as Simulation
    from optbench.simulation import environment as environment
    from optbench.simulation import simulate as simulate
    from optbench.track.runs import TrackedRun as TrackedRun
    from optbench.track.tracking import Tracking as Tracking
    from optbench.views import graph as graph
    from optbench.views.env import play_batch as play_batch
    from optbench.workspace import activate as activate

__version__ = "0.1.0"

# Public names, and the modules that define them.
_HOME = {
    "Bools": "optbench.model.instance",
    "Bound": "optbench.model.result",
    "CONSTRAINTS": "optbench.model.checks",
    "ContradictionError": "optbench.errors",
    "FEATURES": "optbench.model.features",
    "FORMATS": "optbench.formats.format_registry",
    "Fault": "optbench.sim.kernel.plant",
    "FileFormatError": "optbench.errors",
    "Floats": "optbench.model.instance",
    "Front": "optbench.fronts.points",
    "ImportOptions": "optbench.formats.imported",
    "Instance": "optbench.model.instance",
    "Ints": "optbench.model.instance",
    "KERNELS": "optbench.compiling.kernel_table",
    "Kind": "optbench.model.declarations",
    "METRICS": "optbench.model.objective",
    "Mode": "optbench.model.declarations",
    "Model": "optbench.model.builder",
    "ModelError": "optbench.errors",
    "Moment": "optbench.sim.moments",
    "Objective": "optbench.model.objective",
    "OptbenchError": "optbench.errors",
    "ParameterError": "optbench.errors",
    "Place": "optbench.model.declarations",
    "PluginCrashError": "optbench.errors",
    "PluginError": "optbench.errors",
    "Policy": "optbench.plugins.policy",
    "Pool": "optbench.model.declarations",
    "Problem": "optbench.plugins.protocol",
    "ProcessPolicy": "optbench.plugins.process_policy",
    "ProcessSimulation": "optbench.process_simulation",
    "Profile": "optbench.power.profiles",
    "PythonPolicy": "optbench.plugins.python_policy",
    "Result": "optbench.model.result",
    "Run": "optbench.plugins.protocol",
    "Schedule": "optbench.model.schedule",
    "Simulation": "optbench.simulation",
    "Sleep": "optbench.model.schedule",
    "Solver": "optbench.plugins.protocol",
    "Task": "optbench.model.declarations",
    "TrackedRun": "optbench.track.runs",
    "Tracking": "optbench.track.tracking",
    "UnknownNameError": "optbench.errors",
    "UnsupportedError": "optbench.errors",
    "Verdict": "optbench.model.verify",
    "activate": "optbench.workspace",
    "blame": "optbench.blaming",
    "bound": "optbench.api",
    "convert": "optbench.plugins.shape_files",
    "detect": "optbench.formats.format_registry",
    "draw_faults": "optbench.sim.fault_scenarios",
    "environment": "optbench.simulation",
    "explain": "optbench.bounds.explain",
    "load": "optbench.plugins.shape_files",
    "load_import": "optbench.formats.format_registry",
    "load_problem": "optbench.plugins.discovery",
    "load_solver": "optbench.plugins.discovery",
    "measure": "optbench.plugins.shape_files",
    "njit": "optbench.compiling.compiled",
    "pareto": "optbench.fronts.front_search",
    "parse": "optbench.formats.format_registry",
    "path_bound": "optbench.bounds.streams.stream_bound",
    "play_batch": "optbench.views.env",
    "profile": "optbench.power.profiles",
    "read_decision": "optbench.plugins.schedule_shape",
    "read_instance": "optbench.plugins.shape_files",
    "read_schedule": "optbench.model.files.schedule_json",
    "schema": "optbench.model.files.schemas",
    "simulate": "optbench.simulation",
    "solve": "optbench.api",
    "verify": "optbench.plugins.shape_files",
    "with_sleep": "optbench.model.sleeping",
    "write_decision": "optbench.plugins.shape_files",
    "write_instance": "optbench.plugins.shape_files",
    "write_result": "optbench.model.files.result_json",
    "write_schedule": "optbench.model.files.schedule_json",
}
# Public modules that are no part of this package's folder.
_MODULES = {"graph": "optbench.views.graph"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name not in _HOME:
        raise AttributeError(
            f"module 'optbench' has no attribute {name!r}", name=name, obj=modules[__name__]
        )
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME, *_MODULES])
