"""The verdict on a schedule: names of violated constraints, every metric, and the value of every
level of the objective.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from tests.second_verifier.measures import plain_metrics
from tests.second_verifier.physical_measures import physical_metrics
from tests.second_verifier.problem import Json, Problem, down
from tests.second_verifier.rules import exceeds, has_good_form, violations
from tests.second_verifier.stream_measures import stream_metrics


@dataclass(frozen=True)
class Verdict:
    """``metrics`` are exact; ``objectives`` is empty unless the schedule is feasible."""

    violated: frozenset[str]
    metrics: dict[str, Fraction | None] = field(default_factory=dict)
    objectives: tuple[Fraction, ...] = ()

    @property
    def feasible(self) -> bool:
        return not self.violated


def judge(instance: Json, schedule: Json) -> Verdict:
    """The verdict on the JSON object of a schedule for that of an instance."""
    return judge_for(Problem(instance), schedule)


def judge_for(problem: Problem, schedule: Json) -> Verdict:
    if not has_good_form(problem, schedule):
        return Verdict(frozenset({"form"}))
    segments, naps = problem.segments(schedule), problem.naps(schedule)
    found = violations(problem, segments, naps)
    metrics: dict[str, Fraction | None] = {**plain_metrics(problem, segments, naps)}
    metrics |= physical_metrics(problem, segments, naps)
    if problem.stream is not None:
        energy_j = metrics["energy_j"]
        assert energy_j is not None
        metrics |= stream_metrics(problem, segments, energy_j)
    for name, limit in problem.data["limits"]["metric_max"].items():
        if above(problem, name, metrics[name], limit):
            found.add(f"limit:{name}")
    return Verdict(frozenset(found), metrics, () if found else objectives(problem, metrics))


def above(problem: Problem, name: str, value: Fraction | None, limit: float) -> bool:
    assert value is not None
    if name == "makespan":
        return value > Fraction(limit)
    if name == "makespan_s":
        return value / problem.tick > down(float(limit) / problem.tick_s)
    return exceeds(value, Fraction(limit), abs(value))


def objectives(problem: Problem, metrics: dict[str, Fraction | None]) -> tuple[Fraction, ...]:
    out = []
    for level in problem.data["objective"]:
        total = Fraction(0)
        for name, weight in level.items():
            value = metrics[name]
            assert value is not None and math.isfinite(weight)
            total += Fraction(weight) * value
        out.append(total)
    return tuple(out)
