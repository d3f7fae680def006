"""Metrics of what an instance may say beyond work and energy ("Metrics" in docs/formats.md)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

from tests.second_verifier.heat import peaks
from tests.second_verifier.measures import finishes, is_completed
from tests.second_verifier.problem import Nap, Problem, Segment, by_task


def physical_metrics(
    problem: Problem, segments: list[Segment], naps: Sequence[Nap] = ()
) -> dict[str, Fraction | None]:
    """Each only where the instance says so."""
    found: dict[str, Fraction | None] = {}
    warm = [peak for _, peak in peaks(problem, segments, naps)]
    if warm:
        found["peak_temperature_c"] = Fraction(max(warm))
    if problem.tasks.get("user") is not None:
        found["fairness"] = fairness(problem, by_task(problem, segments))
        found |= service(problem, segments)
    rates = problem.pools.get("failures_per_s")
    if rates is not None:
        found["expected_failures"] = problem.tick * sum(
            (
                n * Fraction(rates[pool]) * s.length
                for s in segments
                if s.length > 0
                for pool, n in problem.needs[s.mode].items()
            ),
            Fraction(0),
        )
    if problem.tasks.get("checkpoint") is not None:
        found["lost_energy_j"] = lost_energy_j(problem, by_task(problem, segments))
    return found


def lost_energy_j(problem: Problem, tasks: list[list[Segment]]) -> Fraction:
    """Energy of work that counts for nothing."""
    total = Fraction(0)
    for own in tasks:
        for segment in own[:-1]:
            units = problem.tasks["units"][segment.task]
            per_unit = problem.modes["energy_per_unit_j"][segment.mode]
            lost = problem.progress(segment) - problem.counted(segment)
            total += Fraction(units) * Fraction(per_unit) * lost
    return total


def service(problem: Problem, segments: list[Segment]) -> dict[str, Fraction | None]:
    """Late tasks, completed tasks per second and busy devices, of the tasks that arrive in time."""
    own, columns = by_task(problem, segments), problem.tasks
    end = max((s.end for s in segments), default=0)
    if problem.is_open:
        end = int(problem.horizon or 0)
    here = [
        t for t in range(problem.num_tasks) if not problem.is_open or columns["release"][t] < end
    ]
    finish = finishes(problem, own)
    late = [finish[t] > columns["deadline"][t] for t in here if columns["deadline"][t] is not None]
    done = sum(is_completed(problem, own[t]) for t in here)
    busy = sum(
        n * max(0, min(s.end, end) - max(s.start, problem.opens))
        for s in segments
        for n in problem.needs[s.mode].values()
    )
    span, devices = max(0, end - problem.opens), sum(problem.pools["count"])
    return {
        "slo_violation": Fraction(sum(late), len(late)) if late else Fraction(0),
        "throughput_per_s": Fraction(done) / (span * problem.tick) if span else Fraction(0),
        "utilisation": Fraction(busy, span * devices) if span * devices else Fraction(0),
    }


def fairness(problem: Problem, tasks: list[list[Segment]]) -> Fraction:
    """Jain's index of the users' mean slowdowns."""
    release, by_user = problem.tasks["release"], defaultdict(list)
    for task, finish in enumerate(finishes(problem, tasks)):
        if not problem.is_open or release[task] < (problem.horizon or 0):
            slow = Fraction(finish - release[task], max(1, shortest(problem, task)))
            by_user[problem.tasks["user"][task]].append(slow)
    mean = [sum(slow, Fraction(0)) / len(slow) for slow in by_user.values()]
    squares = sum((x * x for x in mean), Fraction(0))
    return sum(mean, Fraction(0)) ** 2 / (len(mean) * squares) if squares else Fraction(1)


def shortest(problem: Problem, task: int) -> int:
    return min(
        problem.length(task, mode)
        for mode, kind in enumerate(problem.modes["kind"])
        if kind == problem.tasks["kind"][task]
        and problem.tasks["memory_gb"][task] <= problem.room_gb(mode)
        and problem.access(task, problem.primary[mode]) is not None
    )
