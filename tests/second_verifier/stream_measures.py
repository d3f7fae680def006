"""The metrics of an instance with a stream ("Metrics" in docs/formats.md, second table)."""

from __future__ import annotations

import math
from fractions import Fraction

from tests.second_verifier.measures import finishes, is_completed
from tests.second_verifier.problem import Problem, Segment, by_task, up

DAY_S, MOST_DAYS, LOG_EVERY_S = 86_400.0, 14, 20.0
Value = Fraction | None


def stream_metrics(
    problem: Problem, segments: list[Segment], energy_j: Fraction
) -> dict[str, Value]:
    """All of them; ``j_per_unit`` has no value where no work is done."""
    tasks = by_task(problem, segments)
    release, units, due = (problem.tasks[key] for key in ("release", "units", "deadline"))
    end = (
        int(problem.horizon or 0) if problem.is_open else max((s.end for s in segments), default=0)
    )
    finish = finishes(problem, tasks)
    done = [is_completed(problem, own) for own in tasks]
    here = [j for j in range(problem.num_tasks) if not problem.is_open or release[j] < end]
    completed = [j for j in here if done[j]]
    running = [
        j for j in here if problem.is_open and not done[j] and any(s.end == end for s in tasks[j])
    ]
    work = sum(
        (
            Fraction(units[j]) * min(Fraction(1), share(problem, tasks[j]))
            for j in range(len(units))
        ),
        Fraction(0),
    )
    logged = logged_units(problem, tasks, done) or work
    present = [min(finish[j], end) - release[j] for j in here]
    sojourns = sorted(finish[j] - release[j] for j in completed) or sorted(present) or [0]
    late = [finish[j] > due[j] for j in here if due[j] is not None]
    waiting = sum(waiting_ticks(problem, tasks[j], release[j], finish[j], end) for j in here)
    service = [sum(s.length for s in tasks[j]) for j in completed]
    counts = {"arrivals": len(here), "completed": len(completed), "in_progress": len(running)}
    return {
        **{name: Fraction(count) for name, count in counts.items()},
        "queue_end": Fraction(len(here) - len(completed) - len(running)),
        "units_offered": sum((Fraction(units[j]) for j in here), Fraction(0)),
        "units_done": work,
        "j_per_unit": energy_j / work if work > 0 else None,
        "j_per_unit_logged": energy_j / logged if logged > 0 else None,
        "sojourn_mean_s": problem.tick * mean(sojourns),
        **{f"sojourn_p{q}_s": problem.tick * percentile(sojourns, q) for q in (50, 95, 99)},
        "sojourn_censored_s": problem.tick * Fraction(sum(present), max(1, len(here))),
        "service_mean_s": problem.tick * mean(service),
        "queue_mean": Fraction(waiting, end - problem.opens)
        if end > problem.opens
        else Fraction(0),
        "slo_violation": mean([int(flag) for flag in late]),
        **queue_by_day(problem, tasks, done),
    }


def share(problem: Problem, own: list[Segment]) -> Fraction:
    return sum(map(problem.progress, own), Fraction(0))


def mean(values: list[int]) -> Fraction:
    return Fraction(sum(values), len(values)) if values else Fraction(0)


def percentile(ordered: list[int], q: int) -> Fraction:
    """Linear between the two neighbours of position (n − 1) q / 100."""
    position = Fraction((len(ordered) - 1) * q, 100)
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (position - low) * (ordered[high] - ordered[low])


def waiting_ticks(problem: Problem, own: list[Segment], release: int, finish: int, end: int) -> int:
    """Ticks within [opens, end] between release and finish in which a task does not run."""

    def within(since: int, until: int) -> int:
        return max(0, min(until, end) - max(since, problem.opens))

    return within(release, finish) - sum(within(s.start, s.end) for s in own)


def queue_by_day(
    problem: Problem, tasks: list[list[Segment]], done: list[bool]
) -> dict[str, Fraction]:
    if not problem.is_open or problem.horizon is None:
        return {}
    out: dict[str, Fraction] = {}
    day = up(DAY_S / problem.tick_s)
    for k in range(1, min(MOST_DAYS, problem.horizon // day) + 1):
        at = min(k * day, problem.horizon - 1)
        waiting = [
            waits(own, done[j], at)
            for j, own in enumerate(tasks)
            if problem.tasks["release"][j] <= at
        ]
        out[f"queue_day{k}"] = Fraction(sum(waiting))
    return out


def waits(own: list[Segment], done: bool, time: int) -> bool:
    ended = done and max(s.end for s in own) <= time
    return not ended and not any(s.start <= time < s.end for s in own)


def logged_units(problem: Problem, tasks: list[list[Segment]], done: list[bool]) -> Fraction:
    """Work as the simulator of CHSAC-AF logs it, in samples of 20 s."""
    every = max(1, up(LOG_EVERY_S / problem.tick_s))
    total = Fraction(0)
    for own, completed in zip(tasks, done):
        for s in own:
            time_s = Fraction(problem.modes["time_per_unit_s"][s.mode])
            if time_s > 0:
                last = s.end - 1 if completed else s.end
                samples = max(0, last // every - (s.start - 1) // every)
                rest = s.end % every if completed else 0
                total += (samples * every + rest) * problem.tick / time_s
    return total
