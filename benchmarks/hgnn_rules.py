"""Tune the list rule that hgnn has to beat, on training seeds of gpu_cluster, with the budget of
one training of the network; writes benchmarks/hgnn_rules.json.

    python benchmarks/hgnn_rules.py [--cpu-minutes 15]

The cross-entropy method draws the price of time and the six prices of types around the best fifth
of the draws before; the mean logarithm of the objective over that of the shipped rule counts.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cluster_runs import RULES, play  # noqa: E402

# The sizes of the reports, at seeds of training.
SPECS = (
    ("gpu_cluster:nodes=128,tasks=5000", 1000),
    ("gpu_cluster:nodes=64,tasks=2500", 1001),
    ("gpu_cluster:nodes=32,tasks=1200", 1002),
    ("gpu_cluster:nodes=16,tasks=600", 1003),
    ("gpu_cluster:nodes=16,tasks=300", 1004),
)
NAMES = ("time", *(f"price_{k}" for k in range(1, 7)))
DRAWS, ELITE, LEAST_SPREAD = 30, 6, 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpu-minutes", type=float, default=15.0)
    minutes = parser.parse_args().cpu_minutes
    from optbench.api import load_target

    instances = [load_target(spec, seed) for spec, seed in SPECS]
    plain = [play("tuned_rule", each).objective for each in instances]
    rng, began = np.random.default_rng(0), time.process_time()
    mean = np.log([0.02, 2.0, 1.0, 2.0, 1.0, 1.0, 0.5])
    spread, best, least, draws = np.full(len(NAMES), 1.2), mean, np.inf, 0
    while time.process_time() - began < 60 * minutes:
        points = mean + spread * rng.normal(size=(DRAWS, len(NAMES)))
        scores = []
        for point in points:
            values = (play(spec_of(point), each).objective for each in instances)
            scores.append(float(np.mean(np.log(np.array(list(values)) / plain))))
        order = np.argsort(scores)
        draws += DRAWS
        if scores[order[0]] < least:
            best, least = points[order[0]], scores[order[0]]
        mean = points[order[:ELITE]].mean(axis=0)
        spread = points[order[:ELITE]].std(axis=0) + LEAST_SPREAD
        print(f"{time.process_time() - began:6.0f} s  {draws} draws  {least:.4f}", flush=True)
    found = {
        "tuned_rule": {
            name: round(float(value), 5) for name, value in zip(NAMES, np.exp(best), strict=True)
        },
        "tuned_on": [f"{spec}, seed {seed}" for spec, seed in SPECS],
        "cpu_minutes": minutes,
        "draws": draws,
        "mean_log_ratio_to_shipped": least,
    }
    RULES.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def spec_of(point: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> str:
    values = zip(NAMES, np.exp(point).tolist(), strict=True)
    return "tuned_rule:" + ",".join(f"{name}={value:.6g}" for name, value in values)


if __name__ == "__main__":
    main()
