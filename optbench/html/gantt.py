"""Gantt charts: a lane per device, a bar per segment, deadlines as flags, transfers as lines."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optbench.html import axes, bands, colours, svg
from optbench.html.axes import Axis
from optbench.html.marks import short
from optbench.html.quantities import amount
from optbench.model.instance import Bools, Instance
from optbench.model.lanes import Block, assign_lanes
from optbench.model.metrics import first_and_last
from optbench.model.schedule import Schedule
from optbench.model.task_progress import segment_energy_j

AXIS, FLAGS, POOL_GAP = 24.0, 20.0, 8.0
LANES_HEIGHT, LANE_MOST, LANE_LEAST = 520.0, 30.0, 3.0
LETTER = 6.4  # width of a letter of a bar's label
LEAST_LETTERS = 6  # a name cut shorter than this is not shown
# Dependencies are drawn (and shown under the pointer) up to this many.
EDGES_SHOWN = 600
# Flags are drawn of every deadline up to this many, of missed ones beyond.
FLAGS_SHOWN = 150
# More lanes than this share the height that there is.
MOST_LANES = 400


@dataclass(frozen=True)
class GanttRows:
    """The rows of pools: top and number of lanes by pool, and the height of a lane."""

    top: dict[int, float]
    lanes: dict[int, int]
    height: float
    bottom: float

    def y(self, pool: int, lane: float) -> float:
        return self.top[pool] + lane * self.height


@dataclass(frozen=True)
class Chart:
    """The arguments that the drawing functions share."""

    instance: Instance
    schedule: Schedule
    axis: Axis
    rows: GanttRows
    blocks: list[Block]
    fills: list[str]
    late: Bools

    @cached_property
    def middles(self) -> dict[int, float]:
        """Height of the middle of each segment's first block."""
        out: dict[int, float] = {}
        for block in self.blocks:
            out.setdefault(block.segment, self.rows.y(block.pool, block.lane + block.height / 2))
        return out


def draw(instance: Instance, schedule: Schedule, axis: Axis, top: float) -> tuple[str, float]:
    """The SVG content of the chart from ``top`` on, and its lower end."""
    banded = bands.is_needed(schedule)
    blocks = [] if banded else assign_lanes(instance, schedule)
    used = bands.peaks(instance, schedule) if banded else _used(blocks)
    has_flags = bool(np.isfinite(instance.tasks.deadline).any())
    rows = _rows(instance, used, top + AXIS + (FLAGS if has_flags else 0.0))
    group, _ = colours.groups(instance)
    clock = instance.modes.clock[schedule.mode]
    hues = [colours.colour(colours.TASKS, int(group[t])) for t in schedule.task]
    fills = [colours.shade(hue, c) for hue, c in zip(hues, clock)]
    chart = Chart(instance, schedule, axis, rows, blocks, fills, _late(instance, schedule))
    grid = axes.columns(axis, top + AXIS - 6, rows.bottom, top + AXIS - 11)
    parts = [_lanes(chart), grid, _transfers(chart), _bars(chart, banded), _dependencies(chart)]
    if has_flags:
        parts.append(_flags(chart, top + AXIS))
    return "".join(parts), rows.bottom


def _used(blocks: list[Block]) -> dict[int, int]:
    """Lanes in use of each pool."""
    used: dict[int, int] = {}
    for block in blocks:
        used[block.pool] = max(used.get(block.pool, 0), block.lane + block.height)
    return used


def _rows(instance: Instance, used: dict[int, int], top: float) -> GanttRows:
    declared = {p: int(n) for p, n in enumerate(instance.pools.count)}
    lanes = {p: max(declared.get(p, 0), used.get(p, 0)) for p in sorted({*declared, *used})}
    if sum(lanes.values()) > 200:  # rows for devices that are never used would hide the others
        lanes = {p: used[p] for p in lanes if p in used}
    least = LANE_LEAST if sum(lanes.values()) <= MOST_LANES else 0.0
    height = min(LANE_MOST, max(least, LANES_HEIGHT / max(1, sum(lanes.values()))))
    tops, y = {}, top
    for p, count in lanes.items():
        tops[p] = y
        y += count * height + POOL_GAP
    return GanttRows(tops, lanes, height, y - POOL_GAP)


def _lanes(chart: Chart) -> str:
    """Backgrounds and names of the pools."""
    rows, axis, pools = chart.rows, chart.axis, chart.instance.pools
    out = []
    for p, count in rows.lanes.items():
        whole = count * rows.height
        out.append(svg.rect(axis.start, rows.top[p], axis.length, whole, class_="lane"))
        for k in range(1, count if rows.height >= 8 else 1):
            y = rows.y(p, k)
            out.append(svg.line(axis.start, y, axis.end, y, class_="lane-line"))
        name = pools.names[p] if p >= 0 else "no device"
        idle = f" of {pools.count[p]}" if p >= 0 and count < pools.count[p] else ""
        size = f"{count}{idle} device{'s' if count != 1 else ''}" if p >= 0 else ""
        middle, roomy = rows.top[p] + whole / 2, whole >= 28
        y = middle - 2 if roomy else middle + 4
        out.append(svg.text(axis.start - 12, y, short(name, 18), class_="pool"))
        if roomy:
            out.append(svg.text(axis.start - 12, middle + 12, size, class_="pool-size"))
    return "".join(out)


def _bars(chart: Chart, banded: bool) -> str:
    if banded:
        rows = chart.rows
        return bands.draw(
            chart.instance, chart.schedule, chart.axis, rows.top, rows.lanes, rows.height
        )
    first: dict[int, Block] = {}
    for block in chart.blocks:  # the label goes on the tallest block of a segment
        if block.segment not in first or block.height > first[block.segment].height:
            first[block.segment] = block
    return "".join(_bar(chart, block, first[block.segment] is block) for block in chart.blocks)


def _bar(chart: Chart, block: Block, labelled: bool) -> str:
    s, k, rows = chart.schedule, block.segment, chart.rows
    task = int(s.task[k])
    x = chart.axis.at(float(s.start[k]))
    width = max(1.0, chart.axis.at(float(s.end[k])) - x)
    inset = 1.0 if rows.height >= 8 else 0.25
    y, height = rows.y(block.pool, block.lane) + inset, block.height * rows.height - 2 * inset
    drawn, radius = max(0.6, width - 0.6), 3.0 if rows.height >= 12 else None
    fill, late = chart.fills[k], "late" if chart.late[task] else None
    rect = svg.rect(x + 0.3, y, drawn, height, rx=radius, fill=fill, class_=late)
    parts = [svg.title(describe(chart.instance, s, k)), rect]
    if labelled:
        parts += _label(chart, k, x, y, width, height)
    return svg.tag("g", "".join(parts), class_="bar", data_t=task)


def _label(chart: Chart, k: int, x: float, y: float, width: float, height: float) -> Iterable[str]:
    """The task's name, and its clock when there is room."""
    name = chart.instance.tasks.name(int(chart.schedule.task[k])).rpartition("/")[2]
    clock = float(chart.instance.modes.clock[chart.schedule.mode[k]])
    note = "" if math.isnan(clock) else f"{100 * clock:.3g} %"
    middle, room = y + height / 2, int((width - 8) / LETTER)
    if height < 10 or room < min(len(name), LEAST_LETTERS):
        return
    two_lines = bool(note) and height >= 27 and room >= len(note)
    shown = name if len(name) <= room else name[: max(1, room - 1)] + "…"
    if not two_lines and note and len(name) + len(note) + 2 <= room:
        shown = f"{name}  {note}"
    yield svg.text(x + width / 2, middle + (-1.5 if two_lines else 3.8), shown, class_="bar-name")
    if two_lines:
        yield svg.text(x + width / 2, middle + 11, note, class_="bar-note")


def describe(instance: Instance, schedule: Schedule, k: int) -> list[str]:
    """The tooltip of a segment, by line."""
    tasks, modes = instance.tasks, instance.modes
    task, mode = int(schedule.task[k]), int(schedule.mode[k])
    write = time_axis(instance, 1.0).write
    start, end = float(schedule.start[k]), float(schedule.end[k])
    kind = colours.kind_label(instance, task)
    lines = [f"{tasks.name(task)}  ·  {kind}" if kind else tasks.name(task)]
    needs = range(int(modes.req_ptr[mode]), int(modes.req_ptr[mode + 1]))
    where = ", ".join(
        f"{modes.req_count[r]} × {instance.pools.names[modes.req_pool[r]]}" for r in needs
    )
    clock = float(modes.clock[mode])
    lines.append(
        (where or "no device") + ("" if math.isnan(clock) else f"  ·  clock {100 * clock:.3g} %")
    )
    lines.append(f"{write(start)} to {write(end)}  ·  {write(end - start)}")
    columns = (schedule.task, schedule.mode, schedule.start, schedule.end)
    segment = Schedule(*(column[k : k + 1] for column in columns))
    energy = float(segment_energy_j(instance, segment)[0])
    if energy > 0 and end > start:
        lines.append(
            f"{amount(energy, 'J')}  ·  {amount(energy / ((end - start) * instance.tick_s), 'W')}"
        )
    deadline = float(tasks.deadline[task])
    if math.isfinite(deadline):
        slack = deadline - end
        verdict = f"{write(slack)} to spare" if slack >= 0 else f"{write(-slack)} late"
        lines.append(
            f"{'deadline' if tasks.deadline_hard[task] else 'due'} {write(deadline)}  ·  {verdict}"
        )
    return lines


def _late(instance: Instance, schedule: Schedule) -> Bools:
    """The tasks that end after their deadline."""
    finish = np.zeros(instance.num_tasks)
    np.maximum.at(finish, schedule.task, schedule.end.astype(float))
    return np.asarray(finish > instance.tasks.deadline)


def _flags(chart: Chart, top: float) -> str:
    """A flag per deadline within the chart: filled if hard, hollow if penalised, red if missed."""
    tasks, axis, out = chart.instance.tasks, chart.axis, []
    group, _ = colours.groups(chart.instance)
    out.append(svg.text(axis.start - 12, top + 12, "deadlines", class_="pool-size"))
    shown = np.flatnonzero(np.isfinite(tasks.deadline) & (tasks.deadline <= axis.high))
    if len(shown) > FLAGS_SHOWN:
        shown = shown[chart.late[shown]][:FLAGS_SHOWN]
    for i in shown.tolist():
        x = axis.at(float(tasks.deadline[i]))
        words = "missed" if chart.late[i] else "met"
        hard = bool(tasks.deadline_hard[i])
        what, when = "deadline" if hard else "due date", axis.write(float(tasks.deadline[i]))
        label = svg.title([f"{what} of {tasks.name(i)}: {when}, {words}"])
        hue = colours.colour(colours.TASKS, int(group[i]))
        triangle = f"M{svg.num(x)} {svg.num(top + 17)}l-5 -9h10z"
        shape = svg.path(triangle, fill=hue, stroke=hue)
        stem = svg.line(x, top + 16, x, chart.rows.bottom, class_="stem")
        kind = "flag" + ("" if hard else " soft") + (" missed" if chart.late[i] else "")
        out.append(svg.tag("g", label + stem + shape, class_=kind, data_t=i))
    return "".join(out)


def _transfers(chart: Chart) -> str:
    """Transfers between pools, from the end of the producer to the arrival at the consumer."""
    instance, s = chart.instance, chart.schedule
    edges = instance.edges
    heavy = np.flatnonzero(edges.data_gb > 0)
    if len(heavy) == 0 or len(heavy) > EDGES_SHOWN:
        return ""
    primary = instance.modes.primary[s.mode]
    first, last = first_and_last(instance, s)
    middle, name = chart.middles, instance.tasks.name
    out = []
    for e in heavy.tolist():
        a, b = int(last[edges.source[e]]), int(first[edges.target[e]])
        if primary[a] == primary[b] or a not in middle or b not in middle:
            continue
        lag = float(instance.lag(primary[a], primary[b], edges.data_gb[e], float(s.end[a])))
        linked, sent = math.isfinite(lag), float(s.end[a])
        x1, x2 = chart.axis.at(sent), chart.axis.at(sent + (lag if linked else 0.0))
        names = instance.pools.names
        ends = f"from {name(int(edges.source[e]))} to {name(int(edges.target[e]))}"
        took = chart.axis.write(lag) if linked else "no link"
        way = f"{names[primary[a]]} → {names[primary[b]]}  ·  {took}"
        label = svg.title([f"{edges.data_gb[e]:g} GB {ends}", way])
        line = svg.line(x1, middle[a], x2, middle[b])
        dot = svg.circle(x2, middle[b], 2.2)
        out.append(svg.tag("g", label + line + dot, class_="transfer"))
    return "".join(out)


def _dependencies(chart: Chart) -> str:
    """Curves between bars, hidden until the pointer is on one of their ends."""
    instance, s = chart.instance, chart.schedule
    edges = instance.edges
    if not 0 < len(edges.source) <= EDGES_SHOWN:
        return ""
    first, last = first_and_last(instance, s)
    middle, out = chart.middles, []
    for source, target in zip(edges.source.tolist(), edges.target.tolist(), strict=True):
        a, b = int(last[source]), int(first[target])
        if a in middle and b in middle:
            x1, x2 = chart.axis.at(float(s.end[a])), chart.axis.at(float(s.start[b]))
            bend = max(14.0, (x2 - x1) / 2)
            points = [x1, middle[a], x1 + bend, middle[a], x2 - bend, middle[b], x2, middle[b]]
            n = [svg.num(v) for v in points]
            path = f"M{n[0]} {n[1]}C{n[2]} {n[3]} {n[4]} {n[5]} {n[6]} {n[7]}"
            out.append(svg.path(path, class_="dep", data_a=source, data_b=target))
    return "".join(out)


def tick_seconds(instance: Instance) -> float | None:
    """Seconds in a tick, or None in a classical instance, whose times have no unit."""
    powered = bool(instance.pools.rest_w.any() or instance.modes.energy_per_unit_j.any())
    physical = instance.tick_s != 1.0 or "makespan" not in instance.objective.metrics
    return instance.tick_s if powered or physical else None


def time_axis(instance: Instance, end: float, start: float = 0.0, length: float = 1.0) -> Axis:
    """The axis of an instance's time from 0 to ``end``."""
    return axes.times(start, length, max(end, 1e-9), tick_seconds(instance))
