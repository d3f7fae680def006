"""The one shell command that repeats a cell."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from optbench.errors import OptbenchError
from optbench.plugins import specs
from optbench.plugins.discovery import files_by_name, load_class
from optbench.run.solve_command import solve_command
from optbench.store.records import Reason
from optbench.study.cells import Cell
from optbench.study.declared import Study

# Enough of a key to name one cell.
KEY_SHOWN = 12
# These need the limits that only a study's cell is under.
UNDER_LIMITS = ("time_limit", "cpu_limit", "memory_limit", "process_limit", "left_processes")


def command_of(cell: Cell, given: Mapping[str, Any] | None = None) -> str:
    """``optbench solve ...`` for a solve, ``optbench bound ...`` for the bounding of an instance.

    It runs without the limits on processor time and memory that a cell is under: see ``again``. ``given`` is what ``given_of``
    says, for those who write thousands of commands of a few solvers.
    """
    budget = cell.budget
    if cell.kind == "bound":
        limit = [] if budget.time_limit_s is None else ["--time-limit", f"{budget.time_limit_s:.15g}s"]
        return shlex.join(["optbench", "bound", cell.target, "--seed", str(cell.instance_seed), *limit])
    return solve_command(
        cell.target,
        cell.solver,
        given_of(cell) if given is None else given,
        seed=cell.seed,
        instance_seed=cell.instance_seed,
        time_limit_s=budget.time_limit_s,
        work_limit=budget.work_limit,
        threads=budget.threads,
    )


def again(cell: Cell, study: str) -> str:
    """The cell once more in its study, under all of its limits."""
    return shlex.join(["optbench", "run", study, "--only", cell.key[:KEY_SHOWN], "--force"])


def name_of(study: Study) -> str:
    """What ``optbench run`` knows a study by: its name, or its file where the name would find another one or none."""
    found = files_by_name("study").get(study.name, [])
    named = study.path is None or any(path.resolve() == study.path.resolve() for path in found[:1])
    return study.name if named else str(study.path)


def repeat(cell: Cell, reason: Reason | None, study: str, given: Mapping[str, Any] | None = None) -> str:
    """The command that shows the same failure: in the study where a limit was the reason, by itself otherwise."""
    limited = cell.budget.memory_limit_mb is not None or cell.budget.cpu_limit_s is not None
    if reason is not None and (reason.kind in UNDER_LIMITS or limited):
        return again(cell, study)
    return command_of(cell, given)


def given_of(cell: Cell) -> Mapping[str, Any]:
    """Parameters that differ from the solver's defaults; all of them where the solver cannot be imported any more."""
    try:
        cls = load_class("solver", cell.solver)
    except OptbenchError:
        return cell.params
    defaults = {entry.name: entry.default for entry in specs.parameters(cls)}
    return {name: value for name, value in cell.params.items() if specs.as_text(value) != defaults.get(name)}
