"""The offline bound of co-location: with and without held shortfall, beside decisions of policies;
writes docs/results/colocation_bounds.md.

    python benchmarks/colocation_bounds.py [--seeds 5] [-o FILE]

About four minutes of one core. Exit code 1 when a bound lies above a decision, or is not proved
again from its certificate.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import mean
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from optbench.model.result import Bound  # noqa: E402
from optbench.plugins.discovery import load_problem  # noqa: E402
from optbench.shapes.colocation.colocation_data import Colocation  # noqa: E402
from optbench.shapes.colocation_bound.offline_bound import offline_bounds, prove_offline  # noqa: E402
from optbench.simulation import simulate  # noqa: E402

LOADS = (0.5, 0.9, 1.1)
# The oracle shares GPUs epoch by epoch with perfect information; without pairs it does not share.
POLICIES: dict[str, tuple[str, dict[str, Any]]] = {
    "oracle": ("oracle", {}),
    "oracle, no sharing": ("oracle", {"pairs": False}),
    "best fit": ("best_fit", {}),
}
BINS, GROUPS, BINS_LOAD = (3, 6, 12, 24, 48), (1, 2, 256), 0.9
ENOUGH_S = 60.0


@dataclass(frozen=True)
class Played:
    """One decision: what it reached, and the bounds of both levels."""

    load: float
    policy: str
    seed: int
    shortfall_s: float
    energy_j: float
    asleep_j: float
    violation: float
    least_s: float
    free_j: float
    held_j: float
    cpu_s: float

    @property
    def gaps(self) -> tuple[float, float, float]:
        """Gap of the energy to the held and to the free bound, and of what is beyond sleep."""
        busy_j = self.energy_j - self.asleep_j
        return (
            1 - self.held_j / self.energy_j,
            1 - self.free_j / self.energy_j,
            (self.energy_j - self.held_j) / busy_j,
        )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5, help="seeds of each load")
    parser.add_argument(
        "-o", "--output", type=Path, default=ROOT / "docs" / "results" / "colocation_bounds.md"
    )
    options = parser.parse_args()
    seeds = range(options.seeds)
    found = [decide(load, seed, policy) for load in LOADS for seed in seeds for policy in POLICIES]
    wrong = [
        each
        for each in found
        if max(each.held_j, each.free_j) > each.energy_j or each.least_s > each.shortfall_s
    ]
    lines = page(found, len(wrong), options.seeds) + bins_lines(found, seeds)
    options.output.write_text("\n".join([*lines, ""]), encoding="utf-8")
    print("\n".join(lines))
    return 1 if wrong else 0


def decide(load: float, seed: int, policy: str) -> Played:
    """Play a policy, and bound both levels with its shortfall held."""
    name, params = POLICIES[policy]
    instance: Any = load_problem(f"colocation:load={load}").instance(seed)
    result: Any = simulate(instance, name, seed=seed, params=params, bound=False)
    data: Colocation = instance.data
    shortfall_s, energy_j = result.objective
    began = time.process_time()
    bounds = both(data, shortfall_s)
    cpu_s = time.process_time() - began
    least = offline_bounds(data, 0, None, ENOUGH_S)[0]
    asleep_j = energy_j - result.metrics["busy_energy_j"]
    print(load, seed, policy, f"{cpu_s:.1f} s", file=sys.stderr, flush=True)
    return Played(
        load,
        policy,
        seed,
        shortfall_s,
        energy_j,
        asleep_j,
        result.metrics["slo_violation"],
        least.value,
        bounds["offline_lp"].value,
        bounds["offline_lp_held"].value,
        cpu_s,
    )


def both(data: Colocation, held_s: float, **settings: Any) -> dict[str, Bound]:
    """The two bounds of energy, by source."""
    found = offline_bounds(data, 1, held_s, ENOUGH_S, **settings)
    return {each.source: each for each in found}


def percent(values: Iterable[float], digits: int = 1) -> str:
    return f"{100 * mean(values):.{digits}f} %"


def page(found: list[Played], num_wrong: int, num_seeds: int) -> list[str]:
    """The first part: gaps of policies to the bounds."""
    spent = [each.cpu_s for each in found]
    packages = ", ".join(f"{name} {version(name)}" for name in ("highspy", "numpy"))
    lines = [
        "# Co-location: the offline bound beside decisions",
        "",
        f"`python benchmarks/colocation_bounds.py --seeds {num_seeds}`: problem `colocation` with",
        "its default parameters (135 jobs, 24 GPUs of three generations, Gavel's tables) at three",
        f"loads, means over {num_seeds} seeds. The bound of energy is proved with the shortfall",
        "of the decision held (`offline_lp_held`), and without (`offline_lp`). The held one says",
        "nothing of a decision with a larger shortfall: those of different rows do not compare.",
        "*Beyond sleep* is the gap to the held bound without the energy of sleep, which is the",
        "same for all decisions. *Least shortfall* is the bound of the first level.",
        "",
        f"- Bounds above a decision: **{num_wrong}** of {3 * len(found)}.",
        f"- Processor time of both bounds of energy, proofs included: {mean(spent):.1f} s on",
        f"  average, {max(spent):.1f} s at most.",
        f"- {platform.machine()}, Python {platform.python_version()}, {packages}.",
        "",
        "| load | policy | job time below the requirement | shortfall, s | least shortfall, s |"
        " gap, held | beyond sleep | gap, free |",
        "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for load in LOADS:
        for policy in POLICIES:
            mine = [each for each in found if (each.load, each.policy) == (load, policy)]
            held, free, busy = zip(*(each.gaps for each in mine), strict=True)
            lines.append(
                f"| {load} | {policy} | {percent(each.violation for each in mine)} |"
                f" {mean(each.shortfall_s for each in mine):,.0f} |"
                f" {mean(each.least_s for each in mine):,.0f} |"
                f" {percent(held)} | {percent(busy)} | {percent(free)} |"
            )
    return lines


def bins_lines(found: list[Played], seeds: Iterable[int]) -> list[str]:
    """The second part: how value and time depend on bins and classes."""
    lines = [
        "",
        "## Bins and classes",
        "",
        f"The held bound of the oracle's decisions at load {BINS_LOAD}, with few and many bins of",
        "time until the last job should be done, and with the jobs of a type in few classes or one",
        "each. *Proof* is the evaluation in whole numbers.",
        "",
        "| bins | classes per type | gap, held | beyond sleep | time, s | proof, s |"
        " certificate, kB |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    oracle = {each.seed: each for each in found if (each.load, each.policy) == (0.9, "oracle")}
    ways = [(bins, GROUPS[-1]) for bins in BINS] + [(24, groups) for groups in GROUPS[:-1]]
    for bins, groups in ways:
        rows = [_with_bins(oracle[seed], bins, groups) for seed in seeds]
        gap, busy, spent, proof, size = (mean(column) for column in zip(*rows, strict=True))
        words = "one per job" if groups == GROUPS[-1] else f"at most {groups}"
        lines.append(
            f"| {bins} | {words} | {100 * gap:.2f} % | {100 * busy:.2f} % | {spent:.2f} |"
            f" {proof:.2f} | {size:.0f} |"
        )
    return lines


def _with_bins(played: Played, bins: int, groups: int) -> tuple[float, float, float, float, float]:
    instance: Any = load_problem(f"colocation:load={played.load}").instance(played.seed)
    began = time.process_time()
    bound = both(instance.data, played.shortfall_s, num_bins=bins, groups=groups)["offline_lp_held"]
    solved = time.process_time()
    certificate = bound.certificate or ""
    again = prove_offline(instance.data, 1, played.shortfall_s, certificate)
    if again.value != bound.value:
        raise SystemExit(f"seed {played.seed}: {again.value} is proved, not {bound.value}")
    proof_s = time.process_time() - solved
    lack = played.energy_j - bound.value
    return (
        lack / played.energy_j,
        lack / (played.energy_j - played.asleep_j),
        solved - began,
        proof_s,
        len(certificate) / 1e3,
    )


if __name__ == "__main__":
    sys.exit(main())
