"""Instances and schedules of the second verifier for a framework of before exact time (files of version 1).

Used to show that the comparison and the exploit search find the faults of commit 7f346a7: run them with PYTHONPATH at a
checkout of it. Time there is either ``ticks`` (units of a segment by its share of the whole length) or ``seconds``.
"""

from __future__ import annotations

import copy
from typing import Any

from tests.second_verifier.problem import Problem

Json = dict[str, Any]


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
    """The same segments with their units."""
    problem, step = Problem(data), data["tick_s"] if domain == "seconds" else 1
    table = schedule["segments"]
    rows = problem.segments(schedule)
    units = [float(problem.tasks["units"][s.task] * problem.progress(s)) for s in rows]
    times = {key: [value * step for value in table[key]] for key in ("start", "end")}
    columns = {"task": table["task"], "mode": table["mode"], **times, "units": units}
    return {"format": "optbench-schedule", "version": 1, "domain": domain, "segments": columns}
