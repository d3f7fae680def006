"""The optimum of a tiny preemptive instance of at most 12 ticks, by dynamic programming over the
ticks.

Everything is whole ticks, so a schedule says for each tick and task in which mode it runs, if at
all. A state is, for each task, its progress, the end of its last segment and, where its data binds
it to a pool, that pool; energy, cost and carbon add up tick by tick, and everything else follows
from the state and the makespan. Of two ways to the same state the lexicographically better one
suffices, since levels add up. Work beyond the whole is tried where running may draw less than
resting.

Without a fixed horizon some optimal schedule ends by (latest given time) + Σ longest D + Σ longest
lag: a later one has a tick after the last given time in which no work is needed and no data moves,
and leaving this tick out harms no metric.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from tests.second_verifier.brute_force import MAKESPANS, Optimum, TooLarge, choices
from tests.second_verifier.decoder import Row, schedule_of
from tests.second_verifier.measures import Rates
from tests.second_verifier.problem import NOWHERE, Json, Problem, Segment
from tests.second_verifier.rules import exceeds, powers, tasks_with_data
from tests.second_verifier.verifier import judge_for

MAX_TICKS, MAX_STATES = 12, 3000
# Progress, end of the last segment, and the pool that the data is bound to (None: not bound).
TaskState = tuple[Fraction, int, int | None]
State = tuple[TaskState, ...]
Cost = tuple[Fraction, ...]


@dataclass(frozen=True)
class Reached:
    """The cheapest way to a state: what it cost, and the rows that led there."""

    cost: Cost
    rows: tuple[Row, ...]


def optimum(data: Json) -> Optimum | None:
    """The optimum, None where nothing is feasible, TooLarge where it would take too long."""
    problem = Problem(data)
    if set(data["limits"]["metric_max"]) - MAKESPANS:
        raise TooLarge("a limit on a metric that adds up")
    search = Search(problem)
    best: Optimum | None = None
    zero = tuple(Fraction(0) for _ in data["objective"])
    states: dict[State, Reached] = {
        ((Fraction(0), 0, None),) * problem.num_tasks: Reached(zero, ())
    }
    for time in range(search.end + 1):
        states = search.at_boundary(states, time)
        for schedule in (
            schedule_of(merged(way.rows))
            for state, way in states.items()
            if search.may_end(state, time)
        ):
            verdict = judge_for(problem, schedule)
            if verdict.feasible and (best is None or verdict.objectives < best.values):
                best = Optimum(verdict.objectives, schedule)
        if time < search.end:
            states = search.after_tick(states, time)
    return best


def merged(rows: tuple[Row, ...]) -> list[Row]:
    """Ticks of one task in one mode that follow each other as one segment."""
    out: list[Row] = []
    open_rows: dict[tuple[int, int], int] = {}
    for task, mode, start, end in rows:
        at = open_rows.get((task, mode))
        if at is not None and end > start and out[at][3] == start and out[at][2] < out[at][3]:
            out[at] = (task, mode, out[at][2], end)
        else:
            open_rows[task, mode] = len(out)
            out.append((task, mode, start, end))
    return out


class Search:
    """What can happen in a tick, and what it costs."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.modes = [
            [k for k in choices(problem, task) if k is not None]
            for task in range(problem.num_tasks)
        ]
        self.bound = tasks_with_data(problem)
        self.end = self.last_tick()
        self.edges = list(enumerate(zip(problem.edges["source"], problem.edges["target"])))
        self.waste = self.resting_may_cost_more()
        self.track = self.needs_ends()
        self.rates = {
            name: [Rates(problem.tariffs["times"], row) for row in problem.tariffs[key]]
            for name, key in (("cost_usd", "price_usd_per_kwh"), ("carbon_g", "carbon_g_per_kwh"))
            if problem.tariffs is not None
        }

    def last_tick(self) -> int:
        problem = self.problem
        longest = sum(
            max(problem.length(i, k) for k in modes) for i, modes in enumerate(self.modes) if modes
        )
        pairs = itertools.product(range(problem.num_pools), repeat=2)
        spans = list(pairs)
        lags = sum(
            max(problem.lag(e, a, b) or 0 for a, b in spans)
            for e in range(len(problem.edges["source"]))
        )
        given = [time for time, _, _ in problem.outages()] + list(
            problem.tariffs["times"] if problem.tariffs else []
        )
        given += [
            problem.tasks["release"][i] + (problem.access(i, problem.primary[k]) or 0)
            for i, modes in enumerate(self.modes)
            for k in modes
        ]
        end = max(given, default=0) + longest + lags if problem.horizon is None else problem.horizon
        if end > MAX_TICKS:
            raise TooLarge(f"{end} ticks")
        return end

    def resting_may_cost_more(self) -> bool:
        """Whether running may draw less than resting: in energy, or in power under a cap."""
        problem = self.problem
        for task, modes in enumerate(self.modes):
            for mode in modes:
                rest = sum(
                    (problem.rest_w[p] * n for p, n in problem.needs[mode].items()), Fraction(0)
                )
                length = problem.length(task, mode)
                drawn = problem.energy_j(Segment(task, mode, 0, length, 0))
                if drawn < rest * problem.tick * length or len(problem.needs[mode]) > 1:
                    return True
                if (
                    problem.data["limits"]["cap_w"]
                    and Fraction(problem.modes["power_w"][mode]) < rest
                ):
                    return True
        return False

    def needs_ends(self) -> bool:
        names = {name for level in self.problem.data["objective"] for name in level}
        # Elsewhere the makespan is the tick at which a state is looked at; an open instance is
        # looked at at its horizon alone.
        last = (
            MAKESPANS & (names | set(self.problem.data["limits"]["metric_max"]))
            if self.problem.is_open
            else set()
        )
        return bool(names & {"flow_time_s", "tardiness_s"}) or bool(self.edges) or bool(last)

    def may_end(self, state: State, time: int) -> bool:
        if self.problem.is_open:
            return time == self.end and any(done > 0 for done, _, _ in state)
        return all(done >= 1 for done, _, _ in state)

    def at_boundary(self, states: dict[State, Reached], time: int) -> dict[State, Reached]:
        """The states after any tasks of length 0 at this time."""
        out, fresh = dict(states), dict(states)
        while fresh:
            grown: dict[State, Reached] = {}
            for state, way in fresh.items():
                for task, modes in enumerate(self.modes):
                    if state[task][0] >= 1:
                        continue
                    for mode in modes:
                        if self.problem.length(task, mode) == 0 and self.may_run(
                            state, task, mode, time, time
                        ):
                            self.add(grown, out, state, way, ((task, mode, time, time),))
            fresh = grown
        return out

    def after_tick(self, states: dict[State, Reached], time: int) -> dict[State, Reached]:
        out: dict[State, Reached] = {}
        for state, way in states.items():
            options: list[list[Row | None]] = [[None] for _ in state]
            for task, modes in enumerate(self.modes):
                if state[task][0] >= 1 and not self.waste:
                    continue
                options[task] += [
                    (task, mode, time, time + 1)
                    for mode in modes
                    if self.problem.length(task, mode) > 0
                    and self.may_run(state, task, mode, time, time + 1)
                ]
            for choice in itertools.product(*options):
                rows = tuple(row for row in choice if row is not None)
                if self.is_possible(rows, time):
                    self.add(out, out, state, way, rows)
            if len(out) > MAX_STATES:
                raise TooLarge(f"more than {MAX_STATES} states")
        return out

    def may_run(self, state: State, task: int, mode: int, start: int, end: int) -> bool:
        """What one task must keep, whatever the others do in this tick."""
        problem, pool = self.problem, self.problem.primary[mode]
        deadline, hard = problem.tasks["deadline"][task], problem.tasks["deadline_hard"][task]
        if start < problem.tasks["release"][task] + (problem.access(task, pool) or 0):
            return False
        if (hard and deadline is not None and end > deadline) or state[task][2] not in (None, pool):
            return False
        for edge, (source, target) in self.edges:
            if source == task and state[target][0] > 0:
                return False
            if target == task and not self.has_arrived(state, edge, source, pool, start):
                return False
        return True

    def has_arrived(self, state: State, edge: int, source: int, pool: int, start: int) -> bool:
        done, end, sender = state[source]
        lag = self.problem.lag(edge, NOWHERE if sender is None else sender, pool)
        return done >= 1 and lag is not None and start >= end + lag

    def is_possible(self, rows: tuple[Row, ...], time: int) -> bool:
        """Devices, power, and edges between tasks of the same tick."""
        problem = self.problem
        running = {row[0] for row in rows}
        if any(a in running and b in running for _, (a, b) in self.edges):
            return False
        used = [0] * problem.num_pools
        for since, pool, devices in problem.outages():
            used[pool] += devices if since <= time else 0
        for _, mode, _, _ in rows:
            for pool, devices in problem.needs[mode].items():
                used[pool] += devices
        if any(n > count for n, count in zip(used, problem.pools["count"])):
            return False
        segments, limits = [Segment(*row, 0) for row in rows], problem.data["limits"]
        return not any(
            exceeds(power, Fraction(cap), terms)
            for place, cap in zip(limits["cap_place"], limits["cap_w"])
            for _, power, terms in list(powers(problem, segments, place))[:2]
        )

    def add(
        self,
        grown: dict[State, Reached],
        known: dict[State, Reached],
        state: State,
        way: Reached,
        rows: tuple[Row, ...],
    ) -> None:
        """Enter the state that these rows lead to where it is new or cheaper."""
        after = list(state)
        for task, mode, start, end in rows:
            done, _, _ = after[task]
            length = self.problem.length(task, mode)
            more = done + (Fraction(end - start, length) if length else 1)
            pool = self.problem.primary[mode] if task in self.bound else None
            after[task] = (min(Fraction(1), more), end if self.track else 0, pool)
        key = tuple(after)
        cost = tuple(a + b for a, b in zip(way.cost, self.cost(state, key, rows)))
        if key not in known or cost < known[key].cost:
            grown[key] = known[key] = Reached(cost, (*way.rows, *rows))

    def cost(self, state: State, after: State, rows: tuple[Row, ...]) -> Iterator[Fraction]:
        """What these rows add to each level, less the rest of their devices; energies of transfers
        at the target's start.
        """
        for level in self.problem.data["objective"]:
            total = Fraction(0)
            for name, weight in level.items():
                if name in ("energy_j", "j_per_unit"):
                    total += Fraction(weight) * self.drawn(state, rows, None)
                elif name in self.rates:
                    total += (
                        Fraction(weight) * self.drawn(state, rows, self.rates[name]) / 3_600_000
                    )
            yield total

    def drawn(self, state: State, rows: tuple[Row, ...], rates: list[Rates] | None) -> Fraction:
        problem, total = self.problem, Fraction(0)
        for task, mode, start, end in rows:
            pool = problem.primary[mode]
            if pool != NOWHERE:
                rate = Fraction(1) if rates is None else rates[pool].at(start)
                total += problem.energy_j(Segment(task, mode, start, end, 0)) * rate
            for p, n in problem.needs[mode].items() if start >= problem.opens else ():
                rate = Fraction(1) if rates is None else rates[p].at(start)
                total -= problem.rest_w[p] * n * (end - start) * problem.tick * rate
            for edge, (source, target) in self.edges:
                sender = state[source][2]
                if target == task and state[task][0] == 0 and sender is not None:
                    linked = problem.edges["data_gb"][edge] > 0 and (sender, pool) in problem.links
                    if linked:
                        rate = Fraction(1) if rates is None else rates[sender].at(state[source][1])
                        total += (
                            Fraction(problem.edges["data_gb"][edge])
                            * Fraction(problem.links[sender, pool][2])
                            * rate
                        )
        return total
