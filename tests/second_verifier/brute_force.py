"""The optimum of a tiny instance that is not preemptive, by trying all modes with all starts at
event points.

Fix the modes, the order of all starts and ends, and where they lie between the given times
(releases, deadlines, tariff changes, the opening, the horizon). What may run beside what then is
fixed too, so feasible starts form a polyhedron of inequalities S_i − S_j ≥ c and S_i ≥ c with whole
c. A vertex is a forest of tight ones: each start is a given time (less its own length, or not), or
follows from another task's start by E_j, E_j + lag, S_j − d_i, S_j − d_i − lag, S_j or E_j − d_i.

- makespan, flow time, tardiness, and energy and cost of constant tariffs fall or stay when starts
  do (resting power ends with the last task, or at a fixed horizon). An earliest start of all tasks
  at once exists in each polyhedron and is best for every level and every limit on such metrics:
  only S = ready_i and the lower bounds above have to be tried.
- Cost and carbon of tariffs that change, and energy that counts from an opening on, are linear in
  the starts within a polyhedron: some vertex is best, for several levels too (the best face of one
  level has its vertices among them). What jumps where a tariff changes (transfers, tasks of length
  0) keeps its value to the left up to one tick before: these times are given times as well. A limit
  on such a metric, or on another one beside it, cuts off vertices: such instances are refused.
- Energy per unit of an open instance is a quotient of two linear functions, which is least at a
  vertex too; a task that the horizon cuts off begins one tick before it at the latest. Tasks may be
  left out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from tests.second_verifier.decoder import Row, schedule_of
from tests.second_verifier.problem import NOWHERE, Json, Problem, down
from tests.second_verifier.verifier import judge_for

MAKESPANS = {"makespan", "makespan_s"}
PRICED = {"cost_usd", "carbon_g"}
MAX_VECTORS, MAX_STARTS = 3000, 150_000


class TooLarge(Exception):
    """Not within reach of brute force."""


@dataclass(frozen=True)
class Optimum:
    """Least values of the levels, in order, and a schedule that has them."""

    values: tuple[Fraction, ...]
    schedule: Json


def optimum(data: Json) -> Optimum | None:
    """The optimum, None where nothing is feasible; TooLarge where it would take too long or
    vertices do not suffice.
    """
    problem = Problem(data)
    if problem.preemptive:
        raise TooLarge("preemptive: see brute_preemptive")
    regular = is_regular(problem)
    if not regular and set(data["limits"]["metric_max"]) - MAKESPANS:
        raise TooLarge("a limit cuts off vertices")
    best: Optimum | None = None
    tried, spent = 0, [0]
    for modes in itertools.product(*(choices(problem, task) for task in range(problem.num_tasks))):
        for rows in placements(problem, modes, regular, spent):
            tried += 1
            if tried > MAX_VECTORS:
                raise TooLarge(f"more than {MAX_VECTORS} vectors of starts")
            verdict = judge_for(problem, schedule_of(rows))
            if verdict.feasible and (best is None or verdict.objectives < best.values):
                best = Optimum(verdict.objectives, schedule_of(rows))
    return best


def is_regular(problem: Problem) -> bool:
    """Whether starting earlier never harms a metric that the instance names."""
    names = {name for level in problem.data["objective"] for name in level} | set(
        problem.data["limits"]["metric_max"]
    )
    varying = problem.tariffs is not None and len(problem.tariffs["times"]) > 1
    return not problem.is_open and not (varying and names & PRICED)


def choices(problem: Problem, task: int) -> list[int | None]:
    """The modes that fit a task, and None where it may be left out."""
    kind, tasks = problem.modes["kind"], problem.tasks
    out: list[int | None] = [
        k
        for k in range(len(kind))
        if kind[k] == tasks["kind"][task]
        and tasks["memory_gb"][task] <= problem.room_gb(k)
        and problem.access(task, problem.primary[k]) is not None
    ]
    return [*out, None] if problem.is_open else out


def placements(
    problem: Problem, modes: tuple[int | None, ...], regular: bool, spent: list[int]
) -> Iterator[list[Row]]:
    """Rows of one segment per task in these modes, with starts at event points, of those that keep
    the simple rules; ``spent`` counts the starts that were looked at, over all modes.
    """
    chosen = {task: mode for task, mode in enumerate(modes) if mode is not None}
    length = {task: problem.length(task, mode) for task, mode in chosen.items()}
    given = {task: given_starts(problem, task, mode, regular) for task, mode in chosen.items()}
    lags = edge_lags(problem, chosen)
    if any(lag is None for lag in lags.values()):
        return
    backwards = not regular or has_negative_net(problem)
    partial: set[frozenset[tuple[int, int]]] = {frozenset()}
    for _ in chosen:
        grown: set[frozenset[tuple[int, int]]] = set()
        for placed in partial:
            start = dict(placed)
            for task in chosen.keys() - start.keys():
                times = set(given[task])
                for other, begin in start.items():
                    times |= linked_starts(task, other, begin, length, lags, backwards)
                spent[0] += len(times)
                grown |= {
                    placed | {(task, time)}
                    for time in times
                    if fits(problem, task, chosen, start, time, length, lags)
                }
            if spent[0] > MAX_STARTS:
                raise TooLarge("too many starts")
        partial = grown
    for placed in partial:
        yield [(i, chosen[i], s, min(s + length[i], cut(problem))) for i, s in sorted(placed)]


def cut(problem: Problem) -> int:
    return int(problem.horizon or 0) if problem.is_open else 2**62


def given_starts(problem: Problem, task: int, mode: int, regular: bool) -> set[int]:
    """Starts of a task at which a given time is its start or its end."""
    ready = problem.tasks["release"][task] + (problem.access(task, problem.primary[mode]) or 0)
    if regular:
        return {ready}
    length, limits = problem.length(task, mode), problem.data["limits"]["metric_max"]
    ends = [time for time in (problem.tasks["deadline"][task], problem.horizon) if time is not None]
    ends += [math.floor(limits["makespan"])] if "makespan" in limits else []
    ends += [down(limits["makespan_s"] / problem.tick_s)] if "makespan_s" in limits else []
    starts = {ready, problem.opens} | {end - length for end in [*ends, problem.opens]}
    if problem.is_open:
        starts |= {int(problem.horizon or 0) - 1, int(problem.horizon or 0)}
    for time in problem.tariffs["times"] if problem.tariffs is not None else ():
        starts |= {time, time - length, time - 1, time - 1 - length}
    return {start for start in starts if start >= ready}


def edge_lags(problem: Problem, chosen: dict[int, int]) -> dict[tuple[int, int], int | None]:
    """The longest lag of the edges that join two tasks in these modes."""
    out: dict[tuple[int, int], int | None] = {}
    for edge, pair in enumerate(zip(problem.edges["source"], problem.edges["target"])):
        lag = problem.lag(edge, problem.primary[chosen[pair[0]]], problem.primary[chosen[pair[1]]])
        known = out.get(pair, 0)
        out[pair] = None if lag is None or known is None else max(known, lag)
    return out


def has_negative_net(problem: Problem) -> bool:
    """Whether some mode lowers the power somewhere, so that a cap may hold only while it runs."""
    if not problem.data["limits"]["cap_place"]:
        return False
    power = problem.modes["power_w"]
    rest = [
        sum((problem.rest_w[p] * n for p, n in needs.items()), Fraction(0))
        for needs in problem.needs
    ]
    split = any(
        len(needs) > 1 for needs in problem.needs
    )  # the rest of another place is freed whatever is drawn here
    return split or any(Fraction(watt) < freed for watt, freed in zip(power, rest))


def linked_starts(
    task: int,
    other: int,
    begin: int,
    length: dict[int, int],
    lags: dict[tuple[int, int], int | None],
    backwards: bool,
) -> set[int]:
    """Starts of a task that follow from where another one has been put."""
    end = begin + length[other]
    times = {end, end + (lags.get((other, task)) or 0)}
    if backwards:
        before = begin - length[task]
        times |= {before, before - (lags.get((task, other)) or 0), begin, end - length[task]}
    return times


def fits(
    problem: Problem,
    task: int,
    chosen: dict[int, int],
    start: dict[int, int],
    time: int,
    length: dict[int, int],
    lags: dict[tuple[int, int], int | None],
) -> bool:
    """Whether a start keeps what more tasks can never mend: its release and deadline, edges, and
    pairs that exclude each other.
    """
    pool, tasks = problem.primary[chosen[task]], problem.tasks
    way = problem.access(task, pool) if pool != NOWHERE else 0
    end = min(time + length[task], cut(problem))
    if way is None or time < tasks["release"][task] + way or end < time:
        return False
    if (
        tasks["deadline_hard"][task]
        and tasks["deadline"][task] is not None
        and end > tasks["deadline"][task]
    ):
        return False
    if problem.horizon is not None and end > problem.horizon:
        return False
    for other, begin in start.items():
        stop = min(begin + length[other], cut(problem))
        if (other, task) in lags and time < stop + (lags[other, task] or 0):
            return False
        if (task, other) in lags and begin < end + (lags[task, other] or 0):
            return False
        if time < stop and begin < end and max(time, begin) < min(stop, end):
            both = {p: problem.needs[chosen[other]].get(p, 0) for p in problem.needs[chosen[task]]}
            if any(
                n + problem.needs[chosen[task]][p] > problem.pools["count"][p]
                for p, n in both.items()
            ):
                return False
    return True
