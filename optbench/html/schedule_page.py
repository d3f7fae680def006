"""The page on results of one instance: summary, schedules, sources of the gap, search."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from optbench.bounds.explain import Explanation
from optbench.errors import ParameterError
from optbench.html import (
    bands,
    colours,
    gantt,
    gap_chart,
    power_chart,
    summary_table,
    svg,
    tariff_chart,
    trajectory_chart,
)
from optbench.html.captions import instance_facts
from optbench.html.decision_page import page_of_decision
from optbench.html.page import (
    colour_key,
    figure,
    footer,
    header,
    hint,
    machine_facts,
    note,
    page,
    scroll,
    section,
)
from optbench.model.instance import Instance
from optbench.model.metrics import power_trace
from optbench.model.result import Result
from optbench.shapes.protocol.shaped_instance import ShapedInstance

LEFT, RIGHT = 150.0, 24.0
# Deadlines up to this multiple of the longest schedule are drawn; later ones would squeeze it.
DEADLINE_ROOM = 1.3
LIBRARIES = ("ortools", "highspy", "pyomo", "numpy")


def render(
    instance: Instance,
    results: Sequence[Result],
    title: str | None = None,
    explained: Sequence[Explanation | None] = (),
) -> str:
    """The page of these results of one instance; ``explained`` has one entry per result."""
    shown = title or instance.name
    body = [
        header(shown, *instance_facts(instance)),
        summary_table.summary(instance, results),
        schedules(instance, results),
        gap_chart.gap_section(results, explained),
        _trajectories(instance, results),
        footer(*_provenance(instance, results)),
    ]
    return page(shown, body)


def page_of(result: Result) -> str:
    """The page of one result, for ``result.html(path)``."""
    if result.instance_data is None:
        raise ParameterError(
            f"this result of {result.instance!r} has no instance to draw: instance_data is None. "
            "dataclasses.replace(result, instance_data=instance) adds it"
        )
    if isinstance(result.instance_data, ShapedInstance):
        return page_of_decision(result, result.instance_data)
    return render(result.instance_data, [result])


def schedules(instance: Instance, results: Sequence[Result], scripted: bool = True) -> str:
    """One chart per result that has a schedule, on one common time axis.

    Without the script of the page tooltips are the browser's own, and dependencies stay hidden.
    """
    drawn = [result for result in results if result.schedule is not None]
    if not drawn:
        return ""
    end = _end_of_time(instance, drawn)
    tabs, panels = [], []
    for k, result in enumerate(drawn):
        tabs.append(f'<button type="button" data-panel="{k}">{escape(result.solver)}</button>')
        panels.append(_panel(instance, result, end, k, scripted))
    buttons = f'<nav class="tabs">{"".join(tabs)}</nav>' if len(drawn) > 1 else ""
    return section("Schedule", *panels, aside=buttons)


def _panel(instance: Instance, result: Result, end: float, k: int, scripted: bool) -> str:
    assert result.schedule is not None
    axis = gantt.time_axis(instance, end, LEFT, svg.WIDTH - LEFT - RIGHT)
    chart, bottom = gantt.draw(instance, result.schedule, axis, 4.0)
    trace = bands.coarse(power_trace(instance, result.schedule))
    curve, height = power_chart.draw(instance, trace, axis, bottom)
    strips, strip_end = tariff_chart.draw(instance, axis, height if curve else bottom + 8)
    foot = 0.0 if strips else power_chart.FOOT if curve else 8.0
    cursor = svg.line(0, 28, 0, strip_end - foot, class_="cursor")
    label = f"Gantt chart of {result.solver}"
    image = svg.chart([chart, curve, strips, cursor], strip_end, label, class_="chart gantt")
    step_s = gantt.tick_seconds(instance)
    pointer = {"left": axis.start, "width": axis.length, "end": end, "step_s": step_s}
    if curve:
        total_w = (trace.busy_w.sum(axis=0) + trace.rest_w.sum(axis=0)).tolist()
        sent_j = float(trace.transfer_j.sum())
        pointer |= {"t": trace.t.tolist(), "w": total_w, "transfer_j": sent_j}
    data = json.dumps(pointer, allow_nan=False)
    script = f'<script type="application/json">{data}</script>' if scripted else ""
    keys = _legend(instance, bands.is_needed(result.schedule), scripted)
    keys = f'<p class="legend">{keys}</p>'
    power_keys = f'<p class="legend">{power_chart.legend(instance, trace)}</p>'
    below = power_keys + note(power_chart.caption(instance, result.metrics))
    headline = summary_table.headline(instance, result)
    return (
        f'<figure class="panel" data-panel="{k}"><figcaption>{headline}</figcaption>{keys}'
        f"{scroll(image)}{below if curve else ''}{script}</figure>"
    )


def _legend(instance: Instance, banded: bool, scripted: bool) -> str:
    (group, names), clock = colours.groups(instance), instance.modes.clock
    out = []
    if len(names) <= 24 and len(names) < instance.num_tasks:
        for g, name in enumerate(names):
            if (group == g).any():
                out.append(colour_key(colours.colour(colours.TASKS, g), name))
    if not banded and len(np.unique(clock[np.isfinite(clock)])) > 1:
        out.append(hint("paler: lower clock"))
    dated, hard = np.isfinite(instance.tasks.deadline), instance.tasks.deadline_hard
    flags = ((dated & hard, "▼ hard deadline"), (dated & ~hard, "▽ due date"))
    if dated.any():
        out.append(hint(", ".join(words for which, words in flags if which.any())))
    words = f"point at a bar for details{' and dependencies' if scripted else ''}"
    if banded:
        words = (
            "too many tasks for bars: bands are as high as the devices in use, averaged "
            f"over 1/{bands.COLUMNS} of the time"
        )
    out.append(hint(words))
    return "".join(out)


def _end_of_time(instance: Instance, results: Sequence[Result]) -> float:
    drawn = [result.schedule for result in results if result.schedule is not None]
    ends = [float(schedule.end.max(initial=0)) for schedule in drawn]
    end = max([*ends, instance.horizon or 0.0, 1e-9])
    deadline = instance.tasks.deadline
    near = deadline[np.isfinite(deadline) & (deadline <= DEADLINE_ROOM * end)]
    return max(end, float(near.max(initial=0.0)))


def _trajectories(instance: Instance, results: Sequence[Result]) -> str:
    charts = []
    for level in range(instance.objective.num_levels):
        label = escape(instance.objective.level(level).label)
        charts.append(figure(label, trajectory_chart.draw(results, level)))
    words = (
        "Solid: best verified objective so far. Dashed: certified lower bound. Where they "
        "meet, the schedule is optimal."
    )
    return section("Search", *charts, note(words)) if any(charts) else ""


def _provenance(instance: Instance, results: Sequence[Result]) -> list[str]:
    libraries = []
    for name in LIBRARIES:
        try:
            libraries.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    seeds = sorted({result.seed for result in results})
    return [
        *machine_facts(),
        *libraries,
        f"seed {', '.join(map(str, seeds))}" if seeds else "",
        f"instance {instance.hash[:12]}",
    ]
