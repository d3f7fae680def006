"""Estimation of throughputs of new job types: networks, trees, matrix completion, partner mean.

    python benchmarks/gogh_estimation.py [--seeds 5] [--part gavel|growth|page] [-o FILE]

Gavel's tables with one family left out, and synthetic growth of 200 job types. Networks are trained
with seeds 0 to 4 on known types only; measurements, held-out types of growth and evaluation cells
are drawn with seeds of their own; tables of growth for the report (101 to 105) are none of those
with which settings were chosen (0). Writes docs/results/raw/gogh_estimation.json and, from it,
docs/results/gogh_estimation.md. One process, one thread.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._estimation_page import page  # noqa: E402
from benchmarks._estimation_trials import (  # noqa: E402
    EstimationTrial,
    estimates_after,
    gavel_trials,
    growth_trial,
    scores,
)
from optbench.learn.colocation.boosted_trees import BoostedTrees, TreePart  # noqa: E402
from optbench.learn.colocation.estimator_settings import (  # noqa: E402
    KINDS,
    KINDS_BY_VALIDATION,
    EstimatorSettings,
)
from optbench.learn.colocation.job_features import JobFeatures  # noqa: E402
from optbench.learn.colocation.matrix_completion import MatrixCompletion  # noqa: E402
from optbench.learn.colocation.network_rows import (  # noqa: E402
    NetworkRows,
    train,
    train_first,
    train_second,
)
from optbench.learn.colocation.pair_fit import pair_fit_probability  # noqa: E402
from optbench.learn.colocation.partner_mean import PartnerMean  # noqa: E402
from optbench.learn.colocation.row_tables import KnownRows, RowModel  # noqa: E402
from optbench.learn.colocation.seen_cells import SeenCells  # noqa: E402
from optbench.plugins.problems._gavel import gavel_tables  # noqa: E402
from optbench.plugins.problems._interference import interference_tables  # noqa: E402
from optbench.shapes.colocation.colocation_data import Bools  # noqa: E402

RAW = ROOT / "docs" / "results" / "raw" / "gogh_estimation.json"
PAGE = ROOT / "docs" / "results" / "gogh_estimation.md"
TYPES, GENERATIONS, FIRST_TABLES = 200, 4, 101
# State of knowledge: profile run, runs beside partners, whether throughputs alone come with them.
STATES: dict[str, tuple[bool, int, bool]] = {
    "none": (False, 0, True),
    "profile": (True, 0, True),
    "3 pairs": (False, 3, True),
    "10 pairs": (False, 10, True),
    "10 pairs only": (True, 10, False),
}
# Seeds for which controls (random weights, shuffled features) are trained on Gavel.
CONTROLS_ON_GAVEL = 1

Rows = list[dict[str, Any]]


def without_trees(model: BoostedTrees) -> BoostedTrees:
    """The inputs alone: neighbours' means and the low-rank posterior of what they get wrong."""

    def bare(part: TreePart) -> TreePart:
        return replace(part, calibration=replace(part.calibration, share=(0.0, 0.0)))

    return replace(model, alone_part=bare(model.alone_part), ratio_part=bare(model.ratio_part))


def record(
    rows: Rows,
    trial: EstimationTrial,
    method: str,
    model: RowModel,
    seed: int,
    groups: Mapping[str, Bools],
    states: Mapping[str, tuple[bool, int, bool]] = STATES,
) -> None:
    """Score a method in every state of knowledge, for each group of new types.

    Errors of throughputs alone are kept one by one for Gavel, where they are pooled over families,
    else their median."""
    pooled = not trial.name.startswith("growth")
    for state, asked in states.items():
        told = trial.measured(*asked)
        begun = time.process_time()
        found = estimates_after(trial, model, told)
        used = time.process_time() - begun
        for group, mask in groups.items():
            each = scores(trial, found, told, mask)
            errors = each.alone.tolist()
            kept = errors if pooled or not errors else [float(np.median(errors))]
            kept = [round(v, 5) for v in kept]
            rows.append(
                {
                    "trial": trial.name,
                    "group": group,
                    "method": method,
                    "state": state,
                    "seed": seed,
                    "ratio": each.ratio,
                    "alone": kept,
                    "within": float(each.within),
                    "fit": each.fit,
                    "seconds": used,
                }
            )


def plain_methods(trial: EstimationTrial, seed: int) -> dict[str, RowModel]:
    """Methods without a network."""
    known = KnownRows.of(trial.facts)
    trees = BoostedTrees.of(known, seed)
    return {
        "partner mean": PartnerMean.of(known),
        "matrix completion": MatrixCompletion.plain(known),
        "additive completion": MatrixCompletion.additive(known),
        "trees": trees,
        "inputs without network": without_trees(trees),
    }


def validation(model: NetworkRows) -> list[float]:
    """Errors of validation cells (mean over modes): P1 and P2, alone and ratio."""
    out = []
    for part in (model.alone_part, model.ratio_part):
        for each in (part.first.calibration, part.calibration):
            out.append(float(np.mean(each.error_after)))
    return out


def gavel_rows(num_seeds: int) -> Rows:
    """Leave one family out."""
    rows: Rows = []
    settings = EstimatorSettings()
    for seed in range(num_seeds):
        for trial in gavel_trials(gavel_tables(), seed):
            groups = {"new family": trial.new}
            for name, model in plain_methods(trial, seed).items():
                record(rows, trial, name, model, seed, groups)
            net = train(trial.facts, KINDS_BY_VALIDATION, settings, seed)
            record(rows, trial, "networks", net, seed, groups)
            if seed < CONTROLS_ON_GAVEL:
                blank = train(trial.facts, KINDS_BY_VALIDATION, replace(settings, steps=0), seed)
                record(rows, trial, "random weights", blank, seed, groups)
                shuffled = trial.with_shuffled_features()
                net = train(shuffled.facts, KINDS_BY_VALIDATION, settings, seed)
                record(rows, shuffled, "shuffled features", net, seed, groups)
        print(f"gavel seed {seed}: {time.process_time():.0f} s", flush=True)
    return rows


def growth_rows(num_seeds: int) -> tuple[Rows, Rows, Rows]:
    """Synthetic growth; then the nine pairings, and what was fixed before any run."""
    trials = []
    fixed: Rows = []
    for seed in range(num_seeds):
        tables = interference_tables(TYPES, GENERATIONS, FIRST_TABLES + seed)
        trial, groups = growth_trial(tables, seed)
        trials.append((trial, groups))
        fixed.append(
            {
                "tables": FIRST_TABLES + seed,
                "cells": int(trial.cells().sum()),
                "digest": trial.digest(),
                **{name: int(mask.sum()) for name, mask in groups.items()},
            }
        )
        print("fixed", fixed[-1], flush=True)
    rows: Rows = []
    pairings: Rows = []
    settings = EstimatorSettings()
    for seed, (trial, groups) in enumerate(trials):
        for name, model in plain_methods(trial, seed).items():
            record(rows, trial, name, model, seed, groups)
        for kind in KINDS:
            first = train_first(trial.facts, kind, settings, seed)
            for other in KINDS:
                net = train_second(first, other, settings, seed)
                chosen = (kind, other) == KINDS_BY_VALIDATION
                wanted = STATES if chosen else {k: STATES[k] for k in ("none", "10 pairs")}
                here: Rows = []
                record(here, trial, "networks", net, seed, groups, wanted)
                rows += here if chosen else []
                measured = [each for each in here if each["state"] in ("none", "10 pairs")]
                told = {"first": kind, "second": other, "validation": validation(net)}
                pairings += [each | told for each in measured]
        blank = train(trial.facts, KINDS_BY_VALIDATION, replace(settings, steps=0), seed)
        record(rows, trial, "random weights", blank, seed, groups)
        shuffled = trial.with_shuffled_features()
        net = train(shuffled.facts, KINDS_BY_VALIDATION, settings, seed)
        record(rows, shuffled, "shuffled features", net, seed, groups)
        print(f"growth tables {FIRST_TABLES + seed}: {time.process_time():.0f} s", flush=True)
    return rows, pairings, fixed


def repeats(seed: int = 0) -> Rows:
    """Errors of one and the same cell, at first sight and after one and three runs of it."""
    out: Rows = []
    for trial in gavel_trials(gavel_tables(), seed):
        model = MatrixCompletion.additive(KnownRows.of(trial.facts))
        runs = dict.fromkeys(t for t, _, _ in trial.runs)
        firsts = [next(run for run in trial.runs if run[0] == t) for t in runs]
        one = replace(trial, runs=tuple(firsts))
        for times in (0, 1, 3):
            told = []
            for k in range(times):
                told += replace(one, seed=1000 * k + seed).measured(False, 1)
            found = estimates_after(trial, model, told)
            truth = trial.tables.beside_per_s
            errors = [abs(found.beside_per_s[g, t, s] / truth[g, t, s] - 1) for t, g, s in firsts]
            out.append({"trial": trial.name, "times": times, "errors": errors})
    return out


def relatives(seed: int = 0) -> Rows:
    """Every second type of a new family is measured; errors of the others, at first sight."""
    out: Rows = []
    for trial in gavel_trials(gavel_tables(), seed):
        new = np.flatnonzero(trial.new)
        if len(new) < 2:
            continue
        first = set(new[::2].tolist())
        rest = trial.new.copy()
        rest[list(first)] = False
        told = [
            each for each in trial.measured(True, 10) if {each.job_type, each.partner_type} & first
        ]
        known = KnownRows.of(trial.facts)
        models: dict[str, RowModel] = {
            "matrix completion": MatrixCompletion.plain(known),
            "trees": BoostedTrees.of(known, seed),
            "networks": train(trial.facts, KINDS_BY_VALIDATION, EstimatorSettings(), seed),
        }
        for method, model in models.items():
            for on in (False, True):
                found = estimates_after(trial, model, told, on)
                each = scores(trial, found, told, rest)
                out.append(
                    {
                        "trial": trial.name,
                        "method": method,
                        "on": on,
                        "ratio": each.ratio,
                        "alone": float(np.median(each.alone)),
                    }
                )
    return out


def fits() -> Rows:
    """Brier scores of whether pairs fit, before any run, and of the share of public pairs."""
    out: Rows = []
    trials = [
        (f"Gavel without {each.name}", each, each.new) for each in gavel_trials(gavel_tables(), 0)
    ]
    for seed in range(2):
        trial, groups = growth_trial(
            interference_tables(TYPES, GENERATIONS, FIRST_TABLES + seed), seed
        )
        trials += [(f"growth {FIRST_TABLES + seed}, {g}", trial, m) for g, m in groups.items()]
    for name, trial, mask in trials:
        features = JobFeatures.of(trial.facts.job_types)
        public = SeenCells(trial.facts).fits()
        found = pair_fit_probability(features, public)
        cells = np.isnan(public) & (mask[None, :, None] | mask[None, None, :])
        truth = (trial.tables.beside_per_s > 0)[cells]
        share = float(np.nanmean(public))
        out.append(
            {
                "where": name,
                "misfits": float(1 - truth.mean()),
                "constant": float(((share - truth) ** 2).mean()),
                "model": float(((found[cells] - truth) ** 2).mean()),
            }
        )
    return out


PARTS: dict[str, Callable[[int], dict[str, Any]]] = {
    "gavel": lambda seeds: {"gavel": gavel_rows(seeds), "repeats": repeats()},
    "growth": lambda seeds: dict(
        zip(("growth", "pairings", "fixed"), growth_rows(seeds), strict=True)
    ),
    "fits": lambda seeds: {"fits": fits()},
    "relatives": lambda seeds: {"relatives": relatives()},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--part", choices=["all", *PARTS, "page"], default="all")
    parser.add_argument("-o", "--output", type=Path, default=PAGE)
    given = parser.parse_args()
    raw = json.loads(RAW.read_text()) if RAW.exists() else {}
    for name, run in PARTS.items():
        if given.part in ("all", name):
            begun = time.process_time()
            raw |= run(given.seeds)
            raw.setdefault("seconds", {})[name] = time.process_time() - begun
            RAW.write_text(json.dumps(raw) + "\n")
    missing = [name for name in PARTS if name not in raw]
    if missing:
        print(f"no page yet: run the parts {', '.join(missing)} too")
        return
    given.output.write_text(page(raw))
    print(given.output.read_text())


if __name__ == "__main__":
    main()
