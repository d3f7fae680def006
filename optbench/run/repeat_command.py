"""The shell commands that repeat a solve, a cell, or a failure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from optbench.errors import OptbenchError
from optbench.plugins import specs
from optbench.plugins.discovery import files_by_name, load_class
from optbench.store.records import Reason
from optbench.study.cells import Cell
from optbench.study.declared import Study

# This many characters of a key identify a cell.
KEY_SHOWN = 12
# Reasons that only occur under the limits of a study's cell.
UNDER_LIMITS = ("time_limit", "cpu_limit", "memory_limit", "process_limit", "left_processes")


def solve_command(
    target: str,
    solver: str,
    params: Mapping[str, Any],
    *,
    seed: int,
    instance_seed: int | None = None,
    time_limit_s: float | None = 60.0,
    work_limit: float | None = None,
    threads: int = 1,
) -> str:
    """Return ``optbench solve TARGET -s SOLVER ...``, quoted for a POSIX shell.

    ``instance_seed`` is given where the instance was made with another seed than the solver's.
    """
    words = ["optbench", "solve", target, "-s", solver]
    for name, value in params.items():
        words += ["-p", f"{name}={specs.as_text(value)}"]
    words += ["--seed", str(seed)]
    if instance_seed is not None and instance_seed != seed:
        words += ["--instance-seed", str(instance_seed)]
    if time_limit_s is not None:
        words += ["--time-limit", f"{time_limit_s:.15g}s"]
    if work_limit is not None:
        words += ["--work-limit", f"{work_limit:.15g}"]
    if threads != 1:
        words += ["--threads", str(threads)]
    return shlex.join(words)


def command_of(cell: Cell, given: Mapping[str, Any] | None = None) -> str:
    """Return ``optbench solve ...`` for a solve, ``optbench bound ...`` for the bounding of an
    instance.

    The command runs without the limits on processor time and memory of a cell: see
    ``rerun_command``. ``given`` is the result of ``non_default_params``, for callers that write
    many commands.
    """
    budget = cell.budget
    if cell.kind == "bound":
        limit = (
            [] if budget.time_limit_s is None else ["--time-limit", f"{budget.time_limit_s:.15g}s"]
        )
        return shlex.join(
            ["optbench", "bound", cell.target, "--seed", str(cell.instance_seed), *limit]
        )
    return solve_command(
        cell.target,
        cell.solver,
        non_default_params(cell) if given is None else given,
        seed=cell.seed,
        instance_seed=cell.instance_seed,
        time_limit_s=budget.time_limit_s,
        work_limit=budget.work_limit,
        threads=budget.threads,
    )


def rerun_command(cell: Cell, study: str) -> str:
    """Return the command that runs the cell again in its study, under all of its limits."""
    return shlex.join(["optbench", "run", study, "--only", cell.key[:KEY_SHOWN], "--force"])


def study_argument(study: Study) -> str:
    """Return the name of a study, or its file where ``optbench run`` would not find it."""
    found = files_by_name("study").get(study.name, [])
    named = study.path is None or any(path.resolve() == study.path.resolve() for path in found[:1])
    return study.name if named else str(study.path)


def failure_command(
    cell: Cell, reason: Reason | None, study: str, given: Mapping[str, Any] | None = None
) -> str:
    """Return the command that repeats a failure, within the study where a limit caused it."""
    limited = cell.budget.memory_limit_mb is not None or cell.budget.cpu_limit_s is not None
    if reason is not None and (reason.kind in UNDER_LIMITS or limited):
        return rerun_command(cell, study)
    return command_of(cell, given)


def non_default_params(cell: Cell) -> Mapping[str, Any]:
    """Return parameters that are not the defaults; all if the solver cannot be imported."""
    try:
        cls = load_class("solver", cell.solver)
    except OptbenchError:
        return cell.params
    defaults = {entry.name: entry.default for entry in specs.parameters(cls)}
    return {
        name: value
        for name, value in cell.params.items()
        if specs.as_text(value) != defaults.get(name)
    }
