"""Parts of studies that really run: a workspace with a study, an executor in this process, outcomes
of true solves.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import optbench as ob
from optbench import api
from optbench.execute.base import Job, JobOutcome
from optbench.execute.tasks import ANSWER, perform
from optbench.model.files.result_json import result_to_dict
from optbench.model.files.schedule_json import schedule_to_dict
from optbench.model.instance import Instance
from optbench.study.cells import Cell
from optbench.study.declared import CellBudget, Study
from optbench.study.study_file import load_study

STUDY = """
question = "Which rule?"
problems = ["jobshop:jobs=3,machines=3"]
solvers = ["fcfs", "random_rules"]
seeds = 2
work_limit = 5
bound_limit = "1s"
"""


def study_file(folder: Path, text: str = STUDY, name: str = "tiny") -> Study:
    path = folder / f"{name}.toml"
    path.write_text(text)
    return load_study(path)


class Inline:
    """Performs jobs in this process, one after the other; ``spoil`` may replace an outcome,
    ``seen`` are the keys that ran.
    """

    compile_s, jobs = 0.0, 1

    def __init__(self, spoil: Callable[[JobOutcome], JobOutcome] = lambda outcome: outcome) -> None:
        self.spoil = spoil
        self.seen: list[str] = []

    def __enter__(self) -> Inline:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None

    def admit(self, budgets: Iterable[CellBudget]) -> None:
        return None

    def run(
        self, jobs: Iterable[Job], stop: Callable[[], bool] = lambda: False
    ) -> Iterator[JobOutcome]:
        for job in jobs:
            if stop():
                return
            self.seen.append(job.key)
            found = self.spoil(_performed(job))
            following = None if job.then is None else job.then(found)
            yield found if following is None else replace(found, check=_performed(following))


def _performed(job: Job) -> JobOutcome:
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(job.folder)
    job.folder.mkdir(parents=True)
    perform(job.kind, job.payload, job.folder)
    answer = json.loads((job.folder / ANSWER).read_text())
    return JobOutcome(job.key, answer, total_s=answer["inside_s"] + 0.01, sandbox={"landlock": 4})


def instance_of(seed: int = 0) -> Instance:
    made: Instance = api.load_target("jobshop:jobs=3,machines=3", seed)
    return made


def cell_of(instance: Instance, solver: str = "fcfs", kind: Any = "solve", **fields: Any) -> Cell:
    given = {"params": {}, "code": "", "seed": 0, "budget": CellBudget(time_limit_s=10.0), **fields}
    return Cell(
        kind, "jobshop:jobs=3,machines=3", instance.name, instance.hash, 0, solver, solver, **given
    )


def answer_of(instance: Instance, solver: str = "fcfs") -> dict[str, Any]:
    """What a true solve says, as JSON has it."""
    result = ob.solve(instance, solver, work_limit=5, bound=False)
    assert result.schedule is not None
    answer = {
        "result": result_to_dict(result),
        "schedule": schedule_to_dict(result.schedule, instance),
        "inside_s": 0.5,
    }
    plain: dict[str, Any] = json.loads(json.dumps(answer))
    return plain
