"""Says what is not so."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np

import optbench as ob

from ._everything import EVERYTHING
from ._honest import honest

How = Literal[
    "nan_objective",
    "nan_times",
    "infeasible",
    "forged",
    "false_bound",
    "bound_above_others",
    "certified",
    "huge",
    "link",
    "pipe",
]


@dataclass(frozen=True)
class Lies(ob.Solver):
    """About its objective, its schedule, the verifier, its bound, or about there being an answer at
    all.
    """

    how: How = "nan_objective"
    supports = EVERYTHING

    def solve(self, instance: ob.Instance, run: ob.Run) -> ob.Schedule | None:
        schedule = honest(instance)
        too_early = replace(schedule, start=schedule.start * 0, end=schedule.end - schedule.start)
        if self.how == "nan_objective":
            _spoil_results(objective=math.nan, bound=math.nan)
        if self.how == "nan_times":
            _believe_everything()
            return replace(
                schedule,
                start=np.full(len(schedule.task), np.nan),
                end=np.full(len(schedule.task), np.nan),
            )
        if self.how == "infeasible":
            return too_early
        if self.how == "forged":
            _believe_everything()
            _spoil_results(objective=1.0, gap=0.0, status="optimal", verified=True)
            return too_early
        if self.how == "false_bound":
            run.report(schedule)
            run.report_bound(2 * (run.objective or 0.0) + 1000.0, "lies")
        if self.how == "bound_above_others":
            _never_compare()
            run.report_bound(1e9, "lies")
            return None
        if self.how == "certified":
            _certify_everything()
            run.report(schedule)
            run.report_bound(run.objective or 0.0, "fluid_lp", "exact-lp")
        if self.how in ("huge", "link", "pipe"):
            _answer_instead(self.how)
        return schedule


def _spoil_results(**values: Any) -> None:
    """Whatever the result is, the process says this."""
    tasks: Any = import_module("optbench.execute.tasks")
    true = tasks.result_to_dict
    tasks.result_to_dict = lambda result: {**true(result), **values}


def _believe_everything() -> None:
    """Inside this process the verifier finds nothing."""
    for name in (
        "optbench.plugins.schedule_shape",
        "optbench.model.verify",
        "optbench.model.repair",
    ):
        module: Any = import_module(name)
        module.verify = _approves(module.verify)


def _approves(verify: Any) -> Any:
    return lambda instance, schedule: verify(instance, honest(instance))


def _certify_everything() -> None:
    """Inside this process every bound is certified, with a certificate."""
    proving: Any = import_module("optbench.bounds.proving")
    certified = {"proof": "exact-lp", "certificate": '{"method": "fluid_lp", "keep_edges": true}'}
    shapes: Any = import_module("optbench.plugins.schedule_shape")
    for module in (proving, shapes):
        module.labelled = lambda instance, bound: replace(bound, **certified)


def _never_compare() -> None:
    for name in ("optbench.api", "optbench.plugins.protocol"):
        module: Any = import_module(name)
        module.check_bound = lambda *values: None


def _answer_instead(how: str) -> None:
    """An answer of its own making: too large, or no file."""
    answer = Path(os.environ["TMPDIR"]).parent / "answer.json"
    if how == "huge":
        with answer.open("w") as file:
            file.truncate(300 << 20)
    elif how == "link":
        answer.symlink_to("/etc/hostname")
    else:
        os.mkfifo(answer)
    os._exit(0)
