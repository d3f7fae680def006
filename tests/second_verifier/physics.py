"""What random instances may say beyond work and energy, drawn apart from the rest: an instance of a
seed is the same with and without it.
"""

from __future__ import annotations

import random
from fractions import Fraction

from tests.second_verifier.generator import Scale, random_instance
from tests.second_verifier.problem import Json, Nap, Problem, Segment
from tests.second_verifier.rules import of_naps


def physical_instance(
    seed: int, scale: Scale, tasks: tuple[int, int] = (1, 4), **fixed: bool
) -> Json:
    """The random instance of a seed with cooled places, users, failures and busy links."""
    made, rng = random_instance(seed, scale, tasks, **fixed), random.Random(f"physics {seed}")
    waking = random.Random(f"waking {seed}")
    if waking.random() < 0.6:
        add_waking(waking, made, scale)
    cooling = draw_cooling(rng, made, scale)
    if cooling is not None:
        made["cooling"] = cooling
    if rng.random() < 0.7:
        users = rng.randint(1, 3)
        made["tasks"]["user"] = [rng.randrange(users) for _ in made["tasks"]["kind"]]
        made["tasks"]["user_names"] = rng.choice((None, ["x", "y", "z"]))
    if rng.random() < 0.7:
        rates = (0.0, 1e-9, rng.uniform(1e-8, 1e-3))
        made["pools"]["failures_per_s"] = [rng.choice(rates) for _ in made["pools"]["names"]]
    is_open = (made.get("stream") or {}).get("opens") is not None
    if made["preemptive"] and not is_open and rng.random() < 0.6:
        every = (None, 0, 1, scale.factor, 2 * scale.factor - 1)
        made["tasks"]["checkpoint"] = [rng.choice(every) for _ in made["tasks"]["kind"]]
    if made["edges"]["source"] and rng.random() < 0.8:
        times = sorted({0, *(rng.randint(1, 8) * scale.factor for _ in range(rng.randint(0, 3)))})
        factors = (1.0, 1.0, 1.5, rng.uniform(1.0, 4.0))
        rows = [[rng.choice(factors) for _ in times] for _ in made["pools"]["names"]]
        made["congestion"] = {"times": times, "factor": rows}
    return made


def draw_cooling(rng: random.Random, made: Json, scale: Scale) -> Json | None:
    """Places whose limits are near what one or two running modes reach."""
    problem, rows = Problem(made), []
    places = range(len(problem.below))
    for place in rng.sample(list(places), rng.randint(1, len(places))):
        below = problem.below[place]
        rest = sum(
            (problem.rest_w[pool] * problem.pools["count"][pool] for pool in below), Fraction(0)
        )
        modes = [k for k, pool in enumerate(problem.primary) if pool in below]
        extra = sum((mean_power(problem, k) for k in rng.choices(modes, k=2)), 0.0) if modes else 0
        base, ambient = float(rest), rng.choice((0.0, 20.0, rng.uniform(-5.0, 30.0)))
        c_per_w = rng.uniform(5.0, 40.0) / (base + extra) if base + extra > 0 else 1.0
        settled = ambient + c_per_w * base
        limit = max(ambient, settled) + c_per_w * extra * rng.choice((0.3, 0.5, 1.0)) + 1e-3
        start = rng.choice((ambient, min(limit, settled), limit))
        tau_s = rng.choice((0.3, 1.0, 4.0)) * scale.factor * problem.tick_s
        rows.append((place, ambient, c_per_w, tau_s, limit, start))
    if not rows:
        return None
    keys = ("place", "ambient_c", "c_per_w", "time_constant_s", "limit_c", "start_c")
    return {key: list(column) for key, column in zip(keys, zip(*rows))}


def mean_power(problem: Problem, mode: int) -> float:
    seconds = float(problem.modes["time_per_unit_s"][mode])
    return float(problem.modes["energy_per_unit_j"][mode]) / seconds if seconds > 0 else 0.0


def add_waking(rng: random.Random, made: Json, scale: Scale) -> None:
    """Some of the pools take time or energy to wake; they draw no more asleep than idle."""
    pools, tick_s = made["pools"], made["tick_s"]
    rows = range(len(pools["names"]))
    chosen = [rng.random() < 0.7 for _ in rows]
    for p in rows:
        if chosen[p]:
            pools["gated"][p] = True
            pools["sleep_w"][p] = min(pools["sleep_w"][p], pools["idle_w"][p])
    ticks = [rng.choice((0, 1, scale.factor, 2 * scale.factor)) * chosen[p] for p in rows]
    usual_j = [pools["idle_w"][p] * scale.factor * tick_s for p in rows]
    pools["wake_s"] = [tick_s * ticks[p] for p in rows]
    pools["wake_j"] = [rng.choice((0.0, 0.3, 2.0)) * usual_j[p] * chosen[p] for p in rows]
    if rng.random() < 0.2:
        pools[rng.choice(("wake_s", "wake_j"))] = None


def with_naps(made: Json, schedule: Json, rng: random.Random) -> Json:
    """The schedule with rows of devices that sleep: most fill what is between segments, some are
    moved or drawn at random.
    """
    problem = Problem(made)
    segments = problem.segments(schedule)
    times = sorted({0, *(t for s in segments for t in (s.start, s.end))})
    last = problem.horizon or times[-1]
    rows = []
    for _ in range(rng.randint(1, 4)):
        pool = rng.randrange(problem.num_pools)
        if not problem.sleeps_by_row[pool] and rng.random() < 0.9:
            continue
        start = rng.choice(times)
        end = rng.choice([*(t for t in times if t > start), last])
        end -= rng.choice((0, problem.wake_ticks[pool], problem.wake_ticks[pool]))
        moved = rng.choice((0, 0, 0, 1, -1))
        rows.append((pool, rng.choice((1, 1, 2)), start + moved, end + rng.choice((0, moved))))
    free = [row for row in rows if not problem_with(problem, segments, [row])]
    if rng.random() < 0.7:
        rows = free[:1]
        rows += [row for row in free[1:2] if not problem_with(problem, segments, [*rows, row])]
    table = {key: [row[k] for row in rows] for k, key in enumerate(COLUMNS)}
    return schedule | {"sleep": table}


COLUMNS = ("pool", "devices", "start", "end")


def problem_with(
    problem: Problem, segments: list[Segment], rows: list[tuple[int, int, int, int]]
) -> set[str]:
    return of_naps(problem, segments, [Nap(*row) for row in rows])
