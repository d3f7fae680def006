"""An instance as it stands in its JSON object, with the numbers that follow from it ("Time" in
docs/formats.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

HORIZON = 2**52
NOWHERE = -1

Json = dict[str, Any]


def is_whole(x: float) -> bool:
    """Whether a product of floats counts as the whole number next to it."""
    return abs(Fraction(x) - round(x)) <= min(8 * Fraction(math.ulp(x)), Fraction(1, 4))


def up(x: float) -> int:
    """A number of ticks put on the grid from below."""
    if not math.isfinite(x):
        return HORIZON + 1
    return min(round(x) if is_whole(x) else math.ceil(x), HORIZON + 1)


def down(x: float) -> int:
    """A number of ticks put on the grid from above."""
    if not math.isfinite(x):
        return HORIZON + 1
    return min(round(x) if is_whole(x) else math.floor(x), HORIZON + 1)


@dataclass(frozen=True)
class Segment:
    """One row of a schedule."""

    task: int
    mode: int
    start: int
    end: int
    row: int

    @property
    def length(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class Nap:
    """One row of devices that sleep."""

    pool: int
    devices: int
    start: int
    end: int


class Problem:
    """The JSON object of an instance, and what the page derives from it."""

    def __init__(self, data: Json) -> None:
        self.data = data
        self.tick_s = float(data["tick_s"])
        self.tick = Fraction(self.tick_s)
        self.tasks, self.modes, self.pools, self.edges = (
            data["tasks"],
            data["modes"],
            data["pools"],
            data["edges"],
        )
        self.num_tasks, self.num_pools = len(self.tasks["kind"]), len(self.pools["names"])
        self.horizon: int | None = None if data["horizon"] is None else int(data["horizon"])
        self.preemptive = bool(data["preemptive"])
        self.stream: Json | None = data.get("stream")
        opens = None if self.stream is None else self.stream.get("opens")
        self.is_open = opens is not None
        self.opens = 0 if opens is None else int(opens)
        self.tariffs: Json | None = data.get("tariffs")
        self._lengths: dict[tuple[int, int], int] = {}

    @cached_property
    def rest_w(self) -> list[Fraction]:
        """What one device of each pool draws while it is not busy, and no row says that it
        sleeps.
        """
        pools = self.pools
        columns = zip(pools["gated"], self.sleeps_by_row, pools["sleep_w"], pools["idle_w"])
        return [
            Fraction(sleep if gated and not by_row else idle)
            for gated, by_row, sleep, idle in columns
        ]

    @cached_property
    def sleeps_by_row(self) -> list[bool]:
        """Pools whose devices take time or energy to wake."""
        return [w > 0 or j > 0 for w, j in zip(self.wake("wake_s"), self.wake("wake_j"))]

    def wake(self, key: str) -> list[float]:
        given = self.pools.get(key)
        return [0.0] * self.num_pools if given is None else [float(value) for value in given]

    @cached_property
    def wake_ticks(self) -> list[int]:
        return [up(seconds / self.tick_s) for seconds in self.wake("wake_s")]

    @cached_property
    def needs(self) -> list[dict[int, int]]:
        """Devices by pool of each mode."""
        return [{row[0]: row[1] for row in needs} for needs in self.modes["needs"]]

    @cached_property
    def primary(self) -> list[int]:
        """The first pool of each mode, NOWHERE where it has none."""
        return [needs[0][0] if needs else NOWHERE for needs in self.modes["needs"]]

    @cached_property
    def links(self) -> dict[tuple[int, int], tuple[float, float, float]]:
        """Latency, seconds and joules per GB of the linked pairs of different pools."""
        rows = self.data.get("links")
        if rows is None:
            return {}
        columns = zip(
            *(rows[key] for key in ("sender", "receiver", "latency_s", "s_per_gb", "j_per_gb"))
        )
        return {
            (a, b): (float(l), float(s), float(j))
            for a, b, l, s, j in columns
            if l is not None and a != b
        }

    @cached_property
    def below(self) -> list[set[int]]:
        """The pools that stand at each place or under it."""
        parent = self.data["places"]["parent"]
        out: list[set[int]] = [set() for _ in parent]
        for pool, place in enumerate(self.pools["place"]):
            while place >= 0:
                out[place].add(pool)
                place = parent[place]
        return out

    def length(self, task: int, mode: int) -> int:
        """D(task, mode)."""
        if (task, mode) not in self._lengths:
            per_unit = float(self.modes["time_per_unit_s"][mode]) / self.tick_s
            self._lengths[task, mode] = up(float(self.tasks["units"][task]) * per_unit)
        return self._lengths[task, mode]

    def progress(self, segment: Segment) -> Fraction:
        """Share of its task that a segment does."""
        length = self.length(segment.task, segment.mode)
        return Fraction(segment.length, length) if length else Fraction(1)

    def saved(self, own: list[Segment]) -> Fraction:
        """Progress of a task with these segments, in their order: of all but the last only what
        its checkpoints save.
        """
        if not own:
            return Fraction(0)
        return sum(map(self.counted, own[:-1]), self.progress(own[-1]))

    def counted(self, segment: Segment) -> Fraction:
        """Progress that the checkpoints of a segment save; all of it where tasks have none."""
        whole = self.length(segment.task, segment.mode)
        if self.tasks.get("checkpoint") is None or whole == 0:
            return self.progress(segment)
        every = self.tasks["checkpoint"][segment.task]
        left = segment.length if every is None else segment.length % every if every else 0
        return Fraction(segment.length - left, whole)

    def energy_j(self, segment: Segment) -> Fraction:
        """Energy that a segment draws."""
        units, per_unit = (
            self.tasks["units"][segment.task],
            self.modes["energy_per_unit_j"][segment.mode],
        )
        return Fraction(units) * Fraction(per_unit) * self.progress(segment)

    def lag(self, edge: int, sender: int, receiver: int, at: int | None = None) -> int | None:
        """Ticks from the end of the source, at a time or on free links, to the arrival of its data;
        None without a link.
        """
        data_gb = float(self.edges["data_gb"][edge])
        if data_gb == 0 or sender == receiver or NOWHERE in (sender, receiver):
            return 0
        if (sender, receiver) not in self.links:
            return None
        latency_s, s_per_gb, _ = self.links[sender, receiver]
        busy = self.data.get("congestion")
        if busy is None or at is None:
            return up((latency_s + data_gb * s_per_gb) / self.tick_s)
        period = max(k for k, time in enumerate(busy["times"]) if time <= at or k == 0)
        factor = max(busy["factor"][sender][period], busy["factor"][receiver][period])
        return up((latency_s + data_gb * s_per_gb * factor) / self.tick_s)

    def access(self, task: int, pool: int) -> int | None:
        """Ticks from where a task comes in to a pool; None where it cannot get there."""
        if self.stream is None or pool == NOWHERE:
            return 0
        latency_s = self.stream["latency_s"][self.stream["ingress"][task]][pool]
        return None if latency_s is None else up(float(latency_s) / self.tick_s)

    def room_gb(self, mode: int) -> float:
        """Memory of the smallest device of a mode."""
        sizes = [self.pools["memory_gb"][pool] for pool in self.needs[mode]]
        return min((math.inf if size is None else float(size) for size in sizes), default=math.inf)

    def outages(self) -> list[tuple[int, int, int]]:
        """Time, pool and change of the number of devices that are gone."""
        table = None if self.stream is None else self.stream.get("outages")
        return [] if table is None else list(zip(table["time"], table["pool"], table["devices"]))

    def naps(self, schedule: Json) -> list[Nap]:
        """The rows of devices that sleep, of a schedule of good form."""
        table = schedule.get("sleep")
        if table is None:
            return []
        return [
            Nap(*row) for row in zip(*(table[key] for key in ("pool", "devices", "start", "end")))
        ]

    def saved_w(self, nap: Nap) -> Fraction:
        """By how much less devices draw that sleep."""
        less = self.rest_w[nap.pool] - Fraction(self.pools["sleep_w"][nap.pool])
        return nap.devices * less

    def segments(self, schedule: Json) -> list[Segment]:
        """The rows of a schedule of good form."""
        table = schedule["segments"]
        rows = zip(table["task"], table["mode"], table["start"], table["end"])
        return [Segment(i, k, start, end, row) for row, (i, k, start, end) in enumerate(rows)]


def by_task(problem: Problem, segments: list[Segment]) -> list[list[Segment]]:
    """The segments of each task, in their order."""
    out: list[list[Segment]] = [[] for _ in range(problem.num_tasks)]
    for segment in sorted(segments, key=lambda s: (s.start, s.end, s.row)):
        out[segment.task].append(segment)
    return out
