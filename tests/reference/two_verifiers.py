"""The framework's verifier beside the second one: the same verdict, and the same metrics of
feasible schedules.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from optbench.model.files import instance_json
from optbench.model.files.instance_json import instance_from_dict
from optbench.model.files.schedule_json import schedule_from_dict
from optbench.model.instance import Instance
from optbench.model.validate import validate
from optbench.model.verify import verify
from tests.reference.version_one import instance_of_version_one, schedule_of_version_one
from tests.second_verifier.problem import Json, Problem
from tests.second_verifier.rules import TOLERANCE
from tests.second_verifier.verifier import Verdict, judge_for

EXACT_TIME = instance_json.VERSION >= 2
# Whole numbers in files end here.
LARGEST_IN_FILES = 2**53


def instance_of(data: Json, domain: str = "seconds") -> Instance:
    """The framework's instance of a JSON object; ``domain`` is that of a framework of before exact
    time.
    """
    if not EXACT_TIME:
        data = instance_of_version_one(data, "ticks" if "makespan" in wanted(data) else domain)
    return validate(instance_from_dict(data))


def wanted(data: Json) -> set[str]:
    """Metrics that an instance names."""
    return {name for level in data["objective"] for name in level} | set(
        data["limits"]["metric_max"]
    )


def schedule_for(instance: Instance, data: Json, schedule: Json, claims: bool = False) -> Any:
    """The framework's schedule of a JSON object; ``claims`` is for a framework of before exact
    time.
    """
    if not EXACT_TIME:
        domain: str = vars(instance)["domain"]
        schedule = schedule_of_version_one(data, schedule, domain, claims)
    return schedule_from_dict(schedule, instance)


def is_beyond_files(schedule: Json) -> bool:
    """Whether a schedule has times that no file can hold."""
    tables = (schedule["segments"], schedule.get("sleep") or {"start": [], "end": []})
    times = [time for table in tables for key in ("start", "end") for time in table[key]]
    return max(map(abs, times), default=0) > LARGEST_IN_FILES


def disagreements(instance: Instance, data: Json, schedule: Json) -> tuple[Verdict, list[str]]:
    """The second verdict, and what the two verifiers say differently."""
    second = judge_for(Problem(data), schedule)
    if is_beyond_files(schedule):  # the reader of files refuses them before any verifier
        return second, [] if not second.feasible else [
            "a schedule that no file can hold is feasible there"
        ]
    first = verify(instance, schedule_for(instance, data, schedule))
    names = frozenset(violation.constraint for violation in first.violations)
    wrong = []
    if first.feasible != second.feasible:
        wrong.append(f"violated: {sorted(names)} here, {sorted(second.violated)} there")
    elif EXACT_TIME and plain(names) != plain(second.violated):
        wrong.append(f"names: {sorted(names)} here, {sorted(second.violated)} there")
    if first.feasible and second.feasible:
        wrong += different_metrics(first.metrics, second)
        wrong += different_objectives(first.objectives, second)
    return second, wrong


def plain(names: frozenset[str]) -> set[str]:
    """Names that count whatever else is violated."""
    beside = {"assignment"} if "duration" in names else set()
    beside |= {"power_cap", "temperature"} if "sleep" in names else set()
    return {name for name in names if not name.startswith("limit:")} - beside


def different_metrics(values: dict[str, float], second: Verdict) -> Iterator[str]:
    if set(values) != set(second.metrics):
        yield f"metrics: {sorted(set(values) ^ set(second.metrics))} on one side only"
    for name in sorted(set(values) & set(second.metrics)):
        exact = second.metrics[name]
        if exact is None:
            if math.isfinite(values[name]):
                yield f"{name}: {values[name]!r} here, no value there"
        elif not same(values[name], exact):
            yield f"{name}: {values[name]!r} here, {float(exact)!r} there"


def different_objectives(values: tuple[float, ...], second: Verdict) -> Iterator[str]:
    if len(values) != len(second.objectives) or not all(map(same, values, second.objectives)):
        yield f"objectives: {values} here, {tuple(map(float, second.objectives))} there"


def same(value: float, exact: Fraction) -> bool:
    """All metrics are sums of terms of one sign, so that the sum of absolute terms is the value
    itself.
    """
    return math.isfinite(value) and abs(Fraction(value) - exact) <= TOLERANCE * abs(exact)
