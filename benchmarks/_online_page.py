"""The page of ``hgnn_online.py``: what each method's streams cost per unit of work, and paired
differences to the tuned list rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks._cluster_runs import percent

Row = dict[str, Any]
RULE, LEARNED = "tuned_rule", "hgnn"
HEAD = (
    "| method | streams | energy, J | late, s | late tasks, % | cost, J | cost against the tuned "
    "rule, % | energy, % | late, s | cost against hgnn on the same streams, % |"
)


def tables(rows: Sequence[Row], methods: Iterable[str]) -> list[str]:
    """Return a table per kind of stream, and one over all of them."""
    specs = list(dict.fromkeys(row["spec"] for row in rows))
    lines: list[str] = []
    for spec in specs:
        lines += ["", f"`{spec}`", "", *table([r for r in rows if r["spec"] == spec], methods)]
    return lines


def overall(rows: Sequence[Row], methods: Iterable[str]) -> list[str]:
    return ["", "All streams together", "", *table(rows, methods)]


def table(rows: Sequence[Row], methods: Iterable[str]) -> list[str]:
    """Return one line per method; its differences are paired with the rule on the same streams."""
    rule = {(row["spec"], row["seed"]): row for row in rows if row["method"] == RULE}
    learned = {(row["spec"], row["seed"]): row for row in rows if row["method"] == LEARNED}
    lines = [HEAD, "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for method in methods:
        own = [row for row in rows if row["method"] == method]
        if not own:
            continue
        late = 100 * mean(own, "late")
        line = (
            f"| {method} | {len(own)} | {mean(own, 'energy_j'):.2f} | "
            f"{mean(own, 'tardiness_s'):.4f} | {late:.1f} | {mean(own, 'value'):.2f} |"
        )
        pairs = [(row, rule.get((row["spec"], row["seed"]))) for row in own]
        beside = [(row, other) for row, other in pairs if other is not None]
        if method == RULE or not beside:
            lines.append(f"{line} | | | {cost_against(learned, own)} |")
            continue
        cost, energy = (
            without_interval(percent([row[name] / other[name] - 1.0 for row, other in beside]))
            for name in ("value", "energy_j")
        )
        last = "" if method == LEARNED else cost_against(learned, own)
        lines.append(f"{line} {cost} | {energy} | {seconds(beside)} | {last} |")
    return lines


def cost_against(learned: dict[tuple[str, int], Row], own: Sequence[Row]) -> str:
    """Return the mean excess of the cost over that of hgnn where both played, with its interval."""
    pairs = [(row, learned.get((row["spec"], row["seed"]))) for row in own]
    found = [row["value"] / other["value"] - 1.0 for row, other in pairs if other is not None]
    return without_interval(percent(found)) if found else ""


def seconds(beside: Sequence[tuple[Row, Row]]) -> str:
    """Return the mean difference of the weighted seconds late per unit, with its interval."""
    from optbench.evaluate.stats import estimate

    found = estimate([row["tardiness_s"] - other["tardiness_s"] for row, other in beside])
    return without_interval(f"{found.value:+.4f} ({found.low:+.4f} to {found.high:+.4f})")


def without_interval(text: str) -> str:
    """Return the mean alone where one stream gives no interval."""
    return text.partition(" (-inf")[0]


def decisions(rows: Sequence[Row], method: str) -> str:
    """Return what decisions of a method took."""
    own = [row for row in rows if row["method"] == method and "p50_ms" in row]
    if not own:
        return ""
    worst = max(row["p99_ms"] for row in own)
    return (
        f"Decisions of {method}, timed on the wall of a busy machine: p50 "
        f"{mean(own, 'p50_ms'):.2f} ms, p99 {mean(own, 'p99_ms'):.1f} ms (the worst stream "
        f"{worst:.1f}); a stream takes {mean(own, 'cpu_s'):.0f} s of the processor."
    )


def mean(rows: Sequence[Row], name: str) -> float:
    return float(np.mean([row[name] for row in rows]))
