"""Every metric of a schedule, as exact rational numbers ("Metrics" in docs/formats.md)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction

from tests.second_verifier.problem import NOWHERE, Nap, Problem, Segment, by_task
from tests.second_verifier.rules import powers

J_PER_KWH = 3_600_000
Rational = Fraction | int


def finishes(problem: Problem, tasks: list[list[Segment]]) -> list[int]:
    """When each task is over; 0 for one that has no segment and should have had."""
    out = []
    for task, own in enumerate(tasks):
        if is_completed(problem, own) or not problem.is_open:
            out.append(max((s.end for s in own), default=0))
        else:
            out.append(max(int(problem.horizon or 0), problem.tasks["release"][task]))
    return out


def is_completed(problem: Problem, own: list[Segment]) -> bool:
    return bool(own) and problem.saved(own) >= 1


def plain_metrics(
    problem: Problem, segments: list[Segment], naps: Sequence[Nap] = ()
) -> dict[str, Fraction]:
    """The metrics of every instance, and the energy of waking where that takes any."""
    tasks = by_task(problem, segments)
    makespan = max((s.end for s in segments), default=0)
    end = makespan if problem.horizon is None else problem.horizon
    busy_j = sum(map(problem.energy_j, segments), Fraction(0))
    transfer_j = sum((joule for _, _, joule in transfers(problem, tasks)), Fraction(0))
    rest_j = sum(
        (watt * time for watt, time in zip(problem.rest_w, resting_ticks(problem, segments, end))),
        Fraction(0),
    )
    for nap in naps:
        rest_j -= problem.saved_w(nap) * within(nap, problem.opens, end)
    rest_j *= problem.tick
    wake_j = sum((joule for _, _, joule in wakes(problem, naps, end)), Fraction(0))
    cost, carbon = (
        tariff_total(problem, tasks, segments, naps, end, key)
        for key in ("price_usd_per_kwh", "carbon_g_per_kwh")
    )
    finish, columns = finishes(problem, tasks), problem.tasks
    rows = list(
        zip(
            finish,
            columns["weight"],
            columns["release"],
            columns["deadline"],
            columns["deadline_hard"],
        )
    )
    return {
        "makespan": Fraction(makespan),
        "makespan_s": makespan * problem.tick,
        "busy_energy_j": busy_j,
        "transfer_energy_j": transfer_j,
        "rest_energy_j": rest_j,
        "energy_j": busy_j + transfer_j + rest_j + wake_j,
        "cost_usd": cost,
        "carbon_g": carbon,
        "flow_time_s": problem.tick
        * sum((Fraction(w) * (f - r) for f, w, r, _, _ in rows), Fraction(0)),
        "tardiness_s": problem.tick * weighted_lateness(problem, finish),
        "late_tasks": Fraction(sum(due is not None and f > due for f, _, _, due, _ in rows)),
        "peak_power_w": max(power for _, power, _ in powers(problem, segments, 0, naps)),
        **({"wake_energy_j": wake_j} if any(problem.sleeps_by_row) else {}),
    }


def within(nap: Nap, low: int, high: int) -> int:
    return max(0, min(nap.end, high) - max(nap.start, low))


def wakes(problem: Problem, naps: Sequence[Nap], end: int) -> Iterator[tuple[int, int, Fraction]]:
    """Pool, time and energy of devices that wake before the end."""
    joule = problem.wake("wake_j")
    for nap in naps:
        if nap.end < end:
            yield nap.pool, nap.end, nap.devices * Fraction(joule[nap.pool])


def weighted_lateness(problem: Problem, finish: list[int]) -> Fraction:
    columns = problem.tasks
    rows = zip(finish, columns["weight"], columns["deadline"], columns["deadline_hard"])
    late = (
        Fraction(w) * max(0, f - due) for f, w, due, hard in rows if due is not None and not hard
    )
    return sum(late, Fraction(0))


def resting_ticks(problem: Problem, segments: list[Segment], end: int) -> list[int]:
    """Device-ticks of each pool within [opens, end] that are not busy."""
    out = [count * (end - problem.opens) for count in problem.pools["count"]]
    for s in segments:
        within = max(0, min(s.end, end) - max(s.start, problem.opens))
        for pool, n in problem.needs[s.mode].items():
            out[pool] -= n * within
    return out


def transfers(problem: Problem, tasks: list[list[Segment]]) -> Iterator[tuple[int, int, Fraction]]:
    """Sender, time and energy of the data of each edge that goes from pool to pool."""
    edges = problem.edges
    for source, target, data_gb in zip(edges["source"], edges["target"], edges["data_gb"]):
        if not (data_gb > 0 and tasks[source] and tasks[target]):
            continue
        sender = problem.primary[tasks[source][-1].mode]
        receiver = problem.primary[tasks[target][0].mode]
        if NOWHERE not in (sender, receiver) and (sender, receiver) in problem.links:
            joule = Fraction(data_gb) * Fraction(problem.links[sender, receiver][2])
            yield sender, max(s.end for s in tasks[source]), joule


class Rates:
    """A tariff of one pool: its value at a time and its integral over a span of ticks."""

    def __init__(self, times: list[int], values: list[float]) -> None:
        self.times, self.values = (
            [int(time) for time in times],
            [Fraction(value) for value in values],
        )

    def at(self, time: int) -> Fraction:
        return self.values[max(0, bisect_right(self.times, time) - 1)]

    def over(self, start: int, end: int) -> Fraction:
        total = Fraction(0)
        for k, value in enumerate(self.values):
            until = end if k + 1 == len(self.times) else min(end, self.times[k + 1])
            since = start if k == 0 else max(start, self.times[k])
            total += value * max(0, until - since)
        return total


def tariff_total(
    problem: Problem,
    tasks: list[list[Segment]],
    segments: list[Segment],
    naps: Sequence[Nap],
    end: int,
    key: str,
) -> Fraction:
    """Energy weighed with one tariff at the time and pool where it is drawn."""
    if problem.tariffs is None:
        return Fraction(0)
    rates = [Rates(problem.tariffs["times"], row) for row in problem.tariffs[key]]
    total = Fraction(0)
    for s in segments:
        pool = problem.primary[s.mode]
        if pool != NOWHERE:
            mean = (
                rates[pool].over(s.start, s.end) / s.length
                if s.length > 0
                else rates[pool].at(s.start)
            )
            total += problem.energy_j(s) * mean
    for sender, time, joule in transfers(problem, tasks):
        total += joule * rates[sender].at(time)
    for pool, time, joule in wakes(problem, naps, end):
        total += joule * rates[pool].at(time)
    for nap in naps:
        since, until = max(nap.start, problem.opens), min(nap.end, end)
        if until > since:
            total -= problem.saved_w(nap) * problem.tick * rates[nap.pool].over(since, until)
    for pool, count in enumerate(problem.pools["count"]):
        resting = count * rates[pool].over(problem.opens, end)
        for s in segments:
            if pool in problem.needs[s.mode]:
                since, until = max(s.start, problem.opens), min(s.end, end)
                resting -= problem.needs[s.mode][pool] * (
                    rates[pool].over(since, until) if until > since else 0
                )
        total += problem.rest_w[pool] * problem.tick * resting
    return total / J_PER_KWH
