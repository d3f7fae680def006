"""Placement of parts on unequal devices by agents, rules and the MILP, on held-out instances;
writes docs/results/placement.md.

    python benchmarks/placement.py [--seeds 2] [--milp-s 20] [--budgets 0.02,0.1,0.5]
        [--huge-seeds 3] [--huge-budgets 0.01,0.02,0.05,0.1] [--only small|large|huge] [--page-only]

Small instances: the gap of every method to the optimum of the table where HiGHS proves it. Large
and huge ones: the step at equal processor time, inference included, relative to the best heuristic;
on huge ones rule and agents have planners that were tuned at that size.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cluster_runs import RESULTS, page_head  # noqa: E402
from benchmarks._placement_cases import (  # noqa: E402
    HUGE,
    LARGE,
    SMALL,
    PlacementCase,
    PlacementRow,
    case_of,
    run_method,
    spec_of,
)

if TYPE_CHECKING:
    from optbench.gnn.placement.placement_planner import PlannerSettings, Starts
    from optbench.gnn.placement.placement_table import PlacementTable

PAGE, RAW = RESULTS / "placement.md", RESULTS / "raw" / "placement.jsonl"
RULES = ("identity", "greedy", "argmin")
HEURISTICS = ("local_search", "annealing", "annealing, tuned")
AGENTS = ("agent", "policy_gradient", "random_weights", "permuted_weights")
LOOKUP, LOOKUP_SEEDS = "lookup_table", 2
TRAINED_ON = ROOT / "optbench" / "learn" / "placement" / "trained_on.txt"
STARTING = ("rule", *AGENTS, LOOKUP)
# Settings of the planner, chosen on validation instances of this size.
HUGE_HOT, HUGE_AGENT_SHARE = 0.001, 0.3
HUGE_TITLE = "Larger instances and short planning times"
SMALL_BUDGET_S, START_S = 0.05, 0.2
GOAL = 0.05
# Wall seconds of HiGHS that stand for one of the processor on a busy machine.
BUSY = 4.0
BOOTSTRAP = 2_000
NOTES = """## What it says

`alone` is the better of two placements without chance, `draws` the best of as many draws as the
time allows, and the other rows have the same planner (starts, then simulated annealing) within the
same processor time, inference included. No line of devices and graph, and no seed, was trained or
tuned on: training has seeds from 1000 on, validation 500 to 599. `lookup_table` is a table of
increases of step and talk, counted on annealed placements of the training instances.

Within 5 % of the proven optimum: reached, with the planner on 20 of 20 instances by the agent (19
by the plain policy gradient), not by one greedy episode, which places on all devices (5.1 % in the
mean, 28 % at worst). Annealing, the lookup table and random weights are as near: these instances
are too small to tell methods with a planner apart. Gradients are those of the devices in
use, for the optimum as for every method; `alone` and `draws` place on all devices. The machine was
busy with other work when the small instances were measured.

The optimum is that of all sets of devices. When gradients of all devices were added up, whichever
were in use, on six of these 20 instances the MILP's step by the cost model was 1.24 to 1.64 times
as long (1.43 ms instead of 0.87 ms on `hubs on 2:2:1:1`, seed 0), and on the others at most 1.004.
What leaving devices out changes on larger instances is on
[placement_devices](placement_devices.md), for annealing.

Better than the best heuristic where the MILP does not close: reached with 40 to 64 parts, by half a
per cent. The agent is 0.7 % better than annealing after 0.02 s (the interval ends at 0.998), 0.5 %
after 0.1 s (0.9995) and 0.3 % after 0.5 s (1.0005); the plain policy gradient 0.5 % (1.004), 0.2 %
(1.001) and 0.4 % (0.9996). By the cost model it is the same within 0.2 %. Annealing has its shipped
settings there; half as hot it was 0.4 % better on validation instances of that size after 0.02 s
and 0.1 % after 0.1 s, both within the noise of 0.4 and 0.3 %. With 88 to 128 parts on 10 to 16
devices, against annealing that was tuned at this size, the plain policy gradient is 0.8 % better
after 0.01 s (the interval ends at 1.000) and the agent 0.4 % (1.005); from 0.02 s on both are equal
to it within the intervals. A run before devices could be left out had 0.9 % for both there.
Random and permuted weights and the lookup table are 3 to 52 % worse there after 0.01 s and 3 to 5 %
after 0.02 s, so
that it is the training that pays. HiGHS was not run on these; of instances with 40, 48 and 64 parts
(with other histories of speeds) it closed none in 23 to 31 s.

A stronger agent than plain policy gradient: not shown. Both were trained for 180 s of processor
time on the same instances (`optbench train mdp_allocation --on gnn_training:LINE ... -p agent=...
-p cpu_minutes=3 -p instances=3 -p validation=1 -p check_every=100`, with the lines of
optbench/learn/placement/trained_on.txt). On the validation instances of the training the best draws
are 1.907 (distributional) and 1.906 (plain) times the balanced step, the untrained network's 2.024;
on 20 others, with lines of their own, the distributional agent is 0.1 % better greedily and 0.3 %
with draws, within the noise of 0.5 %. Both stand still after some 60 s. With the planner
their ratio on the reported instances is 0.999 to 1.002 with 88 parts and more, and 1.000 to 1.008
with 40 to 64; the draws of the distributional agent are better by 1 to 2 % with 40 to 64 parts, and
no better with more.

What was tried on validation instances: larger instances and more lines in training (54 instead of
19; greedy episodes 0.6 % better, within the noise); improved placements weighed 0.5 instead of
0.03 (after 18 s not better than 0.03; stopped); colder annealing at 80 to 128 parts, which shortens
the step of rule and agents alike by 1 %, and three times the share of draws (no difference). Moves
of annealing that a distributional critic looks at before they are priced (eight quantiles of the
increase, learned off-policy from moves of annealing on training instances): 5 % of all moves hold
74 % of what is accepted, but to look costs a third of pricing, and on sparse graphs the moves that
matter were missed. At 0.02 and 0.1 s that was 1.00 to 1.02 times annealing with 40 to 64 parts, and
0.976 and 0.989 times with 96 to 128 parts, where plain annealing, equally tuned, had 0.986 and
0.991; it was removed. Earlier attempts had the same outcome: moves that take 2 to 5 parts away and
place them again by the agent were 1.003 to 1.010 times plain annealing.
"""


def starts_of(table: PlacementTable, method: str, rng: np.random.Generator) -> Starts:
    """The starts of the rule, of the lookup table, or of a network, whose encoder runs here."""
    from benchmarks._placement_lookup import lookup_starts, lookup_table
    from optbench.gnn.placement.placement_board import costs_of
    from optbench.gnn.placement.placement_methods import rule_starts
    from optbench.learn.placement.learned_placement import network_of, network_starts

    costs = costs_of(table)
    if method == "rule":
        return rule_starts(costs, rng)
    if method == LOOKUP:
        found: Starts = lookup_starts(costs, lookup_table(TRAINED_ON, LOOKUP_SEEDS), rng)
        return found
    return network_starts(network_of(method, rng), table, costs, rng)


def alone(case: PlacementCase, method: str, seed: int) -> PlacementRow:
    """The better of the two placements without chance, in both orders, without the planner."""
    from optbench.gnn.placement.placement_table import table_step_s

    def placed(rng: Any, _left: Any) -> Any:
        found = starts_of(case.table, method, rng)(0)
        return min(found, key=lambda device: table_step_s(case.table, device))

    return replace(run_method(case, method, 0.0, seed, placed), method=f"{method} alone")


def drawn(case: PlacementCase, method: str, budget_s: float, seed: int) -> PlacementRow:
    """The best of many starts on all devices in the given time, without annealing."""
    from optbench.gnn.placement.placement_board import costs_of
    from optbench.gnn.placement.placement_planner import Planner, PlannerSettings

    only_starts = PlannerSettings(start_share=1.0)

    def placed(rng: Any, time_left: Any) -> Any:
        planner = Planner(case.table, costs_of(case.table), only_starts, rng, time_left)
        return planner.run(starts_of(case.table, method, rng))

    return replace(run_method(case, method, budget_s, seed, placed), method=f"{method} draws")


def tuned(case: PlacementCase, method: str, budget_s: float, seed: int) -> PlacementRow:
    """The planner with the settings that were best for rule or agents on huge instances."""
    from optbench.gnn.placement.placement_planner import PlannerSettings

    if method == "rule":
        settings = PlannerSettings(hot=HUGE_HOT)
        return planned(case, method, settings, budget_s, seed, "annealing, tuned")
    settings = PlannerSettings(hot=HUGE_HOT, start_share=HUGE_AGENT_SHARE)
    return planned(case, method, settings, budget_s, seed, method)


def planned(
    case: PlacementCase,
    method: str,
    settings: PlannerSettings,
    budget_s: float,
    seed: int,
    name: str,
) -> PlacementRow:
    """The planner with the starts of a method, on all devices and on fewer."""
    from optbench.gnn.placement.fewer_devices import search_on_fewer
    from optbench.gnn.placement.placement_board import costs_of
    from optbench.gnn.placement.placement_planner import Planner

    def placed(rng: Any, time_left: Any) -> Any:
        def search(table: PlacementTable, left: Any) -> Any:
            planner = Planner(table, costs_of(table), settings, rng, left)
            return planner.run(starts_of(table, method, rng))

        return search_on_fewer(case.table, search, time_left)

    return replace(run_method(case, method, budget_s, seed, placed), method=name)


def warm_up(case: PlacementCase) -> None:
    """Load compiled code and networks before any clock starts."""
    for method in (*RULES, *HEURISTICS[:2], *AGENTS):
        run_method(case, method, 0.01, 0)
    alone(case, LOOKUP, 0)


def exact_row(case: PlacementCase, seed: int, milp_s: float) -> PlacementRow:
    """The exact programme from an annealed start; its bound is kept where it proves the step."""
    from optbench.gnn.placement.placement_methods import place
    from optbench.gnn.placement.placement_milp import solve_placement

    began = time.process_time()

    def start_left() -> float:
        return START_S - (time.process_time() - began)

    known = place("annealing", case.table, np.random.default_rng(seed), start_left)
    proof = solve_placement(case.table, known, BUSY * milp_s)
    used = time.process_time() - began
    row = run_method(case, "milp", milp_s, seed, lambda _rng, _left: proof.device)
    return replace(row, used_s=used, bound_s=proof.bound_s if proof.is_closed else None)


def small_rows(seeds: int, milp_s: float) -> Iterable[PlacementRow]:
    for line in SMALL:
        for seed in range(seeds):
            case = case_of(spec_of(line), seed)
            warm_up(case)
            yield exact_row(case, seed, milp_s)
            yield from (run_method(case, method, 0.0, seed) for method in RULES)
            yield from (alone(case, method, seed) for method in (*AGENTS, LOOKUP))
            yield from budget_rows(case, SMALL_BUDGET_S, seed)


def large_rows(seeds: int, budgets: list[float]) -> Iterable[PlacementRow]:
    for line in LARGE:
        for seed in range(seeds):
            case = case_of(spec_of(line), seed)
            warm_up(case)
            yield from (run_method(case, method, 0.0, seed) for method in RULES)
            yield from (alone(case, method, seed) for method in (*AGENTS, LOOKUP))
            for budget in budgets:
                yield from budget_rows(case, budget, seed)


def budget_rows(case: PlacementCase, budget_s: float, seed: int) -> Iterable[PlacementRow]:
    """Every method that uses up a budget, with the planner as it is shipped."""
    from optbench.gnn.placement.placement_planner import PlannerSettings

    for method in (*HEURISTICS[:2], *AGENTS):
        yield run_method(case, method, budget_s, seed)
    yield planned(case, LOOKUP, PlannerSettings(), budget_s, seed, LOOKUP)
    yield from (drawn(case, each, budget_s, seed) for each in STARTING)


def huge_rows(seeds: int, budgets: list[float]) -> Iterable[PlacementRow]:
    for line in HUGE:
        for seed in range(seeds):
            case = case_of(spec_of(line), seed)
            warm_up(case)
            yield from (run_method(case, method, 0.0, seed) for method in RULES)
            yield from (alone(case, method, seed) for method in (*AGENTS, LOOKUP))
            for budget in budgets:
                yield from (run_method(case, each, budget, seed) for each in HEURISTICS[:2])
                yield from (tuned(case, each, budget, seed) for each in STARTING)
                yield from (drawn(case, each, budget, seed) for each in STARTING)


def interval(values: np.ndarray) -> str:
    """Geometric mean of ratios with a bootstrapped interval of 95 %."""
    logs, rng = np.log(values), np.random.default_rng(0)
    means = logs[rng.integers(len(logs), size=(BOOTSTRAP, len(logs)))].mean(axis=1)
    low, high = np.exp(np.quantile(means, [0.025, 0.975]))
    return f"{np.exp(logs.mean()):.4f} ({low:.4f} to {high:.4f})"


def by_method(rows: list[PlacementRow], budget: float | None) -> dict[str, dict[str, PlacementRow]]:
    out: dict[str, dict[str, PlacementRow]] = {}
    for row in rows:
        if budget is None or row.budget_s in (budget, 0.0):
            out.setdefault(row.method, {})[row.case] = row
    return out


def small_page(rows: list[PlacementRow]) -> list[str]:
    found = by_method(rows, None)
    milp = found.pop("milp")
    closed = {k: r for k, r in milp.items() if r.bound_s is not None}
    sizes = sorted({(r.devices, r.parts) for r in closed.values()})
    words = ", ".join(f"{p} parts on {d} devices" for d, p in sizes)
    lines = [
        "## Where the MILP closes",
        "",
        f"HiGHS proves {len(closed)} of {len(milp)} instances ({words}), the slowest in "
        f"{max(r.used_s for r in closed.values()):.1f} s. Gaps are those of the table's step "
        f"to the proven optimum; the last column compares steps by the cost model with that of the "
        f"MILP's placement. Methods with a planner have {SMALL_BUDGET_S:g} s.",
        "",
        "| method | mean gap | worst gap | within 5 % | verified step / MILP's |",
        "|---|---:|---:|---:|---:|",
    ]
    for method, cells in found.items():
        gaps = np.array([cells[k].step_s / r.step_s - 1 for k, r in closed.items()])
        verified = np.array([cells[k].verified_s / r.verified_s for k, r in closed.items()])
        within = f"{int((gaps <= GOAL).sum())} of {len(gaps)}"
        lines.append(
            f"| {method} | {gaps.mean():.2%} | {gaps.max():.2%} | {within} | "
            f"{np.exp(np.log(verified).mean()):.4f} |"
        )
    still = [r for k, r in milp.items() if k not in closed]
    if still:
        lines += [
            "",
            "Not closed: " + "; ".join(f"{r.case} ({r.parts} parts)" for r in still) + ".",
        ]
    return [*lines, ""]


def large_page(rows: list[PlacementRow], title: str) -> list[str]:
    budgets = sorted({row.budget_s for row in rows} - {0.0})
    lines = [f"## {title}", ""]
    for budget in budgets:
        found = by_method(rows, budget)
        cases = sorted(found["agent"])
        base = {
            m: np.exp(np.mean([np.log(found[m][k].step_s) for k in cases]))
            for m in HEURISTICS
            if m in found
        }
        best = min(base, key=lambda m: base[m])
        lines += [
            f"{budget:g} s of processor time, {len(cases)} instances; ratios to `{best}`, the best "
            "heuristic at this time; 95 % intervals over instances.",
            "",
            "| method | table's step | verified step | better on | processor s |",
            "|---|---:|---:|---:|---:|",
        ]
        for method, cells in found.items():
            ratio = np.array([cells[k].step_s / found[best][k].step_s for k in cases])
            verified = np.array([cells[k].verified_s / found[best][k].verified_s for k in cases])
            used = np.mean([cells[k].used_s for k in cases])
            better = f"{int((ratio < 1 - 1e-9).sum())} of {len(cases)}"
            cells_text = f"{interval(ratio)} | {interval(verified)} | {better} | {used:.3f}"
            lines.append(f"| {method} | {cells_text} |")
        lines.append("")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--milp-s", type=float, default=20.0)
    parser.add_argument("--budgets", default="0.02,0.1,0.5")
    parser.add_argument("--huge-seeds", type=int, default=3)
    parser.add_argument("--huge-budgets", default="0.01,0.02,0.05,0.1")
    parser.add_argument("--only", choices=("small", "large", "huge"), default=None)
    parser.add_argument("--page-only", action="store_true")
    args = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    kept: dict[str, list[PlacementRow]] = {"small": [], "large": [], "huge": []}
    if RAW.exists():
        for text in RAW.read_text(encoding="utf-8").splitlines():
            held = json.loads(text)
            kept[held.pop("group")].append(PlacementRow(**held))
    budgets = [float(each) for each in args.budgets.split(",")]
    huge_budgets = [float(each) for each in args.huge_budgets.split(",")]
    makers: dict[str, Callable[[], Iterable[PlacementRow]]] = {
        "small": lambda: small_rows(args.seeds, args.milp_s),
        "large": lambda: large_rows(args.seeds, budgets),
        "huge": lambda: huge_rows(args.huge_seeds, huge_budgets),
    }
    for group, make in makers.items():
        if not args.page_only and args.only in (None, group):
            kept[group] = []
            for row in make():
                kept[group].append(row)
                print(row.case, row.method, row.budget_s, f"{row.step_s:.6g}", flush=True)
    RAW.write_text(
        "".join(
            json.dumps({"group": group, **row.as_dict()}) + "\n"
            for group, rows in kept.items()
            for row in rows
        ),
        encoding="utf-8",
    )
    lines = page_head("Placement of parts on unequal devices", "python benchmarks/placement.py")
    lines += small_page(kept["small"]) if kept["small"] else []
    lines += large_page(kept["large"], "Where it does not close") if kept["large"] else []
    lines += large_page(kept["huge"], HUGE_TITLE) if kept["huge"] else []
    PAGE.write_text("\n".join([*lines, NOTES]), encoding="utf-8")


if __name__ == "__main__":
    main()
