"""Schedules for random instances: feasible ones, and others that are off by a little."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

from tests.second_verifier.problem import Json, Problem, Segment
from tests.second_verifier.rules import violations

Row = tuple[int, int, int, int]
# What a schedule of some of the tasks may still lack.
UNFINISHED = {"assignment"}


def schedule_of(rows: Sequence[Row]) -> Json:
    """The JSON object of a schedule."""
    columns = {
        key: [row[k] for row in rows] for k, key in enumerate(("task", "mode", "start", "end"))
    }
    return {"format": "optbench-schedule", "version": 2, "segments": columns}


def rows_of(schedule: Json) -> list[Row]:
    table = schedule["segments"]
    return list(zip(table["task"], table["mode"], table["start"], table["end"]))


def decode(made: Json, rng: random.Random) -> Json | None:
    """A schedule that breaks no constraint but limits on metrics; None where this order of tasks
    and modes finds none.
    """
    problem, rows = Problem(made), list[Row]()
    for task in order(problem, rng):
        if problem.is_open and rng.random() < 0.15:
            continue
        found = placed(problem, rows, task, rng)
        if found is None and not problem.is_open:
            return None
        rows = found if found is not None else rows
    if problem.is_open and "assignment" in check(problem, rows):
        return None
    rng.shuffle(rows)
    return schedule_of(rows)


def order(problem: Problem, rng: random.Random) -> list[int]:
    """The tasks in a random order in which sources stand before targets."""
    before: dict[int, set[int]] = {task: set() for task in range(problem.num_tasks)}
    for source, target in zip(problem.edges["source"], problem.edges["target"]):
        before[target].add(source)
    out: list[int] = []
    while len(out) < problem.num_tasks:
        out.append(rng.choice([t for t in before if t not in out and before[t] <= set(out)]))
    return out


def check(problem: Problem, rows: Sequence[Row]) -> set[str]:
    return violations(problem, [Segment(*row, k) for k, row in enumerate(rows)])


def placed(problem: Problem, rows: list[Row], task: int, rng: random.Random) -> list[Row] | None:
    """The rows with those of one task added, as early as its modes allow, or in two pieces."""
    kind = problem.tasks["kind"][task]
    modes = [k for k, owner in enumerate(problem.modes["kind"]) if owner == kind]
    rng.shuffle(modes)
    if problem.preemptive and rng.random() < 0.5:
        first, second = rng.choice(modes), rng.choice(modes)
        length, whole = problem.length(task, first), problem.length(task, second)
        if length > 1 and whole > 0:
            piece = rng.choice((1, length - 1, length // 2, rng.randint(1, length - 1)))
            done_share = problem.counted(Segment(task, first, 0, piece, 0))
            rest = math.ceil((1 - done_share) * whole)
            begun = earliest(problem, rows, task, first, piece)
            done = None if begun is None else earliest(problem, begun, task, second, rest)
            if done is not None:
                return done
    for mode in modes:
        done = earliest(problem, rows, task, mode, problem.length(task, mode))
        if done is not None:
            return done
    return None


def earliest(
    problem: Problem, rows: list[Row], task: int, mode: int, length: int
) -> list[Row] | None:
    """One segment at the first of the times at which something happens where it breaks nothing."""
    for start in event_times(problem, rows, task, mode, length):
        end = start + length
        if problem.is_open and start < int(problem.horizon or 0) < end:
            end = int(problem.horizon or 0)
        tried = [*rows, (task, mode, start, end)]
        if check(problem, tried) <= UNFINISHED:
            return tried
    return None


def event_times(problem: Problem, rows: list[Row], task: int, mode: int, length: int) -> list[int]:
    ready = problem.tasks["release"][task] + (problem.access(task, problem.primary[mode]) or 0)
    times = (
        {ready, problem.opens} | {end for _, _, _, end in rows} | {start for _, _, start, _ in rows}
    )
    times |= {time for time, _, _ in problem.outages()}
    times |= {start - length for _, _, start, _ in rows}
    times |= {end - length for _, _, _, end in rows}
    for edge, (source, target) in enumerate(zip(problem.edges["source"], problem.edges["target"])):
        if target == task:
            sent = [(end, problem.primary[k]) for i, k, _, end in rows if i == source]
            times |= {
                end + (problem.lag(edge, pool, problem.primary[mode]) or 0) for end, pool in sent
            }
    return sorted(time for time in times if time >= ready)


def perturbed(made: Json, schedule: Json, rng: random.Random) -> Json:
    """The schedule with one or two small changes."""
    problem, rows = Problem(made), rows_of(schedule)
    for _ in range(rng.choice((1, 1, 2))):
        if rows:
            rows = rng.choice(CHANGES)(problem, list(rows), rng.randrange(len(rows)), rng)
    return schedule_of(rows)


def move(problem: Problem, rows: list[Row], k: int, rng: random.Random) -> list[Row]:
    task, mode, start, end = rows[k]
    by = rng.choice((-1, 1, -1, 1, 2, -2))
    rows[k] = (task, mode, start + by, end + by)
    return rows


def stretch(problem: Problem, rows: list[Row], k: int, rng: random.Random) -> list[Row]:
    task, mode, start, end = rows[k]
    rows[k] = (task, mode, start + rng.choice((-1, 0, 1)), end + rng.choice((-1, 0, 1)))
    return rows


def split(problem: Problem, rows: list[Row], k: int, rng: random.Random) -> list[Row]:
    task, mode, start, end = rows[k]
    at = rng.randint(start, max(start, end))
    rows[k] = (task, mode, start, at)
    gap = rng.choice((0, 0, 1, -1))
    return [*rows, (task, mode, at + gap, end + rng.choice((0, gap)))]


def other_mode(problem: Problem, rows: list[Row], k: int, rng: random.Random) -> list[Row]:
    task, _, start, end = rows[k]
    mode = rng.randrange(len(problem.primary))
    rows[k] = (task, mode, start, start + problem.length(task, mode) if rng.random() < 0.7 else end)
    return rows


def sliver(problem: Problem, rows: list[Row], k: int, rng: random.Random) -> list[Row]:
    task, _, start, end = rows[k]
    at, mode = rng.choice((start - 1, end, start, end + 1, 0)), rng.randrange(len(problem.primary))
    return [*rows, (task, mode, at, at + rng.choice((0, 1)))]


def duplicate(problem: Problem, rows: list[Row], k: int, rng: random.Random) -> list[Row]:
    task, mode, start, end = rows[k]
    by = rng.choice((0, end - start, max((row[3] for row in rows), default=0) - start))
    return [*rows, (task, mode, start + by, end + by)]


def drop(problem: Problem, rows: list[Row], k: int, rng: random.Random) -> list[Row]:
    return rows[:k] + rows[k + 1 :]


def to_event(problem: Problem, rows: list[Row], k: int, rng: random.Random) -> list[Row]:
    task, mode, start, end = rows[k]
    times = event_times(problem, rows, task, mode, end - start) or [start]
    at = rng.choice(times) + rng.choice((-1, 0, 0, 0, 1))
    rows[k] = (task, mode, at, at + end - start)
    return rows


def swap(problem: Problem, rows: list[Row], k: int, rng: random.Random) -> list[Row]:
    other = rng.randrange(len(rows))
    (task, mode, start, end), (task2, mode2, start2, end2) = rows[k], rows[other]
    rows[k], rows[other] = (
        (task2, mode2, start, start + end2 - start2),
        (task, mode, start2, start2 + end - start),
    )
    return rows


Change = Callable[[Problem, list[Row], int, random.Random], list[Row]]
CHANGES: tuple[Change, ...] = (
    move,
    stretch,
    split,
    other_mode,
    other_mode,
    sliver,
    duplicate,
    drop,
    to_event,
    swap,
)
