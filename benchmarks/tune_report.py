"""The page that benchmarks/tune_workers.py writes."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from textwrap import wrap
from typing import Any

COLUMNS = (
    "search",
    "trials",
    "kills",
    "trials adopted",
    "cells in the store",
    "MLflow runs",
    "time",
    "what does not hold",
)


def render(command: str, cases: Sequence[Any], value: dict[str, Any], seconds: float) -> str:
    """Markdown: the searches under fire, then what the first of them is worth."""
    machine = f"{platform.node()}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    lines = [
        "# Tuning: two workers, one of them killed",
        "",
        f"`{command}` on {machine}, Python {platform.python_version()},",
        f"{time.strftime('%Y-%m-%d')}; {seconds:.0f} s in all.",
        "",
        fill(
            "Two `optbench tune` commands, one worker each, share a search. One is left alone; "
            "the other is hit by `kill -9` at "
            "random moments (the command, its worker, or both at once) and started again when it "
            "is gone. Not every kill hits a "
            "worker in the middle of a trial; those that do leave a trial for others to adopt."
        ),
        "",
        f"| {' | '.join(COLUMNS)} |",
        f"|{' --- |' * len(COLUMNS)}",
        *map(row, cases),
        "",
        fill(
            "Checked for each: trial numbers 0 to N-1, each exactly once complete or pruned; "
            "every complete trial has all of its "
            "cells, every cell stands in the store exactly once; each trial's value is what its "
            "cells in the store come to; "
            "MLflow has one run per trial and one parent; no process is left. Cells beside those "
            "of trials are the comparison on "
            "unseen seeds."
        ),
        "",
        *worth(cases[0], value),
    ]
    return "\n".join(lines)


def fill(words: str) -> str:
    return "\n".join(wrap(words, 140))


def row(case: Any) -> str:
    facts = case.facts
    kills = ", ".join(f"{count} {what}" for what, count in sorted(case.kills.items()))
    cells = (
        case.name,
        f"{facts['trials']} ({facts['complete']} complete, {facts['pruned']} pruned)",
        f"{sum(case.kills.values())} ({kills})",
        str(facts["adopted"]),
        f"{facts['cells']:,}",
        str(facts["runs"]),
        f"{case.seconds:.0f} s",
        "; ".join(case.problems) or "none",
    )
    return f"| {' | '.join(cells)} |"


def worth(first: Any, value: dict[str, Any]) -> list[str]:
    """The tuned thresholds against the defaults on unseen seeds."""
    goal, origin = value["goal"], value["file"]["provenance"]
    pairs = [
        (name, origin["defaults"][name], tuned) for name, tuned in value["file"]["params"].items()
    ]
    searched, judged = origin["seeds"], origin["validation_seeds"]
    tuned_ms, default_ms = (1000 * value["times"][name] for name in ("tuned", "defaults"))
    return [
        "## What the thresholds of fixed_dvfs are worth",
        "",
        fill(
            f"Study `gpu_dag_tune`, searched under the kills above: {first.facts['trials']} "
            f"trials on seeds {min(searched)} to "
            f"{max(searched)}, judged on seeds {min(judged)} to {max(judged)} of "
            f"{len(origin['problems'])} problems, "
            f"{value['instances']} instances in all."
        ),
        "",
        "| parameter | default | tuned |",
        "| --- | --- | --- |",
        *(f"| {name} | {default:g} | {tuned:.4g} |" for name, default, tuned in pairs),
        "",
        fill(
            "Objective on unseen seeds against the defaults, instance by instance: "
            f"**{100 * goal['change']:+.2f} %**, 95 % "
            f"interval {100 * goal['low']:+.2f} % to {100 * goal['high']:+.2f} % (bootstrap "
            "within problems); better on "
            f"{value['better']} of {value['instances']} instances, worse on {value['worse']}. "
            "Mean objective "
            f"{goal['defaults']:,.0f} before, {goal['tuned']:,.0f} after."
        ),
        "",
        fill(
            f"A rule needs no time to speak of, whatever its thresholds: {tuned_ms:.1f} ms a "
            "solve in the median, "
            f"{default_ms:.1f} ms with the defaults. The search cost "
            f"{first.facts['cells_of_trials']:,} cells, "
            f"{first.facts['busy_s']:.0f} s of their processes' time and {first.seconds:.0f} s "
            "on the clock, kills and restarts "
            "included. It is paid once, and is in none of the solve times."
        ),
        "",
    ]
