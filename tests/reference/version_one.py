"""Instances and schedules of the second verifier for a framework of before exact time (files of
version 1).

Used to show that the comparison and the exploit search find the faults of commit 7f346a7: run them
with PYTHONPATH at a checkout of it. Time there is either ``ticks`` (units of a segment by its share
of the whole length) or ``seconds``.
"""

from __future__ import annotations

import copy
from fractions import Fraction
from typing import Any

from tests.second_verifier.problem import Problem, Segment, by_task

Json = dict[str, Any]
# What that verifier took for all of a task's work once there were two segments, and the most that a
# claim is raised.
ALMOST, RAISE = 1 - Fraction(9, 10**10), 1 + Fraction(2, 10**6)


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


def schedule_of_version_one(data: Json, schedule: Json, domain: str, claims: bool = False) -> Json:
    """The same segments with their units: their share of the task, or all that they can claim."""
    problem, step = Problem(data), data["tick_s"] if domain == "seconds" else 1
    table = schedule["segments"]
    rows = problem.segments(schedule)
    units = [float(problem.tasks["units"][s.task] * problem.progress(s)) for s in rows]
    if claims:
        for own in by_task(problem, rows):
            claim(problem, own, units)
    times = {key: [value * step for value in table[key]] for key in ("start", "end")}
    columns = {"task": table["task"], "mode": table["mode"], **times, "units": units}
    return {"format": "optbench-schedule", "version": 1, "domain": domain, "segments": columns}


def claim(problem: Problem, own: list[Segment], units: list[float]) -> None:
    """Let several segments of a task claim what fits into their lengths, so that it adds up to the
    task's units.
    """
    speed = [Fraction(problem.modes["time_per_unit_s"][s.mode]) for s in own]
    if len(own) < 2 or not all(speed):
        return
    fitting = [s.length * problem.tick / time_s for s, time_s in zip(own, speed)]
    total, whole = sum(fitting, Fraction(0)), Fraction(problem.tasks["units"][own[0].task])
    if total > 0:
        scale = whole / total if total >= whole else min(whole * ALMOST / total, RAISE)
        for s, most in zip(own, fitting):
            units[s.row] = float(most * scale)
