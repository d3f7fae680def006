"""What random instances may say beyond work and energy, drawn apart from the rest: an instance of a
seed is the same with and without it.
"""

from __future__ import annotations

import random
from fractions import Fraction

from tests.second_verifier.generator import Scale, random_instance
from tests.second_verifier.problem import Json, Problem


def physical_instance(
    seed: int, scale: Scale, tasks: tuple[int, int] = (1, 4), **fixed: bool
) -> Json:
    """The random instance of a seed with cooled places, users, failures and busy links."""
    made, rng = random_instance(seed, scale, tasks, **fixed), random.Random(f"physics {seed}")
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
