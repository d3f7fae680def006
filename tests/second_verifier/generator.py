"""Random instances as JSON objects of version 2, in which every feature is switched on or off by
itself.

Small times (a few ticks) are multiplied by the scale and shifted by -1, 0 or 1 tick, so that what
must fit fits exactly, or fails by a tick. Work, energy and power have magnitudes of their own, from
1e-6 to 1e9.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from tests.second_verifier.limits import draw_caps, draw_limits, draw_objective
from tests.second_verifier.problem import Json, Problem

MAGNITUDES = (1e-6, 1e-3, 0.1, 1.0, 30.0, 1e3, 1e6, 1e9)
# Each is on in this share of the instances where nothing forbids it.
SHARES = {
    "several_pools": 0.8,
    "edges": 0.6,
    "transfers": 0.8,
    "missing_links": 0.3,
    "free_links": 0.2,
    "releases": 0.5,
    "far_releases": 0.1,
    "deadlines": 0.45,
    "hard_deadlines": 0.5,
    "zero_lengths": 0.25,
    "multi_resource": 0.35,
    "poolless": 0.1,
    "memory": 0.2,
    "below_rest": 0.3,
    "zero_weights": 0.2,
    "horizon": 0.5,
    "short_horizon": 0.15,
    "preemptive": 0.4,
    "stream": 0.5,
    "open": 0.4,
    "late_opening": 0.5,
    "outages": 0.5,
    "latencies": 0.8,
    "tariffs": 0.4,
    "short_tariffs": 0.5,
    "priced": 0.4,
    "caps": 0.35,
    "node_caps": 0.5,
    "limits": 0.25,
    "levels": 0.3,
    "gated": 0.5,
    "resting_power": 0.7,
    "magnitudes": 0.4,
    "j_per_unit": 0.4,
    "tardiness": 0.5,
}


@dataclass(frozen=True)
class Scale:
    """``factor`` ticks for each tick of a small instance, of ``tick_s`` seconds (None: drawn)."""

    name: str
    factor: int
    tick_s: float | None = None


SCALES = (
    Scale("1 tick", 1),
    Scale("1e3 ticks", 10**3),
    Scale("1e7 ticks", 10**7),
    Scale("1e9 ticks", 10**9),
    Scale("nanoseconds", 10**9, 1e-9),
)


@dataclass
class Draw:
    """A generator of random numbers, the scale, and the features that are on."""

    rng: random.Random
    scale: Scale
    on: dict[str, bool]
    tick_s: float = 1.0
    power_w: float = 1.0
    work: list[float] = field(default_factory=list)

    def time(self, small: int) -> int:
        """A small time at the scale, a tick more or less."""
        moved = small * self.scale.factor + self.rng.choice((-1, 0, 0, 0, 1))
        return max(0, moved if self.scale.factor > 1 else small)

    def between(self, low: int, high: int) -> int:
        return self.rng.randint(low, high)

    def watt(self, high: float = 4.0) -> float:
        """A power, round or not."""
        value = self.rng.choice((self.rng.uniform(0.1, high), float(self.between(1, int(high)))))
        return self.power_w * value


def random_instance(
    seed: int, scale: Scale, tasks: tuple[int, int] = (1, 4), **fixed: bool
) -> Json:
    """The instance of a seed; ``fixed`` features are on or off whatever the seed says."""
    rng = random.Random(f"{seed} {scale.name}")
    while True:
        draw = Draw(rng, scale, {name: rng.random() < share for name, share in SHARES.items()})
        draw.on |= fixed
        made = assemble(draw, rng.randint(*tasks), f"seed {seed}, {scale.name}")
        if is_sound(made):
            draw_limits(draw.rng, made, draw.on)
            return made


def assemble(draw: Draw, n: int, name: str) -> Json:
    """Everything but limits on metrics, which need a schedule."""
    rng, on = draw.rng, draw.on
    draw.tick_s = draw.scale.tick_s or rng.choice((1.0, 1.0, 0.1, 0.001, 60.0, 3600.0))
    draw.power_w = rng.choice(MAGNITUDES) if on["magnitudes"] else rng.choice((1.0, 100.0))
    on["open"] &= on["stream"]
    on["edges"] &= not on["open"] and n > 1
    on["outages"] &= on["stream"] and on["preemptive"]
    places, pools = draw_pools(draw)
    modes = draw_modes(draw, pools, draw.between(1, min(2, n)))
    columns = draw_tasks(draw, n, modes)
    made: Json = {
        "format": "optbench-instance",
        "version": 2,
        "name": name,
        "problem": None,
        "tick_s": draw.tick_s,
        "horizon": draw_horizon(draw, n),
        "preemptive": on["preemptive"],
        "objective": [],
        "tasks": columns,
        "edges": draw_edges(draw, n),
        "places": places,
        "pools": pools,
        "modes": modes,
        "links": draw_links(draw, len(pools["names"])),
        "limits": {"cap_place": [], "cap_w": [], "metric_max": {}},
        "tariffs": draw_tariffs(draw, len(pools["names"]), n),
    }
    if on["stream"]:
        made["stream"] = draw_stream(draw, made)
    draw_caps(rng, made, on)
    made["objective"] = draw_objective(rng, made, on)
    return made


def draw_pools(draw: Draw) -> tuple[Json, Json]:
    rng, on = draw.rng, draw.on
    num_places = draw.between(1, 3)
    num_pools = draw.between(2, 3) if on["several_pools"] else 1
    places = {
        "names": ["cluster", "site", "node"][:num_places],
        "parent": [-1, *(rng.randrange(place) for place in range(1, num_places))],
    }
    rest = [draw.watt() if on["resting_power"] else 0.0 for _ in range(2 * num_pools)]
    pools = {
        "names": [f"p{p}" for p in range(num_pools)],
        "place": [rng.randrange(num_places) for _ in range(num_pools)],
        "count": [draw.between(1, 4) for _ in range(num_pools)],
        "idle_w": [rng.choice((0.0, value, value)) for value in rest[:num_pools]],
        "sleep_w": [rng.choice((0.0, 0.1 * value)) for value in rest[num_pools:]],
        "gated": [on["gated"] and rng.random() < 0.5 for _ in range(num_pools)],
        "memory_gb": [
            rng.choice((None, 16.0, 80.0)) if on["memory"] else None for _ in range(num_pools)
        ],
    }
    return places, pools


def draw_modes(draw: Draw, pools: Json, kinds: int) -> Json:
    """One to three modes of each kind; ``draw.work`` keeps what one task of the kind has to do."""
    rng, on = draw.rng, draw.on
    columns: Json = {
        key: []
        for key in ("kind", "time_per_unit_s", "energy_per_unit_j", "power_w", "clock", "needs")
    }
    for kind in range(kinds):
        draw.work.append(
            rng.choice(MAGNITUDES) if on["magnitudes"] else rng.choice((1.0, 1.0, 2.0, 0.1, 30.0))
        )
        for _ in range(draw.between(1, 3)):
            add_mode(draw, pools, columns, kind)
    return {"kinds": [f"k{kind}" for kind in range(kinds)], **columns}


def add_mode(draw: Draw, pools: Json, columns: Json, kind: int) -> None:
    rng, on, num_pools = draw.rng, draw.on, len(pools["names"])
    order = rng.sample(range(num_pools), num_pools)
    size = (
        0
        if on["poolless"] and rng.random() < 0.4
        else draw.between(1, 2)
        if on["multi_resource"]
        else 1
    )
    needs = [[pool, draw.between(1, pools["count"][pool])] for pool in order[:size]]
    ticks = (
        0 if on["zero_lengths"] and rng.random() < 0.4 else max(1, draw.time(draw.between(1, 4)))
    )
    rest = sum(pools["sleep_w" if pools["gated"][p] else "idle_w"][p] * count for p, count in needs)
    low = on["below_rest"] and rng.random() < 0.6
    power = 0.0 if not needs else rest * rng.choice((0.0, 0.5, 1.0)) if low else rest + draw.watt()
    mean = power * rng.choice((1.0, 0.8, 0.3))
    lump = power * draw.tick_s * draw.scale.factor if ticks == 0 else 0.0
    columns["kind"].append(kind)
    columns["time_per_unit_s"].append(ticks * draw.tick_s / draw.work[kind])
    columns["energy_per_unit_j"].append((mean * ticks * draw.tick_s + lump) / draw.work[kind])
    columns["power_w"].append(power)
    columns["clock"].append(rng.choice((None, 1.0, 0.5)))
    columns["needs"].append(needs)


def draw_tasks(draw: Draw, n: int, modes: Json) -> Json:
    rng, on = draw.rng, draw.on
    kind = [rng.randrange(len(modes["kinds"])) for _ in range(n)]
    share = (1.0, 1.0, 1.0, 2.0, 0.5, 1 / 3)
    release = [
        draw.time(draw.between(0, 3)) if on["releases"] and rng.random() < 0.6 else 0
        for _ in range(n)
    ]
    if on["far_releases"]:
        release[rng.randrange(n)] = draw.time(draw.between(8, 12))
    has = [on["deadlines"] and rng.random() < 0.7 for _ in range(n)]
    return {
        "kind": kind,
        "units": [draw.work[k] * rng.choice(share) for k in kind],
        "release": release,
        "deadline": [
            r + draw.time(draw.between(1, 10)) if flag else None for r, flag in zip(release, has)
        ],
        "deadline_hard": [on["hard_deadlines"] and rng.random() < 0.7 for _ in range(n)],
        "weight": [
            0.0 if on["zero_weights"] and rng.random() < 0.5 else rng.choice((1.0, 2.5, 0.1))
            for _ in range(n)
        ],
        "memory_gb": [rng.choice((0.0, 16.0, 40.0)) if on["memory"] else 0.0 for _ in range(n)],
    }


def draw_horizon(draw: Draw, n: int) -> int | None:
    if not (draw.on["horizon"] or draw.on["open"]):
        return None
    short = draw.on["short_horizon"] or draw.on["open"]
    return max(2, draw.time(draw.between(4, 9) if short else 6 * n + 8))


def draw_edges(draw: Draw, n: int) -> Json:
    rng, on = draw.rng, draw.on
    rows = [(i, j) for i in range(n) for j in range(i + 1, n) if on["edges"] and rng.random() < 0.5]
    name = rng.sample(range(n), n)
    data = [rng.choice((0.0, 1.0, 2.5)) if on["transfers"] else 0.0 for _ in rows]
    return {
        "source": [name[i] for i, _ in rows],
        "target": [name[j] for _, j in rows],
        "data_gb": data,
    }


def draw_links(draw: Draw, num_pools: int) -> Json | None:
    rng, on = draw.rng, draw.on
    keep = 0.6 if on["missing_links"] else 1.0
    pairs = [
        (a, b) for a in range(num_pools) for b in range(num_pools) if a != b and rng.random() < keep
    ]
    if not pairs:
        return None
    free = on["free_links"]
    time_s = [
        0.0 if free else draw.time(draw.between(0, 2)) * draw.tick_s for _ in range(2 * len(pairs))
    ]
    energy_j = [
        draw.watt() * draw.scale.factor * draw.tick_s * rng.choice((0.0, 1.0)) for _ in pairs
    ]
    return {
        "sender": [a for a, _ in pairs],
        "receiver": [b for _, b in pairs],
        "latency_s": time_s[: len(pairs)],
        "s_per_gb": time_s[len(pairs) :],
        "j_per_gb": energy_j,
    }


def draw_tariffs(draw: Draw, num_pools: int, n: int) -> Json | None:
    rng = draw.rng
    if not draw.on["tariffs"]:
        return None
    last = 4 if draw.on["short_tariffs"] else 4 * n + 6
    later = {draw.time(draw.between(1, last)) for _ in range(draw.between(0, 2))}
    times = sorted({0} | later)

    def rows() -> list[list[float]]:
        return [
            [rng.choice((0.0, rng.uniform(0.05, 1.0), 0.1)) for _ in times]
            for _ in range(num_pools)
        ]

    return {"times": times, "price_usd_per_kwh": rows(), "carbon_g_per_kwh": rows()}


def draw_stream(draw: Draw, made: Json) -> Json:
    rng, on = draw.rng, draw.on
    n, num_pools, num_ways = (
        len(made["tasks"]["kind"]),
        len(made["pools"]["names"]),
        draw.between(1, 2),
    )

    def way() -> float | None:
        if not on["latencies"] or rng.random() < 0.4:
            return 0.0
        return None if rng.random() < 0.2 else draw.time(draw.between(0, 2)) * draw.tick_s

    stream: dict[str, Any] = {
        "ingress_names": [f"in{g}" for g in range(num_ways)],
        "latency_s": [[way() for _ in range(num_pools)] for _ in range(num_ways)],
        "ingress": [rng.randrange(num_ways) for _ in range(n)],
        "sent_to": [-1] * n,
        "opens": None,
        "outages": draw_outages(draw, made["pools"]["count"]) if on["outages"] else None,
    }
    if on["open"]:
        latest = made["horizon"] - 1
        stream["opens"] = min(latest, draw.time(draw.between(1, 3))) if on["late_opening"] else 0
    return stream


def draw_outages(draw: Draw, count: list[int]) -> Json | None:
    """One or two outages, each of a pool of its own."""
    rows: list[tuple[int, int, int, bool]] = []
    for pool in draw.rng.sample(range(len(count)), draw.between(1, min(2, len(count)))):
        since, gone, announced = (
            draw.time(draw.between(0, 5)),
            draw.between(1, count[pool]),
            draw.rng.random() < 0.5,
        )
        rows.append((since, pool, gone, announced))
        if draw.rng.random() < 0.8:
            rows.append((since + max(1, draw.time(draw.between(1, 3))), pool, -gone, announced))
    rows.sort()
    keys = ("time", "pool", "devices", "announced")
    return {key: [row[k] for row in rows] for k, key in enumerate(keys)}


def is_sound(made: Json) -> bool:
    """Whether every task has a mode, and every edge with data a linked pair of them."""
    problem = Problem(made)
    fitting = [fitting_modes(problem, task) for task in range(problem.num_tasks)]
    if not all(fitting) or not all(length_fits(problem, task) for task in range(problem.num_tasks)):
        return False
    edges = made["edges"]
    for edge, (source, target) in enumerate(zip(edges["source"], edges["target"])):
        ends = [
            (problem.primary[a], problem.primary[b])
            for a in fitting[source]
            for b in fitting[target]
        ]
        if all(problem.lag(edge, a, b) is None for a, b in ends):
            return False
    return True


def length_fits(problem: Problem, task: int) -> bool:
    return all(problem.length(task, mode) < 2**44 for mode in fitting_modes(problem, task))


def fitting_modes(problem: Problem, task: int) -> list[int]:
    """Modes of a task's kind with the memory and a way to them."""
    modes, tasks = problem.modes, problem.tasks
    rows = [k for k, kind in enumerate(modes["kind"]) if kind == tasks["kind"][task]]
    rows = [k for k in rows if tasks["memory_gb"][task] <= problem.room_gb(k)]
    return [k for k in rows if problem.access(task, problem.primary[k]) is not None]
