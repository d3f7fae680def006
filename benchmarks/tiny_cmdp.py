"""Tiny plants: the occupancy programme, its policies in the kernel of sites, a Lagrangian learner
and rules beside it.

    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/tiny_cmdp.py [--quick] [-o FILE]

Exit code 1 when a learned table is more than 5 % above the programme at the time in the system that
it reaches, when anything lies below a proven value, or when the kernel and the chain disagree.
Learning uses seeds from 1000 on, the report 0 to 4.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cmdp_plants import PLANTS, Plant  # noqa: E402
from optbench.model.instance import Floats, Instance  # noqa: E402
from optbench.model.verify import verify  # noqa: E402
from optbench.plugins.discovery import load_solver  # noqa: E402
from optbench.plugins.policy import Policy  # noqa: E402
from tests.tiny_plants.chain_kernel import Lookup  # noqa: E402
from tests.tiny_plants.chain_play import cumulated, lookup_of, play_lookup  # noqa: E402
from tests.tiny_plants.occupancy import Occupancy, OccupancyProgramme, num_randomised  # noqa: E402
from tests.tiny_plants.tabular import learn_table  # noqa: E402

COMMAND = "OMP_NUM_THREADS=1 .venv/bin/python benchmarks/tiny_cmdp.py"
SEEDS, FIRST_TRAINING_SEED = range(5), 1000
ALLOWED = 0.05
RULES = ("default_policy", "ucb1", "joint_nf", "greedy", "least_loaded")
NETWORK_PRICES_W = (5.0, 30.0, 100.0)
# 97.5 % quantile of Student's t with four degrees of freedom.
T_4 = 2.776


@dataclass(frozen=True)
class Measured:
    """Means over the reported seeds and half-widths of their 95 % intervals: J per unit and
    sojourn.
    """

    j_per_unit: float
    j_half: float
    sojourn_s: float
    sojourn_half: float
    feasible: bool


def measure(values: list[tuple[float, float, bool]]) -> Measured:
    energy, sojourn = np.array([v[0] for v in values]), np.array([v[1] for v in values])
    half = T_4 / np.sqrt(len(values))
    return Measured(
        float(energy.mean()),
        float(half * energy.std(ddof=1)),
        float(sojourn.mean()),
        float(half * sojourn.std(ddof=1)),
        all(v[2] for v in values),
    )


def verified(instance: Instance, schedule: object) -> tuple[float, float, bool]:
    verdict = verify(instance, schedule)  # type: ignore[arg-type]
    return verdict.metrics["j_per_unit"], verdict.metrics["sojourn_mean_s"], verdict.feasible


def in_kernel(plant: Plant, programme: OccupancyProgramme, share: Floats) -> Measured:
    """A policy of the chain, played and verified."""
    moves, chain, found = programme.moves, programme.chain, []
    for seed in SEEDS:
        instance = plant.instance(seed)
        lookup: Lookup = lookup_of(instance, chain)
        lookup.chance[:] = cumulated(chain, moves.states[moves.act_from], moves.action, share)
        trace = play_lookup(instance, lookup, np.random.default_rng(seed))
        found.append(verified(instance, trace.schedule))
    return measure(found)


def rule(plant: Plant, name: str, given: dict[str, object] | None = None) -> Measured:
    _, player = load_solver(name, given or {})
    assert isinstance(player, Policy)
    found = []
    for seed in SEEDS:
        instance = plant.instance(seed)
        found.append(
            verified(instance, player.play(instance, np.random.default_rng(seed)).schedule)
        )
    return measure(found)


@dataclass
class Page:
    """Lines, and what went wrong."""

    lines: list[str]
    wrong: list[str]

    def check(self, holds: bool, what: str) -> None:
        if not holds:
            self.wrong.append(what)


def budget_text(budget: float | None) -> str:
    return "none" if budget is None else f"{budget:g} s"


def optimum_table(page: Page, plant: Plant, programme: OccupancyProgramme) -> None:
    page.lines += [
        (
            "| budget | J/unit | proven ≥ | sojourn | price, mJ/unit per s | coins | lost | s | "
            "kernel: J/unit | sojourn |"
        ),
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for budget in plant.budgets:
        began = time.perf_counter()
        best = programme.minimum(budget)
        seconds = time.perf_counter() - began
        if best is None or best.proven_j_per_unit is None:
            page.lines.append(
                f"| {budget_text(budget)} | no policy keeps it | | | | | | {seconds:.1f} | | |"
            )
            continue
        played = in_kernel(plant, programme, best.share)
        page.lines.append(
            f"| {budget_text(budget)} | {best.j_per_unit:.5f} | {best.proven_j_per_unit:.5f} | "
            f"{best.sojourn_s:.1f} s "
            f"| {1e3 * best.price:.3f} | {num_randomised(programme.moves, best.flow)} | "
            f"{best.lost:.0e} | {seconds:.1f} "
            f"| {played.j_per_unit:.4f} ± {played.j_half:.4f} | {played.sojourn_s:.0f} ± "
            f"{played.sojourn_half:.0f} s |"
        )
        place = f"{plant.name}, budget {budget_text(budget)}"
        page.check(played.feasible, f"{place}: a schedule is not feasible")
        page.check(
            best.j_per_unit <= best.proven_j_per_unit * (1 + 1e-5),
            f"{place}: value and proof differ",
        )
        # Twice the interval: five seeds, and a dozen comparisons.
        slack = 2 * played.j_half + 1e-3 * best.j_per_unit
        apart = (
            f"{place}: kernel and chain differ: {played} and {best.j_per_unit} J per unit, "
            f"{best.sojourn_s} s"
        )
        page.check(abs(played.j_per_unit - best.j_per_unit) <= slack, apart)
        slack = 2 * played.sojourn_half + 5e-3 * best.sojourn_s
        page.check(abs(played.sojourn_s - best.sojourn_s) <= slack, apart)


def at_own(programme: OccupancyProgramme, made: Occupancy) -> Occupancy | None:
    """The programme at what a policy reaches: its sojourn, and its lost jobs where they are more
    than usual.
    """
    return programme.minimum(
        made.sojourn_s * (1 + 1e-9), max_lost=max(1e-5, made.lost * (1 + 1e-6))
    )


def learner_table(page: Page, plant: Plant, programme: OccupancyProgramme, passes: int) -> float:
    """The largest gap."""
    page.lines += [
        (
            "| budget | λ, W per job | its sojourn | its J/unit | programme there | gap | kernel: "
            "J/unit | sojourn | events | s |"
        ),
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    known = [plant.instance(FIRST_TRAINING_SEED + k) for k in range(min(30, passes))]
    worst = 0.0
    for budget in filter(None, plant.budgets):
        began = time.perf_counter()
        table = learn_table(
            lambda k: known[k % len(known)],
            programme.chain,
            sojourn_s=budget,
            price_w=20.0,
            passes=passes,
        )
        seconds = time.perf_counter() - began
        share = programme.greedy(table.value)
        made = programme.value(share)
        best = at_own(programme, made)
        place = f"{plant.name}, learner, budget {budget_text(budget)}"
        if best is None or best.proven_j_per_unit is None:
            page.check(False, f"{place}: the programme finds nothing at {made.sojourn_s} s")
            continue
        gap = made.j_per_unit / best.j_per_unit - 1.0
        worst = max(worst, gap)
        page.check(gap <= ALLOWED, f"{place}: {100 * gap:.1f} % above the programme")
        page.check(made.j_per_unit >= best.proven_j_per_unit, f"{place}: below a proven value")
        played = in_kernel(plant, programme, share)
        page.lines.append(
            f"| {budget_text(budget)} | {table.price_w:.1f} | {made.sojourn_s:.0f} s | "
            f"{made.j_per_unit:.4f} "
            f"| {best.j_per_unit:.4f} | {100 * gap:.2f} % | {played.j_per_unit:.4f} ± "
            f"{played.j_half:.4f} "
            f"| {played.sojourn_s:.0f} ± {played.sojourn_half:.0f} s | {table.events / 1e6:.1f} "
            f"M | {seconds:.0f} |"
        )
    return worst


def rules_table(page: Page, plant: Plant, programme: OccupancyProgramme) -> None:
    page.lines += [
        "| rule | J/unit | sojourn | programme there | above |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name in RULES:
        found = rule(plant, name)
        best = programme.minimum(found.sojourn_s, max_lost=1e-3)
        there = "overloaded" if best is None else f"{best.j_per_unit:.4f}"
        above = "" if best is None else f"{100 * (found.j_per_unit / best.j_per_unit - 1):.1f} %"
        page.lines.append(
            f"| {name} | {found.j_per_unit:.4f} ± {found.j_half:.4f} | {found.sojourn_s:.0f} ± "
            f"{found.sojourn_half:.0f} s "
            f"| {there} | {above} |"
        )


def network_table(page: Page, plant: Plant, programme: OccupancyProgramme) -> None:
    """The network that ships with chsac_af, trained on the whole network of sites and never on this
    plant.
    """
    page.lines += [
        "| price of latency | J/unit | sojourn | programme there | above |",
        "| ---: | ---: | ---: | ---: | ---: |",
    ]
    for price_w in NETWORK_PRICES_W:
        found = rule(plant, "chsac_af", {"price_w": price_w, "greedy": True})
        best = programme.minimum(found.sojourn_s, max_lost=1e-3)
        there = "overloaded" if best is None else f"{best.j_per_unit:.4f}"
        above = "" if best is None else f"{100 * (found.j_per_unit / best.j_per_unit - 1):.1f} %"
        page.lines.append(
            f"| {price_w:g} W | {found.j_per_unit:.4f} ± {found.j_half:.4f} | "
            f"{found.sojourn_s:.0f} ± {found.sojourn_half:.0f} s "
            f"| {there} | {above} |"
        )


def room_table(page: Page, plant: Plant) -> None:
    """How much the finite room of the queues matters."""
    budget = plant.budgets[len(plant.budgets) // 2]
    page.lines += [
        f"Room at each pool of {plant.name}, budget {budget_text(budget)}:",
        "",
        "| room | states met | columns | J/unit | lost |",
        "| ---: | ---: | ---: | ---: | ---: |",
    ]
    for room in (plant.room // 2, plant.room, plant.room + 2):
        programme = plant.programme(room)
        best = programme.minimum(budget, max_lost=1e-3)
        moves = programme.moves
        columns = int(moves.stable.sum()) + len(moves.action)
        text = "- | -" if best is None else f"{best.j_per_unit:.5f} | {best.lost:.0e}"
        page.lines.append(f"| {room} | {len(moves.states):,} | {columns:,} | {text} |")


def about() -> list[str]:
    versions = (
        f"Python {platform.python_version()}, HiGHS {version('highspy')}, numba {version('numba')}"
    )
    return [
        "# Tiny plants: the exact constrained optimum, and what comes near it",
        "",
        f"`{COMMAND}`; {platform.machine()}, one core; {versions}.",
        "",
        "Poisson arrivals, exponential sizes of 50,000 units in the mean, coefficients of the",
        "shipped sites, ways that take no time. The occupancy programme gives the least long-run",
        "J/unit (devices asleep included) over all policies that see counts and not sizes,",
        "randomised ones too, with the mean sojourn within a budget and at most 1 job in 100,000",
        "lost at full queues; *proven* is its bound again in exact arithmetic. *coins* are states",
        "in which the best policy tosses one. *price* is what a second of mean sojourn more is",
        "worth. *kernel* is the same policy in the kernel of sites, verified: seeds 0 to 4, 100",
        "days each, 95 % intervals. The learner sees arrivals only (seeds from 1000 on) and knows",
        "neither rates nor laws; its J/unit and sojourn are exact values of its greedy policy, its",
        "gap is to the programme at the sojourn that it reaches. Its last table is one",
        "deterministic policy and does not always keep the budget: the column of sojourns shows by",
        "how much. Tossing a coin between two tables would.",
        "",
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="the last plant, fewer passes; for a look"
    )
    parser.add_argument("-o", "--output", type=Path, help="file to write")
    options = parser.parse_args()
    began, page, worst = time.perf_counter(), Page(about(), []), 0.0
    for plant in PLANTS[-1 if options.quick else 0 :]:
        programme = plant.programme()
        page.lines += [
            (
                f"## {plant.name}, {plant.rate:g} jobs a second, clocks "
                f"{', '.join(f'{c:g}' for c in plant.clocks)}"
            ),
            "",
        ]
        page.lines += ["Optimum:", ""]
        optimum_table(page, plant, programme)
        page.lines += ["", "Learned table:", ""]
        worst = max(worst, learner_table(page, plant, programme, 200 if options.quick else 400))
        page.lines += ["", "Rules, beside the programme at the sojourn that each reaches:", ""]
        rules_table(page, plant, programme)
        page.lines += [
            "",
            "chsac_af as it ships, at fixed prices of latency, its best option each time:",
            "",
        ]
        network_table(page, plant, programme)
        page.lines.append("")
    room_table(page, PLANTS[0])
    minutes = (time.perf_counter() - began) / 60
    page.lines += [
        "",
        f"Largest gap of a learned table: {100 * worst:.2f} % (allowed {100 * ALLOWED:g} %).",
    ]
    page.lines += ["", f"{minutes:.1f} minutes."]
    page.lines += [*(f"Not as it should be: {each}." for each in page.wrong), ""]
    text = "\n".join(page.lines)
    if options.output:
        options.output.write_text(text)
    print(text)
    return bool(page.wrong)


if __name__ == "__main__":
    sys.exit(main())
