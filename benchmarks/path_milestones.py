"""Draw parameters of ``path_milestones`` and print those of the least mean objective.

    python benchmarks/path_milestones.py [--draws 300] [--seeds 1000-1005]

An instance's objective is divided by that of ``tuned_rule``; the mean of the logarithms counts.
The first third of the draws is uniform over the ranges, the others disturb the best so far.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from optbench.api import load_target  # noqa: E402
from optbench.model.instance import Instance  # noqa: E402
from optbench.model.verify import verify  # noqa: E402
from optbench.plugins.discovery import load_solver  # noqa: E402
from optbench.plugins.policy import RulePolicy  # noqa: E402

SPECS = (
    "gpu_cluster:nodes=16,tasks=500",
    "gpu_cluster:nodes=16,tasks=1500",
    "gpu_cluster:nodes=32,tasks=1000",
    "gpu_cluster:nodes=64,tasks=3000",
    "gpu_dag:tasks=500,gpus=48,types=3",
    "gpu_dag:tasks=1000,gpus=192,types=6,nodes=4",
)
# Name, least, most, and whether the range is geometric.
RANGES = (
    ("stretch", 0.8, 3.0, True),
    ("share", 0.0, 1.0, False),
    ("order", 0.0, 1.0, False),
    ("late", 0.01, 3.0, True),
    ("time", 1e-5, 0.1, True),
    ("price", 0.1, 5.0, True),
    ("by_speed", 0.0, 1.0, False),
)
SHIPPED = "path_milestones"


def objective(instance: Instance, solver: str, parameters: dict[str, float]) -> float:
    """Return the verified objective of one run."""
    policy = load_solver(solver, {name: repr(value) for name, value in parameters.items()})[1]
    assert isinstance(policy, RulePolicy)
    schedule = policy.play(instance, np.random.default_rng(0)).schedule
    assert schedule is not None
    value = verify(instance, schedule).objective
    assert isinstance(value, float)
    return value


def scores(
    instances: list[Instance], reference: list[float], parameters: dict[str, float]
) -> list[float]:
    """Return the logarithm of each objective over the reference's."""
    values = [objective(instance, SHIPPED, parameters) for instance in instances]
    return np.log(np.array(values) / reference).tolist()  # type: ignore[no-any-return]


def drawn(rng: np.random.Generator, best: dict[str, float] | None) -> dict[str, float]:
    """Draw parameters over their ranges, or near the best."""
    out = {}
    for name, least, most, geometric in RANGES:
        ends = np.log([least, most]) if geometric else np.array([least, most])
        if best is None:
            value = rng.uniform(*ends)
        else:
            centre = np.log(best[name]) if geometric else best[name]
            moved = rng.normal(0.0, 0.15 * (ends[1] - ends[0])) if rng.random() < 0.5 else 0.0
            value = float(np.clip(centre + moved, *ends))
        out[name] = float(np.exp(value)) if geometric else float(value)
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--seeds", default="1000-1005", help="of the instances")
    parser.add_argument("--seed", type=int, default=0, help="of the draws")
    options = parser.parse_args()
    first, last = (int(each) for each in options.seeds.split("-"))
    seeds = range(first, last + 1)
    # Each specification with every third seed, so that one draw takes a second.
    cases = [(s, seed) for k, s in enumerate(SPECS) for seed in seeds if seed % 3 == k % 3]
    instances = [load_target(spec, seed) for spec, seed in cases]
    reference = [objective(instance, "tuned_rule", {}) for instance in instances]
    rng = np.random.default_rng(options.seed)
    best: dict[str, float] | None = None
    least = np.inf
    for draw in range(options.draws):
        parameters = drawn(rng, best if draw >= options.draws // 3 else None)
        each = scores(instances, reference, parameters)
        if np.mean(each) < least:
            best, least = parameters, float(np.mean(each))
            rounded = {name: float(f"{value:.3g}") for name, value in parameters.items()}
            print(f"{draw} {least:+.4f} {rounded}", flush=True)
    for label, parameters in (("shipped", {}), ("best", best or {})):
        each = scores(instances, reference, parameters)
        print(f"{label}: {np.mean(each):+.4f} against tuned_rule")
        for spec in SPECS:
            mine = [v for (s, _), v in zip(cases, each, strict=True) if s == spec]
            print(f"  {spec} {np.mean(mine):+.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
