"""Chooses how each estimator's risks are priced, with the same number of trials for each, on
validation seeds; writes benchmarks/gogh_margins.json, which ``gogh_regret.py`` reads.

    python benchmarks/gogh_margins.py [--methods gogh,trees] [--trials 12]

The best trial has the least of regret + 2 (violation − 2 %)⁺, means over seeds 500 to 503 of
``colocation:load=0.9``: at equal violation of service the energy decides. All searches draw from
the same seed. On record: 12 trials each, trees 6 (the search was stopped), additive completion and
greedy efficiency none (they have the defaults).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.gogh_regret import MARGINS, play  # noqa: E402

SEEDS, PROBLEM, ALLOWED, WEIGHT = (500, 501, 502, 503), "colocation:load=0.9", 0.02, 2.0
# Rows of the page and the policies whose prices are tuned.
TUNED = {
    "no co-location": "estimated_allocation:estimator=matrix_completion,pairs=false",
    "partner mean": "estimated_allocation:estimator=partner_mean",
    "matrix completion": "estimated_allocation:estimator=matrix_completion",
    "related completion": "estimated_allocation:estimator=related_completion",
    "additive completion": "estimated_allocation:estimator=additive_completion",
    "trees": "estimated_allocation:estimator=trees",
    "frozen P1": "gogh:learn=false",
    "gogh": "gogh",
}
START = {
    "risk_w": 20.0,
    "most_risk": 0.7,
    "misfit_w": 150.0,
    "progress_price": 0.95,
    "caution": 0.5,
}


def with_prices(spec: str, prices: dict[str, float]) -> str:
    """Return the spec with these parameters."""
    more = ",".join(f"{name}={value:.4g}" for name, value in prices.items())
    return f"{spec}{',' if ':' in spec else ':'}{more}"


def cost(spec: str, instances: list[Any], references: list[Any]) -> tuple[float, float, float]:
    """Return the cost, the regret and the violation of a policy."""
    from optbench.shapes.colocation.regret import excess_energy

    found = []
    for seed, instance, reference in zip(SEEDS, instances, references, strict=True):
        decision, _ = play(spec, instance, seed)
        verdict = instance.shape.verdict_of(instance, decision)
        if not verdict.feasible:
            return np.inf, np.inf, np.inf
        violation = verdict.metrics["slo_violation"]
        found.append((excess_energy(instance.data, decision, reference), violation))
    regret, violation = np.mean(found, axis=0).tolist()
    return regret + WEIGHT * max(0.0, violation - ALLOWED), regret, violation


def main() -> None:
    import optuna

    from optbench.plugins.discovery import load_problem

    parser = argparse.ArgumentParser()
    parser.add_argument("--methods", default=",".join(TUNED))
    parser.add_argument("--trials", type=int, default=12)
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    problem: Any = load_problem(PROBLEM)
    instances = [problem.instance(seed) for seed in SEEDS]
    references = [
        play("oracle", each, seed)[0] for seed, each in zip(SEEDS, instances, strict=True)
    ]
    for name in args.methods.split(","):

        def objective(trial: optuna.Trial, name: str = name) -> float:
            prices = {
                "risk_w": trial.suggest_float("risk_w", 1.0, 300.0, log=True),
                "most_risk": trial.suggest_float("most_risk", 0.2, 0.95),
                "misfit_w": trial.suggest_float("misfit_w", 10.0, 1000.0, log=True),
                "progress_price": trial.suggest_float("progress_price", 0.7, 1.3),
                "caution": trial.suggest_float("caution", 0.2, 2.0, log=True),
            }
            value, regret, violation = cost(with_prices(TUNED[name], prices), instances, references)
            print(
                name, trial.number, f"{value:.4f} {regret:.4f} {violation:.4f}", prices, flush=True
            )
            return value

        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
        study.enqueue_trial(START)
        study.optimize(objective, n_trials=args.trials)
        chosen = json.loads(MARGINS.read_text(encoding="utf-8"))
        chosen[name] = with_prices(TUNED[name], study.best_params)
        MARGINS.write_text(json.dumps(chosen, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
