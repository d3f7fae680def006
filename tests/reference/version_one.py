"""Instances and schedules of the second verifier for a framework of before exact time (files of version 1).

Used to show that the comparison and the exploit search find the faults of commit 7f346a7: run them with PYTHONPATH at a
checkout of it. Time there is either ``ticks`` (units of a segment by its share of the whole length) or ``seconds``.
"""

from __future__ import annotations

import copy
from fractions import Fraction
from typing import Any

from tests.second_verifier.problem import Problem, by_task

Json = dict[str, Any]
# A share of a task's work that its verifier took for all of it, once there were two segments, and what is raised to it.
ALMOST, NEARLY = 1 - Fraction(9, 10**10), Fraction(999_998, 10**6)


def instance_of_version_one(data: Json, domain: str) -> Json:
    """The same instance in version 1, its times in ticks or multiplied into seconds."""
    step = data["tick_s"] if domain == "seconds" else 1
    out = copy.deepcopy(data)
    out |= {"version": 1, "domain": domain, "tick_s": data["tick_s"] if domain == "ticks" else 1.0}

    def scaled(table: Any, key: str) -> None:
        values = table[key]
        if isinstance(values, list):
            table[key] = [None if value is None else value * step for value in values]
        elif values is not None:
            table[key] = values * step

    scaled(out, "horizon")
    scaled(out["tasks"], "release")
    scaled(out["tasks"], "deadline")
    if out["tariffs"] is not None:
        scaled(out["tariffs"], "times")
    if out.get("stream") is not None:
        scaled(out["stream"], "opens")
        if out["stream"]["outages"] is not None:
            scaled(out["stream"]["outages"], "time")
    return out


def schedule_of_version_one(data: Json, schedule: Json, domain: str) -> Json:
    """The same segments with their units; a task that lacks very little of its work claims nearly all of it."""
    problem, step = Problem(data), data["tick_s"] if domain == "seconds" else 1
    table = schedule["segments"]
    rows = problem.segments(schedule)
    total = [sum((problem.progress(s) for s in own), Fraction(0)) for own in by_task(problem, rows)]
    claim = [ALMOST / share if NEARLY < share < 1 else 1 for share in total]
    units = [float(problem.tasks["units"][s.task] * problem.progress(s) * claim[s.task]) for s in rows]
    times = {key: [value * step for value in table[key]] for key in ("start", "end")}
    columns = {"task": table["task"], "mode": table["mode"], **times, "units": units}
    return {"format": "optbench-schedule", "version": 1, "domain": domain, "segments": columns}
