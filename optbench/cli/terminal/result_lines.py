"""Terminal output of a result and its bounds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optbench.cli.terminal.output import (
    BAD,
    DIM,
    GOOD,
    escape,
    figure,
    length,
    percent,
    show,
    table,
)
from optbench.html.quantities import duration
from optbench.model.instance import Instance
from optbench.model.measures import metric_unit
from optbench.plugins.schedule_shape import shape_of
from optbench.typed_values import is_number

if TYPE_CHECKING:
    from optbench.blaming import Blame
    from optbench.bounds.explain import Explanation
    from optbench.model.result import Result

# Metrics in the order shown; those that are zero and not part of the objective are left out.
ORDER = (
    "makespan",
    "makespan_s",
    "energy_j",
    "busy_energy_j",
    "rest_energy_j",
    "transfer_energy_j",
    "peak_power_w",
    "flow_time_s",
    "tardiness_s",
    "late_tasks",
    "cost_usd",
    "carbon_g",
)
ALWAYS = frozenset({"makespan_s"})
WHEN_ASKED = frozenset({"flow_time_s"})
REASONS = {
    "time_limit": "stopped at the time limit",
    "work_limit": "stopped at the work limit",
    "memory_limit": "stopped at the memory limit",
    "interrupted": "interrupted",
    "crashed": "crashed",
    "finished": "finished",
}


# Entries of a remark by name that are shown.
MOST_REMARKS = 8
# Shorter waits are not mentioned.
FELT_S = 0.1


def show_result(
    instance: Instance,
    result: Result,
    page: str | None = None,
    explanation: Explanation | None = None,
    blamed: Blame | None = None,
) -> None:
    """Show the outcome, objective and bounds, metrics, sources of the gap, and files written."""
    size = shape_of(instance).describe(instance)
    how = f"{size}, {escape(result.solver)}, {threads(result.threads)}, seed {result.seed}"
    show(f"\n[bold]{escape(instance.name)}[/]  [{DIM}]{how}[/]")
    show(outcome(result, instance))
    if result.compile_s >= FELT_S:
        compiled = f"compiled for {length(result.compile_s)} before the clock started"
        show(f"[{DIM}]{compiled}, once per machine[/]")
    show("", objective_table(instance, result), "")
    if result.metrics:
        show(metrics_table(instance, result.metrics), "")
    if result.measured is not None:
        measured = result.measured.to_dict()
        show(measured_table(instance, measured))
        for name, reason in measured.get("withheld", {}).items():
            show(f"no readings of {escape(name)}: {escape(reason)}")
        used = measured["provenance"].get("devices_used")
        show(*([] if used is None else [f"ran on {escape(used)}"]), "")
        if "outcome" in measured:
            words = ",  ".join(f"{k} {figure_or_text(v)}" for k, v in measured["outcome"].items())
            show(f"trained: {escape(words)}", "")
    for violation in result.violations:
        show(f"[{BAD}]refused by the verifier[/]: {escape(violation)}")
    if result.info:
        words = ",  ".join(
            f"{key} {figure_or_text(value)}"
            for key, value in result.info.items()
            if key != "traceback" or os.environ.get("OPTBENCH_DEBUG")
        )
        show(f"[{DIM}]{escape(words)}[/]")
    if result.status == "unknown" and not result.violations:
        show(
            f"[{DIM}]more time (--time-limit) or another solver (`optbench list solvers`) may "
            "find one[/]"
        )
    if result.energy is not None:
        show(f"[{DIM}]{energy_words(result.energy)}[/]")
    if explanation is not None:
        from optbench.cli.terminal.explaining import show_explanation

        show_explanation(explanation)
    if blamed is not None:
        from optbench.cli.terminal.explaining import show_blame

        show_blame(blamed)
    decision = shape_of(instance).decision
    for what, path in ((decision, result.schedule_file), ("page", page)):
        if path:
            show(f"{what} written to [bold]{escape(path)}[/]")
    for what, path in result.files.items():
        show(f"{what} written to [bold]{escape(nearby(path))}[/]")


def nearby(path: str) -> str:
    """A path relative to the current folder where it lies in it."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path


def energy_words(energy: Mapping[str, Any]) -> str:
    """``this run drew 12.3 J (estimated: 1.03 s of processor time at 12 W)``."""
    parts = [f"{figure(energy['cpu_j'])} J of processors"]
    if energy["estimated"]:
        at = f"{energy['cpu_s']:.2f} s of processor time at {energy['assumed_w']:g} W"
        parts = [f"estimated: {at}"]
    elif energy["cpu_shared"]:
        parts[0] += f", {percent(energy['cpu_share'])} of a shared package"
    if energy["device_j"] is not None:
        shared = ", shared" if energy["device_shared"] else ""
        parts.append(f"{figure(energy['device_j'])} J of GPUs{shared}")
    if not energy["complete"]:
        parts.append("incomplete: " + "; ".join(energy["notes"]))
    return f"this run drew {figure(energy['energy_j'])} J ({'; '.join(parts)})"


def figure_or_text(value: Any) -> str:
    """Format a value of a solver's own remarks."""
    if isinstance(value, Mapping):
        shown = [
            f"{key} {figure_or_text(each)}" for key, each in list(value.items())[:MOST_REMARKS]
        ]
        return f"({', '.join(shown)}{', ...' if len(value) > MOST_REMARKS else ''})"
    return figure(value) if is_number(value) else str(value)


def threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


def outcome(result: Result, instance: Instance) -> str:
    """Such as ``feasible and verified, stopped at the time limit after 10.0 s``."""
    shape = shape_of(instance)
    end = "minimum" if shape.sense(instance) == "min" else "maximum"
    words = {
        "optimal": f"[{GOOD}]proven optimal[/] and verified",
        "feasible": f"[{GOOD}]feasible[/] and verified"
        if result.verified
        else f"[{BAD}]not feasible[/]",
        "infeasible": f"[{BAD}]infeasible[/]: {escape(infeasible_words(result))}",
        "unbounded": f"[{BAD}]unbounded[/]: the objective has no {end}",
        "unknown": f"[{BAD}]no {shape.decision} found[/]",
        "error": f"[{BAD}]the solver failed[/]",
    }[result.status]
    first_s = result.time_to_first_s
    first = "" if first_s is None else f" (first {shape.decision} after {duration(first_s)})"
    message = f"\n{escape(result.message)}" if result.message else ""
    return f"{words}, {REASONS[result.termination]} after {duration(result.wall_s)}{first}{message}"


def infeasible_words(result: Result) -> str:
    """Who reported that no schedule exists, and the proof."""
    claim = result.infeasibility
    if claim is None or claim.proof == "solver":
        who = result.solver if claim is None else claim.source
        return f"so says {who} (solver), without a certified proof"
    return f"proven by {claim.source} ({claim.proof}): {claim.argument}"


def objective_table(instance: Instance, result: Result) -> Any:
    """One row per level of the objective."""
    from optbench.outcome import best_by_level

    shape = shape_of(instance)
    number = shape.num_levels(instance)
    best = best_by_level(result.bounds, number, shape.sense(instance))
    values, gaps = _levels(result.objective, number), _levels(result.gap, number)
    rows = []
    for k, bound in enumerate(best):
        rows.append(
            (
                shape.label(instance, k),
                figure(values[k]),
                figure(bound.value if bound else None),
                percent(gaps[k]),
                bound.source if bound else "-",
                bound.proof if bound else "-",
            )
        )
    columns = ("objective", "value", "bound", "gap", "bound from", "proof")
    return table(columns, rows, right=("value", "bound", "gap"))


def measured_table(instance: Instance, measured: Mapping[str, Any]) -> Any:
    """Readings with their mean and its interval; they are no part of objective and gap."""
    rows = []
    for name, row in measured["metrics"].items():
        low, high = row["interval"] or (None, None)
        between = "" if low is None else f"{figure(low)} to {figure(high)}"
        metric = shape_of(instance).metrics[name]
        rows.append((name, figure(row["mean"]), between, str(len(row["readings"])), metric.unit))
    return table(("measured", "mean", "95 % interval", "readings", "unit"), rows)


def metrics_table(instance: Instance, metrics: Mapping[str, float]) -> Any:
    """The table of metrics with their units."""
    if not isinstance(instance, Instance):
        shown = shape_of(instance).metrics
        units = {name: shown[name].unit if name in shown else metric_unit(name) for name in metrics}
        plain = [(name, figure(value), units[name]) for name, value in metrics.items()]
        return table(("metric", "value", "unit"), plain, right=("value",))
    asked = instance.objective.metrics | set(instance.limits.metric_max)
    physical = "makespan" not in asked
    rows = []
    for name in (*ORDER, *sorted(set(metrics) - set(ORDER))):
        if (
            name not in metrics
            or (name == "makespan" and physical)
            or (name == "makespan_s" and not physical and name not in asked)
        ):
            continue
        if name in asked or name in ALWAYS or (metrics[name] and name not in WHEN_ASKED):
            rows.append((name, figure(metrics[name]), metric_unit(name)))
    return table(("metric", "value", "unit"), rows, right=("value",))


def _levels(value: Any, count: int) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,) + (None,) * (count - 1)
