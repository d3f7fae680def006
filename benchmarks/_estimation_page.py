"""The page docs/results/gogh_estimation.md, from the raw results of gogh_estimation.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from optbench.evaluate.stats import Estimate, estimate, paired_difference
from optbench.learn.colocation.estimator_settings import KINDS_BY_VALIDATION

METHODS = (
    "partner mean",
    "matrix completion",
    "additive completion",
    "trees",
    "inputs without network",
    "networks",
    "shuffled features",
    "random weights",
)
STATES = ("none", "profile", "3 pairs", "10 pairs", "10 pairs only")
GROUPS = ("new size", "new family")
GOAL_CUT = 0.40
# Mean absolute relative error that the noise of a cell of growth (5 %) leaves: 0.05 √(2 / π).
FLOOR = 0.05 * float(np.sqrt(2 / np.pi))

Rows = list[dict[str, Any]]

INTRODUCTION = """\
# Estimation of throughputs of new job types

`python benchmarks/gogh_estimation.py`: {minutes:.0f} processor minutes on one core, one process.

What a policy expects of jobs that it has not measured: throughputs alone, and the ratio of the
throughput beside a partner to that alone, each with its own error. A method is given the public
facts of known job types, the features of new ones (name, family, batch size, GPUs), and
measurements with 3 % noise; true tables reach no method. *Networks* are first sight (P1, {first})
and refinement (P2, {second}), 48 wide, one per fold of families in an ensemble of three. *Frozen
P1* is the column "none": it never changes.

States of knowledge: **none**; **profile**: one run alone on the newest GPU type (V100 on Gavel);
**3 pairs**, **10 pairs**: so many runs beside known partners on any GPU type, with the throughput
alone there; **10 pairs only**: a profile run, and ten runs beside partners without further runs
alone. The error of ratios is the mean relative error over cells of new types beside known ones, in
both directions, that are measured in no state (the same cells in all states); that of throughputs
alone is the median relative error over GPU types without a run. Intervals are of 95 %: over five
seeds on Gavel, over five tables (with a seed each) on growth; those of differences on Gavel over
the families. Seeds of networks are 0 to 4; runs, held-out types of growth and noise come from
generators of their own; settings were chosen on tables 0 of growth.

"""

SUMMARY = """\
## In short

Trees with the same inputs do as well as the networks nearly everywhere: differences in the third
decimal. What helps is, in this order, measurements of a job in the low-rank posterior, known
relatives, and the network of first sight where relatives are known. Of a job of a new family no
method knows anything before it is measured, on Gavel nor on growth: the control with shuffled
features fails where the family is known, as it must, and does not fail where it is new, for there
are no features to lose. Refinement networks add little to the posterior that they are given.
"Lower" and "higher" say that the interval of a difference excludes 0, "tie" that it does not.
"""

LIMITS = """\
## What this does not show

- Networks of first sight are told the k = 5 most similar known jobs by stated features only. Where
  no known job is of the family, batch size is all there is to be similar in: first sight of a
  new family is a guess by any method here.
- The low-rank posterior of what first sight gets wrong is an input of the refinement networks, and
  most of what refinement achieves is in it: see *inputs without network*. Three ways were tried to
  make the networks add more: trained on posteriors of all rows (they trust them too much:
  validation errors rise for new families), on posteriors without a row's own family (as shipped),
  and with a quarter of the learning rate, four times the steps, or a hundred times the weight decay
  (no better). The share of the correction that is applied is measured on families left out, so that
  the networks do no harm where they add nothing.
- The synthetic model was stated before anything was trained (`problems/_interference.py`, commit
  "Synthetic growth: the interference model"); it has four resources, and fewer dimensions than real
  interference has.
- The variances of the sizes model (whether pairs fit) were chosen on tables 0 of growth, with its
  scores on Gavel in view.
- Gavel has six families, of which two have one job type. Intervals over six families are wide.
- A trial before this (seven families, ResNet-18 and ResNet-50 apart, and the domain of the model as
  a further feature) found 36 % for the throughput alone of a stranger after one V100 run. With the
  ResNets as one family and without a feature that no user states, the error is what stands above.
"""


def page(raw: dict[str, Any]) -> str:
    """The whole page."""
    seconds = sum(raw.get("seconds", {}).values())
    first, second = (kind.replace("_", "-") for kind in KINDS_BY_VALIDATION)
    out = [INTRODUCTION.format(minutes=seconds / 60, first=first, second=second)]
    out.append(_verdicts(raw))
    out.append(_gavel(raw["gavel"]))
    out.append(_growth(raw["growth"], raw["fixed"]))
    out.append(_pairings(raw["pairings"]))
    out.append(_repeats(raw["repeats"]))
    out.append(_relatives(raw["relatives"]))
    out.append(_certainty(raw))
    out.append(LIMITS)
    return "\n".join(out).rstrip() + "\n"


def select(rows: Rows, **wanted: Any) -> Rows:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def by_seed(rows: Rows, field: str = "ratio") -> list[float]:
    """The mean over trials of a field, per seed."""
    seeds = sorted({row["seed"] for row in rows})
    return [float(np.mean([row[field] for row in rows if row["seed"] == s])) for s in seeds]


def by_trial(rows: Rows) -> list[float]:
    """The mean over seeds of the ratio's error, per trial."""
    trials = sorted({row["trial"] for row in rows})
    return [float(np.mean([r["ratio"] for r in rows if r["trial"] == t])) for t in trials]


def pooled_median(rows: Rows) -> list[float]:
    """Median of all errors of throughputs alone, per seed."""
    seeds = sorted({row["seed"] for row in rows})
    lists = [[v for r in rows if r["seed"] == s for v in r["alone"]] for s in seeds]
    return [float(np.median(each)) for each in lists if each]


def cell(values: Sequence[float]) -> str:
    if not values:
        return "–"
    found = estimate(values)
    if not found.known or len(values) < 3:
        return f"{found.value:.3f}"
    return f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def ratio_table(rows: Rows, group: str) -> str:
    body = [
        [name, *(cell(by_seed(select(rows, group=group, method=name, state=s))) for s in STATES)]
        for name in METHODS
    ]
    return table(["ratio beside / alone", *STATES], body)


def alone_table(rows: Rows, group: str) -> str:
    states = ("none", "profile", "10 pairs only")
    body = [
        [
            name,
            *(cell(pooled_median(select(rows, group=group, method=name, state=s))) for s in states),
        ]
        for name in METHODS
    ]
    return table(["throughput alone, median error", *states], body)


def difference(rows: Rows, state: str, other: str, group: str = "new family") -> Estimate:
    """Networks less another method, paired by trial."""
    ours, theirs = (
        by_trial(select(rows, method=name, state=state, group=group))
        for name in ("networks", other)
    )
    return paired_difference(ours, theirs)


def judged(found: Estimate) -> str:
    word = "tie" if not found.apart_from_zero else ("lower" if found.value < 0 else "higher")
    return f"{found.value:+.3f} ({found.low:+.3f} to {found.high:+.3f}): {word}"


def cut(rows: Rows, method: str, group: str) -> Estimate:
    """Share by which ten measurements cut the error of ratios that were never measured."""
    before, after = (
        np.array(by_seed(select(rows, method=method, state=state, group=group)))
        for state in ("none", "10 pairs")
    )
    return estimate(1 - after / before)


def percent(found: Estimate) -> str:
    return f"{100 * found.value:.0f} % ({100 * found.low:.0f} to {100 * found.high:.0f})"


def overall_cut(rows: Rows, fixed: Rows, method: str) -> Estimate:
    """The cut over all new types of growth, both groups weighed by their numbers of types."""
    weight = np.array([[each[group] for group in GROUPS] for each in fixed], dtype=float)
    total = []
    for state in ("none", "10 pairs"):
        found = [by_seed(select(rows, method=method, state=state, group=g)) for g in GROUPS]
        total.append((weight * np.array(found).T).sum(axis=1) / weight.sum(axis=1))
    return estimate(1 - total[1] / total[0])


def _verdicts(raw: dict[str, Any]) -> str:
    gavel, growth = raw["gavel"], raw["growth"]
    lines = [SUMMARY]
    others = ("trees", "additive completion", "matrix completion", "inputs without network")
    for state in ("none", "3 pairs", "10 pairs"):
        found = {name: judged(difference(gavel, state, name)) for name in (*others, "partner mean")}
        words = "; ".join(f"{name} {text}" for name, text in found.items())
        lines.append(f"- Gavel, **{state}**, error of ratios, networks less: {words}.")
    for group in GROUPS:
        for state in ("none", "10 pairs"):
            found = {name: judged(difference(growth, state, name, group)) for name in others}
            words = "; ".join(f"{name} {text}" for name, text in found.items())
            lines.append(f"- Growth, {group}, **{state}**, networks less: {words}.")
    every = overall_cut(growth, raw["fixed"], "networks")
    met = "met" if every.value >= GOAL_CUT else "missed"
    lines.append(
        "- Growth, all new types: ten measurements cut the error of ratios that were never "
        f"measured by {percent(every)} (goal 40 %: {met}); with new families alone by "
        f"{percent(cut(growth, 'networks', 'new family'))}, with new sizes alone by "
        f"{percent(cut(growth, 'networks', 'new size'))}, where first sight leaves little: the "
        f"noise of a cell, {FLOOR:.3f}, is in every error."
    )
    for where, rows, groups in (("Growth", growth, GROUPS), ("Gavel", gavel, ("new family",))):
        for group in groups:
            words = ", ".join(
                f"{name} {percent(cut(rows, name, group))}" for name in ("networks", *others)
            )
            lines.append(f"- {where}, {group}, the same cut by method: {words}.")
    lines += _controls(raw)
    return "\n".join(lines) + "\n"


def _controls(raw: dict[str, Any]) -> list[str]:
    """Networks against themselves with shuffled features and with random weights, same seeds."""
    lines = []
    for where, rows, group in (
        ("Growth, new size", raw["growth"], "new size"),
        ("Growth, new family", raw["growth"], "new family"),
        ("Gavel, new family", raw["gavel"], "new family"),
    ):
        words = []
        for name in ("shuffled features", "random weights"):
            seeds = {row["seed"] for row in select(rows, method=name)}
            mine = [row for row in select(rows, method="networks") if row["seed"] in seeds]
            for state in ("none", "10 pairs"):
                wanted = {"state": state, "group": group}
                ours = by_trial(select(mine, **wanted))
                control = by_trial(select(rows, method=name, **wanted))
                found = judged(paired_difference(control, ours))
                words.append(f"{name}, {state}, {found}")
        lines.append(f"- Controls less networks, {where}: {'; '.join(words)}.")
    return lines


def _gavel(rows: Rows) -> str:
    families = sorted({row["trial"] for row in rows})
    body = [
        [
            name,
            *(
                f"{np.mean(by_seed(select(rows, trial=f, method=m, state='10 pairs'))):.3f}"
                for m in METHODS[:6]
            ),
        ]
        for name, f in ((f, f) for f in families)
    ]
    return (
        "## Gavel, one family left out\n\nThe 26 job types of one GPU, six families (ResNet-18 and "
        "ResNet-50 count as one), mean over families.\n\n"
        + ratio_table(rows, "new family")
        + "\n"
        + alone_table(rows, "new family")
        + "\nThe controls (shuffled features, random weights) have one seed. Error of ratios after "
        "10 pairs, by family left out:\n\n" + table(["family", *METHODS[:6]], body)
    )


def _growth(rows: Rows, fixed: Rows) -> str:
    body = [
        [
            str(each["tables"]),
            str(each["new family"]),
            str(each["new size"]),
            f"{each['cells']:,}",
            f"`{each['digest']}`",
        ]
        for each in fixed
    ]
    parts = [
        "## Synthetic growth\n\n200 job types on four generations. Six of 34 families are held out "
        "whole (*new family*), and a fifth of the types of the others (*new size*: the family is "
        "known at other batch sizes). Fixed before any run, by seed, with a hash of the cells:\n",
        table(["tables", "new family", "new size", "cells", "hash"], body),
    ]
    for group in GROUPS:
        parts += [f"### {group.capitalize()}\n", ratio_table(rows, group), alone_table(rows, group)]
    return "\n".join(parts)


def _pairings(rows: Rows) -> str:
    body = []
    kinds = sorted({row["first"] for row in rows})
    for one in kinds:
        for other in kinds:
            mine = select(rows, first=one, second=other)
            told = np.mean([row["validation"] for row in mine], axis=0)
            cells = []
            for group in GROUPS:
                for state in ("none", "10 pairs"):
                    found = by_seed(select(mine, group=group, state=state))
                    cells.append(f"{np.mean(found):.3f}")
            alone = pooled_median(select(mine, group="new size", state="none"))
            name = f"{one} × {other}".replace("_", "-")
            chosen = " (default)" if (one, other) == KINDS_BY_VALIDATION else ""
            body.append(
                [name + chosen, *(f"{v:.3f}" for v in told), *cells, f"{np.mean(alone):.3f}"]
            )
    head = [
        "P1 × P2",
        *("val. alone P1", "val. alone P2", "val. ratio P1", "val. ratio P2"),
        *("size, none", "size, 10 pairs", "family, none", "family, 10 pairs", "size, alone, none"),
    ]
    text = (
        "## The nine pairings\n\nOn growth: validation errors (mean absolute error of logarithms "
        "on known families left out of a fold), and errors of the held-out types as above. The "
        "default was chosen by validation errors on tables 0, before any report.\n\n"
    )
    return text + table(head, body)


def _repeats(rows: Rows) -> str:
    body = []
    for times in (0, 1, 3):
        errors = [v for row in rows if row["times"] == times for v in row["errors"]]
        body.append([str(times), f"{np.median(errors):.3f}", f"{np.mean(errors):.3f}"])
    return (
        "## Repeats of a known type\n\nThe throughput beside a partner of one cell of each Gavel "
        "type, at first sight and after runs of the same cell: a repeat makes every learning "
        "estimator a look-up table, whatever its model.\n\n"
        + table(["runs of the cell", "median error", "mean error"], body)
    )


def _relatives(rows: Rows) -> str:
    body = []
    for name in ("matrix completion", "trees", "networks"):
        for on in (False, True):
            mine = select(rows, method=name, on=on)
            body.append(
                [
                    name + (", told by relatives" if on else ""),
                    *(
                        f"{np.mean([row[field] for row in mine]):.3f}"
                        for field in ("ratio", "alone")
                    ),
                ]
            )
    return (
        "## Relatives within a new family\n\nEverywhere else on this page each new type is judged "
        "by its own measurements. Policies with networks or trees also let measured types of a new "
        "family speak for others of it (`measured_relatives`): every second type of the four Gavel "
        "families that have several was measured (a profile run and ten pairs), and these are "
        "the errors of the others, of which nothing was (mean over families, one seed).\n\n"
        + table(["first sight of a relative", "ratio", "alone (median)"], body)
    )


def _certainty(raw: dict[str, Any]) -> str:
    body = []
    for where, rows, group in (
        ("Gavel", raw["gavel"], "new family"),
        ("growth, new size", raw["growth"], "new size"),
        ("growth, new family", raw["growth"], "new family"),
    ):
        for name in ("matrix completion", "trees", "networks"):
            shares = [
                f"{np.mean(by_seed(select(rows, method=name, state=s, group=group), 'within')):.2f}"
                for s in ("none", "3 pairs", "10 pairs")
            ]
            body.append([f"{where}: {name}", *shares])
    text = (
        "## Certainty\n\nShare of ratios within two stated standard deviations of the truth (0.95 "
        "where errors are normal):\n\n"
    )
    fits = [
        [each["where"], f"{each['misfits']:.3f}", f"{each['constant']:.4f}", f"{each['model']:.4f}"]
        for each in raw["fits"]
    ]
    return (
        text
        + table(["", "none", "3 pairs", "10 pairs"], body)
        + "\nWhether a pair fits the memory, from known pairs and features, before anything is "
        "measured (Brier score: mean squared error of the probability):\n\n"
        + table(["new types", "misfits", "constant share", "sizes model"], fits)
    )
