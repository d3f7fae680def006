"""Optima of tiny preemptive instances by the old and the new rule of progress.

    git worktree add /tmp/old 7f346a7
    python benchmarks/preemptive_rule.py --old /tmp/old [--seeds 50] [-o FILE]

Both rules are written down in ``_progress_rules.py``. From the new rule to the old one, one thing
changes at a time; a step at which the optimum changes is a cause. The schedules found are judged by
the verifier of this checkout and by that of the folder given by --old. Exit code 1 where a verifier
disagrees. Writes docs/results/preemptive_rule.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._preemptive_instances import (  # noqa: E402
    FAMILIES,
    MAX_TICKS,
    drawn,
    fault_3,
)
from benchmarks._progress_rules import Json, Rule, Search  # noqa: E402

# The old tolerance of 1e-9 of the units is in every energy; what differs by less has not changed.
SAME = 1e-6
OBJECTIVES = ("makespan", "energy_j")
# Cause, and the step towards the old rule.
STEPS: tuple[tuple[str, dict[str, bool]], ...] = (
    ("one_pool", {"one_pool": False}),
    ("per-segment rounding", {"pays_ticks": False}),
    ("rounding up of D", {"rounded": False}),
    ("tolerance", {"tolerant": True}),
    ("one_pool (sliver)", {"data_by_sliver": True}),
)


PROSE = """\
- An energy counts as changed from a relative 1e-6 on: the old tolerance took 1e-9 off every one.

The causes, each the only thing that differs between two neighbouring rules:

- **rounding up of D**: a tick in a mode is 1 / D of the task, and was 1 / d, d not rounded. In one
  mode nothing changes, since n ≥ d and n ≥ ceil(d) are the same for whole n; where a task mixes
  modes, Σ n / d may reach 1 where Σ n / D does not. This is fault 3.
- **per-segment rounding**: a segment held its devices for whole ticks and drew energy for its units
  only. A last slice of a dear mode cost what was left of the work, and a slice of next to no work
  kept devices busy, whose rest was then not paid. Now every tick draws its share.
- **tolerance**: durations up to 1e-9 above a whole number were that number, a task in two segments
  could lack 1e-9 units, and a sliver of up to 1e-9 ticks of work took no time.
- **one_pool**: a task with data may not run on several pools; a part on the other pool made the
  transfer free or immediate, and **one_pool (sliver)** is the same by a segment of no length.

With more slivers than the two per task allowed here, the old rule did any work in no time: the old
verifier accepts a task of 1e-6 ticks in 2,000 slivers that end at tick 0 (one of its schedules
above); the new optimum is 1 tick.

The repository's own preemptive instances are those of `geo_dc` with `preemptive`, `outage` or
`maintenance`; one study has one (`geo_robust`, `outage=[largest@24h+12h]`). No exact optimum of it
is known, before or now. It was in seconds, where d was not rounded at all: with its tick of 1 ns
rounding lengthens a task by less than 1 ns, and the tolerance of 1e-9 is gone. The published sets
(`../shared/data/report-sets`: flexible and classical job shops) are not preemptive, nor are the
instances of the other studies: none of their optima changes."""


@dataclass(frozen=True)
class Change:
    """One optimum by the rules from new to old, with any modes and with one mode per task."""

    family: str
    seed: int
    objective: str
    values: list[float]
    single: list[float]

    @property
    def causes(self) -> list[str]:
        """The steps at which the optimum changes."""
        steps = zip(STEPS, self.values, self.values[1:])
        return [cause for (cause, _), before, after in steps if differ(before, after)]

    def needs_mixing(self, cause: str) -> bool:
        """Whether the step changes nothing where every task keeps one mode."""
        step = [name for name, _ in STEPS].index(cause)
        return not differ(self.single[step], self.single[step + 1])


def chain() -> list[Rule]:
    """From the new rule to the old one."""
    rules = [Rule()]
    for _, step in STEPS:
        rules.append(replace(rules[-1], **step))
    return rules


def differ(a: float, b: float) -> bool:
    return abs(a - b) > SAME * max(1.0, abs(a), abs(b))


def compare(family: str, seed: int, spec: Json) -> tuple[list[Change], list[Any]]:
    """Both optima by every rule; and of both ends the schedules, for the verifiers."""
    searches = [Search(spec, rule) for rule in chain()]
    found = [search.run() for search in searches]
    alone = [Search(spec, replace(rule, mixes=False)).run() for rule in chain()]
    changes, schedules = [], []
    for name in OBJECTIVES:
        values = [float(best[name][0]) for best in found]
        single = [float(best[name][0]) for best in alone]
        changes.append(Change(family, seed, name, values, single))
        for end in (0, -1):
            rows = searches[end].segments(*found[end][name][1:])
            schedules.append([spec, rows, end, name, values[end]])
    return changes, schedules


def verdicts(folder: Path, cases: list[Any]) -> list[Any]:
    """What the verifier of a checkout says."""
    environment = os.environ | {"PYTHONPATH": str(folder)}
    command = [sys.executable, str(ROOT / "benchmarks" / "_judge_segments.py")]
    text = "".join(json.dumps(case[:2]) + "\n" for case in cases)
    done = subprocess.run(
        command, input=text, env=environment, capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def disagreements(folder: Path, cases: list[Any]) -> list[str]:
    """Schedules that a verifier refuses, or to which it gives another value."""
    out = []
    for (spec, _, _, name, value), verdict in zip(cases, verdicts(folder, cases), strict=True):
        if verdict[2] or differ(verdict[OBJECTIVES.index(name)], value):
            out.append(f"{name} {value:.9g}: {verdict} of {spec}")
    return out


def report(changes: list[Change], judged: dict[str, tuple[int, list[str]]], seeds: int) -> str:
    """The page."""
    changed = [change for change in changes if change.causes]
    rose = sum(change.values[0] > change.values[-1] for change in changed)
    fell, size = len(changed) - rose, seeds * len(FAMILIES)
    drawn_ones = [change for change in changed if change.family in FAMILIES]
    num_instances = len({(change.family, change.seed) for change in drawn_ones})
    lines = [
        "# Preemptive optima by the old and the new rule of progress",
        "",
        f"`python benchmarks/preemptive_rule.py --old OLD --seeds {seeds}`,",
        f"OLD a checkout of 7f346a7: {size} instances of two or three tasks and at most",
        f"{MAX_TICKS} ticks, and fault 3 of issue 11.",
        "",
        f"- **Of {size} instances {num_instances} have an optimum that changes.** With fault 3,",
        f"  {len(changed)} of {len(changes)} optima (makespans, energies) do:",
        f"  {rose} rise, {fell} fall.",
        *(
            f"- {verifier} verifier: {n} optimal schedules, {len(wrong)} disagreements."
            for verifier, (n, wrong) in judged.items()
        ),
        *PROSE.splitlines(),
        "",
        "| cause | makespans | energies | gone with one mode per task |",
        "| --- | ---: | ---: | ---: |",
    ]
    for cause, _ in STEPS:
        mine = [change for change in changed if cause in change.causes]
        split = [sum(change.objective == name for change in mine) for name in OBJECTIVES]
        gone = sum(change.needs_mixing(cause) for change in mine)
        lines.append(f"| {cause} | {split[0]} | {split[1]} | {gone} of {len(mine)} |")
    lines += ["", "| family | | makespans | energies |", "| --- | --- | ---: | ---: |"]
    for family, about in FAMILIES.items():
        names = Counter(change.objective for change in changed if change.family == family)
        each = " | ".join(f"{names[name]} of {seeds}" for name in OBJECTIVES)
        lines.append(f"| {family} | {about} | {each} |")
    lines += [
        "",
        "## Every optimum that changes",
        "",
        "| family | seed | objective | old | new | causes |",
    ]
    lines += ["| --- | ---: | --- | ---: | ---: | --- |"]
    for each_one in changed:
        old, new = (f"{each_one.values[end]:.6g}" for end in (-1, 0))
        row = (each_one.family, str(each_one.seed), each_one.objective, old, new)
        lines.append(f"| {' | '.join(row)} | {', '.join(each_one.causes)} |")
    wrong = [f"    {line}" for _, lines_of in judged.values() for line in lines_of]
    return "\n".join([*lines, "", *wrong]).rstrip() + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=50, help="instances of each family")
    parser.add_argument("--old", type=Path, help="a checkout of commit 7f346a7")
    page = ROOT / "docs" / "results" / "preemptive_rule.md"
    parser.add_argument("-o", "--output", type=Path, default=page)
    options = parser.parse_args()
    results = [compare("fault 3", 0, fault_3())]
    for family in FAMILIES:
        results += [compare(family, s, drawn(family, s)) for s in range(options.seeds)]
    changes = [change for each, _ in results for change in each]
    cases = [case for _, each in results for case in each]
    slivers: Json = {"counts": [1], "idle": [0], "horizon": 1, "edge": None}
    slivers["tasks"] = [[1.0, [[0, 1, 1e-6, 0.0]]]]
    cases.append([slivers, [[0, 0, 0, 0, 1 / 2000]] * 2000, -1, "makespan", 0.0])
    checks = {"New": (ROOT, [case for case in cases if case[2] == 0])}
    if options.old:
        checks["Old"] = (options.old, [case for case in cases if case[2] == -1])
    judged = {name: (len(mine), disagreements(at, mine)) for name, (at, mine) in checks.items()}
    text = report(changes, judged, options.seeds)
    options.output.write_text(text, encoding="utf-8")
    print(text[: text.index("## Every")])
    return 1 if any(wrong for _, wrong in judged.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
