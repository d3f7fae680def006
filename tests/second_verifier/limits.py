"""Random objectives, power caps that bind, and limits on metrics near what a schedule reaches."""

from __future__ import annotations

import random

from tests.second_verifier.decoder import decode
from tests.second_verifier.problem import Json, Problem
from tests.second_verifier.verifier import judge_for

PLAIN = ("makespan", "makespan_s", "energy_j", "flow_time_s", "tardiness_s")
PRICED = ("cost_usd", "carbon_g")


def draw_objective(rng: random.Random, made: Json, on: dict[str, bool]) -> list[dict[str, float]]:
    """One level, or two or three of which only the last may be a weighted sum."""
    if on["open"] and on["j_per_unit"]:
        return [{"j_per_unit": 1.0}]
    usable = [*PLAIN, *(PRICED if made["tariffs"] is not None else ())]
    if not on["tardiness"]:
        usable.remove("tardiness_s")
    rng.shuffle(usable)
    if on["priced"]:
        usable.sort(key=lambda name: name not in PRICED, reverse=True)
    num_levels = rng.randint(2, 3) if on["levels"] else 1
    levels = [{usable.pop(): rng.choice((1.0, 2.0, 0.1))} for _ in range(num_levels)]
    for metric in usable[: rng.choice((0, 0, 1, 2))]:
        levels[-1][metric] = rng.choice((1.0, 50.0, rng.uniform(0.01, 10.0)))
    return levels


def draw_caps(rng: random.Random, made: Json, on: dict[str, bool]) -> None:
    """Caps at the rest of a place and the power of one to three running modes, sometimes a little
    less or more.
    """
    if not on["caps"]:
        return
    problem, limits = Problem(made), made["limits"]
    places = range(len(problem.below)) if on["node_caps"] else (0,)
    for place in rng.sample(list(places), rng.randint(1, len(places))):
        base = sum(
            problem.rest_w[pool] * problem.pools["count"][pool] for pool in problem.below[place]
        )
        modes = [k for k, pool in enumerate(problem.primary) if pool in problem.below[place]]
        total = float(base)
        for mode in rng.choices(modes, k=rng.randint(1, 3)) if modes else ():
            freed = sum(
                problem.rest_w[p] * n
                for p, n in problem.needs[mode].items()
                if p in problem.below[place]
            )
            total += float(made["modes"]["power_w"][mode]) - float(freed)
        limits["cap_place"].append(place)
        limits["cap_w"].append(max(0.0, total * rng.choice((1.0, 1.0, 1.2, 0.95))))


def draw_limits(rng: random.Random, made: Json, on: dict[str, bool]) -> None:
    """Limits on one or two metrics, at or near those of some schedule."""
    rows = decode(made, rng) if on["limits"] else None
    if rows is None:
        return
    metrics = judge_for(Problem(made), rows).metrics
    usable = [*PLAIN, *(PRICED if made["tariffs"] is not None else ())]
    for name in rng.sample(usable, rng.randint(1, 2)):
        value = metrics[name]
        assert value is not None
        made["limits"]["metric_max"][name] = max(
            0.0, float(value) * rng.choice((1.0, 1.0, 1.1, 1.5, 0.95))
        )
