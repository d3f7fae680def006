"""Tuning of cheap_hours, the best rule of ``geo_room.py``, with as many plays as the learner had.

    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/geo_room_rules.py [--plays 680] \\
        [--seconds 600] [--setting K]

From the parameters in ``geo_room.json``: a third of the plays are random points of SPACE, the rest
steps of several lengths from the best point. Only the validation seeds 500 to 502 are played: 500
first, the others when 500 keeps the limit on the time in the system and costs at most NEAR times
the best so far. Best is the least mean cost with the limit kept on all three. What was found, and
the number of plays, is written to ``geo_room.json``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.geo_room import PARAMETERS, shown, tuned  # noqa: E402
from optbench.model.verify import verify  # noqa: E402
from optbench.plugins.discovery import load_problem  # noqa: E402

RULE = "cheap_hours"
SEEDS = range(500, 503)
# Least, most, and whether the logarithm is searched.
SPACE = {
    "hold_h": (0.5, 36.0, True),
    "margin": (0.05, 1.0, False),
    "time_w": (0.01, 300.0, True),
    "gain": (1e-7, 1e-3, True),
    "reserve": (0.05, 3.0, True),
}
RANDOM_SHARE, NEAR = 1.0 / 3.0, 1.003
STEPS = (0.15, 0.05, 0.015)
# Where the rule's defaults lie when a setting does not give them.
DEFAULTS = {"reserve": 0.4}


@dataclass
class Search:
    """One setting's search: what was played and the best point."""

    instances: list[Any]
    most_plays: int
    until: float
    plays: int = 0
    trials: int = 0
    cost: float = np.inf
    cost_first: float = np.inf
    best: dict[str, Any] = field(default_factory=dict)

    def goes_on(self) -> bool:
        return (
            self.plays + len(self.instances) <= self.most_plays and time.perf_counter() < self.until
        )

    def play(self, given: dict[str, Any], instance: Any) -> float:
        """Cost in USD, inf when the limit is broken."""
        self.plays += 1
        schedule = tuned(RULE, given).play(instance, np.random.default_rng(0)).schedule
        verdict = verify(instance, schedule)
        return float(verdict.metrics["cost_usd"]) if verdict.feasible else np.inf

    def trial(self, given: dict[str, Any]) -> None:
        self.trials += 1
        costs = [self.play(given, self.instances[0])]
        if not costs[0] < NEAR * self.cost_first:
            return
        for instance in self.instances[1:]:
            costs.append(self.play(given, instance))
            if not np.isfinite(costs[-1]):
                return
        if np.mean(costs) < self.cost:
            self.cost, self.cost_first, self.best = float(np.mean(costs)), costs[0], given
            print(f"  {self.plays} plays: {self.cost:.3f} USD, {shown(given)}", flush=True)


def unit(name: str, value: float) -> float:
    """A parameter's place between the least (0) and the most (1)."""
    least, most, log = SPACE[name]
    return (
        float(np.log(value / least) / np.log(most / least))
        if log
        else (value - least) / (most - least)
    )


def value_at(name: str, place: float) -> float:
    least, most, log = SPACE[name]
    value = least * (most / least) ** place if log else least + place * (most - least)
    return float(f"{value:.6g}")


def anywhere(rng: np.random.Generator) -> dict[str, Any]:
    return {name: value_at(name, rng.random()) for name in SPACE} | {
        "queues": bool(rng.random() < 0.5)
    }


def near(best: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """A step from the best point in some of its parameters."""
    length = STEPS[rng.integers(len(STEPS))]
    moved = rng.random(len(SPACE)) < 0.6
    moved[rng.integers(len(SPACE))] = True
    given = dict(best)
    for name, moves in zip(SPACE, moved, strict=True):
        if moves:
            place = unit(name, best[name]) + length * rng.normal()
            given[name] = value_at(name, min(1.0, max(0.0, place)))
    if rng.random() < 0.05:
        given["queues"] = not best["queues"]
    return given


def searched(setting: dict[str, Any], most_plays: int, seconds: float) -> Search:
    instances = [load_problem(setting["problem"]).instance(seed) for seed in SEEDS]
    search = Search(instances, most_plays, time.perf_counter() + seconds)
    search.trial(DEFAULTS | setting["rules"][RULE])
    if not search.best:
        sys.exit(
            f"{setting['problem']}: the parameters in {PARAMETERS} break the limit; give others "
            "to begin with"
        )
    rng = np.random.default_rng(5)
    while search.goes_on():
        search.trial(
            anywhere(rng) if search.plays < RANDOM_SHARE * most_plays else near(search.best, rng)
        )
    return search


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--plays", type=int, default=680, help="most plays for each setting (default: 680)"
    )
    parser.add_argument(
        "--seconds", type=float, default=600.0, help="most seconds for each setting (default: 600)"
    )
    parser.add_argument("--setting", type=int, help="only this setting, from 0")
    options = parser.parse_args()
    for k, setting in enumerate(json.loads(PARAMETERS.read_text())["settings"]):
        if options.setting not in (None, k):
            continue
        print(setting["problem"], flush=True)
        began = time.perf_counter()
        search = searched(setting, options.plays, options.seconds)
        print(
            f"  {search.trials} trials, {search.plays} plays, {time.perf_counter() - began:.0f} s",
            flush=True,
        )
        data = json.loads(PARAMETERS.read_text())
        data["settings"][k]["rules"][RULE] = search.best
        data["settings"][k].setdefault("plays", {})[RULE] = search.plays
        PARAMETERS.write_text(json.dumps(data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
