"""Charts of schedules with thousands of segments: bands of occupancy instead of bars, and average power, with the same areas.

Time is cut into equal columns. A band is as high as the mean number of devices that a group of tasks holds in the column; the
power of a column is its mean. Device-time and energy are therefore those of the schedule, column by column.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from optbench.html import colours, svg
from optbench.html.axes import Axis
from optbench.model.instance import Floats, Instance, Ints
from optbench.model.metrics import PowerTrace, profile_of, requirements
from optbench.model.schedule import Schedule

# Bars, and steps of the power curve, that are drawn one by one; and the columns that replace them.
MOST_BARS, MOST_STEPS, COLUMNS = 2000, 2000, 600


def is_needed(schedule: Schedule) -> bool:
    """Whether there are too many segments to draw each."""
    return schedule.num_segments > MOST_BARS


def peaks(instance: Instance, schedule: Schedule) -> dict[int, int]:
    """Most devices busy at once in each pool that is used."""
    row, pool, count = requirements(instance, schedule.mode)
    start, end = schedule.start.astype(float)[row], schedule.end.astype(float)[row]
    out = {}
    for p in np.unique(pool).tolist():
        here = (pool == p) & (end > start)
        if here.any():
            out[p] = int(np.rint(profile_of(start[here], end[here], count[here].astype(float))[1].max()))
    return out


def occupancy(instance: Instance, schedule: Schedule, group: Ints, edges: Floats) -> Floats:
    """``held[pool, group, column]``: mean devices held between the edges."""
    row, pool, count = requirements(instance, schedule.mode)
    start, end = schedule.start.astype(float)[row], schedule.end.astype(float)[row]
    of = group[schedule.task][row]
    held = np.zeros((instance.num_pools, int(group.max(initial=0)) + 1, len(edges) - 1))
    for p, g in np.unique(np.column_stack((pool, of)), axis=0).tolist():
        here = (pool == p) & (of == g)
        held[p, g] = column_means(start[here], end[here], count[here].astype(float), edges)
    return held


def column_means(start: Floats, end: Floats, value: Floats, edges: Floats) -> Floats:
    """Mean over each column of the sum of values over [start, end)."""
    t, level = profile_of(start, end, value)
    t = np.concatenate((t, [max(float(t[-1]), float(edges[-1])) + 1.0]))
    area = np.concatenate(([0.0], np.cumsum(level * np.diff(t))))
    return np.asarray(np.diff(np.interp(edges, t, area)) / np.diff(edges), dtype=float)


def draw(
    instance: Instance, schedule: Schedule, axis: Axis, top: dict[int, float], lanes: dict[int, int], height: float
) -> str:
    """Bands of each pool's groups, stacked from the pool's last lane up."""
    group, names = colours.groups(instance)
    if len(names) == instance.num_tasks:
        group, names = np.zeros(instance.num_tasks, dtype=np.int64), ("tasks",)
    edges = np.linspace(0.0, axis.high, COLUMNS + 1)
    held = occupancy(instance, schedule, group, edges)
    xs = [axis.at(t) for t in edges.tolist()]
    out = []
    for p in lanes:
        if p < 0:
            continue
        base = top[p] + lanes[p] * height
        level = np.zeros(COLUMNS)
        for g in range(len(names)):
            if held[p, g].any():
                above = level + held[p, g]
                shape = svg.band(xs, (base - height * above).tolist(), (base - height * level).tolist())
                words = [names[g], f"{instance.pools.names[p]}  ·  at most {held[p, g].max():.3g} devices"]
                fill = colours.colour(colours.TASKS, g)
                out.append(svg.tag("g", svg.title(words) + svg.tag("path", d=shape, fill=fill), class_="band"))
                level = above
    return "".join(out)


def coarse(trace: PowerTrace) -> PowerTrace:
    """The same trace where it has few steps, else its mean power over equal columns; transfers are gathered by column."""
    if len(trace.t) <= MOST_STEPS:
        return trace
    edges = np.linspace(0.0, float(trace.t[-1]), COLUMNS + 1)
    column = np.clip(np.searchsorted(edges, trace.transfer_t, side="right") - 1, 0, COLUMNS - 1)
    sent = np.bincount(column, weights=trace.transfer_j, minlength=COLUMNS).astype(float)
    means = (_means(trace.t, watts, edges) for watts in (trace.busy_w, trace.rest_w))
    busy_w, rest_w = means
    return replace(trace, t=edges, busy_w=busy_w, rest_w=rest_w, transfer_t=edges[:-1], transfer_j=sent)


def _means(t: Floats, watts: Floats, edges: Floats) -> Floats:
    energy = np.concatenate((np.zeros((len(watts), 1)), np.cumsum(watts * np.diff(t), axis=1)), axis=1)
    return np.asarray([np.diff(np.interp(edges, t, row)) / np.diff(edges) for row in energy], dtype=float)
