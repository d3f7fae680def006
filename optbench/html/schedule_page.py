"""The page of results of one instance, put together as text."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from html import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from optbench import __version__
from optbench.bounds.explain import Explanation
from optbench.html import bands, colours, gantt, gap_chart, html_tables, power_chart, svg, tariff_chart, trajectory_chart
from optbench.html.page_shell import shell
from optbench.model.instance import Instance
from optbench.model.metrics import power_trace
from optbench.model.result import Result

WIDTH, LEFT, RIGHT = 1200.0, 150.0, 24.0
# Deadlines up to this multiple of the longest schedule are drawn; later ones would squeeze it.
DEADLINE_ROOM = 1.3
LIBRARIES = ("ortools", "highspy", "pyomo", "numpy")


def write(
    path: str | Path,
    instance: Instance,
    results: Sequence[Result],
    title: str | None = None,
    explained: Sequence[Explanation | None] = (),
) -> Path:
    """Write the page of these results of one instance; explanations go with results by their order."""
    path = Path(path)
    path.write_text(render(instance, results, title, explained), encoding="utf-8")
    return path


def render(
    instance: Instance, results: Sequence[Result], title: str | None = None, explained: Sequence[Explanation | None] = ()
) -> str:
    """The page as text."""
    shown = title or instance.name
    body = [
        f"<header><h1>{escape(shown)}</h1><p>{escape(_facts(instance))}</p></header>",
        html_tables.summary(instance, results),
        _schedules(instance, results),
        gap_chart.section(results, explained),
        _trajectories(instance, results),
        f"<footer>{escape(_provenance(instance, results))}</footer>",
    ]
    return shell(shown, body)


def _facts(instance: Instance) -> str:
    devices = int(instance.pools.count.sum())
    pools = instance.num_pools
    facts = [
        f"{instance.num_tasks:,} tasks",
        f"{len(instance.edges.source):,} precedences",
        f"{devices:,} device{'s' * (devices != 1)} in {pools:,} pool{'s' * (pools != 1)}",
        f"minimise {instance.objective.label}",
    ]
    return "  ·  ".join(facts)


def _schedules(instance: Instance, results: Sequence[Result]) -> str:
    """One chart per result that has a schedule, on one common time axis."""
    drawn = [result for result in results if result.schedule is not None]
    if not drawn:
        return ""
    end = _end_of_time(instance, drawn)
    tabs, panels = [], []
    for k, result in enumerate(drawn):
        tabs.append(f'<button type="button" data-panel="{k}">{escape(result.solver)}</button>')
        panels.append(_panel(instance, result, end, k))
    buttons = f'<nav class="tabs">{"".join(tabs)}</nav>' if len(drawn) > 1 else ""
    return f'<section class="schedules"><div class="head"><h2>Schedule</h2>{buttons}</div>{"".join(panels)}</section>'


def _panel(instance: Instance, result: Result, end: float, k: int) -> str:
    assert result.schedule is not None
    scale = gantt.scale_of(instance, end, LEFT, WIDTH - LEFT - RIGHT)
    chart, bottom = gantt.draw(instance, result.schedule, scale, 4.0)
    trace = bands.coarse(power_trace(instance, result.schedule))
    curve, height = power_chart.draw(instance, trace, scale, bottom)
    strips, strip_end = tariff_chart.draw(instance, scale, height if curve else bottom + 8)
    bottom = strip_end
    cursor = svg.line(0, 28, 0, bottom - (0 if strips else power_chart.FOOT if curve else 8), class_="cursor")
    image = svg.tag(
        "svg",
        chart + curve + strips + cursor,
        viewBox=f"0 0 {WIDTH:g} {svg.num(bottom)}",
        class_="chart gantt",
        role="img",
        aria_label=f"Gantt chart of {result.solver}",
    )
    axis = {"left": LEFT, "width": WIDTH - LEFT - RIGHT, "end": end, "step_s": scale.step_s}
    if curve:
        total = trace.busy_w.sum(axis=0) + trace.rest_w.sum(axis=0)
        axis |= {"t": trace.t.tolist(), "w": total.tolist(), "transfer_j": float(trace.transfer_j.sum())}
    banded = bands.needed(instance, result.schedule)
    keys = f'<p class="legend">{_legend(instance, banded)}</p>'
    note = f'<p class="note">{escape(power_chart.caption(instance, result.metrics))}</p>'
    below = f'<p class="legend">{power_chart.legend(instance, trace)}</p>{note}'
    return (
        f'<figure class="panel" data-panel="{k}"><figcaption>{html_tables.headline(instance, result)}</figcaption>{keys}'
        f'<div class="scroll">{image}</div>{below if curve else ""}'
        f'<script type="application/json">{json.dumps(axis, allow_nan=False)}</script></figure>'
    )


def _legend(instance: Instance, banded: bool) -> str:
    group, names = colours.groups(instance)
    out = []
    if len(names) <= 24 and len(names) < instance.num_tasks:
        for g, name in enumerate(names):
            if (group == g).any():
                paint = colours.colour(colours.TASKS, g)
                out.append(f'<span><i class="key" style="background:{paint}"></i>{escape(name)}</span>')
    if not banded and len(np.unique(instance.modes.clock[np.isfinite(instance.modes.clock)])) > 1:
        out.append('<span class="hint">paler: lower clock</span>')
    if np.isfinite(instance.tasks.deadline).any():
        hint = []
        if (np.isfinite(instance.tasks.deadline) & instance.tasks.deadline_hard).any():
            hint.append("▼ hard deadline")
        if (np.isfinite(instance.tasks.deadline) & ~instance.tasks.deadline_hard).any():
            hint.append("▽ due date")
        out.append(f'<span class="hint">{", ".join(hint)}</span>')
    words = "point at a bar for details and dependencies"
    if banded:
        words = f"too many tasks for bars: bands are as high as the devices in use, averaged over 1/{bands.COLUMNS} of the time"
    out.append(f'<span class="hint">{words}</span>')
    return "".join(out)


def _end_of_time(instance: Instance, results: Sequence[Result]) -> float:
    ends = [float(result.schedule.end.max(initial=0)) for result in results if result.schedule is not None]
    end = max([*ends, instance.horizon or 0.0, 1e-9])
    deadline = instance.tasks.deadline
    near = deadline[np.isfinite(deadline) & (deadline <= DEADLINE_ROOM * end)]
    return max(end, float(near.max(initial=0.0)))


def _trajectories(instance: Instance, results: Sequence[Result]) -> str:
    charts = []
    for level in range(instance.objective.num_levels):
        chart = trajectory_chart.draw(results, level)
        if chart:
            name = escape(instance.objective.level(level).label)
            charts.append(f'<figure><figcaption>{name}</figcaption><div class="scroll">{chart}</div></figure>')
    if not charts:
        return ""
    words = "Solid: best verified objective so far. Dashed: certified lower bound. Where they meet, the schedule is optimal."
    note = f'<p class="note">{words}</p>'
    return f'<section><div class="head"><h2>Search</h2></div>{"".join(charts)}{note}</section>'


def _provenance(instance: Instance, results: Sequence[Result]) -> str:
    libraries = []
    for name in LIBRARIES:
        try:
            libraries.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    seeds = sorted({result.seed for result in results})
    return "  ·  ".join(
        [
            f"optbench {__version__}",
            f"Python {platform.python_version()}",
            *libraries,
            f"{platform.system()} {platform.machine()}",
            f"{os.cpu_count()} cores",
            f"seed {', '.join(map(str, seeds))}" if seeds else "",
            f"instance {instance.hash[:12]}",
        ]
    ).replace("  ·    ·  ", "  ·  ")
