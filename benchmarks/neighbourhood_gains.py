"""Log what freeing neighbourhoods gains on training seeds, and fit the model by which ``hgnn_lns``
chooses; prints it, or writes solvers/hgnn_lns/neighbourhood_weights.json.

    python benchmarks/neighbourhood_gains.py --log FILE [--checkpoint FILE] [--seeds 1000-1002]
        [--rounds 40] [-o FILE]

In every round all eight selectors make a neighbourhood of the same schedule, each is searched, and
the search goes on from the result of one of them, drawn uniformly. The log has a line per instance
and is not made again where it exists. The last seed is left out of the fit at first, to say how
much the choice of the model gains over the mean of a round there; the weights are fitted on all.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from optbench.model.instance import Floats  # noqa: E402
from optbench.plugins.discovery import load_problem  # noqa: E402
from optbench.plugins.solvers.hgnn import Hgnn  # noqa: E402
from optbench.plugins.solvers.hgnn_lns.freed_search import FreedSearch  # noqa: E402
from optbench.plugins.solvers.hgnn_lns.neighbourhood_ranking import (  # noqa: E402
    FEATURES,
    OF_NETWORK,
    columns_of,
    fit,
)
from optbench.plugins.solvers.hgnn_lns.neighbourhoods import (  # noqa: E402
    SELECTORS,
    PointView,
    select,
)
from optbench.plugins.solvers.hgnn_lns.starting_point import start_of  # noqa: E402

COMMAND = "python benchmarks/neighbourhood_gains.py"
# Specifications and steps of an attempt.
SPECS = {"gpu_cluster:nodes=32,tasks=500": 200, "gpu_cluster:nodes=64,tasks=1000": 100}
SIZE, SAMPLES, RIDGE = 40, 8, 0.1


@dataclass(frozen=True)
class InstanceLog:
    """Features and gains, in per cent of the objective, of eight neighbourhoods per round."""

    spec: str
    seed: int
    features: list[list[list[float]]]
    gains: list[list[float]]

    def rounds(self) -> list[tuple[Floats, Floats]]:
        return [
            (np.array(table), np.array(gain))
            for table, gain in zip(self.features, self.gains, strict=True)
        ]


def log_of(spec: str, seed: int, steps: int, rounds: int, checkpoint: str | None) -> InstanceLog:
    """Return the log of one instance."""
    instance = load_problem(spec).instance(seed)
    begun = start_of(instance, Hgnn(checkpoint=checkpoint), SAMPLES, seed, lambda: math.inf)
    if begun is None:
        raise RuntimeError(f"{spec}, seed {seed}: the network's rule finishes no schedule")
    search, rng = FreedSearch(begun.finder), np.random.default_rng(seed)
    attempts = np.zeros(instance.num_tasks)
    out = InstanceLog(spec, seed, [], [])
    for _ in range(rounds):
        view = PointView(begun.surroundings, search.mode, search.start, search.end)
        columns = columns_of(view, attempts)
        made = [select(name, view, SIZE, rng) for name in SELECTORS]
        found = [search.attempt(freed, steps) for freed in made]
        pairs = zip(SELECTORS, made, strict=True)
        out.features.append([columns.features(name, freed).tolist() for name, freed in pairs])
        out.gains.append([100 * (1 - each.value / search.point.value) for each in found])
        drawn = int(rng.integers(len(SELECTORS)))
        attempts[made[drawn]] += 1
        if found[drawn].value < search.point.value:
            search.move_to(found[drawn])
    return out


def lift(logs: list[InstanceLog], weights: Floats) -> tuple[float, float, float]:
    """Return the mean gain of an attempt, that of the choices of a model, and that of the best."""
    mean, chosen, best = [], [], []
    for log in logs:
        for table, gain in log.rounds():
            mean.append(gain.mean())
            chosen.append(gain[int(np.argmax(table @ weights))])
            best.append(gain.max())
    return float(np.mean(mean)), float(np.mean(chosen)), float(np.mean(best))


def fitted(logs: list[InstanceLog], left_out: tuple[str, ...] = ()) -> Floats:
    return fit([each for log in logs for each in log.rounds()], RIDGE, left_out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log", type=Path, required=True, help="file of a line per instance")
    parser.add_argument("--checkpoint", help="network of hgnn; the shipped one without it")
    parser.add_argument("--seeds", default="1000-1002", help="first and last, from 1000 on")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--only", default="", help="part of the name of a specification")
    parser.add_argument("-o", "--output", type=Path, help="file of the weights")
    args = parser.parse_args()
    lines = args.log.read_text(encoding="utf-8").splitlines() if args.log.exists() else []
    logs = [InstanceLog(**json.loads(line)) for line in lines]
    first, last = map(int, args.seeds.split("-"))
    for seed in range(first, last + 1):
        for spec, steps in SPECS.items():
            if args.only not in spec or any((log.spec, log.seed) == (spec, seed) for log in logs):
                continue
            logs.append(log_of(spec, seed, steps, args.rounds, args.checkpoint))
            print(f"logged {spec}, seed {seed}", flush=True)
            with args.log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(logs[-1])) + "\n")
    held = max(log.seed for log in logs)
    training = [log for log in logs if log.seed < held]
    kept = [log for log in logs if log.seed == held]
    remarks = {}
    for words, left_out in (("all features", ()), ("without the network's", OF_NETWORK)):
        mean, chosen, best = lift(kept, fitted(training, left_out))
        remarks[words] = f"chosen {chosen:.4f}, mean {mean:.4f}, best {best:.4f} % per attempt"
        print(f"seed {held}, {words}: {remarks[words]}")
    weights = dict(zip(FEATURES, fitted(logs).round(6).tolist(), strict=True))
    text = json.dumps(
        {
            "made_by": f"{COMMAND} --seeds {args.seeds} --rounds {args.rounds}",
            "specifications": sorted({log.spec for log in logs}),
            f"on_seed_{held}_left_out": remarks,
            "weights": weights,
        },
        indent=1,
    )
    if args.output:
        args.output.write_text(text + "\n", encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
