"""Tune the list rule that hgnn has to beat, on training seeds of gpu_cluster, with the budget of
one training of the network; writes benchmarks/hgnn_rules.json.

    python benchmarks/hgnn_rules.py [--cpu-minutes 15]
    python benchmarks/hgnn_rules.py --streams [--cpu-minutes 10] [--only load=0.5,]

The cross-entropy method draws the price of time and the six prices of types around the best fifth
of the draws before; the mean logarithm of the objective over that of the shipped rule counts.
With ``--streams`` the rule is tuned on streams of the kinds on which hgnn's read-outs are
trained, one of each, with the order of its queue besides, and what counts is the objective
without what the end of the stream costs; the numbers go to benchmarks/hgnn_stream_rules.json.
``--only`` tunes it for some of them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cluster_runs import (  # noqa: E402
    RULES,
    STREAM_RULES,
    play,
    stream_cost,
    training_streams,
)
from optbench.model.instance import Instance  # noqa: E402

Point = NDArray[np.float64]

# The sizes of the reports, at seeds of training.
SPECS = (
    ("gpu_cluster:nodes=128,tasks=5000", 1000),
    ("gpu_cluster:nodes=64,tasks=2500", 1001),
    ("gpu_cluster:nodes=32,tasks=1200", 1002),
    ("gpu_cluster:nodes=16,tasks=600", 1003),
    ("gpu_cluster:nodes=16,tasks=300", 1004),
)
NAMES = ("time", *(f"price_{k}" for k in range(1, 7)))
ORDER, ORDERS = "order", ("path", "arrival")
# Where the search begins and how wide: logarithms of the parameters, and the sign of the order.
STATIC = np.append(np.log([0.02, 2.0, 1.0, 2.0, 1.0, 1.0, 0.5]), 0.0), 1.2, 30, 6
ONLINE = np.append(np.log([0.01, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]), 0.5), 1.0, 32, 8
LEAST_SPREAD = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpu-minutes", type=float, default=15.0)
    parser.add_argument("--streams", action="store_true")
    parser.add_argument("--only", default="", help="streams whose spec holds this text")
    parser.add_argument("-o", "--output", type=Path)
    args = parser.parse_args()
    given = SPECS if not args.streams else [s for s in training_streams() if args.only in s[0]]
    output = args.output or (STREAM_RULES if args.streams else RULES)
    cost = stream_cost if args.streams else whole_objective
    names = (*NAMES, ORDER) if args.streams else NAMES
    found = tuned(given, cost, names, ONLINE if args.streams else STATIC, args.cpu_minutes)
    output.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def tuned(
    given: Sequence[tuple[str, int]],
    cost: Callable[[str, Instance], float],
    names: Sequence[str],
    start: tuple[Point, float, int, int],
    minutes: float,
) -> dict[str, object]:
    """Return the best parameters of so many minutes of the processor."""
    from optbench.api import load_target
    from optbench.model.instance import task_instance

    instances = [
        task_instance(load_target(spec, seed), "a benchmark of hgnn") for spec, seed in given
    ]
    plain = np.array([cost("tuned_rule", each) for each in instances])
    rng, began = np.random.default_rng(0), time.process_time()
    begin, width, number, elite = start
    mean, spread = begin[: len(names)], np.full(len(names), width)
    best, least, draws = mean, np.inf, 0
    while time.process_time() - began < 60 * minutes:
        points = mean + spread * rng.normal(size=(number, len(names)))
        scores = []
        for point in points:
            values = np.array([cost(spec_of(names, point), each) for each in instances])
            scores.append(float(np.mean(np.log(values / plain))))
        order = np.argsort(scores)
        draws += number
        if scores[order[0]] < least:
            best, least = points[order[0]], scores[order[0]]
        mean = points[order[:elite]].mean(axis=0)
        spread = points[order[:elite]].std(axis=0) + LEAST_SPREAD
        print(f"{time.process_time() - began:6.0f} s  {draws} draws  {least:.4f}", flush=True)
    return {
        "tuned_rule": parameters(names, best),
        "tuned_on": [f"{spec}, seed {seed}" for spec, seed in given],
        "cpu_minutes": minutes,
        "draws": draws,
        "devices": int(instances[0].pools.count.sum()),
        "mean_log_ratio_to_shipped": least,
    }


def parameters(names: Sequence[str], point: Point) -> dict[str, float | str]:
    """Return the parameters of a point: logarithms, and the order of the queue by its sign."""
    out: dict[str, float | str] = {}
    for name, value in zip(names, point.tolist(), strict=True):
        is_order = name == ORDER
        out[name] = ORDERS[int(value > 0)] if is_order else round(float(np.exp(value)), 5)
    return out


def spec_of(names: Sequence[str], point: Point) -> str:
    values = parameters(names, point)
    return "tuned_rule:" + ",".join(f"{name}={value}" for name, value in values.items())


def whole_objective(spec: str, instance: Instance) -> float:
    return play(spec, instance).objective


if __name__ == "__main__":
    main()
