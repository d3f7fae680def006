"""Which constraints a schedule violates, by name ("Constraints" in docs/formats.md)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

from tests.second_verifier.heat import too_hot
from tests.second_verifier.problem import HORIZON, Json, Nap, Problem, Segment, by_task

TOLERANCE = Fraction(1, 2**40)
LARGEST_TIME = 2**60


def exceeds(value: Fraction, limit: Fraction, terms: Fraction) -> bool:
    """Whether a sum stands above a limit; ``terms`` is the sum of its absolute terms."""
    return value - limit > TOLERANCE * (terms + abs(limit))


def has_good_form(problem: Problem, schedule: Json) -> bool:
    table = schedule["segments"]
    columns = [table[key] for key in ("task", "mode", "start", "end")]
    if len({len(column) for column in columns}) != 1 or any(
        type(x) is not int for column in columns for x in column
    ):
        return False
    if any(abs(x) > LARGEST_TIME for column in columns[2:] for x in column):
        return False
    if not has_good_naps(problem, schedule.get("sleep")):
        return False
    known = all(0 <= task < problem.num_tasks for task in table["task"])
    return known and all(0 <= mode < len(problem.modes["kind"]) for mode in table["mode"])


def has_good_naps(problem: Problem, table: Json | None) -> bool:
    if table is None:
        return True
    columns = [table[key] for key in ("pool", "devices", "start", "end")]
    whole = all(type(x) is int for column in columns for x in column)
    if len({len(column) for column in columns}) != 1 or not whole:
        return False
    small = all(abs(x) <= LARGEST_TIME for column in columns[1:] for x in column)
    return small and all(0 <= pool < problem.num_pools for pool in columns[0])


def violations(problem: Problem, segments: list[Segment], naps: Sequence[Nap] = ()) -> set[str]:
    """Every name but ``form`` and the limits on metrics."""
    tasks = by_task(problem, segments)
    found = {name for segment in segments for name in of_segment(problem, segment)}
    found |= {name for own in tasks for name in of_task(problem, own)}
    if all(tasks):
        found |= {
            name
            for edge in range(len(problem.edges["source"]))
            for name in of_edge(problem, edge, tasks)
        }
    if not all_work_done(problem, tasks):
        found.add("assignment")
    if busy_beyond_count(problem, segments):
        found.add("capacity")
    found |= of_naps(problem, segments, naps)
    limits = problem.data["limits"]
    for place, cap_w in zip(limits["cap_place"], limits["cap_w"]):
        if any(
            exceeds(power, Fraction(cap_w), terms)
            for _, power, terms in powers(problem, segments, place, naps)
        ):
            found.add("power_cap")
    if too_hot(problem, segments, naps):
        found.add("temperature")
    return found


def of_naps(problem: Problem, segments: list[Segment], naps: Sequence[Nap]) -> set[str]:
    latest = HORIZON if problem.horizon is None else min(HORIZON, problem.horizon)
    for nap in naps:
        lasts = 0 <= nap.start < nap.end <= latest
        if not (lasts and nap.devices >= 1 and problem.sleeps_by_row[nap.pool]):
            return {"sleep"}
    changes = used_devices(problem, segments)
    for nap in naps:
        up_again = nap.end + problem.wake_ticks[nap.pool]
        changes += [(nap.start, {nap.pool: nap.devices}), (up_again, {nap.pool: -nap.devices})]
    count, pools = problem.pools["count"], {nap.pool for nap in naps}
    too_many = any(
        used[p] > count[p] for _, used in levels(changes, problem.num_pools) for p in pools
    )
    return {"awake"} if too_many else set()


def of_segment(problem: Problem, s: Segment) -> Iterator[str]:
    tasks = problem.tasks
    if problem.modes["kind"][s.mode] != tasks["kind"][s.task]:
        yield "mode"
    if tasks["memory_gb"][s.task] > problem.room_gb(s.mode):
        yield "memory"
    if not good_length(problem, s):
        yield "duration"
    if s.start < tasks["release"][s.task]:
        yield "release"
    way = problem.access(s.task, problem.primary[s.mode])
    if problem.stream is not None and (way is None or s.start < tasks["release"][s.task] + way):
        yield "access"
    deadline = tasks["deadline"][s.task]
    if tasks["deadline_hard"][s.task] and deadline is not None and s.end > deadline:
        yield "deadline"
    if s.end > (HORIZON if problem.horizon is None else min(HORIZON, problem.horizon)):
        yield "horizon"


def good_length(problem: Problem, s: Segment) -> bool:
    whole = problem.length(s.task, s.mode)
    if whole == 0:
        return s.length == 0
    if s.length <= 0:
        return False
    cut_off = problem.is_open and s.length < whole and s.end == problem.horizon
    return problem.preemptive or s.length == whole or cut_off


def of_task(problem: Problem, own: list[Segment]) -> Iterator[str]:
    if not problem.preemptive and len(own) > 1:
        yield "single_segment"
    if problem.preemptive and any(a.end > b.start for a, b in pairwise(own)):
        yield "self_overlap"
    if (
        problem.preemptive
        and own
        and own[0].task in tasks_with_data(problem)
        and len({problem.primary[s.mode] for s in own}) > 1
    ):
        yield "one_pool"


def tasks_with_data(problem: Problem) -> set[int]:
    edges = problem.edges
    rows = zip(edges["source"], edges["target"], edges["data_gb"])
    return {task for source, target, data_gb in rows if data_gb > 0 for task in (source, target)}


def all_work_done(problem: Problem, tasks: list[list[Segment]]) -> bool:
    if problem.is_open:
        return any(sum(map(problem.progress, own)) > 0 for own in tasks)
    if not problem.preemptive:
        return all(tasks)
    return all(own and problem.saved(own) >= 1 for own in tasks)


def of_edge(problem: Problem, edge: int, tasks: list[list[Segment]]) -> Iterator[str]:
    source, target = tasks[problem.edges["source"][edge]], tasks[problem.edges["target"][edge]]
    end, start = max(s.end for s in source), target[0].start
    ends = problem.primary[source[-1].mode], problem.primary[target[0].mode]
    lag = problem.lag(edge, *ends, at=end)
    if start < end:
        yield "precedence"
    if lag is None:
        yield "link"
    elif end <= start < end + lag:
        yield "transfer"


def levels(
    changes: Iterable[tuple[int, dict[int, int]]], size: int
) -> Iterator[tuple[int, list[int]]]:
    """Times at which something changes, each with the running totals from then on."""
    at: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for time, change in changes:
        for key, amount in change.items():
            at[time][key] += amount
    total = [0] * size
    for time in sorted(at):
        for key, amount in at[time].items():
            total[key] += amount
        yield time, list(total)


def occupations(problem: Problem, segments: Iterable[Segment]) -> list[tuple[int, dict[int, int]]]:
    """Changes of the number of busy devices."""
    out = []
    for s in segments:
        if s.length > 0:
            out.append((s.start, problem.needs[s.mode]))
            out.append((s.end, {pool: -n for pool, n in problem.needs[s.mode].items()}))
    return out


def used_devices(problem: Problem, segments: list[Segment]) -> list[tuple[int, dict[int, int]]]:
    """Changes of the number of devices that are busy or gone."""
    gone = [(time, {pool: n}) for time, pool, n in problem.outages()]
    return occupations(problem, segments) + gone


def busy_beyond_count(problem: Problem, segments: list[Segment]) -> bool:
    changes = used_devices(problem, segments)
    count = problem.pools["count"]
    return any(
        n > count[p] for _, used in levels(changes, problem.num_pools) for p, n in enumerate(used)
    )


def powers(
    problem: Problem, segments: list[Segment], place: int, naps: Sequence[Nap] = ()
) -> Iterator[tuple[int | None, Fraction, Fraction]]:
    """Each time at which the power at a place changes, the power, and its absolute terms; first
    that of nothing running and nothing asleep.
    """
    below, count, num_modes = (
        problem.below[place],
        problem.pools["count"],
        len(problem.modes["kind"]),
    )
    own = [
        Fraction(watt) if p in below else Fraction(0)
        for watt, p in zip(problem.modes["power_w"], problem.primary)
    ]

    def power(running: list[int]) -> tuple[Fraction, Fraction]:
        """Of so many runs of each mode, and so many devices of each pool asleep."""
        asleep = running[num_modes:]
        busy = list(asleep)
        for mode, times in enumerate(running[:num_modes]):
            for pool, n in problem.needs[mode].items() if times else ():
                busy[pool] += n * times
        terms = [times * own[mode] for mode, times in enumerate(running[:num_modes]) if times]
        for pool in below:
            terms.append(problem.rest_w[pool] * (count[pool] - busy[pool]))
            terms.append(Fraction(problem.pools["sleep_w"][pool]) * asleep[pool])
        return sum(terms, Fraction(0)), sum(map(abs, terms), Fraction(0))

    size = num_modes + problem.num_pools
    yield None, *power([0] * size)
    rows = [s for s in segments if s.length > 0]
    changes = [(s.start, {s.mode: 1}) for s in rows] + [(s.end, {s.mode: -1}) for s in rows]
    for nap in naps:
        key = num_modes + nap.pool
        changes += [(nap.start, {key: nap.devices}), (nap.end, {key: -nap.devices})]
    for time, running in levels(changes, size):
        yield time, *power(running)
