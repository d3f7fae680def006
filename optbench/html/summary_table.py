"""The summary table of a page: for each method its objective, bound, gap, metrics and time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import TypeAlias

from optbench.html.page import gap_bar, row, table
from optbench.html.quantities import amount, clock, duration, levels, percents, plain
from optbench.model.instance import Instance
from optbench.model.result import OPTIMAL_GAP, Bound, Result

# Beyond energy and makespan, a metric is shown where the instance gives it a meaning.
FURTHER = {
    "tardiness_s": ("tardiness", "s"),
    "flow_time_s": ("flow time", "s"),
    "cost_usd": ("cost", "USD"),
    "carbon_g": ("carbon", "g"),
}


# Whether the first bound says more than the second.
Tighter: TypeAlias = Callable[[Bound, Bound], bool]


def summary(instance: Instance, results: Sequence[Result]) -> str:
    """One row per result."""
    columns = _columns(instance, results)
    return result_table(results, columns, _is_higher, "this schedule", "lower bound")


def result_table(
    results: Sequence[Result],
    columns: Sequence[tuple[str, str, str]],
    tighter: Tighter,
    decision: str,
    bound: str = "bound",
) -> str:
    """One row per result, with columns of metrics (metric, name, unit) of any shape."""
    heads = ["method", "objective", bound, "gap", "bound from"]
    heads += [*(name for _, name, _ in columns), "time", "threads"]
    metrics = [(metric, unit) for metric, _, unit in columns]
    rows = [_row(result, metrics, tighter) for result in results]
    broken = "".join(_violations(result, decision) for result in results)
    return f'<section class="summary">{table(heads, rows, words=(0, 4))}{broken}</section>'


def headline(instance: Instance, result: Result) -> str:
    """One line on a schedule: method, objective and gap."""
    parts = [f"<b>{escape(result.solver)}</b>"]
    if result.objective is None:
        return f'{parts[0]} <span class="bad">not feasible</span>'
    parts.append(f"{escape(instance.objective.label)} = <b>{_values(result.objective)}</b>")
    if result.gap is not None:
        parts.append(_proven(result))
    return " · ".join(parts)


def _proven(result: Result) -> str:
    if all(g is not None and g <= OPTIMAL_GAP for g in levels(result.gap)):
        return '<span class="good">proven optimal</span>'
    return f"at most {percents(result.gap)} from the optimum"


def _columns(instance: Instance, results: Sequence[Result]) -> list[tuple[str, str, str]]:
    found = [result.metrics for result in results if result.metrics]
    used = instance.objective.metrics | set(instance.limits.metric_max)
    in_ticks = "makespan" in used and "makespan_s" not in used
    columns = [("makespan", "makespan", "") if in_ticks else ("makespan_s", "makespan", "clock")]
    if any(metrics["energy_j"] > 0 for metrics in found):
        columns += [("energy_j", "energy", "J"), ("peak_power_w", "peak power", "W")]
    columns += [(metric, name, unit) for metric, (name, unit) in FURTHER.items() if metric in used]
    return columns


def _row(result: Result, metrics: Sequence[tuple[str, str]], tighter: Tighter) -> str:
    best = _best_bounds(result, tighter)
    sources = list(dict.fromkeys(f"{b.source} ({b.proof})" for b in best))
    cells = [
        _values(result.objective),
        _values(result.bound),
        _gap(result),
        ", ".join(sources) or "-",
        *[_metric(result, metric, unit) for metric, unit in metrics],
        duration(result.wall_s),
        str(result.threads),
    ]
    head = f"{escape(result.solver)}<small>{escape(_state(result))}</small>"
    return row(head, [cell if k == 2 else escape(cell) for k, cell in enumerate(cells)], words=(4,))


def _is_higher(bound: Bound, other: Bound) -> bool:
    return bound.value > other.value


def _best_bounds(result: Result, tighter: Tighter) -> list[Bound]:
    """The bound in force of each level."""
    best: dict[int, Bound] = {}
    for bound in result.bounds:
        if bound.level not in best or tighter(bound, best[bound.level]):
            best[bound.level] = bound
    return [best[level] for level in sorted(best)]


def _state(result: Result) -> str:
    reason = "" if result.termination == "finished" else f", {result.termination.replace('_', ' ')}"
    return ("proven optimal" if result.status == "optimal" else result.status) + reason


def _gap(result: Result) -> str:
    worst = max((g for g in levels(result.gap) if g is not None), default=None)
    return "-" if worst is None else percents(result.gap) + gap_bar(worst)


def _metric(result: Result, metric: str, unit: str) -> str:
    if metric not in result.metrics:
        return "-"
    value = result.metrics[metric]
    if unit == "clock":
        return clock(value)
    return amount(value, unit) if unit in ("J", "W") else f"{plain(value)} {unit}".strip()


def _values(value: object) -> str:
    return "-" if value is None else ", ".join(plain(float(v)) for v in levels(value))


def _violations(result: Result, decision: str) -> str:
    if not result.violations:
        return ""
    items = "".join(f"<li>{escape(violation)}</li>" for violation in result.violations)
    return (
        f'<div class="violations"><b>{escape(result.solver)}: the verifier refuses '
        f"{decision}</b><ul>{items}</ul></div>"
    )
